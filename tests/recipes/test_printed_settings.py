"""The published tables of hyperparameters, written down a second time."""

from typing import Any

import pytest

from shiftsort import recipes
from shiftsort.recipes import Recipe

_TASKS = ("listops", "text", "retrieval", "image", "pathfinder", "pathx")


def _columns(tasks: tuple[str, ...], rows: dict[str, tuple[Any, ...]]) -> list[Any]:
    """(task, {what: its value}) for each column of a table."""
    return [
        pytest.param(task, {what: values[i] for what, values in rows.items()}, id=task)
        for i, task in enumerate(tasks)
    ]


def _said(recipe: Recipe) -> dict[str, Any]:
    """What a table may say of it."""
    model = recipe.model
    return {
        **vars(model),
        "qkv": getattr(model, "channels", None) or model.dim,
        "batch": recipe.batch,
        "part": recipe.batch // recipe.accumulate,
        "steps": recipe.steps,
        "epochs": recipe.epochs,
        "lr": recipe.optimiser.lr,
        "decay": recipe.optimiser.weight_decay,
        "schedule": recipe.schedule.kind,
        "warmup": recipe.schedule.warmup or recipe.schedule.warmup_epochs,
        "power": recipe.schedule.warmup_power,
        "clip": recipe.clip,
    }


def _assert_says(name: str, wanted: dict[str, Any]) -> None:
    said = _said(recipes.get(name))
    assert {what: said[what] for what in wanted} == wanted


@pytest.mark.parametrize(
    ("task", "wanted"),
    _columns(
        ("cifar10", "cifar100", "imagenet"),
        {
            "batch": (64, 64, 256),
            "epochs": (100, 100, 300),
            "lr": (1e-4, 1e-4, 5e-4),
            "schedule": ("cosine", "cosine", "cosine"),
            "dropout": (0.1, 0.1, 0.1),
            "embedding_dropout": (0.1, 0.1, 0),  # as released for CIFAR
            "dim": (512, 512, 384),  # 386 is a misprint
            "depth": (6, 6, 12),
        },
    ),
)
def test_the_paper_on_images(task: str, wanted: dict[str, Any]) -> None:
    _assert_says(f"{task}/csp", wanted)


@pytest.mark.parametrize(
    ("task", "wanted"),
    _columns(
        _TASKS[:5],
        {
            "batch": (32, 32, 8, 256, 256),
            "steps": (5_000, 20_000, 5_000, 35_156, 125_000),
            "lr": (5e-2, 5e-2, 5e-2, 8e-3, 1e-3),
            "schedule": ("rsqrt", "rsqrt", "rsqrt", "cosine", "cosine"),
            "decay": (0.1, 0.1, 0.1, 0, 0),
            "dim": (512, 256, 128, 128, 64),
            "depth": (4, 4, 4, 4, 6),
            "pool": ("cls", "cls", "cls", "cls", "cls"),
        },
    ),
)
def test_the_paper_on_long_range_arena(task: str, wanted: dict[str, Any]) -> None:
    _assert_says(f"lra/{task}/csp", wanted)


@pytest.mark.parametrize(
    ("task", "wanted"),
    _columns(
        _TASKS,
        {
            "part": (64, 25, 8, 50, 64, 60),
            "epochs": (60, 50, 40, 200, 200, 100),
            "lr": (1e-3, 4e-3, 6e-3, 1e-2, 3e-2, 1e-2),
            "schedule": ("linear",) * 6,
            "decay": (0.01, 0.01, 0.04, 0.02, 0.01, 0.01),
            "dropout": (0.1, 0.1, 0.1, 0.0, 0.1, 0.5),
            "hidden": (160, 256, 256, 1024, 256, 128),
            "depth": (6, 4, 6, 8, 6, 4),
        },
    ),
)
def test_the_paper_with_mega(task: str, wanted: dict[str, Any]) -> None:
    _assert_says(f"mega/{task}/csp", wanted)


@pytest.mark.parametrize(
    ("task", "wanted"),
    _columns(
        _TASKS,
        {
            "dim": (512, 256, 128, 128, 32, 32),
            "heads": (8, 4, 4, 8, 4, 2),
            "qkv": (512, 256, 128, 64, 16, 16),
            "mlp_dim": (1024, 1024, 512, 128, 32, 32),
            "depth": (4, 4, 4, 1, 4, 1),
            "dropout": (0.1, 0.1, 0.1, 0.3, 0.2, 0.1),
            "attention_dropout": (0.1, 0.1, 0.1, 0.2, 0.1, 0.1),
            "pool": ("cls", "cls", "cls", "cls", "mean", "mean"),
            "positions": (*["sinusoidal"] * 3, "learned", "sinusoidal", "learned"),
            "batch": (32, 32, 32, 256, 512, 64),
            "steps": (5_000, 20_000, 5_000, 35_000, 62_400, 500_000),
            "lr": (0.05, 0.05, 0.05, 5e-4, 1e-3, 1e-3),
            "warmup": (1_000, 8_000, 8_000, 1, 1, 1),
            "schedule": (*["rsqrt"] * 3, *["cosine"] * 3),
            "decay": (0.1, 0.1, 0.1, 0, 0, 0),
            "clip": (0, 0, 0, 0, 0, 1),
        },
    ),
)
def test_long_range_arena_as_released(task: str, wanted: dict[str, Any]) -> None:
    _assert_says(f"google/{task}/mha", wanted)


@pytest.mark.parametrize(
    ("task", "wanted"),
    _columns(
        _TASKS,
        {
            "depth": (6, 4, 6, 8, 6, 4),
            "dim": (80, 128, 128, 160, 128, 64),
            "hidden": (160, 256, 256, 320, 256, 128),
            "z": (64, 64, 64, 96, 64, 32),
            "norm": ("layer", "scale", "scale", "batch", "batch", "syncbatch"),
            "prenorm": (False, False, False, True, True, True),
            "attention": (*["softmax"] * 3, *["laplace"] * 3),
            "truncation": (*[1024] * 5, 4096),
            "lr": (1e-3, 4e-3, 3e-3, 1e-2, 1e-2, 1e-2),
            "decay": (0.01, 0.01, 0.04, 0.02, 0.01, 0.01),
            "dropout": (0.1, 0.1, 0.1, 0, 0, 0),
            "batch": (64, 25 * 2, 8 * 8, 50, 128, 2 * 8 * 8),
            "steps": (90_000, 25_000, 91_960, 180_000, 250_000, 125_000),
            "warmup": (3_000, 10_000, 10_000, 9_000, 50_000, 25_000),
            "power": (1, 1, 1, 1, 1, 2),
            "clip": (1,) * 6,
        },
    ),
)
def test_mega_as_released(task: str, wanted: dict[str, Any]) -> None:
    _assert_says(f"mega/{task}/mega", wanted)
    chunk = {"chunk": 4096 if task == "pathx" else 128}
    _assert_says(f"mega/{task}/chunk", {**wanted, **chunk})
