"""Experiments as a table: the paper beside ours."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .summary import Experiment, Spread

Cell = Callable[[Experiment], str]


@dataclass(frozen=True)
class Column:
    """A heading, what stands below it, and whether it is a number."""

    heading: str
    cell: Cell
    number: bool = True


def columns(some: Sequence[Experiment]) -> list[Column]:
    """The columns that have something to say about these experiments."""
    found = [
        Column("task", lambda e: e.first.task, number=False),
        Column("row", lambda e: e.first.row, number=False),
        Column("recipe", lambda e: e.first.recipe, number=False),
        Column("changed", lambda e: e.changed, number=False),
        Column("paper top-1", lambda e: _plain(e.first.paper.get("top1"))),
        Column("ours top-1", lambda e: _spread(e.test("top1"))),
        Column("paper top-5", lambda e: _plain(e.first.paper.get("top5"))),
        Column("ours top-5", lambda e: _spread(e.test("top5"))),
        Column("parameters", lambda e: f"{e.first.parameters:,}"),
        Column("seeds", lambda e: str(len(e.runs))),
        Column("steps", lambda e: steps_text(e.first.steps, e.first.steps_published)),
        Column("chosen on", lambda e: e.first.chosen_on, number=False),
    ]
    always = {"paper top-1"}
    return [c for c in found if c.heading in always or any(c.cell(e) for e in some)]


def steps_text(done: int, published: int) -> str:
    """How much of the published training was done."""
    if not published:
        return f"{done:,}"
    return f"{done:,} of {published:,} ({100 * done / published:.0f} %)"


def markdown(some: Sequence[Experiment]) -> str:
    """A Markdown table."""
    shown = columns(some)
    lines = [
        _line([c.heading for c in shown]),
        "|" + "|".join("--:" if c.number else "---" for c in shown) + "|",
        *(_line([c.cell(e).replace("|", "\\|") for c in shown]) for e in some),
    ]
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _plain(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _spread(value: Spread | None) -> str:
    return "" if value is None else value.text()
