"""Long Range Arena with state-space layers and long convolutions, each as it was published.

`lra/{task}/{mixer}` has the body, the optimiser and the schedule of the mixer's own authors; the
data and their split are the benchmark's, for all of them.
"""

from collections.abc import Callable
from dataclasses import replace

from .ccnn import ccnn
from .ets import ets
from .lra import TASKS
from .recipe import Paper, Recipe
from .s4 import s4, s4d
from .s5 import s5
from .spade import spade

#: What the paper prints, task by task; None where the method failed.
_PAPER: dict[str, tuple[float | None, ...]] = {
    "s4": (58.35, 76.02, 87.09, 87.26, 86.05, 88.10),
    "s5": (62.15, 89.31, 91.40, 88.00, 95.33, 98.58),
    "spade": (59.70, 87.55, 90.13, 89.11, 96.42, 94.22),
    "ets": (62.55, 88.49, 86.72, 75.34, 91.66, 93.78),
    "ccnn": (43.60, 84.08, None, 88.90, 91.51, None),
}


def ssm(task: str, row: str) -> Recipe:
    """A row of a task."""
    top1 = _PAPER[row][TASKS.index(task)] if row in _PAPER else None
    return replace(
        ROWS[row](task),
        name=f"lra/{task}/{row}",
        table="lra",
        row=row,
        paper=None if top1 is None else Paper(top1),
    )


ROWS: dict[str, Callable[[str], Recipe]] = {
    "s4": s4,
    "s4d": s4d,
    "s5": s5,
    "spade": spade,
    "ets": ets,
    "ccnn": ccnn,
}
