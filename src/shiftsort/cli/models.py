"""`shiftsort models`: every mixer and model, what it costs, where it comes from."""

from typing import Annotated

import torch
import typer
from rich.console import Console
from rich.table import Table

from shiftsort import mixers
from shiftsort.models import count_parameters
from shiftsort.models.catalog import BODIES, sizes

_DIM, _SAMPLES, _HEADS = 512, 1024, 8


def models(
    name: Annotated[
        str | None, typer.Argument(help="One mixer: what it does and which options it takes.")
    ] = None,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="The table of mixers as in docs/mixers.md.")
    ] = False,
) -> None:
    """List the mixers and models: parameters, complexity, source, and what was left out."""
    if markdown:
        typer.echo(mixers_as_markdown())
    elif name is not None:
        _describe(name)
    else:
        console = Console()
        console.print(_mixers())
        console.print(_models())
        console.print("More of one mixer, its options too: shiftsort models NAME")


def mixers_as_markdown() -> str:
    """The table that docs/mixers.md holds."""
    lines = [
        "| mixer | complexity | parameters | source | row of the paper's tables | left out |",
        "|---|---|---|---|---|---|",
    ]
    for name in mixers.names():
        about = mixers.about(name)
        cells = (about.complexity, f"{_parameters(name):,}", about.source, about.row)
        lines.append("| " + " | ".join((f"`{name}`", *cells, about.left_out)) + " |")
    return "\n".join(lines)


def _parameters(name: str) -> int:
    """Of one layer, nothing allocated."""
    with torch.device("meta"):
        return count_parameters(mixers.build(name, dim=_DIM, samples=_SAMPLES, heads=_HEADS))


def _mixers() -> Table:
    title = f"mixers (parameters of one layer, dim {_DIM}, up to {_SAMPLES} samples)"
    table = Table(title=title, title_justify="left", show_lines=True)
    for column in ("mixer", "complexity", "parameters", "source", "row in the paper", "left out"):
        right = column == "parameters"
        table.add_column(column, justify="right" if right else "left", no_wrap=column == "mixer")
    for name in mixers.names():
        about = mixers.about(name)
        cells = (about.complexity, f"{_parameters(name):,}", about.source, about.row)
        table.add_row(name, *cells, about.left_out)
    return table


def _models() -> Table:
    table = Table(title="models, in the papers' sizes", title_justify="left")
    for column in ("model", "task", "attention", "parameters", "row in the paper"):
        table.add_column(column, justify="right" if column == "parameters" else "left")
    body = ""
    for size in sizes():
        if size.body != body:
            body = size.body
            table.add_section()
        parameters = f"{size.parameters():,}"
        table.add_row(BODIES[body].title, size.task, size.attention, parameters, size.row)
    table.caption = "\n".join(
        f"{body.title}: {body.source}. Left out: {body.left_out}." for body in BODIES.values()
    )
    table.caption_justify = "left"
    return table


def _describe(name: str) -> None:
    try:
        about = mixers.about(name)
    except ValueError as unknown:
        raise typer.BadParameter(str(unknown), param_hint="NAME") from None
    table = Table(title=name, title_justify="left", show_header=False)
    for key, value in (
        ("what", mixers.describe(name)),
        ("complexity", about.complexity),
        ("parameters", f"{_parameters(name):,} with dim {_DIM}, up to {_SAMPLES} samples"),
        ("source", about.source),
        ("row in the paper", about.row),
        ("left out", about.left_out),
        ("options", ", ".join(mixers.options_of(name))),
    ):
        table.add_row(key, value)
    Console().print(table)
