"""Long Range Arena with MEGA: as published, in chunks, and with CSP in the place of attention."""

from dataclasses import dataclass, field, replace
from typing import Any

from .lra import TASKS
from .recipe import Mega, Optimiser, Paper, Recipe, Schedule

ROWS = ("mega", "chunk", "csp")

_PAPER = {
    "mega": (63.14, 90.43, 91.25, 90.44, 96.01, 97.98),
    "chunk": (58.76, 90.19, 90.97, 85.80, 94.41, 93.81),
    "csp": (61.85, 90.27, 90.09, 87.42, 93.74, 91.98),
}
_CHUNK = {"pathx": 4096}  # 128 elsewhere
_ADAM = Optimiser(lr=1e-3, beta1=0.9, beta2=0.98, eps=1e-8, weight_decay=0.01)
_COMPLETE_SORT = {"group_size": None, "shift": "none"}


def mega(task: str, row: str) -> Recipe:
    """A row of a task."""
    base = _PUBLISHED[task]
    base = replace(
        base,
        name=f"mega/{task}/{row}",
        row=row,
        paper=Paper(_PAPER[row][TASKS.index(task)]),
    )
    if row == "chunk":
        return replace(base, model=replace(base.model, chunk=_CHUNK.get(task, 128)))
    return _with_csp(base) if row == "csp" else base


def _with_csp(base: Recipe) -> Recipe:
    """The paper's table of hyperparameters, where it differs from what MEGA was published with."""
    difference = _CSP[base.task]
    return replace(
        base,
        about="The paper's table of hyperparameters; what it leaves open is as MEGA was published.",
        model=replace(base.model, attention="csp", csp=difference.csp, **difference.model),
        optimiser=replace(base.optimiser, **difference.optimiser),
        steps=None,
        epochs=difference.epochs,
        **difference.rest,
    )


@dataclass(frozen=True)
class _Difference:
    csp: dict[str, Any]
    epochs: int
    model: dict[str, Any] = field(default_factory=dict)
    optimiser: dict[str, Any] = field(default_factory=dict)
    rest: dict[str, Any] = field(default_factory=dict)


_CSP = {
    "listops": _Difference(_COMPLETE_SORT, epochs=60),
    "text": _Difference(_COMPLETE_SORT, epochs=50),
    "retrieval": _Difference(_COMPLETE_SORT, epochs=40, optimiser={"lr": 6e-3}),
    "image": _Difference({"group_size": 1, "shift": "linear"}, epochs=200, model={"hidden": 1024}),
    "pathfinder": _Difference(
        {"group_size": 2, "shift": "linear"},
        epochs=200,
        model={"dropout": 0.1},
        optimiser={"lr": 3e-2},
        rest={"batch": 64},
    ),
    # The table's 60 samples are one of the released script's 8 parts.
    "pathx": _Difference(
        {"group_size": 2, "shift": "exponential"},
        epochs=100,
        model={"dropout": 0.5},
        rest={"batch": 480, "accumulate": 8},
    ),
}


def _published(
    task: str,
    model: Mega,
    *,
    optimiser: Optimiser,
    batch: int,
    steps: int,
    schedule: Schedule,
    accumulate: int = 1,
) -> Recipe:
    return Recipe(
        name="",
        table="mega",
        row="",
        about="As MEGA was published.",
        task=task,
        model=model,
        optimiser=optimiser,
        schedule=schedule,
        batch=batch,
        accumulate=accumulate,
        steps=steps,
        clip=1.0,
    )


_TEXT = Mega(dim=128, depth=4, hidden=256, z=64, norm="scale")
_PIXELS = Mega(
    dim=128,
    depth=6,
    hidden=256,
    z=64,
    attention="laplace",
    norm="batch",
    prenorm=True,
    dropout=0.0,
    pixels=True,
)
_PUBLISHED = {
    "listops": _published(
        "listops",
        Mega(dim=80, depth=6, hidden=160, z=64),
        optimiser=_ADAM,
        batch=64,
        steps=90_000,
        schedule=Schedule("linear", warmup=3_000),
    ),
    "text": _published(
        "text",
        _TEXT,
        optimiser=replace(_ADAM, lr=4e-3),
        batch=50,
        accumulate=2,
        steps=25_000,
        schedule=Schedule("linear", warmup=10_000),
    ),
    "retrieval": _published(
        "retrieval",
        replace(_TEXT, depth=6),
        optimiser=replace(_ADAM, lr=3e-3, weight_decay=0.04),
        batch=64,
        accumulate=8,
        steps=91_960,
        schedule=Schedule("linear", warmup=10_000),
    ),
    "image": _published(
        "image",
        replace(_PIXELS, dim=160, depth=8, hidden=320, z=96),
        optimiser=replace(_ADAM, lr=1e-2, weight_decay=0.02),
        batch=50,
        steps=180_000,
        schedule=Schedule("linear", warmup=9_000),
    ),
    "pathfinder": _published(
        "pathfinder",
        _PIXELS,
        optimiser=replace(_ADAM, lr=1e-2),
        batch=128,
        steps=250_000,
        schedule=Schedule("linear", warmup=50_000),
    ),
    # Published on 8 GPUs, 2 samples each in 8 parts.
    "pathx": _published(
        "pathx",
        replace(_PIXELS, dim=64, depth=4, hidden=128, z=32, norm="syncbatch", truncation=4096),
        optimiser=replace(_ADAM, lr=1e-2),
        batch=128,
        accumulate=8,
        steps=125_000,
        schedule=Schedule("linear", warmup=25_000, warmup_power=2.0),
    ),
}
