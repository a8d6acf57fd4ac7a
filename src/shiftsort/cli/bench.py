"""Speed and memory, side by side with what people would use instead."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import torch
import typer
from rich.console import Console

from shiftsort.operator.csp import ORDERS
from shiftsort.operator.schedule import KINDS

if TYPE_CHECKING:
    from shiftsort.benchmarks.candidate import Candidate
    from shiftsort.benchmarks.case import Case
    from shiftsort.benchmarks.measure import Measurement
    from shiftsort.benchmarks.record import Row
    from shiftsort.benchmarks.trainees import Trainee

Named = TypeVar("Named", bound="Candidate | Trainee")

app = typer.Typer(help=__doc__, no_args_is_help=True)

_DTYPES = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "float64": torch.float64,
}
_SHORT_DTYPES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16", "fp64": "float64"}

Shapes = Annotated[
    list[str] | None, typer.Option("--shape", help="Batch x length x channels; may be repeated.")
]
Tokens = Annotated[int | None, typer.Option(help="Tokens in a batch, for --lengths.")]
Channels = Annotated[int, typer.Option(help="Channels, for --lengths.")]
Lengths = Annotated[str | None, typer.Option(help="Lengths N, as 1024,4096.")]
Groups = Annotated[str | None, typer.Option(help="Group sizes G, as 1,2,32,all.")]
Dtype = Annotated[str | None, typer.Option(help="bfloat16, float16, float32 or float64.")]
Device = Annotated[str | None, typer.Option(help="cuda or cpu; cuda where there is one.")]
Steps = Annotated[str, typer.Option(help="Shifts: linear, exponential, heads or none.")]
Order = Annotated[str, typer.Option(help="reference or ascending.")]
Only = Annotated[
    list[str] | None,
    typer.Option(help="Candidates whose name holds this, besides the copy; may be repeated."),
]
OnlyModels = Annotated[
    list[str] | None, typer.Option("--only", help="Models whose name holds this; may be repeated.")
]
Batch = Annotated[
    int | None, typer.Option(min=1, help="Sequences or images in a batch (default: 32, CPU: 1).")
]
PlotTraining = Annotated[
    Path | None, typer.Option("--plot", help="Draw steps a second, with memory as area.")
]
Graphs = Annotated[
    bool, typer.Option("--graphs", help="Replay forward and backward as CUDA graphs.")
]
Plot = Annotated[Path | None, typer.Option(help="Draw time against N and G.")]
Quick = Annotated[bool, typer.Option("--quick", help="Fewer repeats.")]
Json = Annotated[Path | None, typer.Option("--json", help="Write everything to this file.")]
Commit = Annotated[
    str | None, typer.Option(help="The commit to write down where there is no checkout to ask.")
]


@app.command()
def operator(
    shape: Shapes = None,
    tokens: Tokens = None,
    channels: Channels = 512,
    lengths: Lengths = None,
    groups: Groups = None,
    dtype: Dtype = None,
    device: Device = None,
    steps: Steps = "linear",
    order: Order = "reference",
    only: Only = None,
    quick: Quick = False,
    json: Json = None,
    plot: Plot = None,
    commit: Commit = None,
) -> None:
    """CSP beside a copy, eager torch, torch.compile, torch.sort, CUB and attention.

    Times are medians; +- is half the distance from the 20th to the 80th percentile. GB/s counts the
    values read and written (and the packed permutation that CSP keeps, in the backward). "Copies"
    is the time in copies of the values. The peak is of forward + backward, beyond the inputs.
    """
    from shiftsort.benchmarks import attention, cub, permutations, record, table

    cases = _cases(shape, tokens, channels, lengths, groups, dtype, device, steps, order)
    candidates = permutations.candidates() + cub.candidates() + attention.candidates()

    def write(rows: list["Row"]) -> None:
        record.compare_with_copy(rows)
        _write("operator", rows, cases, quick, json, commit)

    rows = _measure(cases, _chosen(candidates, only, "copy"), quick, write)
    name = record.device_name(cases[0].device)
    table.print_operator(record.rounded(rows), name, table.console())
    if plot is not None:
        from shiftsort.benchmarks.plot import plot as draw

        draw(rows, plot, f"{name}, {_name_of(cases[0].dtype)}")


@app.command()
def layer(
    shape: Shapes = None,
    tokens: Tokens = None,
    channels: Channels = 512,
    lengths: Lengths = None,
    groups: Groups = None,
    dtype: Dtype = None,
    device: Device = None,
    steps: Steps = "linear",
    order: Order = "reference",
    only: Only = None,
    quick: Quick = False,
    json: Json = None,
    plot: Plot = None,
    commit: Commit = None,
) -> None:
    """A layer with CSP beside one with attention, and a projection with and without CSP.

    The peak is of forward + backward, beyond the input and the parameters: activations and
    gradients.
    """
    from shiftsort.benchmarks import layers, record, table

    cases = _cases(shape, tokens, channels, lengths, groups or "2,all", dtype, device, steps, order)

    def write(rows: list["Row"]) -> None:
        record.compare_with_fastest(rows, layers.ATTENTION, "of_attention")
        record.compare_with_fastest(rows, layers.PROJECTION, "of_projection")
        _write("layer", rows, cases, quick, json, commit)

    rows = _measure(cases, _chosen(layers.candidates(), only, layers.PROJECTION), quick, write)
    name = record.device_name(cases[0].device)
    table.print_layer(record.rounded(rows), name, table.console())
    if plot is not None:
        from shiftsort.benchmarks.plot import plot as draw

        draw(rows, plot, f"{name}, {_name_of(cases[0].dtype)}", passes="both")


@app.command()
def data(
    device: Device = None, quick: Quick = False, json: Json = None, commit: Commit = None
) -> None:
    """How fast the tasks' data is generated, served in batches, and augmented."""
    from shiftsort.benchmarks import data as bench
    from shiftsort.benchmarks import record, table

    device = _device(device)
    with Console(stderr=True).status("starting") as status:
        rows = list(bench.measure(device, 0.1 if quick else 2.0, quick, status.update))
    table.print_data(record.rounded(rows), record.device_name(device), table.console())
    if json is not None:
        settings = {"device": device, "quick": quick}
        record.write(json, record.document("data", rows, settings, commit))


