"""`shiftsort study`: see and check what is claimed of the operator."""

import dataclasses
import json
import re
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from . import errors
from .options import DataOption, DebugOption


def _complete(incomplete: str) -> list[str]:
    from shiftsort.studies import catalog

    return [name for name in catalog.STUDIES if name.startswith(incomplete)]


def study(
    name: Annotated[
        str | None,
        typer.Argument(help="Which; without a name, what there is.", autocompletion=_complete),
    ] = None,
    runs: Annotated[
        list[Path] | None,
        typer.Option(
            "--run",
            metavar="RUN",
            help="A run folder to look at (default: fresh models); may be repeated.",
        ),
    ] = None,
    data: DataOption = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where figure and data go.")] = Path(
        "out/study"
    ),
    show: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="What a study's JSON says, as Markdown; nothing is run."),
    ] = None,
    debug: DebugOption = False,
) -> None:
    """Measure one thing that is claimed of the operator, and draw it.

    Writes the figure as PNG and SVG, and study-NAME.json with the data behind it.
    """
    with errors.one_line("study", debug=debug):
        if show is not None:
            typer.echo("\n".join(f"- {said}" for said in _read(show)))
            return
        try:
            from shiftsort.studies import catalog
        except ModuleNotFoundError as missing:
            raise ValueError(
                f"this needs the package {missing.name!r}; "
                "install it with: pip install 'shiftsort[docs]'"
            ) from None

        if name is None:
            for known in catalog.STUDIES:
                taken = " [--run RUN]" if catalog.takes_runs(known) else ""
                typer.echo(f"{known}{taken}: {catalog.about(known)}")
            return
    with errors.one_line("study", debug=debug, code=errors.WRONG):
        catalog.get(name)
    with errors.one_line("study", debug=debug):
        found = catalog.measure(name, runs or (), data)
        paths = catalog.save(name, found, out)
        paths.append(out / f"study-{name}.json")
        _write(paths[-1], name, found, runs or [])
    typer.echo("\n".join(found.findings()))
    typer.echo(f"in {', '.join(map(str, paths))}")


def _read(path: Path) -> list[str]:
    try:
        return json.loads(path.read_text(encoding="utf-8"))["findings"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} cannot be read as the JSON of a study: {error}") from None


def _write(path: Path, name: str, found: Any, runs: list[Path]) -> None:
    from shiftsort.training import folder

    content = {
        "study": name,
        **folder.environment("shiftsort " + shlex.join(sys.argv[1:])),
        "runs": [
            {"recipe": recipe.name, "overrides": overrides, "seed": recipe.seed}
            for recipe, overrides in map(folder.read_recipe, runs)
        ],
        "findings": found.findings(),
        "data": _plain(dataclasses.asdict(found)),
    }
    text = json.dumps(content, indent=1, allow_nan=False)
    # Rows of numbers as rows, not as columns.
    text = re.sub(r"\[[^][{}\"]*\]", lambda row: re.sub(r"\s*\n\s*", " ", row[0]), text)
    path.write_text(text + "\n", encoding="utf-8")


def _plain(value: Any) -> Any:
    """What JSON can hold, to five digits; without the pictures, which are tensors."""
    if isinstance(value, dict):
        kept = {key: _plain(item) for key, item in value.items()}
        return {key: item for key, item in kept.items() if not hasattr(item, "shape")}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value
