"""How far channels shift, and which samples can meet after some layers."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from matplotlib.figure import Figure
from torch import Tensor

import shiftsort

from . import style

#: The paper's power law as printed has the base floor(N^(1/(LC-1))).
PRINTED = "power law as printed"
KINDS = {"power law": "exponential", "linear": "linear", "heads": "heads", PRINTED: None}
_COLOURS = dict(zip(KINDS, (style.BLUE, style.ORANGE, style.GREEN, style.GRAY), strict=True))


@dataclass(frozen=True)
class Reach:
    """The share of all samples that one sample may have heard of, after each layer."""

    schedule: str
    group_size: int
    shares: list[float]

    @property
    def covers_at(self) -> int | None:
        """The first layer after which it is all of them."""
        return next((i + 1 for i, share in enumerate(self.shares) if share == 1), None)


@dataclass(frozen=True)
class Schedules:
    """The shifts of each channel of each layer, and how far they reach."""

    samples: int
    channels: int
    depth: int
    steps: dict[str, list[list[int]]]
    reaches: list[Reach]

    def findings(self) -> list[str]:
        """What the numbers say."""
        told = []
        for schedule, layers in self.steps.items():
            different = ", ".join(str(len(set(steps))) for steps in layers)
            parts = [
                f"G = {reach.group_size}: {max(reach.shares):.2%} after {len(reach.shares)} layers"
                if reach.covers_at is None
                else f"G = {reach.group_size}: all after layer {reach.covers_at}"
                for reach in self.reaches
                if reach.schedule == schedule
            ]
            told.append(
                f"{schedule}: {different} different shifts, layer by layer; of {self.samples:,} "
                f"tokens in reach, {'; '.join(parts)}."
            )
        return told


def measure(
    samples: int = 16_384,
    channels: int = 128,
    depth: int = 4,
    layers: int = 8,
    group_sizes: Sequence[int] = (1, 2, 32, 512),
) -> Schedules:
    """By default the paper's Path-X; a stack of more layers goes through the shifts again."""
    steps = {name: _steps(name, samples, channels, depth) for name in KINDS}
    return Schedules(
        samples,
        channels,
        depth,
        {name: [step.tolist() for step in of_layers] for name, of_layers in steps.items()},
        [
            Reach(name, size, [reach(samples, of_layers, size, n + 1) for n in range(layers)])
            for name, of_layers in steps.items()
            for size in group_sizes
        ],
    )


def printed_base(samples: int, channels: int, depth: int) -> int:
    """J of the paper: the floor of N^(1/(LC-1))."""
    exponent = depth * channels - 1
    base = int(samples ** (1 / exponent))
    return base + ((base + 1) ** exponent <= samples)  # a root in floating point may fall short


def _steps(name: str, samples: int, channels: int, depth: int) -> list[Tensor]:
    kind = KINDS[name]
    if kind is not None:
        return [
            shiftsort.shift_steps(kind, samples, channels, layer=layer, depth=depth)
            for layer in range(depth)
        ]
    base = printed_base(samples, channels, depth)
    g = range(depth * channels)
    return list(torch.tensor([(base**k - 1) % samples for k in g]).view(depth, channels))


def reach(samples: int, steps: list[Tensor], group_size: int, layers: int) -> float:
    """The share of samples that may change sample 0 of a stack's output.

    Within a group any sample may come to any place, and a channel's order depends on channel 0.
    Groups of a size that divides the length look all alike, so it is the same for every sample.
    """
    if samples % group_size:
        raise ValueError(f"group_size must divide samples={samples}, got {group_size}")
    heard = torch.zeros(samples, dtype=torch.bool)
    heard[0] = True
    for layer in reversed(range(layers)):
        groups = heard.view(-1, group_size).any(1, keepdim=True).expand(-1, group_size).flatten()
        heard = torch.zeros_like(heard)
        for step in {0, *steps[layer % len(steps)].tolist()}:
            heard |= groups.roll(-step)
    return float(heard.double().mean())


@style.drawn
def draw(data: Schedules) -> Figure:
    """The shifts, and the reach against the layers."""
    figure = style.figure(
        f"Power-law shifts reach all of {data.samples:,} tokens; the others stay among a few", 4.6
    )
    left, right = figure.subplots(1, 2, width_ratios=[1, 1.15])
    for name, of_layers in data.steps.items():
        steps = [step for layer in of_layers for step in layer]
        left.plot(steps, color=_COLOURS[name])
    left.set_yscale("symlog", linthresh=1)
    left.set_ylim(-0.3, 3 * data.samples)
    left.set_yticks([0, 10, 100, 1000, 10_000], ["0", "10", "100", "1,000", "10,000"])
    left.set_xticks([data.channels * layer for layer in range(data.depth + 1)])
    left.set_title(f"Shift of each channel, {data.depth} layers")
    left.set_xlabel(f"channel, {data.channels} a layer")
    left.set_ylabel("shift, in tokens")
    right.set_title("Tokens that one token can hear of")
    for reached in data.reaches:
        if reached.group_size > 2:
            continue
        shares = [1 / data.samples, *reached.shares]
        colour = _COLOURS[reached.schedule]
        right.plot(shares, color=colour, linestyle="-" if reached.group_size == 1 else "--")
        if reached.group_size == 1:
            name = reached.schedule.replace(" as", "\nas")
            style.label(right, len(shares) - 1, shares[-1], name, colour)
    right.set_yscale("log")
    parts = [1, 10, 100, 1000, 10_000]
    right.set_yticks([1 / part for part in parts], ["all", *(f"1 in {p:,}" for p in parts[1:])])
    right.set_xlabel("layers (dashed: pairs sorted)")
    return figure