@app.command()
def lra(
    lengths: Lengths = "3072",
    batch: Batch = None,
    dtype: Dtype = None,
    device: Device = None,
    only: OnlyModels = None,
    graphs: Graphs = False,
    quick: Quick = False,
    json: Json = None,
    plot: PlotTraining = None,
    commit: Commit = None,
) -> None:
    """Training steps a second and peak memory of the Long Range Arena encoder, mixer by mixer.

    The encoder is the one for text: 4 layers, 256 wide, 4 heads. A step is forward, loss, backward
    and Adam on sequences of full length; below float32 it runs under autocast. Times are medians;
    the peak holds parameters, gradients, Adam's averages and activations.
    """
    from shiftsort.benchmarks import trainees

    device = _device(device)
    some = trainees.encoders(_numbers("--lengths", lengths), _batch(batch, device))
    _train("lra", some, dtype, device, only, graphs, quick, json, plot, commit)


@app.command()
def model(
    batch: Batch = None,
    dtype: Dtype = None,
    device: Device = None,
    only: OnlyModels = None,
    graphs: Graphs = False,
    quick: Quick = False,
    json: Json = None,
    plot: PlotTraining = None,
    commit: Commit = None,
) -> None:
    """Training steps a second and peak memory of the papers' ViT and MEGA, with attention and CSP.

    Measured as by `bench lra`; the sizes are those that `shiftsort models` lists.
    """
    from shiftsort.benchmarks import trainees

    device = _device(device)
    some = trainees.vits_and_megas(_batch(batch, device))
    _train("model", some, dtype, device, only, graphs, quick, json, plot, commit)


