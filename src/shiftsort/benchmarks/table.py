"""Rows as a table in the terminal."""

import math
import shutil
import sys

from rich import box
from rich.console import Console, JustifyMethod
from rich.table import Table

from .case import LAYOUTS
from .record import TOLERANCE, Row, label, warnings_of
from .targets import Finding

_LISTED_WARNINGS = 8
_FILE_WIDTH = 140


def console() -> Console:
    """As wide as the terminal; wide enough for the tables where the output goes to a file."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else _FILE_WIDTH
    return Console(width=width)


class Page(Console):
    """Where tables are printed as Markdown, for the docs."""

    def __init__(self) -> None:
        super().__init__(width=10_000, no_color=True)


def print_document(document: Row, console: Console) -> None:
    """What `record.document` made, as it was shown when it was measured."""
    bench, rows, device = document["bench"], document["results"], document["device"]
    if bench == "operator":
        print_operator(rows, device, console)
    elif bench == "layer":
        print_layer(rows, device, console)
    elif bench == "data":
        print_data(rows, device, console)
    else:
        print_training(rows, device, console, together=bench == "model")


def print_operator(rows: list[Row], device: str, console: Console) -> None:
    """One table for each shape; a copy of the values is the measure."""
    for shape, some in _by_shape(rows):
        table = _table(f"{shape} on {device}")
        _columns(table, "G", "candidate", "layout")
        _columns(
            table, "forward ms", "f + b ms", "GB/s", "of copy", "backward", "copies", "f + b",
            "peak MB", "saved MB", justify="right",
        )  # fmt: skip
        for row in some:
            if row["failed"] is not None:
                continue
            table.add_row(
                str(row["group_size"]),
                row["candidate"],
                LAYOUTS.get(row["layout"], ""),
                _time(row, "forward"),
                _time(row, "both"),
                _number(row["gb_per_s"], "forward", "{:.0f}"),
                _number(row.get("of_copy"), "forward", "{:.2f}"),
                _number(row.get("of_copy"), "backward", "{:.2f}"),
                _number(row.get("copies"), "forward", "{:.1f}"),
                _number(row.get("copies"), "both", "{:.1f}"),
                _megabytes(_peak(row)),
                _megabytes(row["saved_bytes"]),
            )
        _show(table, console)
    _print_notes(rows, console)


def print_data(rows: list[Row], device: str, console: Console) -> None:
    """Samples a second."""
    table = _table(f"data on {device}")
    _columns(table, "what")
    _columns(table, "workers", "samples / s", "/ s and worker", justify="right")
    for row in rows:
        each = row["samples_per_s_and_worker"]
        table.add_row(
            row["candidate"],
            "" if row["workers"] is None else str(row["workers"]),
            f"{row['samples_per_s']:,.0f}",
            "" if each is None else f"{each:,.0f}",
        )
    _show(table, console)


def print_training(rows: list[Row], device: str, console: Console, together: bool) -> None:
    """The fastest first, in one table for each length, or all `together`."""
    tables: dict[str, list[Row]] = {}
    for row in rows:
        batch, samples = row["shape"]
        shape = f"B = {batch}" if together else f"B = {batch}, N = {samples}"
        tables.setdefault(shape, []).append(row)
    for shape, some in tables.items():
        table = _table(f"training, {shape} on {device}")
        _columns(table, "model")
        _columns(
            table, "N", "steps / s", "sequences / s", "step ms", "peak MB", "parameters",
            justify="right",
        )  # fmt: skip
        measured = [row for row in some if row["failed"] is None]
        for row in sorted(measured, key=lambda row: -row["steps_per_s"]):
            table.add_row(
                row["candidate"],
                str(row["shape"][1]),
                f"{row['steps_per_s']:.3g}",
                f"{row['samples_per_s']:.4g}",
                _time(row, "step"),
                _megabytes(row["peak_bytes"]["step"]),
                f"{row['parameters']:,}",
            )
        if measured:
            _show(table, console)
    _print_notes(rows, console)


def print_layer(rows: list[Row], device: str, console: Console) -> None:
    """One table for each shape; the fastest attention layer is the measure."""
    for shape, some in _by_shape(rows):
        table = _table(f"{shape} on {device}")
        _columns(table, "G", "candidate")
        _columns(
            table, "forward ms", "f + b ms", "attention / it", "f + b", "it / projection",
            "peak MB", "saved MB", justify="right",
        )  # fmt: skip
        for row in some:
            if row["failed"] is not None:
                continue
            table.add_row(
                str(row["group_size"]),
                row["candidate"],
                _time(row, "forward"),
                _time(row, "both"),
                _inverse(row["of_attention"], "forward"),
                _inverse(row["of_attention"], "both"),
                _number(row["of_projection"], "forward", "{:.2f}"),
                _megabytes(_peak(row)),
                _megabytes(row["saved_bytes"]),
            )
        _show(table, console)
    _print_notes(rows, console)


def print_targets(findings: list[Finding], console: Console) -> None:
    """What is to be reached, and the worst that was measured."""
    table = _table("targets")
    _columns(table, "target")
    _columns(table, "limit", "worst", justify="right")
    _columns(table, "", "where")
    for finding in findings:
        target = finding.target
        table.add_row(
            target.what,
            f"{'≥' if target.at_least else '≤'} {target.limit:g}",
            "" if finding.worst is None else f"{finding.worst:.3g}",
            finding.verdict,
            finding.where,
        )
    _show(table, console)


def _by_shape(rows: list[Row]) -> list[tuple[str, list[Row]]]:
    together: dict[str, list[Row]] = {}
    for row in rows:
        batch, samples, channels = row["shape"]
        together.setdefault(f"B = {batch}, N = {samples}, C = {channels}", []).append(row)
    return [(shape, sorted(some, key=_group_order)) for shape, some in together.items()]


def _group_order(row: Row) -> float:
    size = row["group_size"]
    return {"any": 0, "all": math.inf}.get(size, size)


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1))


def _columns(table: Table, *headings: str, justify: JustifyMethod = "left") -> None:
    for heading in headings:
        table.add_column(heading, justify=justify, no_wrap=True)


def _show(table: Table, console: Console) -> None:
    if not isinstance(console, Page):
        console.print(table)
        return
    kinds = ["--:" if column.justify == "right" else "---" for column in table.columns]
    rows = zip(*(column.cells for column in table.columns), strict=True)
    lines = [[column.header for column in table.columns], kinds, *rows]
    console.print(f"**{table.title}**\n", highlight=False)
    for line in lines:
        cells = " | ".join(str(cell).strip() for cell in line)
        console.print(f"| {cells} |", highlight=False, soft_wrap=True)
    console.print()


def _time(row: Row, name: str) -> str:
    times = row["ms"].get(name)
    if times is None:
        return ""
    spread = (times["high"] - times["low"]) / 2 / times["median"]
    moved = "[yellow]~[/yellow]" if times["drift"] > TOLERANCE else " "
    return f"{_significant(times['median'])} ±{100 * spread:.0f}%{moved}"


def _significant(value: float) -> str:
    return f"{value:.3f}" if value < 10 else f"{value:.1f}"


def _number(values: dict[str, float] | None, name: str, form: str) -> str:
    return "" if values is None or name not in values else form.format(values[name])


def _inverse(values: dict[str, float], name: str) -> str:
    return f"{1 / values[name]:.1f} x" if name in values else ""


def _peak(row: Row) -> int | None:
    return row["peak_bytes"].get("both", row["peak_bytes"].get("forward"))


def _megabytes(byte_count: int | None) -> str:
    return "" if byte_count is None else f"{byte_count / 1e6:.1f}"


def _print_notes(rows: list[Row], console: Console) -> None:
    reasons: dict[tuple[str, str], int] = {}
    for row in rows:
        if row["failed"] is not None:
            key = (row["candidate"], row["failed"])
            reasons[key] = reasons.get(key, 0) + 1
    for (name, reason), count in reasons.items():
        console.print(f"[dim]not measured ({count} x):[/dim] {name}: {reason}", highlight=False)
    warnings = warnings_of(rows)
    for warning in warnings[:_LISTED_WARNINGS]:
        console.print(f"[yellow]moved by more than 5 % (~):[/yellow] {warning}", highlight=False)
    if len(warnings) > _LISTED_WARNINGS:
        console.print(f"[yellow]... and {len(warnings) - _LISTED_WARNINGS} more[/yellow]")
    measured = [row for row in rows if row["failed"] is None]
    details = {f"{label(row)}: {row['detail']}" for row in measured if row.get("detail")}
    for detail in sorted(details):
        console.print(f"[dim]{detail}[/dim]", highlight=False)
