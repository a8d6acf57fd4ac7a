"""Which token each value comes from, and how many different maps there are.

Shapes in names: n samples, c channels.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

import shiftsort

from ..mixers.csp import CSPMixer
from . import style
from .subject import Subject, watch

MIXERS = ("csp",)
#: What is counted on random values: the group size and the shifts, each by its name.
KINDS: dict[str, tuple[int | None, str]] = {
    "linear shifts": (1, "linear"),
    "power-law shifts": (1, "exponential"),
    "linear shifts, pairs sorted": (2, "linear"),
    "pairs sorted": (2, "none"),
    "all sorted": (None, "none"),
}


@dataclass(frozen=True)
class Maps:
    """Where samples come from in one layer of a model, and the counts."""

    subject: str
    layer: int
    channels: list[int]
    #: How far each of these shifts.
    steps: list[int]
    #: For each channel, where each sample comes from: y[n] = v[sources[n]].
    sources: list[list[int]]
    #: The same through P_c^T P_c', for each two channels that follow each other above.
    composed: list[list[int]]
    #: Different maps in each layer, mean over the sequences; and the width of a layer.
    heads: list[float]
    width: int
    #: Of the layer; 1 only shifts.
    group_size: int | None
    #: On random values, as wide: the lengths, and the different maps at each, by kind.
    lengths: list[int]
    counts: dict[str, list[int]]

    def findings(self) -> list[str]:
        """What the numbers say."""
        heads = ", ".join(f"{count:.1f}" for count in self.heads)
        told = [f"{self.subject}: {heads} of {self.width} maps of a layer differ, layer by layer."]
        for kind, counts in self.counts.items():
            shifts = kind.endswith("shifts")
            fewer = [
                samples
                for samples, count in zip(self.lengths, counts, strict=True)
                if count < (min(samples, self.width) if shifts else self.width)
            ]
            told.append(
                f"Random values, C = {self.width}, {kind}: {'min(N, C)' if shifts else 'C'} maps, "
                f"but fewer at {len(fewer)} of {len(counts)} lengths"
                + (f", the first N = {fewer[0]}, the last N = {fewer[-1]}." if fewer else ".")
            )
        return told


def count_maps(p_nc: Tensor) -> int:
    """How many of the channels' maps differ, given as `shiftsort.permutation` gives them."""
    return len(torch.unique(p_nc, dim=1).T)