@app.command()
def show(
    file: Annotated[Path, typer.Argument(help="What --json wrote.")],
    markdown: Annotated[
        bool, typer.Option("--markdown", help="As the tables of the docs.")
    ] = False,
) -> None:
    """Show a bench's file as the table it was when it was measured."""
    from shiftsort.benchmarks import record, table

    try:
        document = record.read(file)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="FILE") from None
    table.print_document(document, table.Page() if markdown else table.console())
    commit = f", commit {document['commit'][:10]}" if document.get("commit") else ""
    typer.echo(f"`{document['command']}` ({document['device']}, {document['date'][:10]}{commit})")


@app.command()
def targets(
    files: Annotated[list[Path], typer.Argument(help="What --json of operator and layer wrote.")],
    markdown: Annotated[bool, typer.Option("--markdown", help="As a table of the docs.")] = False,
) -> None:
    """Hold the files of a bench against what the kernels are to reach on an H200."""
    from shiftsort.benchmarks import record, table
    from shiftsort.benchmarks.targets import judge

    try:
        findings = judge(record.read(file) for file in files)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="FILES") from None
    table.print_targets(findings, table.Page() if markdown else table.console())


def _train(
    bench: str,
    some: list["Trainee"],
    dtype: str | None,
    device: str,
    only: list[str] | None,
    graphs: bool,
    quick: bool,
    json: Path | None,
    plot: Path | None,
    commit: str | None,
) -> None:
    from shiftsort.benchmarks import memory, record, table, train_step

    number = _dtype(dtype or ("float32" if device == "cpu" else "bfloat16"))
    chosen = _chosen(some, only, None)
    if device == "cpu":
        memory.keep_freed_memory()
    effort = train_step.QUICK if quick else train_step.NORMAL
    with Console(stderr=True).status("starting") as status:
        rows = train_step.measure(chosen, device, number, effort, status.update, graphs)
    name, together = record.device_name(device), bench == "model"
    table.print_training(record.rounded(rows), name, table.console(), together)
    if json is not None:
        settings = {"device": device, "dtype": _name_of(number), "graphs": graphs, "quick": quick}
        record.write(json, record.document(bench, rows, settings, commit))
    if plot is not None:
        from shiftsort.benchmarks.plot_train_step import plot as draw

        how = ", CUDA graphs" if graphs else ""
        about = f"{name}, {_name_of(number)}, batches of {chosen[0].batch}{how}"
        draw(rows, plot, about, together)


def _device(device: str | None) -> str:
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    there = device == "cpu" or (device.startswith("cuda") and torch.cuda.is_available())
    _require(there, f"--device must be cpu, or cuda where torch sees a GPU, got {device!r}")
    return device


def _batch(batch: int | None, device: str) -> int:
    return batch or (1 if device == "cpu" else 32)


def _dtype(dtype: str) -> torch.dtype:
    dtype = _SHORT_DTYPES.get(dtype, dtype)
    _require(dtype in _DTYPES, f"--dtype must be one of {', '.join(_DTYPES)}, got {dtype!r}")
    return _DTYPES[dtype]


