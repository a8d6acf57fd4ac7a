"""`shiftsort results` and `shiftsort report`: what was trained, beside what was published."""

import difflib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from . import errors
from .options import DebugOption, ResultsOption

if TYPE_CHECKING:
    from shiftsort.reporting.runs import Run
    from shiftsort.reporting.summary import Experiment

_FILE_WIDTH = 160


def results(
    table: Annotated[
        str | None, typer.Argument(help="Only this table, as cifar10 or lra (default: all).")
    ] = None,
    folder: ResultsOption = Path("results"),
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Markdown with each run's command.")
    ] = False,
    missing: Annotated[
        bool, typer.Option("--missing", help="The rows that nobody measured yet, and how to.")
    ] = False,
    debug: DebugOption = False,
) -> None:
    """The paper's numbers beside ours: accuracy in percent, over seeds mean and deviation."""
    from shiftsort.reporting import runs, summary
    from shiftsort.reporting import table as tables

    with errors.one_line("results", debug=debug):
        read = runs.read_results(folder)
        found = summary.experiments(read)
        if missing:
            typer.echo(_missing(table, found))
            return
        if not found:
            raise runs.ReportError(f"{folder} has no result of a run; shiftsort train makes one")
        together: dict[str, list[Experiment]] = {}
        for experiment in found:
            together.setdefault(experiment.first.table, []).append(experiment)
        if table is not None:
            _require_known(table, list(together))
            together = {table: together[table]}
        _tell_superseded("results", read)
    for name, some in together.items():
        if markdown:
            typer.echo(f"**{name}**\n\n{tables.markdown(some)}\n\n{tables.origins(some)}\n")
        else:
            # A file or a pipe has no width of its own; 80 columns would break every line.
            Console(width=None if sys.stdout.isatty() else _FILE_WIDTH).print(_rich(name, some))


def report(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Run folders, or results' JSON files.")
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="The page to write.")
    ] = Path("report.html"),
    debug: DebugOption = False,
) -> None:
    """One page about some runs: curves, the table, and speed against accuracy.

    The page holds everything that it shows and opens without a network.
    """
    from shiftsort.reporting import page
    from shiftsort.reporting.runs import read_run

    with errors.one_line("report", debug=debug):
        read = [read_run(path) for path in runs]
        page.write(out, read)
        _tell_superseded("report", read)
    typer.echo(f"open {out} in a browser")


def _rich(name: str, some: list["Experiment"]) -> Table:
    from shiftsort.reporting import table as tables

    drawn = Table(title=escape(name), title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1))
    shown = tables.columns(some)
    for column in shown:
        drawn.add_column(column.heading, justify="right" if column.number else "left")
    for experiment in some:
        drawn.add_row(*(escape(column.cell(experiment)) for column in shown))
    return drawn


def _missing(table: str | None, found: list["Experiment"]) -> str:
    from shiftsort import recipes
    from shiftsort.reporting import table as tables

    known = [recipes.get(name) for name in recipes.names()]
    if table is not None:
        _require_known(table, list(dict.fromkeys(recipe.table for recipe in known)))
        known = [recipe for recipe in known if recipe.table == table]
    return tables.missing([(recipe.table, recipe.name) for recipe in known], found)


def _require_known(table: str, known: list[str]) -> None:
    if table not in known:
        near = difflib.get_close_matches(table, known, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise typer.BadParameter(
            f"there is no table {table!r}; {hint}there are: {', '.join(known)}",
            param_hint="TABLE",
        )


def _tell_superseded(command: str, read: list["Run"]) -> None:
    from shiftsort.reporting import summary

    for run in summary.superseded(read):
        message = f"{run.path} was left out: a newer run has the same settings and seed {run.seed}"
        typer.echo(f"shiftsort {command}: {message}", err=True)
