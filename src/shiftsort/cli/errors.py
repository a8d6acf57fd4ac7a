"""Errors in one or two lines, and what the exit codes mean.

0: done. 1: it could not be done (data, disk, memory, a run that is not what it should be). 2: the
command is wrong (an unknown recipe or field, a value of the wrong type). 130: interrupted.
"""

import contextlib
from collections.abc import Iterator
from typing import Annotated

import torch
import typer
from rich.console import Console
from rich.markup import escape

from shiftsort.recipes import RecipeError

DebugOption = Annotated[bool, typer.Option("--debug", help="Show tracebacks.")]
FAILED, WRONG, INTERRUPTED = 1, 2, 130


@contextlib.contextmanager
def one_line(command: str, *, debug: bool, code: int = FAILED) -> Iterator[None]:
    """Say what went wrong and exit; with `debug`, let it through with its traceback."""
    try:
        yield
    except (typer.Exit, typer.BadParameter):
        raise
    except KeyboardInterrupt:
        say(f"shiftsort {command}: interrupted")
        raise typer.Exit(INTERRUPTED) from None
    except Exception as error:
        if debug:
            raise
        say(f"shiftsort {command}: {_reason(error)}")
        raise typer.Exit(WRONG if isinstance(error, RecipeError) else code) from None


def say(message: str) -> None:
    """To standard error, with no markup."""
    Console(stderr=True, soft_wrap=True).print(escape(message), highlight=False)


def _reason(error: Exception) -> str:
    if isinstance(error, ModuleNotFoundError):
        extra = "vision" if error.name == "torchvision" else "train"
        return f"this needs {error.name}; install it with: pip install 'shiftsort[{extra}]'"
    if isinstance(error, torch.OutOfMemoryError):
        return "the GPU's memory is full; set accumulate=2 (or more) to take each batch in parts"
    if type(error).__module__.startswith("shiftsort") or isinstance(error, ValueError | OSError):
        return str(error)
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}\n--debug shows where"
