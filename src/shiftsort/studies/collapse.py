"""What is left of the differences between tokens, deep in a stack without skip connections.

Shapes in names: n samples, c channels.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

from .. import mixers
from ..nn import CSP
from . import style
from .residual import residual

#: None is attention; the others are what CSP takes.
STACKS: dict[str, dict[str, Any] | None] = {
    "attention": None,
    "shift": {"group_size": 1},
    "shift, sort pairs": {"group_size": 2},
    "sort all": {"group_size": None, "shift": "none"},
}
_COLOURS = dict(zip(STACKS, (style.ORANGE, style.GREEN, style.BLUE, style.VIOLET), strict=True))
#: Differences this small are rounding.
_EXACT = 1e-15


@dataclass(frozen=True)
class Stack:
    """One kind of layer, stacked."""

    name: str
    #: ||eps(X)||_{1,inf} as a share of what it was, and in how many directions tokens differ
    #: (None where they are the same).
    residuals: list[float]
    directions: list[float | None]


@dataclass(frozen=True)
class Collapse:
    """Stacks of random layers, looked at behind some of them."""

    samples: int
    channels: int
    layers: list[int]
    stacks: list[Stack]
    #: Theorem 1's bound for "shift, sort pairs", as a share of the residual at the start.
    bound: list[float]

    def findings(self) -> list[str]:
        """What the numbers say."""
        told = []
        for stack in self.stacks:
            shares = [share for share in stack.residuals if share >= _EXACT]
            if len(shares) < len(self.layers):
                gone = self.layers[len(shares)]
                left = ", ".join(f"{share:.1g}" for share in shares)
                told.append(
                    f"{stack.name}: {left} of the residual is left, layer by layer; after layer "
                    f"{gone} there is nothing but rounding."
                )
                continue
            told.append(
                f"{stack.name}: {stack.residuals[-1]:.2f} of the residual is left after "
                f"{self.layers[-1]} layers; tokens differ in {stack.directions[-1]:.1f} directions,"
                f" at the start in {stack.directions[0]:.1f}."
            )
        growth = (self.bound[-1] / self.bound[0]) ** (1 / self.layers[-1])
        told.append(f"Theorem 1 bounds the growth of the residual by {growth:.1f} a layer.")
        return told


def measure(
    samples: int = 32,
    channels: int = 16,
    heads: int = 4,
    layers: Sequence[int] = (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64),
    seed: int = 0,
) -> Collapse:
    """Orthogonal weights, which by themselves make nothing larger or smaller; float64."""
    torch.manual_seed(seed)
    x_nc = torch.randn(samples, channels, dtype=torch.float64)
    stacks, bound = [], [1.0] * len(layers)
    for name, options in STACKS.items():
        stack = _layers(options, samples, channels, heads, max(layers))
        seen = _run(stack, x_nc)
        start = residual(x_nc)
        stacks.append(
            Stack(
                name,
                [residual(seen[n]) / start for n in layers],
                [directions(seen[n]) for n in layers],
            )
        )
        if name == "shift, sort pairs":
            beta = max(norm_1(layer.weight) for layer in stack)
            bound = [float((channels**0.5 * beta) ** n) for n in layers]
    return Collapse(samples, channels, list(layers), stacks, bound)


def norm_1(weight: Tensor) -> float:
    """||W||_1 of the paper's W in XW: PyTorch keeps its transpose."""
    return float(weight.detach().abs().sum(1).max())


def directions(x_nc: Tensor) -> float | None:
    """In how many directions tokens differ from their mean: (sum s^2)^2 / sum s^4.

    k equal singular values s give k; those that are nearly 0 do not count.
    """
    squares = torch.linalg.svdvals(x_nc - x_nc.mean(0)) ** 2
    if squares[0] <= (_EXACT * float(x_nc.abs().max())) ** 2 * len(x_nc):
        return None
    return float(squares.sum() ** 2 / (squares**2).sum())


def _layers(
    options: dict[str, Any] | None, samples: int, channels: int, heads: int, depth: int
) -> list[nn.Module]:
    made: list[nn.Module] = []
    for layer in range(depth):
        if options is None:
            made.append(
                mixers.build("mha", dim=channels, samples=samples, heads=heads, out_bias=False)
            )
        else:
            made.append(CSP(channels, layer=layer, depth=depth, **options))
        made[-1].double()
        for weight in made[-1].parameters():
            for part in weight.data.split(channels):  # queries, keys and values
                nn.init.orthogonal_(part)
    return made


@torch.no_grad()
def _run(stack: list[nn.Module], x_nc: Tensor) -> list[Tensor]:
    seen = [x_nc]
    for layer in stack:
        seen.append(layer(seen[-1][None])[0])
    return seen


@style.drawn
def draw(data: Collapse) -> Figure:
    """The residual beside the bound, and the directions."""
    figure = style.figure("Attention alone makes all tokens the same; a permutation cannot", 4.6)
    left, right = figure.subplots(1, 2)
    for stack in data.stacks:
        colour = _COLOURS[stack.name]
        left.plot(data.layers, [max(share, _EXACT**2) for share in stack.residuals], color=colour)
        known = [(x, y) for x, y in zip(data.layers, stack.directions, strict=True) if y]
        right.plot(*zip(*known, strict=True), color=colour)
        above = {"xytext": (0, 13), "ha": "right"}
        place = {"xytext": (6, 2)} if stack.residuals[-1] < _EXACT else above
        style.label(right, *known[-1], stack.name, colour, **place)
    attention, *_, last = data.stacks
    fallen = next((i for i, share in enumerate(attention.residuals) if share < _EXACT), -1)
    style.label(left, data.layers[fallen], 1e-12, attention.name, style.ORANGE)
    style.label(
        left,
        data.layers[-1],
        last.residuals[-1],
        "shifts and sorts",
        style.BLUE,
        xytext=(-4, -14),
        ha="right",
    )
    left.plot(data.layers, data.bound, "--", color=style.GRAY)
    style.label(left, 4, 1e4, "theorem 1's bound", style.GRAY, xytext=(10, -6))
    left.set_yscale("log")
    left.set_ylim(1e-17, 1e6)
    left.set_title("Distance from all tokens alike, start = 1")
    right.set_ylim(0, 1.15 * max(n for stack in data.stacks for n in stack.directions if n))
    right.set_title("... but sorts leave few ways to differ")
    right.set_ylabel("directions in which tokens differ")
    for axes in (left, right):
        axes.set_xscale("symlog", linthresh=1, base=2)
        axes.set_xlim(0, data.layers[-1])
        ticks = [0, *(2**k for k in range(data.layers[-1].bit_length()))]
        axes.set_xticks(ticks, [str(n) for n in ticks])
        axes.set_xlabel("layers, without skip connections")
    return figure
