"""Long Range Arena with S4 and S4D, in the settings of the code that their authors maintain."""

from functools import partial
from typing import Any

from .recipe import Optimiser, Recipe, Schedule, Stack


def s4(task: str) -> Recipe:
    """A task's row: the newest configuration."""
    return _S4[task]


def s4d(task: str) -> Recipe:
    """A task's row: as published beside S4's second version, in the start that did best there."""
    return _S4D[task]


def _published(
    mixer: str,
    about: str,
    task: str,
    *,
    batch: int,
    steps: int,
    warmup: int,
    lr: float = 0.01,
    decay: float = 0.05,
    slow: float = 1e-3,
    slow_dt: bool = False,
    dim: int = 256,
    depth: int = 6,
    norm: str = "batch",
    prenorm: bool = True,
    dropout: float = 0.0,
    **options: Any,
) -> Recipe:
    """`slow` is the rate of A and B, and with `slow_dt` of the steps too."""
    return Recipe(
        name="",
        table="",
        row="",
        about=about,
        task=task,
        model=Stack(
            dim=dim,
            depth=depth,
            mixer=mixer,
            mixer_options=options,
            norm=norm,
            prenorm=prenorm,
            dropout=dropout,
            pixels=task in ("image", "pathfinder", "pathx"),
        ),
        optimiser=Optimiser(
            lr=lr,
            weight_decay=decay,
            apart={"A": slow, "B": slow, "dt": slow if slow_dt else None},
        ),
        schedule=Schedule("cosine", warmup=warmup),
        batch=batch,
        steps=steps,
    )


_s4 = partial(
    _published,
    "s4",
    "The newest released configuration; the printed number is of S4's first version.",
)
_S4 = {
    "listops": _s4("listops", batch=32, steps=120_000, warmup=12_000, prenorm=False, states=4),
    "text": _s4("text", batch=16, steps=50_000, warmup=5_000, states=4),
    "retrieval": _s4("retrieval", batch=64, steps=50_000, warmup=5_000, states=4),
    "image": _s4(
        "image",
        dim=512,
        prenorm=False,
        dropout=0.1,
        batch=50,
        steps=180_000,
        warmup=18_000,
        slow_dt=True,
    ),
    "pathfinder": _s4(
        "pathfinder",
        batch=64,
        steps=500_000,
        warmup=50_000,
        lr=4e-3,
        slow_dt=True,
        copies=None,
    ),
    "pathx": _s4(
        "pathx",
        batch=16,
        steps=500_000,
        warmup=50_000,
        lr=1e-3,
        slow_dt=True,
        copies=None,
        dt_min=1e-4,
    ),
}

_s4d = partial(_published, "s4d", "As S4D was published, S4D-Inv with zero-order hold.")
_S4D = {
    "listops": _s4d(
        "listops",
        dim=128,
        depth=8,
        prenorm=False,
        batch=50,
        steps=80_000,
        warmup=1_000,
        start="inv",
        copies=None,
    ),
    "text": _s4d("text", batch=16, steps=50_000, warmup=1_000, start="inv", copies=None),
    "retrieval": _s4d("retrieval", batch=64, steps=50_000, warmup=2_500, start="inv", copies=None),
    "image": _s4d(
        "image",
        dim=512,
        norm="layer",
        prenorm=False,
        dropout=0.1,
        batch=50,
        steps=180_000,
        warmup=900,
        start="inv",
        copies=2,
    ),
    "pathfinder": _s4d(
        "pathfinder",
        batch=64,
        steps=500_000,
        warmup=2_500,
        lr=4e-3,
        decay=0.03,
        slow_dt=True,
        start="inv",
        copies=None,
    ),
    "pathx": _s4d(
        "pathx",
        batch=16,
        steps=500_000,
        warmup=50_000,
        lr=1e-3,
        slow=5e-4,
        slow_dt=True,
        start="inv",
        copies=None,
        dt_min=1e-4,
    ),
}