def measure(
    subjects: Sequence[Subject],
    layer: int = -1,
    channels: Sequence[int] | None = None,
    lengths: Sequence[int] | None = None,
) -> Maps:
    """The maps of one layer of the last model on its first sample; counts for layers as wide."""
    subject = subjects[-1]
    layers = subject.mixers(CSPMixer)
    found = [
        [_sources(mixer, x_nc) for x_nc, _ in seen]
        for mixer, seen in zip(layers, watch(subject, layers), strict=True)
    ]
    p_nc = found[layer][0]
    samples, width = p_nc.shape
    if channels is None:
        # The third shifts as far as the second where linear shifts come round.
        second = width // 12
        third = second + samples if second + samples < width else width // 3
        channels = (0, second, third, 2 * width // 3)
    if lengths is None:
        lengths = range(max(width // 16, 1), 4 * width + 1, max(width // 16, 1))
    steps = _steps(layers[layer], samples)
    maps = [p_nc[:, c] for c in channels]
    return Maps(
        subject=subject.name,
        layer=layer % len(layers),
        channels=list(channels),
        steps=[int(steps[c]) % samples for c in channels],
        sources=[p.tolist() for p in maps],
        composed=[compose(p, other).tolist() for p, other in pairwise(maps)],
        heads=[sum(map(count_maps, each)) / len(each) for each in found],
        width=width,
        group_size=layers[layer].csp.group_size,
        lengths=list(lengths),
        counts={
            kind: [count_on_random(kind, samples, width) for samples in lengths] for kind in KINDS
        },
    )


def count_on_random(kind: str, samples: int, channels: int) -> int:
    """On normally distributed values of a fixed seed."""
    group_size, shift = KINDS[kind]
    v_nc = torch.randn(samples, channels, generator=torch.Generator().manual_seed(0))
    steps = shiftsort.shift_steps(shift, samples, channels)
    return count_maps(shiftsort.permutation(v_nc, steps, group_size))


def compose(p_n: Tensor, other_n: Tensor) -> Tensor:
    """P_c^T P_c': which sample of channel c' meets sample m of channel c.

    Row m of P_c^T has its one where P_c puts sample m.
    """
    return other_n[p_n.argsort()]


def _sources(mixer: CSPMixer, x_nc: Tensor) -> Tensor:
    csp = mixer.csp
    v_nc = torch.nn.functional.linear(x_nc, csp.weight, csp.bias)
    return shiftsort.permutation(v_nc, _steps(mixer, len(x_nc)), csp.group_size, order=csp.order)


def _steps(mixer: CSPMixer, samples: int) -> Tensor:
    csp = mixer.csp
    return shiftsort.shift_steps(
        csp.shift,
        samples if csp.samples is None else csp.samples,
        csp.channels,
        layer=csp.layer,
        depth=csp.depth,
        heads=csp.heads,
    )


@style.drawn
def draw(data: Maps) -> Figure:
    """The maps as squares, their compositions, and the counts against N."""
    title = "Sorting makes each channel a head of its own, even where two shift alike"
    if data.group_size == 1:
        title = f"Channels that shift alike share a map: {data.heads[data.layer]:.0f} heads"
    figure = style.figure(title, 7.2)
    top, bottom = figure.subfigures(2, 1, height_ratios=[1.1, 1])
    squares = top.subplots(2, len(data.channels))
    shown = zip(squares[0], data.channels, data.steps, data.sources, strict=True)
    for axes, c, step, sources in shown:
        _square(axes, sources, style.BLUE)
        axes.set_title(f"channel {c}, shift {step}", fontsize=10)
    pairs = pairwise(data.channels)
    for axes, (c, other), sources in zip(squares[1], pairs, data.composed, strict=False):
        _square(axes, sources, style.VIOLET)
        axes.set_title(f"{c} meets {other}", fontsize=10)
    squares[0, 0].set_ylabel("to token")
    squares[0, 0].set_xlabel("from token", labelpad=-6)
    squares[1, -1].axis("off")
    squares[1, -1].text(
        0,
        0.5,
        f"{data.subject}:\nlayer {data.layer + 1} on one image.\n\n"
        "Blue: where a value\ncomes from.\n\n"
        "Violet: which tokens\nof two channels\nnow stand together.",
        va="center",
        fontsize=9,
    )
    _draw_counts(bottom.subplots(), data)
    return figure


def _square(axes: Axes, sources: list[int], colour: str) -> None:
    last = len(sources) - 1
    size = max(90 / len(sources), 1.2)
    axes.plot(sources, range(len(sources)), "s", color=colour, markersize=size)
    axes.set(xlim=(-0.7, last + 0.7), ylim=(last + 0.7, -0.7), aspect="equal")
    axes.set_xticks([0, last])
    axes.set_yticks([0, last])
    axes.tick_params(labelsize=8, length=0)
    axes.grid(False)
    axes.spines[:].set_visible(True)


def _draw_counts(axes: Axes, data: Maps) -> None:
    colours = (style.ORANGE, style.GREEN, style.BLUE, style.BLUE, style.BLUE)
    for counts, colour in zip(data.counts.values(), colours, strict=True):
        axes.plot(data.lengths, counts, color=colour)
    linear, power_law, *_ = data.counts.items()
    for (kind, counts), colour, at, place in (
        (linear, style.ORANGE, 0.2, {"xytext": (-4, 0), "ha": "right"}),
        (power_law, style.GREEN, 0.6, {"xytext": (0, -11)}),
    ):
        at = round(at * (len(counts) - 1))
        style.label(axes, data.lengths[at], counts[at], kind, colour, **place)
    style.label(
        axes,
        data.lengths[len(data.lengths) // 2],
        data.width,
        "with a sort (of pairs, of shifted pairs, or of all): every channel",
        style.BLUE,
        xytext=(0, 9),
        ha="center",
    )
    axes.set_xlim(0, data.lengths[-1])
    axes.set_ylim(0, data.width * 1.2)
    axes.set_xlabel("N, tokens")
    axes.set_ylabel("different maps")
    axes.set_title(
        f"Shifts alone give min(N, C) maps at most, and often fewer (C = {data.width} channels)"
    )
