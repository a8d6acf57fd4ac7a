"""The run folder: what was asked for, where it ran, how it went, and what came out."""

import csv
import importlib.metadata
import json
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

import shiftsort

from .. import recipes
from .errors import RunError

RECIPE, ENVIRONMENT, METRICS, RESULT, WEIGHTS = (
    "recipe.json",
    "environment.json",
    "metrics.csv",
    "result.json",
    "weights.safetensors",
)
#: The columns of metrics.csv. Rows of training leave those of the validation empty, and vice versa.
COLUMNS = (
    *("step", "epoch", "seconds", "lr", "samples_per_second"),
    *("train_loss", "train_top1", "validation_loss", "validation_top1", "validation_top5"),
)
_PACKAGES = ("torch", "lightning", "triton", "numpy", "safetensors", "torchvision")


def require_fresh(run: Path) -> None:
    """No run is written over."""
    if (run / RESULT).exists():
        raise RunError(f"{run} has a run that has ended; choose another folder with --out")
    if (run / RECIPE).exists():
        raise RunError(
            f"{run} has a run already; go on with it with --resume {run}, "
            "or choose another folder with --out"
        )


def create(run: Path, recipe: recipes.Recipe, overrides: dict[str, Any], command: str) -> None:
    """The folder of a new run."""
    run.mkdir(parents=True, exist_ok=True)
    write_json(run / ENVIRONMENT, environment(command))
    write_json(run / RECIPE, {"recipe": recipes.to_plain(recipe), "overrides": overrides})


def read_recipe(run: Path) -> tuple[recipes.Recipe, dict[str, Any]]:
    """The recipe of a run, with what had been set."""
    try:
        content = json.loads((run / RECIPE).read_text())
        return recipes.from_plain(content["recipe"]), content["overrides"]
    except FileNotFoundError:
        raise RunError(f"{run} is not a run folder: it has no {RECIPE}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise RunError(f"{run / RECIPE} cannot be read as a recipe: {error}") from None


def read_command(run: Path) -> str:
    """What a run was begun with: it makes the run again, where going on with it does not."""
    return json.loads((run / ENVIRONMENT).read_text())["command"]


def environment(command: str) -> dict[str, Any]:
    """What a result must say about where it comes from."""
    return {
        "command": command,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "device": device_name(),
        "versions": versions(),
    }


def versions() -> dict[str, str]:
    """Of Python and the packages that decide what comes out."""
    found = {"python": platform.python_version(), "shiftsort": shiftsort.__version__}
    for package in _PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def device_name() -> str:
    """The GPU, or the processor."""
    if torch.cuda.is_available():
        return torch.cuda.get_device_name()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _commit() -> str | None:
    package = Path(shiftsort.__file__).parent
    try:
        tracked = ["git", "-C", package, "ls-files", "--error-unmatch", "__init__.py"]
        subprocess.run(tracked, capture_output=True, check=True)
        head = ["git", "-C", package, "rev-parse", "HEAD"]
        return subprocess.run(head, capture_output=True, check=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write a file that is either whole or as it was."""
    partial = path.with_name(f".{path.name}")
    partial.write_text(json.dumps(content, indent=1) + "\n")
    partial.replace(path)


class Metrics:
    """metrics.csv, a row at a time; a run that goes on forgets the rows behind its checkpoint."""

    def __init__(self, run: Path, after: int) -> None:
        path = run / METRICS
        rows = _rows(path, after)
        with path.open("w", newline="") as file:
            csv.DictWriter(file, COLUMNS).writeheader()
            csv.DictWriter(file, COLUMNS).writerows(rows)
        self._file = path.open("a", newline="")
        self._writer = csv.DictWriter(self._file, COLUMNS)

    def write(self, **values: float | None) -> None:
        """One row, at once on the disk's side of a crash of this process."""
        short = {name: f"{value:.6g}" for name, value in values.items() if value is not None}
        self._writer.writerow({**short, "step": values["step"]})
        self._file.flush()

    def close(self) -> None:
        """No more rows."""
        self._file.close()


def _rows(path: Path, last: int) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if None not in row and None not in row.values()]
    return [row for row in rows if row["step"].isdecimal() and int(row["step"]) <= last]
