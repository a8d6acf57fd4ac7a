"""`shiftsort demo`: the operator at work, two small models trained with and without attention."""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import torch
import typer
from rich import box
from rich.console import Console
from rich.table import Table

from . import errors
from .options import DebugOption

if TYPE_CHECKING:
    from shiftsort.benchmarks.candidate import Candidate
    from shiftsort.benchmarks.case import Case
    from shiftsort.studies.look import Timing

_RECIPES = ("digits/mha", "digits/csp")
_CHANNELS = 256
_LENGTHS = (512, 1024, 2048, 4096, 8192)
_BUDGET = 0.15
_LEAD = """
<p>A Transformer reads a text or an image as a row of tokens, and each of its layers must let the
tokens exchange information. Attention does it by comparing every token with every other: twice
the length, four times the work. shiftsort does it by moving numbers: in each channel the values are
shifted round by a fixed number of places, and then sorted within small groups. Twice the length,
twice the work.</p>
<p>Two small vision transformers were just trained on handwritten digits on this machine, alike but
for this. Of the digits that they had never seen, they read right: {told}. There
were 250 of these, so one percent is two or three of them.</p>"""


def demo(
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Where runs, picture and page go.")
    ] = Path("out/demo"),
    debug: DebugOption = False,
) -> None:
    """Train two small models on handwritten digits, with attention and with CSP, and compare them.

    It also draws the operator at work and times it beside attention, and puts everything on one
    page. No network is needed.
    """
    with errors.one_line("demo", debug=debug):
        results = [_train(name, out) for name in _RECIPES]
        _print(results)
        page = _page(out, results)
        typer.echo(f"The whole story, with pictures: open {page} in a browser")


def _train(name: str, out: Path) -> dict[str, Any]:
    """The result of a recipe, trained anew."""
    from shiftsort import recipes, training

    run = out / name.replace("/", "-")
    if (run / "recipe.json").exists():
        shutil.rmtree(run)  # of an earlier demo
    result = training.train(
        recipes.get(name),
        run,
        data=out / "data",
        machine=training.Machine(bar=sys.stderr.isatty()),
        command=f"shiftsort train {name}",
        say=errors.say,
    )
    return {**result, "run": run}


def _print(results: list[dict[str, Any]]) -> None:
    table = Table(box=box.SIMPLE_HEAD, title="handwritten digits", title_justify="left")
    table.add_column("mixer")
    for heading in ("test accuracy", "parameters", "training steps / s"):
        table.add_column(heading, justify="right")
    for result in results:
        accuracy, parameters = f"{result['test']['top1']:.1f} %", f"{result['parameters']:,}"
        table.add_row(result["row"], accuracy, parameters, f"{result['steps_per_second']:.0f}")
    Console().print(table)


def _page(out: Path, results: list[dict[str, Any]]) -> Path:
    from shiftsort.benchmarks import record
    from shiftsort.reporting import page, runs
    from shiftsort.studies import look, look_page

    device = "cuda" if torch.cuda.is_available() else "cpu"
    name = record.device_name(device)
    errors.say("timing the operator beside attention ...")
    timings = _times(device)
    picture = out / "shiftsort.png"
    look.draw(picture, timings, name)
    told = " and ".join(
        f"<b>{result['row']}</b> {result['test']['top1']:.1f} % with "
        f"{result['parameters']:,} parameters"
        for result in results
    )
    written = out / "index.html"
    page.write(
        written,
        [runs.read_run(result["run"]) for result in results],
        title="Attention by shifting and sorting",
        before=_LEAD.format(told=told),
        after=look_page.explained(picture, timings, _CHANNELS, name),
    )
    return written


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

    def trial(number: int, mark: Callable[[], None]) -> None:
        mark()
        with torch.no_grad():
            function(*inputs)
        mark()

    samples = clock.sample(trial, case.device, _BUDGET, least=3, most=50)
    return min(parts[0] for parts in samples.parts)
