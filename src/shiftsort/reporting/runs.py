"""A run as it lies on the disk: `result.json`, and the course it took in `metrics.csv`.

Accuracies are in percent, in both files.
"""

import csv
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FORMAT = 1
RESULT, METRICS = "result.json", "metrics.csv"
CHOSEN_ON = ("validation", "test", "nothing")

_NUMBER = (int, float)
_FIELDS: dict[str, type | tuple[type, ...]] = {
    "recipe": str,
    "table": str,
    "row": str,
    "task": str,
    "paper": (dict, type(None)),
    "parameters": int,
    "seed": int,
    "test": dict,
    "chosen_on": str,
    "steps": int,
    "steps_published": int,
    "epochs": _NUMBER,
    "steps_per_second": _NUMBER,
    "peak_memory_bytes": (int, type(None)),
    "device": str,
    "precision": str,
    "date": str,
    "versions": dict,
    "commit": (str, type(None)),
    "command": str,
    "overrides": dict,
}

Point = tuple[float, float]


class ReportError(Exception):
    """A file is missing or is not what it should be; the message says what to do."""


@dataclass(frozen=True)
class Run:
    """A run that has ended: what its result says, and its curves if it lies in a folder."""

    path: Path
    recipe: str
    table: str
    row: str
    task: str
    paper: Mapping[str, float | None]
    parameters: int
    seed: int
    test: Mapping[str, float | None]
    chosen_on: str
    steps: int
    steps_published: int
    epochs: float
    steps_per_second: float
    peak_memory_bytes: int | None
    device: str
    precision: str
    date: str
    versions: Mapping[str, str | None]
    commit: str | None
    command: str
    overrides: Mapping[str, Any]
    #: By the column's name: (step, value) wherever a value was written.
    curves: Mapping[str, list[Point]] = field(default_factory=dict)


def read_run(path: Path) -> Run:
    """A run folder, or the JSON of a result."""
    if not path.exists():
        raise ReportError(f"{path} does not exist; expected a run folder or a result's JSON")
    if not path.is_dir():
        return _run(path, _load(path))
    file = path / RESULT
    if not file.exists():
        raise ReportError(
            f"{path} has no {RESULT}: it is not a run folder, or its run has not ended; "
            "a run that was stopped goes on with: shiftsort train RECIPE --resume RUN"
        )
    return _run(file, _load(file), read_curves(path / METRICS))


def read_results(folder: Path) -> list[Run]:
    """Every result of a run in a folder, and in the folders in it; other JSON is passed over."""
    if not folder.is_dir():
        raise ReportError(f"{folder} is not a folder; name the one with the results with --dir")
    return list(_results(folder))


def _results(folder: Path) -> Iterator[Run]:
    for path in sorted(folder.rglob("*.json")):
        content = _load(path)
        if isinstance(content, dict) and {"format", "recipe"} <= content.keys():
            yield _run(path, content)


def read_curves(path: Path) -> dict[str, list[Point]]:
    """The columns of a `metrics.csv`; none where there is no such file."""
    curves: dict[str, list[Point]] = {}
    if not path.exists():
        return curves
    with path.open(newline="") as file:
        for line in csv.DictReader(file):
            step = _number(line.get("step"))
            if step is None:
                continue
            for name, text in line.items():
                value = _number(text)
                if name not in ("step", None) and value is not None:
                    curves.setdefault(name, []).append((step, value))
    return curves


def _number(text: str | list[str] | None) -> float | None:
    """None for what is empty, cut off or not finite: a curve has a gap there."""
    try:
        value = float(text)
    except (TypeError, ValueError):
        return None
    return value if math.isfinite(value) else None


def _load(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ReportError(f"{path} cannot be read as JSON: {error}") from None


def _run(path: Path, content: Any, curves: Mapping[str, list[Point]] | None = None) -> Run:
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        given = content.get("format") if isinstance(content, dict) else type(content).__name__
        raise ReportError(f"{path}: expected a result with format {FORMAT}, got {given!r}")
    for name, kind in _FIELDS.items():
        if name not in content:
            raise ReportError(f"{path}: the field {name!r} is missing; train the run again")
        if not isinstance(content[name], kind) or isinstance(content[name], bool):
            raise ReportError(f"{path}: the field {name!r} cannot be {content[name]!r}")
    if not isinstance(content["test"].get("top1"), _NUMBER):
        raise ReportError(f"{path}: test.top1 must be a number, got {content['test']}")
    if content["chosen_on"] not in CHOSEN_ON:
        raise ReportError(
            f"{path}: chosen_on must be one of {', '.join(CHOSEN_ON)}, got {content['chosen_on']!r}"
        )
    known = {name: content[name] for name in _FIELDS}
    return Run(path=path, **{**known, "paper": known["paper"] or {}}, curves=curves or {})
