"""Run folders as training writes them, for the tests of what is drawn from them."""

import json
import math

from shiftsort.training.folder import COLUMNS

RESULT = {
    "format": 1,
    "recipe": "cifar10/csp",
    "table": "cifar10",
    "row": "csp",
    "task": "cifar10",
    "paper": {"top1": 84.81, "top5": 99.35},
    "parameters": 6_377_994,
    "seed": 0,
    "test": {"top1": 84.0, "top5": 99.2, "loss": 0.51},
    "validation": None,
    "chosen_on": "test",
    "steps": 78_200,
    "steps_published": 78_200,
    "epochs": 100.0,
    "steps_per_second": 120.0,
    "peak_memory_bytes": 1_200_000_000,
    "device": "NVIDIA H200",
    "precision": "bf16-mixed",
    "date": "2026-11-18T12:00:00+00:00",
    "versions": {"torch": "2.11.0"},
    "commit": "0123456789abcdef",
    "command": "shiftsort train cifar10/csp",
    "overrides": {},
}

HEADER = ",".join(COLUMNS)


def result(**changes):
    """A result with some fields changed."""
    return {**RESULT, **changes}


def make_run(folder, metrics=True, **changes):
    """A run folder."""
    folder.mkdir(parents=True)
    (folder / "result.json").write_text(json.dumps(result(**changes)))
    if metrics:
        (folder / "metrics.csv").write_text("\n".join([HEADER, *_lines()]) + "\n")
    return folder


def _lines():
    for step in range(50, 2001, 50):
        gone = 1 - math.exp(-step / 600)
        begin = {"step": step, "epoch": step / 100, "seconds": step / 120}
        yield _line({**begin, "train_loss": 2.3 - 1.8 * gone, "train_top1": 10 + 78 * gone})
        if step % 200 == 0:
            judged = {"validation_loss": 2.3 - 1.6 * gone, "validation_top1": 10 + 74 * gone}
            yield _line({**begin, **judged})


def _line(values):
    assert values.keys() <= set(COLUMNS)
    return ",".join(f"{values[name]:g}" if name in values else "" for name in COLUMNS)