def _cases(
    shapes: list[str] | None,
    tokens: int | None,
    channels: int,
    lengths: str | None,
    groups: str | None,
    dtype: str | None,
    device: str | None,
    steps: str,
    order: str,
) -> list["Case"]:
    from dataclasses import replace

    from shiftsort.benchmarks.case import default_cases

    device = _device(device)
    _require(steps in KINDS, f"--steps must be one of {', '.join(KINDS)}, got {steps!r}")
    _require(order in ORDERS, f"--order must be one of {', '.join(ORDERS)}, got {order!r}")
    defaults = default_cases(device)
    wanted = _group_sizes(groups) or list(dict.fromkeys(case.group_size for case in defaults))
    if shapes:
        sizes = [_shape(text) for text in shapes]
    elif lengths or tokens:
        tokens = tokens or defaults[0].batch * defaults[0].samples
        each = _numbers("--lengths", lengths or "1024,4096,16384")
        sizes = [(max(tokens // n, 1), n, channels) for n in each]
    else:
        sizes = list(dict.fromkeys((case.batch, case.samples, channels) for case in defaults))
    first = replace(defaults[0], steps=steps, order=order)
    if dtype is not None:
        first = replace(first, dtype=_dtype(dtype))
    return [
        replace(first, batch=b, samples=n, channels=c, group_size=group)
        for b, n, c in sizes
        for group in wanted
    ]


def _shape(text: str) -> tuple[int, int, int]:
    parts = text.lower().split("x")
    valid = len(parts) == 3 and all(part.isdecimal() and int(part) > 0 for part in parts)
    _require(valid, f"--shape must be batch x length x channels, as 8x1024x512, got {text!r}")
    batch, samples, channels = map(int, parts)
    return batch, samples, channels


def _group_sizes(text: str | None) -> list[int | None]:
    return [
        None if part in ("all", "none", "None") else _numbers("--groups", part)[0]
        for part in (text or "").split(",")
        if part
    ]


def _numbers(option: str, text: str) -> list[int]:
    parts = text.split(",")
    valid = all(part.isdecimal() and int(part) > 0 for part in parts)
    _require(valid, f"{option} must be positive integers with commas, got {text!r}")
    return [int(part) for part in parts]


def _require(valid: bool, message: str) -> None:
    if not valid:
        raise typer.BadParameter(message)


def _chosen(candidates: list[Named], only: list[str] | None, always: str | None) -> list[Named]:
    """Those whose name holds one of the texts, and the one called `always`."""
    if not only:
        return candidates
    chosen = [c for c in candidates if any(text in c.name for text in only)]
    _require(bool(chosen), f"--only {', '.join(only)} names none of these candidates: "
             + "; ".join(dict.fromkeys(c.name for c in candidates)))  # fmt: skip
    return [c for c in candidates if c in chosen or c.name == always]


def _measure(
    cases: list["Case"],
    candidates: list["Candidate"],
    quick: bool,
    write: Callable[[list["Row"]], None],
) -> list["Row"]:
    """Rows of everything; `write` gets those of each shape too as soon as it is done."""
    from shiftsort.benchmarks import measure, memory, record

    if cases[0].device == "cpu":
        memory.keep_freed_memory()
    effort = measure.QUICK if quick else measure.Effort()
    rows: list[Row] = []

    def keep(so_far: list["Measurement"]) -> None:
        rows[:] = record.rows(so_far)
        write(rows)

    console = Console(stderr=True)
    with console.status("starting") as status:
        say = status.update if console.is_terminal else _lines(console)
        measure.measure(cases, candidates, effort, say, keep)
    return rows


def _lines(console: Console) -> Callable[[str], None]:
    """For a log: a line where a round begins."""
    last = ""

    def say(text: str) -> None:
        nonlocal last
        where = text.split(":")[0]
        if where != last:
            console.print(f"{datetime.now():%H:%M:%S} {where}", highlight=False)
        last = where

    return say


def _write(
    bench: str,
    rows: list["Row"],
    cases: list["Case"],
    quick: bool,
    path: Path | None,
    commit: str | None,
) -> None:
    if path is None:
        return
    from shiftsort.benchmarks import record

    first = cases[0]
    settings: dict[str, Any] = {
        "device": first.device,
        "dtype": _name_of(first.dtype),
        "steps": first.steps,
        "order": first.order,
        "heads": first.heads,
        "quick": quick,
    }
    record.write(path, record.document(bench, rows, settings, commit))


def _name_of(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
