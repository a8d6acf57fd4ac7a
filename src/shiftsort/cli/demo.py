"""`shiftsort demo`: the operator at work, as a picture."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import torch
import typer

if TYPE_CHECKING:
    from collections.abc import Callable

    from shiftsort.benchmarks.candidate import Candidate
    from shiftsort.benchmarks.case import Case
    from shiftsort.studies.look import Timing

_CHANNELS = 256
_LENGTHS = (512, 1024, 2048, 4096, 8192)
_BUDGET = 0.15


def demo(
    out: Annotated[Path, typer.Option(help="Where the picture and its page go.")] = Path(
        "out/demo"
    ),
) -> None:
    """Draw the operator at work on a handwritten digit, and time it beside attention."""
    try:
        from shiftsort.studies import look, look_page
    except ModuleNotFoundError as missing:
        sys.exit(
            f"shiftsort: the demo needs the package {missing.name!r}; "
            "install it with: pip install 'shiftsort[docs]'"
        )
    from shiftsort.benchmarks import record

    device = "cuda" if torch.cuda.is_available() else "cpu"
    name = record.device_name(device)
    timings = _times(device)
    picture, page = out / "shiftsort.png", out / "index.html"
    look.draw(picture, timings, name)
    look_page.write(page, picture, timings, _CHANNELS, name)
    typer.echo(f"The operator at work: open {page} (the picture alone is {picture})")


def _times(device: str) -> list["Timing"]:
    from shiftsort.benchmarks import attention, memory, permutations
    from shiftsort.benchmarks.case import Case
    from shiftsort.studies.look import Timing

    if device == "cpu":
        memory.keep_freed_memory()
    csp = next(c for c in permutations.candidates() if c.name == "csp")
    flash = next(c for c in attention.candidates() if c.name == "attention, flash")
    rows = (
        ("attention, 8 heads", flash, None),
        ("shift + sort in pairs", csp, 2),
        ("shift + complete sort", csp, None),
    )
    dtype = torch.float32 if device == "cpu" else torch.bfloat16
    return [
        Timing(
            name,
            {
                n: _milliseconds(candidate, Case(1, n, _CHANNELS, group, dtype, device))
                for n in _LENGTHS
            },
        )
        for name, candidate, group in rows
    ]


def _milliseconds(candidate: "Candidate", case: "Case") -> float:
    from shiftsort.benchmarks import clock

    function, inputs = candidate.prepare(case), candidate.inputs(case, 0)

    def trial(number: int, mark: "Callable[[], None]") -> None:
        mark()
        with torch.no_grad():
            function(*inputs)
        mark()

    samples = clock.sample(trial, case.device, _BUDGET, least=3, most=50)
    return min(parts[0] for parts in samples.parts)
