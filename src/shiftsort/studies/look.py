"""A picture of the operator at work on one handwritten digit.

Shapes: N tokens, C channels.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.patches import Rectangle
from matplotlib.ticker import ScalarFormatter
from torch import Tensor

import shiftsort

from .style import BLUE, COLOURS, INK, ORANGE

_PATCH = 2
_DIGIT = 0
_CHANNELS = ("top left", "top right", "bottom left", "bottom right")
#: The value that is drawn white: below zero, so that a zero is seen to be there.
_PAPER = -2


@dataclass(frozen=True)
class Timing:
    """Milliseconds of one way to mix tokens, for each length."""

    name: str
    milliseconds: dict[int, float]


def digit_tokens() -> Tensor:
    """A digit of 8 x 8 pixels as (N, C) = (16, 4): each patch a token, its pixels the channels."""
    from sklearn.datasets import load_digits

    return to_tokens(torch.from_numpy(load_digits().images[_DIGIT]).float())


def to_tokens(image: Tensor) -> Tensor:
    """Patches of 2 x 2 in reading order."""
    rows, columns = (size // _PATCH for size in image.shape)
    patches = image.reshape(rows, _PATCH, columns, _PATCH).transpose(1, 2)
    return patches.reshape(rows * columns, _PATCH * _PATCH)


def to_image(v_nc: Tensor) -> Tensor:
    """The inverse of `to_tokens`, for a square image."""
    side = round(len(v_nc) ** 0.5)
    patches = v_nc.reshape(side, side, _PATCH, _PATCH).transpose(1, 2)
    return patches.reshape(side * _PATCH, side * _PATCH)


def draw(path: Path, timings: Sequence[Timing] = (), device: str = "") -> None:
    """The operator step by step; with timings, also its shifts at full size and its speed."""
    v_nc = digit_tokens()
    steps = shiftsort.shift_steps("linear", *v_nc.shape)
    heights = [6.9, 4.7, 3.7] if timings else [6.9, 4.7]
    figure = Figure(figsize=(12.5, 1.15 + sum(heights)), layout="constrained")
    figure.get_layout_engine().set(rect=(0, 0, 1, 1 - 1.1 / figure.get_figheight()))
    top = 1 - 0.42 / figure.get_figheight()
    figure.text(0.02, top, "Mixing tokens by shifting and sorting", fontsize=20, weight="bold")
    figure.text(
        0.02,
        top - 0.16 / figure.get_figheight(),
        "A Transformer must let its tokens exchange information. Attention weighs every token "
        "against every other, N x N products.\nThis operator only moves values: each channel is "
        "shifted round, then sorted in small groups. Nothing is weighed or averaged.",
        fontsize=11.5,
        va="top",
    )
    parts = figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    _draw_steps(parts[0], v_nc, steps)
    _draw_maps(parts[1], v_nc, steps)
    if timings:
        _draw_full_size(parts[2], timings, device)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def _draw_steps(part: SubFigure, v_nc: Tensor, steps: Tensor) -> None:
    shifted_nc = shiftsort.csp(v_nc, steps, 1)
    pairs_nc = shiftsort.csp(v_nc, steps, 2)
    sorted_nc = shiftsort.csp(v_nc, steps, None)
    each = int(steps[1])
    rows = (
        (
            v_nc,
            "the digit",
            [f"channel {c}, {name}" for c, name in enumerate(_CHANNELS)],
            "1  A digit, cut into 16 patches. Each patch is a token, its 4 pixels are 4 channels.",
        ),
        (
            shifted_nc,
            "its pixels, shifted",
            [f"channel {c}: {step} to the right" for c, step in enumerate(steps.tolist())],
            f"2  Shift. Each channel moves {each} tokens further than the one above it; "
            "what leaves on the right returns on the left.",
        ),
        (
            pairs_nc,
            "and sorted in pairs",
            [f"channel {c}" for c in range(len(steps))],
            "3  Sort in pairs. A channel must rise within a pair where channel 0 rises, and fall "
            "where it falls. Orange: swapped.",
        ),
        (
            sorted_nc,
            "or sorted all together",
            [f"channel {c}" for c in range(len(steps))],
            "or  Sort all 16 together. Each channel's largest value goes where channel 0 has its "
            "largest, and so on down.",
        ),
    )
    axes = part.subplots(len(rows), 2, width_ratios=[1, 6.2])
    for (x_nc, what, labels, title), (left, right) in zip(rows, axes, strict=True):
        _draw_image(left, to_image(x_nc))
        left.set_xlabel(what, fontsize=9)
        _draw_values(right, x_nc, labels)
        right.set_title(title, loc="left", fontsize=11)
    tokens = ["token 0", *(str(n) for n in range(1, len(v_nc)))]
    axes[0, 1].set_xticks(range(len(v_nc)), tokens, fontsize=9)
    _outline_pairs(axes[2, 1], pairs_nc != shifted_nc)


def _draw_image(axes: Axes, image: Tensor) -> None:
    axes.imshow(image.numpy(), cmap=INK, vmin=0, vmax=16)
    for edge in range(_PATCH, len(image), _PATCH):
        axes.axhline(edge - 0.5, color="silver", linewidth=0.6)
        axes.axvline(edge - 0.5, color="silver", linewidth=0.6)
    axes.set_xticks([])
    axes.set_yticks([])


def _draw_values(axes: Axes, x_nc: Tensor, labels: list[str]) -> None:
    axes.imshow(x_nc.T.numpy(), cmap=INK, vmin=_PAPER, vmax=16, aspect="auto")
    for n, values in enumerate(x_nc.tolist()):
        for c, value in enumerate(values):
            colour = "white" if value > 9 else "black"
            axes.text(n, c, f"{value:.0f}", ha="center", va="center", fontsize=9, color=colour)
    for edge in range(1, len(x_nc)):
        axes.axvline(edge - 0.5, color="white", linewidth=4 if edge % 2 == 0 else 0.8)
    axes.set_yticks(range(len(labels)), labels, fontsize=9)
    axes.set_xticks([])
    axes.tick_params(length=0, pad=3)


def _outline_pairs(axes: Axes, changed_nc: Tensor) -> None:
    for n, c in changed_nc[::2].nonzero().tolist():
        axes.add_patch(
            Rectangle(
                (2 * n - 0.44, c - 0.46), 1.88, 0.92, fill=False, edgecolor=ORANGE, linewidth=2
            )
        )


def _draw_maps(part: SubFigure, v_nc: Tensor, steps: Tensor) -> None:
    part.suptitle(
        "4  Where each value came from. One dot in each row and column: every channel is a "
        "permutation, chosen by the data.\n"
        "    Attention would fill such squares with N x N weights.",
        x=0.02,
        ha="left",
        fontsize=11,
    )
    axes = part.subplots(2, len(_CHANNELS))
    kinds = (("pairs", 2), ("all together", None))
    for row, (kind, group_size) in zip(axes, kinds, strict=True):
        p_cnn = shiftsort.attention_maps(v_nc, steps, group_size)
        for c, (square, p_nn) in enumerate(zip(row, p_cnn, strict=True)):
            to, source = p_nn.nonzero().T.tolist()
            square.scatter(source, to, s=16, marker="s", color=BLUE)
            square.set(xlim=(-0.7, 15.7), ylim=(15.7, -0.7), aspect="equal")
            square.set_xticks([0, 15])
            square.set_yticks([0, 15])
            square.tick_params(labelsize=8)
            square.set_title(f"{kind}, channel {c}", fontsize=10)
            if c == 0:
                square.set_ylabel("to token", fontsize=9)
            if group_size is None:
                square.set_xlabel("from token", fontsize=9, labelpad=-4)


def _draw_full_size(part: SubFigure, timings: Sequence[Timing], device: str) -> None:
    left, right = part.subplots(1, 2)
    samples, channels, depth = 1024, 512, 4
    linear = shiftsort.shift_steps("linear", samples, channels)
    left.plot(linear.numpy(), color=BLUE, label="linear: the same in every layer")
    for layer in range(depth):
        exponential = shiftsort.shift_steps(
            "exponential", samples, channels, layer=layer, depth=depth
        )
        label = "exponential: goes on from layer to layer" if layer == 0 else None
        left.plot(exponential.numpy(), color=ORANGE, alpha=0.35 + 0.2 * layer, label=label)
        end = (channels + 6, int(exponential[-1]))
        left.annotate(f"layer {layer + 1}", end, fontsize=8, color=ORANGE, va="center")
    left.set_xlim(-10, channels * 1.12)
    left.set_yscale("symlog", linthresh=1)
    left.set_yticks([0, 1, 10, 100, 1000], ["0", "1", "10", "100", "1000"])
    left.set_ylim(0, 15 * samples)  # room for the legend
    left.set_title(
        f"5  How far the channels of a real layer shift ({samples} tokens)", loc="left", fontsize=11
    )
    left.set_xlabel("channel")
    left.set_ylabel("shift, in tokens")
    left.legend(fontsize=9, frameon=False, loc="upper left")
    _draw_times(right, timings)
    right.set_title(f"6  Measured just now on {device}", loc="left", fontsize=11)


def _draw_times(axes: Axes, timings: Sequence[Timing]) -> None:
    for timing, colour in zip(timings, COLOURS, strict=False):
        lengths, times = zip(*sorted(timing.milliseconds.items()), strict=True)
        axes.plot(lengths, times, marker="o", color=colour, label=timing.name)
    slow, fast = (timings[i].milliseconds[lengths[-1]] for i in (0, 1))
    axes.annotate(
        f"{slow / fast:.0f} x ",
        (lengths[-1], (slow * fast**2) ** (1 / 3)),
        ha="right",
        fontsize=13,
        weight="bold",
    )
    axes.annotate(
        "",
        (lengths[-1], slow),
        (lengths[-1], fast),
        arrowprops={"arrowstyle": "<->", "shrinkA": 5, "shrinkB": 5},
    )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(lengths, [str(n) for n in lengths])
    axes.yaxis.set_major_formatter(ScalarFormatter())
    axes.set_xlabel("length N, in tokens")
    axes.set_ylabel("milliseconds")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=9, frameon=False)
