"""Group sorting as optimal transport, and Sinkhorn's plans on their way to it.

Shapes in names: t temperatures, g samples of a group.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib.colors
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.optimize import linear_sum_assignment
from torch import Tensor

import shiftsort

from ..mixers.balance import balance
from . import style


@dataclass(frozen=True)
class Transport:
    """Sorts beside optimal assignments, and the errors of Sinkhorn's plans."""

    #: Random groups of each size, and how many of the sorts are the optimal assignment.
    groups: dict[int, int]
    optimal: dict[int, int]
    group_size: int
    temperatures: list[float]
    #: The share of a plan's weight that is not where the sort has it, by iterations.
    misplaced: dict[int, list[float]]
    #: Two equal values: the share by which the coolest plan misses the sort, and by which it misses
    #: the mean of the two optimal assignments.
    tied: list[float]
    tied_mean: list[float]

    def findings(self) -> list[str]:
        """What the numbers say."""
        told = [
            f"Groups of {size}: {self.optimal[size]} of {count} sorts are the optimal assignment."
            for size, count in self.groups.items()
        ]
        for iterations, shares in self.misplaced.items():
            best = min(shares)
            at = self.temperatures[shares.index(best)]
            told.append(
                f"{iterations:,} iterations: {best:.1e} of the weight is misplaced at best, at "
                f"temperature {at:.2g}."
            )
        told.append(
            f"Two equal values: {self.tied[-1]:.3f} of the weight is not where the sort has it, "
            f"and {self.tied_mean[-1]:.1e} not where the mean of the two best assignments has it."
        )
        return told


def measure(
    group_size: int = 8,
    trials: int = 100,
    sizes: Sequence[int] = (2, 8, 32, 128),
    iterations: Sequence[int] = (10, 100, 1_000, 10_000),
    temperatures: Sequence[float] = tuple(10 ** (1 - k / 5) for k in range(21)),
    seed: int = 0,
) -> Transport:
    """In float64; sorts on normally distributed values, plans on evenly spaced ones.

    How cold a plan must be depends on the smallest gap between two values, which is known so.
    """
    generator = torch.Generator().manual_seed(seed)

    def values(size: int) -> Tensor:
        return torch.randn(size, 2, dtype=torch.float64, generator=generator)

    optimal = {
        size: sum(is_optimal(*values(size).unbind(1)) for _ in range(trials)) for size in sizes
    }
    even = torch.linspace(-1.5, 1.5, group_size, dtype=torch.float64)
    first, second = (even[torch.randperm(group_size, generator=generator)] for _ in range(2))
    tied = second.clone()
    order = tied.argsort()
    tied[order[1]] = tied[order[2]]
    other = group_map(first, tied)
    swapped = other.clone()
    swapped[:, order[1:3]] = other[:, order[1:3].flip(0)]
    plans = sinkhorn(first, tied, temperatures, max(iterations))
    return Transport(
        groups=dict.fromkeys(sizes, trials),
        optimal=optimal,
        group_size=group_size,
        temperatures=list(temperatures),
        misplaced={
            count: misplaced(sinkhorn(first, second, temperatures, count), group_map(first, second))
            for count in iterations
        },
        tied=misplaced(plans, other),
        tied_mean=misplaced(plans, (other + swapped) / 2),
    )


def group_map(first_g: Tensor, second_g: Tensor) -> Tensor:
    """T_c^(k): the permutation matrix that sorts a channel of a group to the first one's order."""
    v_gc = torch.stack((first_g, second_g), -1)
    return shiftsort.attention_maps(v_gc, [0, 0], None)[1]


def assignment(first_g: Tensor, second_g: Tensor) -> Tensor:
    """The T that makes <-v_1 v_c^T, T> least, by an algorithm that knows nothing of sorting."""
    rows, columns = linear_sum_assignment(-torch.outer(first_g, second_g).numpy())
    plan = torch.zeros(len(first_g), len(first_g), dtype=first_g.dtype)
    plan[rows, columns] = 1
    return plan


def is_optimal(first_g: Tensor, second_g: Tensor) -> bool:
    """Whether the sort is the assignment."""
    return torch.equal(group_map(first_g, second_g), assignment(first_g, second_g))


def sinkhorn(
    first_g: Tensor, second_g: Tensor, temperatures: Sequence[float], iterations: int
) -> Tensor:
    """Sinkhorn_t(exp(v_1 v_c^T / tau)) for each tau, (T, G, G): rows, then columns, t times."""
    tau = torch.tensor(temperatures, dtype=torch.float64)[:, None, None]
    return balance(torch.outer(first_g, second_g) / tau, 2 * iterations)


def misplaced(plans_tgg: Tensor, target_gg: Tensor) -> list[float]:
    """The share of each plan's weight that would have to move to make the target of it."""
    return ((plans_tgg - target_gg).abs().sum((-2, -1)) / (2 * len(target_gg))).tolist()


@style.drawn
def draw(data: Transport) -> Figure:
    """The errors against temperature and iterations, and with a tie."""
    figure = style.figure("With patience, a cooling doubly stochastic plan becomes the sort", 4.6)
    left, right = figure.subplots(1, 2, sharey=True)
    inks = matplotlib.colormaps[style.INK](torch.linspace(0.4, 1, len(data.misplaced)).numpy())
    shades = map(matplotlib.colors.to_hex, inks)
    for (count, shares), colour in zip(data.misplaced.items(), shades, strict=True):
        _line(left, data, shares, colour, f"{count:,} iterations")
    style.legend(left, loc="lower left")
    left.set_title("The colder, the more iterations it takes")
    left.set_ylabel("share of the weight not where the sort has it")
    _line(right, data, data.tied, style.ORANGE, "from the sort")
    _line(right, data, data.tied_mean, style.BLUE, "from the mean of both best sorts")
    style.legend(right, loc="lower left")
    right.set_title("A tie is halved, and no sort is reached")
    for axes in (left, right):
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_ylim(1e-5, 2)
        axes.invert_xaxis()
        axes.set_xlabel("temperature")
    return figure


def _line(axes: Axes, data: Transport, shares: list[float], colour: str, name: str) -> None:
    shown = [max(share, 1e-12) for share in shares]
    axes.plot(data.temperatures, shown, color=colour, label=name)
