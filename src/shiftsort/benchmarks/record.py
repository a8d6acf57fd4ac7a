"""Measurements -> rows of plain data with ratios, and a JSON that says where they come from."""

import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

import shiftsort

from .measure import PASSES, Measurement

Row = dict[str, Any]

#: Two timings of the same thing that differ by more than this are warned of.
TOLERANCE = 0.05

_PACKAGES = ("torch", "triton", "numpy")


def rows(measurements: Iterable[Measurement]) -> list[Row]:
    """One for each measurement."""
    return [_row(m) for m in measurements]


def _row(m: Measurement) -> Row:
    group = m.case.group_size if m.candidate.grouped else "any"
    row: Row = {
        "candidate": m.candidate.name,
        "layout": m.candidate.layout,
        "shape": list(m.case.shape),
        "group_size": "all" if group is None else group,
        "failed": m.failed,
    }
    if m.failed is not None:
        return row
    row["ms"] = {p: summary([t[p] for t in m.times]) for p in PASSES if p in m.times[0]}
    row["issue_ms"] = statistics.median(m.issue_times) if m.issue_times else None
    row["peak_bytes"] = m.peak_bytes
    row["saved_bytes"] = m.saved_bytes
    row["detail"] = m.detail
    packed = m.saved_bytes if m.candidate.packs and m.saved_bytes else 0
    values = 2 * m.case.value_bytes
    moved = {"forward": values, "saving": values + packed, "backward": values + packed}
    moved["both"] = moved["saving"] + moved["backward"]
    row["gb_per_s"] = {p: moved[p] / s["median"] / 1e6 for p, s in row["ms"].items()}
    return row


def summary(by_round: list[list[float]]) -> Row:
    """Milliseconds of each round, together."""
    together = sorted(t for times in by_round for t in times)
    low, high = (together[round(q * (len(together) - 1))] for q in (0.2, 0.8))
    medians = [statistics.median(times) for times in by_round]
    return {
        "median": statistics.median(together),
        "fastest": together[0],
        "low": low,
        "high": high,
        "repeats": len(together),
        "rounds": medians,
        "drift": max(medians) / min(medians) - 1,
    }


def compare_with_copy(table: list[Row]) -> None:
    """How many copies of the values a pass takes, and its share of the copy's bandwidth."""
    _compare(table, lambda row: row["candidate"] == "copy", "forward", "copies")
    for row in table:
        copy = _reference(table, row, lambda other: other["candidate"] == "copy", "forward")
        if row["failed"] is None and copy is not None:
            bandwidth = copy["gb_per_s"]["forward"]
            row["of_copy"] = {p: rate / bandwidth for p, rate in row["gb_per_s"].items()}


def compare_with_fastest(table: list[Row], prefix: str, field: str) -> None:
    """How many times the time of the fastest candidate of that name, pass by pass."""
    _compare(table, lambda row: row["candidate"].startswith(prefix), None, field)


def _compare(
    table: list[Row], is_reference: Callable[[Row], bool], against: str | None, field: str
) -> None:
    for row in table:
        if row["failed"] is not None:
            continue
        row[field] = {}
        for name, times in row["ms"].items():
            reference = _reference(table, row, is_reference, against or name)
            if reference is not None:
                base = reference["ms"][against or name]["median"]
                row[field][name] = times["median"] / base


def _reference(
    table: list[Row], row: Row, is_reference: Callable[[Row], bool], name: str
) -> Row | None:
    found = [
        other
        for other in table
        if is_reference(other)
        and other["shape"] == row["shape"]
        and other["failed"] is None
        and name in other["ms"]
    ]
    return min(found, key=lambda other: other["ms"][name]["median"], default=None)


def warnings_of(table: list[Row]) -> list[str]:
    """What was timed twice and came out differently."""
    return [
        f"{label(row)}, {name}: two rounds took {' and '.join(f'{t:.3f}' for t in s['rounds'])} ms"
        for row in table
        if row["failed"] is None
        for name, s in row["ms"].items()
        if s["drift"] > TOLERANCE
    ]


def label(row: Row) -> str:
    """A row in a few words."""
    shape = " x ".join(map(str, row["shape"]))
    group = "" if row["group_size"] == "any" else f", G: {row['group_size']}"
    layout = f" ({row['layout']})" if row["layout"] else ""
    return f"{row['candidate']}{layout}, {shape}{group}"


def document(
    bench: str, table: list[Row], settings: dict[str, Any], commit: str | None = None
) -> dict[str, Any]:
    """All of a run, as it is written to JSON."""
    return {
        "bench": bench,
        "device": device_name(settings["device"]),
        "versions": _versions(),
        "commit": commit or _commit(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        # Names without folders: where a file lay says nothing to who runs the command again.
        "command": " ".join(["shiftsort", *(arg.split("/")[-1] for arg in sys.argv[1:])]),
        "settings": settings,
        "warnings": warnings_of(table),
        "results": table,
    }


def write(path: Path, content: dict[str, Any]) -> None:
    """As JSON, its folder made if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f"{path.name}.{os.getpid()}")
    aside.write_text(json.dumps(rounded(content), indent=1, allow_nan=False) + "\n")
    aside.replace(path)  # who is stopped here leaves what was written before


def read(path: Path) -> dict[str, Any]:
    """What `write` wrote."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} cannot be read as JSON: {error}") from None
    missing = {"bench", "device", "date", "command", "results"} - set(content)
    if missing:
        raise ValueError(f"{path} is no file of `shiftsort bench`: it has no {min(missing)!r}")
    return content


def rounded(value: Any) -> Any:
    """As a file keeps it, to print the same later: five digits, more than a clock tells."""
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value


def device_name(device: str) -> str:
    """The hardware in words."""
    if device != "cpu":
        return torch.cuda.get_device_name(device)
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [li for li in cpuinfo.read_text().splitlines() if li.startswith("model name")]
        model = names[0].split(":", 1)[1].strip() if names else model
    return f"{model}, {torch.get_num_threads()} threads"


def _versions() -> dict[str, str | None]:
    found: dict[str, str | None] = {
        "shiftsort": shiftsort.__version__,
        "python": platform.python_version(),
        "cuda": torch.version.cuda,
    }
    for package in _PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = None
    return found


def _commit() -> str | None:
    """The checkout's commit, "+" where it was changed since; None outside of one."""
    here = Path(__file__).parent

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", "-C", str(here), *arguments], capture_output=True, text=True, check=True
        ).stdout.strip()

    try:
        return git("rev-parse", "HEAD") + ("+" if git("status", "--porcelain", "-uno") else "")
    except (OSError, subprocess.CalledProcessError):
        return None
