"""Experiments as a table: the paper beside ours."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .runs import Run
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
    return [c for c in found if any(c.cell(e) for e in some)]


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


def origins(some: Sequence[Experiment]) -> str:
    """Where each number comes from and how to make it again, as a Markdown list."""
    return "\n".join(_origin(run) for experiment in some for run in experiment.runs)


def _origin(run: Run) -> str:
    facts = [f"{run.device}, {run.precision}", f"{run.steps_per_second:.4g} steps a second"]
    if run.peak_memory_bytes:
        facts.append(f"{run.peak_memory_bytes / 1e6:,.0f} MB at most")
    facts.append(run.date[:10])
    if run.commit:
        facts.append(f"commit {run.commit[:10]}")
    return f"- `{run.command}` ({', '.join(facts)}): `{run.path.as_posix()}`"


def missing(recipes: Sequence[tuple[str, str]], some: Sequence[Experiment]) -> str:
    """For each table of (table, recipe): which recipes have no result yet, as a Markdown table."""
    measured = {experiment.first.recipe for experiment in some}
    by_table: dict[str, list[str]] = {}
    for table, recipe in recipes:
        by_table.setdefault(table, []).append(recipe)
    lines = ["| table | measured | not measured yet | as |", "|---|--:|---|---|"]
    for table, names in by_table.items():
        left = [name for name in names if name not in measured]
        if left:
            rows = ", ".join(_grouped(left))
            count = f"{len(names) - len(left)} of {len(names)}"
            lines.append(_line([table, count, rows, f"`shiftsort train {left[0]}`"]))
    return "\n".join(lines)


def _grouped(recipes: Sequence[str]) -> list[str]:
    """Recipes of one folder share its name, and folders with the same ones too: a/{b, c}/{d, e}."""
    rows: dict[str, list[str]] = {}
    for recipe in recipes:
        folder, _, row = recipe.rpartition("/")
        rows.setdefault(folder, []).append(row)
    alike: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for folder, some in rows.items():
        above, _, name = folder.rpartition("/")
        alike.setdefault((above, tuple(some)), []).append(name)
    return [
        "/".join(filter(None, (above, _any_of(names), _any_of(some))))
        for (above, some), names in alike.items()
    ]


def _any_of(values: Sequence[str]) -> str:
    return values[0] if len(values) == 1 else f"{{{', '.join(values)}}}"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _plain(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _spread(value: Spread | None) -> str:
    return "" if value is None else value.text()
