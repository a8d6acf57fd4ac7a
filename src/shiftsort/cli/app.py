"""The groups of commands, put together."""

from typing import Annotated

import typer

import shiftsort

from . import (
    bench,
    data,
    demo,
    doctor,
    evaluate,
    models,
    recipes,
    results,
    study,
    train,
)

app = typer.Typer(
    name="shiftsort",
    help="Attention by shifting and sorting: run, measure and see it.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",  # else the lines of a docstring stay broken where they are
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(shiftsort.__version__)
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    pass


app.command("doctor")(doctor.doctor)
app.command("models")(models.models)
app.command("demo")(demo.demo)
app.command("recipes")(recipes.recipes)
app.command("train")(train.train)
app.command("evaluate")(evaluate.evaluate)
app.command("predict")(evaluate.predict)
app.command("results")(results.results)
app.command("report")(results.report)
app.command("study")(study.study)
app.add_typer(bench.app, name="bench")
app.add_typer(data.app, name="data")
