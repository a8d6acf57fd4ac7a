"""Long Range Arena: the encoder with each mixer, in the settings of the paper and as released.

`lra/{task}/{mixer}` is one body for all mixers of a task, in the paper's table of hyperparameters;
`google/{task}/{mixer}` is the body and the training of the benchmark's released configurations. The
paper prints one number for a mixer and task, so both have it beside them.
"""

from dataclasses import replace
from typing import Any

from .recipe import Encoder, Optimiser, Paper, Recipe, Schedule

TASKS = ("listops", "text", "retrieval", "image", "pathfinder", "pathx")

#: What the paper prints, task by task; it fails on Path-X with every one of them.
_PAPER: dict[str, tuple[float, ...]] = {
    "mha": (36.37, 64.27, 57.46, 42.44, 71.40),
    "local": (15.82, 52.98, 53.39, 41.46, 66.63),
    "linear": (16.13, 65.90, 53.09, 42.34, 75.30),
    "reformer": (37.27, 56.10, 53.40, 38.07, 68.50),
    "sinkformer": (30.70, 64.03, 55.45, 41.08, 64.65),
    "sparse": (17.07, 63.58, 59.59, 44.24, 71.71),
    "sinkhorn": (33.67, 61.20, 53.83, 41.23, 67.45),
    "linformer": (35.70, 53.94, 52.27, 38.56, 76.34),
    "performer": (18.01, 65.40, 53.82, 42.77, 77.05),
    "synthesizer": (36.99, 61.68, 54.67, 41.61, 69.45),
    "longformer": (35.63, 62.85, 56.89, 42.22, 69.71),
    "bigbird": (36.05, 64.02, 59.29, 40.83, 74.87),
    "cosformer": (37.90, 63.41, 61.36, 43.17, 70.33),
    "csp": (37.65, 64.60, 62.23, 48.02, 82.04),
}
#: Those of the paper's table first; then what it ablates elsewhere, or cites only.
MIXERS = (*_PAPER, "shift", "sort", "luna")

#: One complete sort and no shift wherever the paper has a number. For Path-X it has none: what it
#: gives MEGA there.
_COMPLETE_SORT = {"group_size": None, "shift": "none"}
_CSP: dict[str, dict[str, Any]] = {
    "listops": _COMPLETE_SORT,
    "text": _COMPLETE_SORT,
    "retrieval": _COMPLETE_SORT,
    "image": {"group_size": 1, "shift": "linear"},
    "pathfinder": _COMPLETE_SORT,
    "pathx": {"group_size": 2, "shift": "exponential"},
}

_ADAM = Optimiser(lr=0.05, beta1=0.9, beta2=0.98, eps=1e-9, weight_decay=0.1)


def google(task: str, mixer: str) -> Recipe:
    """The released configuration of a task."""
    return replace(
        _GOOGLE[task],
        name=f"google/{task}/{mixer}",
        table="lra, released configurations",
        row=mixer,
        paper=paper(mixer, task),
        model=_with_mixer(_GOOGLE[task].model, mixer, task),
    )


def lra(task: str, mixer: str) -> Recipe:
    """The paper's settings, where they differ from the released configuration."""
    base = google(task, mixer)
    model = base.model
    changes: dict[str, Any] = {
        "listops": {},
        "text": {},
        "retrieval": {"batch": 8},
        "image": {
            "model": replace(model, depth=4),
            "optimiser": replace(base.optimiser, lr=8e-3),
            "steps": 35_156,
        },
        # The paper gives depth, width and pooling; the inner widths grow with the width.
        "pathfinder": {
            "model": replace(model, depth=6, dim=64, channels=32, mlp_dim=64, pool="cls"),
            "batch": 256,
            "steps": 125_000,
        },
        "pathx": {},
    }[task]
    about = "The paper's table of hyperparameters; what it leaves open is as released."
    if task == "pathx":
        about = "The paper trains no such model to the end; the settings are as released."
    return replace(base, name=f"lra/{task}/{mixer}", table="lra", about=about, **changes)


def paper(mixer: str, task: str) -> Paper | None:
    """What is printed for a mixer, where something is."""
    if mixer not in _PAPER or task == "pathx":
        return None
    return Paper(_PAPER[mixer][TASKS.index(task)])


def _with_mixer(model: Encoder, mixer: str, task: str) -> Encoder:
    options = _CSP[task] if mixer == "csp" else {}
    return replace(model, mixer=mixer, mixer_options=options)


def _released(
    task: str,
    model: Encoder,
    *,
    optimiser: Optimiser = _ADAM,
    schedule: Schedule,
    batch: int,
    steps: int,
    clip: float = 0.0,
) -> Recipe:
    return Recipe(
        name="",
        table="",
        row="",
        about="The benchmark's released configuration; choices are made on a validation part.",
        task=task,
        model=model,
        optimiser=optimiser,
        schedule=schedule,
        batch=batch,
        steps=steps,
        clip=clip,
    )


_GOOGLE = {
    "listops": _released(
        "listops",
        Encoder(dim=512, depth=4, heads=8, mlp_dim=1024),
        schedule=Schedule("rsqrt", warmup=1000),
        batch=32,
        steps=5_000,
    ),
    "text": _released(
        "text",
        Encoder(dim=256, depth=4, heads=4, mlp_dim=1024),
        schedule=Schedule("rsqrt", warmup=8000),
        batch=32,
        steps=20_000,
    ),
    "retrieval": _released(
        "retrieval",
        Encoder(dim=128, depth=4, heads=4, mlp_dim=512),
        schedule=Schedule("rsqrt", warmup=8000),
        batch=32,
        steps=5_000,
    ),
    "image": _released(
        "image",
        Encoder(
            dim=128,
            depth=1,
            heads=8,
            channels=64,
            mlp_dim=128,
            positions="learned",
            dropout=0.3,
            attention_dropout=0.2,
        ),
        optimiser=replace(_ADAM, lr=5e-4, weight_decay=0.0),
        schedule=Schedule("cosine", warmup_epochs=1),
        batch=256,
        steps=35_000,
    ),
    "pathfinder": _released(
        "pathfinder",
        Encoder(dim=32, depth=4, heads=4, channels=16, mlp_dim=32, pool="mean", dropout=0.2),
        optimiser=replace(_ADAM, lr=1e-3, weight_decay=0.0),
        schedule=Schedule("cosine", warmup_epochs=1),
        batch=512,
        steps=62_400,
    ),
    "pathx": _released(
        "pathx",
        Encoder(
            dim=32,
            depth=1,
            heads=2,
            channels=16,
            mlp_dim=32,
            positions="learned",
            pool="mean",
        ),
        optimiser=replace(_ADAM, lr=1e-3, weight_decay=0.0),
        schedule=Schedule("cosine", warmup_epochs=1),
        batch=64,
        steps=500_000,
        clip=1.0,
    ),
}
