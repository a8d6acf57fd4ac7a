"""`shiftsort recipes`: what can be trained by name, the paper's number and ours beside it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from . import errors
from .options import ResultsOption

if TYPE_CHECKING:
    from shiftsort.recipes import Recipe


def recipes(
    part: Annotated[
        str | None,
        typer.Argument(metavar="[FILTER]", help="Part of a name; or a whole one, to see it all."),
    ] = None,
    folder: ResultsOption = Path("results"),
) -> None:
    """List the recipes; with the whole name of one, its fields, which --set changes.

    Ours is the accuracy in results/ of a run with nothing changed, over its seeds; where it was
    shorter than published, the share of the steps stands beside it.
    """
    from shiftsort import recipes as known

    with errors.one_line("recipes", debug=False, code=errors.WRONG):
        if part in known.names():
            _describe(known.get(part))
            return
        found = known.names(part or "")
        if not found:
            known.get(part or "")  # says which name is near
    with errors.one_line("recipes", debug=False):
        ours = _measured(folder)
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    for heading in ("recipe", "mixer"):
        table.add_column(heading, no_wrap=True)
    for heading in ("training", "paper %"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("ours %", justify="right")
    for name in found:
        recipe = known.get(name)
        paper = "" if recipe.paper is None else f"{recipe.paper.top1:.2f}"
        cells = (name, _mixer(recipe), _length(recipe), paper, ours.get(name, ""))
        table.add_row(*map(escape, cells))
    Console().print(table)
    Console(stderr=True).print(
        "shiftsort recipes NAME shows all of one; shiftsort train NAME trains it", style="dim"
    )


def _mixer(recipe: "Recipe") -> str:
    model = vars(recipe.model)
    return str(model.get("mixer") or model.get("attention"))


def _length(recipe: "Recipe") -> str:
    return f"{recipe.epochs:g} epochs" if recipe.steps is None else f"{recipe.steps:,} steps"


def _measured(folder: Path) -> dict[str, str]:
    """By recipe; empty where there is no folder of results, as beside an installed package."""
    from shiftsort.reporting import runs, summary

    if not folder.is_dir():
        return {}
    texts = {}
    for experiment in summary.experiments(runs.read_results(folder)):
        first = experiment.first
        if not set(first.overrides) <= {"seed", "steps", "epochs"}:
            continue
        text = experiment.test("top1").text()
        if first.steps < first.steps_published:
            text += f" ({100 * first.steps / first.steps_published:.2g} % of the steps)"
            texts.setdefault(first.recipe, text)
        else:
            texts[first.recipe] = text
    return texts


def _describe(recipe: "Recipe") -> None:
    from shiftsort import recipes as known

    table = Table(box=box.SIMPLE_HEAD, title=recipe.name, title_justify="left")
    table.add_column("field")
    table.add_column("value")
    for name, value in known.fields(recipe).items():
        table.add_row(name, escape(str(value)))
    console = Console()
    console.print(table)
    if recipe.about:
        console.print(escape(recipe.about), highlight=False)
    if recipe.paper is not None:
        console.print(f"The paper prints {recipe.paper.top1:.2f} %.", highlight=False)
