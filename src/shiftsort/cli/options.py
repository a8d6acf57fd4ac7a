"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

DataOption = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="DIR",
        help="The data folder (default: SHIFTSORT_DATA, else the platform's cache).",
    ),
]
DebugOption = Annotated[bool, typer.Option("--debug", help="Show tracebacks.")]
ResultsOption = Annotated[
    Path, typer.Option("--dir", metavar="DIR", help="The folder with the results' JSON files.")
]
RunArgument = Annotated[
    Path, typer.Argument(metavar="RUN", help="The folder of a run that has ended.")
]
