"""The learning rate as a function of the update's number, and of nothing else."""

import math

from .. import recipes


def rate(
    schedule: recipes.Schedule, lr: float, step: int, steps: int, updates_per_epoch: int
) -> float:
    """Of the update behind `step` finished ones, out of `steps`."""
    warmup = schedule.warmup + round(schedule.warmup_epochs * updates_per_epoch)
    number = step + 1
    rise = min(1.0, number / warmup) ** schedule.warmup_power if warmup else 1.0
    if schedule.kind == "rsqrt":
        return lr * rise / math.sqrt(max(number, warmup))
    done = min(max(step - warmup, 0) / max(steps - warmup, 1), 1.0)
    if schedule.kind == "cosine":
        return lr * rise * 0.5 * (1 + math.cos(math.pi * done))
    if schedule.kind == "linear":
        return lr * rise * (1 - done)
    return lr * rise
