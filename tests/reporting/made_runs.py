"""Run folders as training writes them, for the tests of what is drawn from them."""

import json
import math

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

HEADER = (
    "step,epoch,train_loss,train_accuracy,validation_loss,validation_accuracy,test_accuracy,"
    "learning_rate,samples_per_second"
)


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
        yield f"{step},{step / 100},{2.3 - 1.8 * gone:.4f},{10 + 78 * gone:.2f},,,,0.0001,900"
        if step % 200 == 0:
            yield f"{step},{step / 100},,,{2.3 - 1.6 * gone:.4f},{10 + 74 * gone:.2f},,,"
