"""Long Range Arena with CCNN, that of 6 blocks of 380 channels, as its released commands have it.

Left out: the convolution before the first block, and the penalty on the norm of kernels that
PathFind has (weight 1e-6). Tokens are embedded, where the release reads their numbers as values.
"""

from typing import Any

from .recipe import Optimiser, Recipe, Schedule, Stack


def ccnn(task: str) -> Recipe:
    """A task's row."""
    return _PUBLISHED[task]


def _published(
    task: str,
    *,
    lr: float,
    batch: int,
    epochs: int,
    about: str = "CCNN's released command.",
    mask_lr: float | None = None,
    **options: Any,
) -> Recipe:
    """`mask_lr` is the rate of the width of the kernels' windows."""
    pixels = task in ("image", "pathfinder", "pathx")
    return Recipe(
        name="",
        table="",
        row="",
        about=about,
        task=task,
        model=Stack(
            dim=380,
            depth=6,
            mixer="ccnn",
            mixer_options={"tied": pixels, **options},  # a dropout of its own alone
            pixels=pixels,
        ),
        optimiser=Optimiser(lr=lr, apart={"mask": mask_lr}),
        schedule=Schedule("cosine", warmup_epochs=10),
        batch=batch,
        epochs=epochs,
    )


_TEXT: dict[str, Any] = {
    "dropout": 0.3,
    "hidden": 64,
    "frequency": 2966.605,
    "width": 0.03,
    "lr": 0.02,
    "batch": 25,
    "epochs": 60,
}
_PATHFINDER: dict[str, Any] = {
    "dropout": 0.1,
    "hidden": 64,
    "frequency": 2272.557,
    "width": 0.4,
    "lr": 0.01,
    "batch": 100,
    "epochs": 210,
}
_PUBLISHED = {
    "listops": _published(
        "listops",
        dropout=0.25,
        hidden=32,
        frequency=784.655,
        width=0.03,
        lr=1e-3,
        mask_lr=1e-4,
        batch=50,
        epochs=60,
    ),
    "text": _published("text", **_TEXT),
    "retrieval": _published(
        "retrieval", **_TEXT, about="Its authors report no Retrieval; the settings are Text's."
    ),
    "image": _published(
        "image",
        dropout=0.1,
        hidden=64,
        frequency=4005.146,
        width=0.075,
        lr=0.01,
        batch=50,
        epochs=210,
    ),
    "pathfinder": _published("pathfinder", **_PATHFINDER),
    "pathx": _published(
        "pathx", **_PATHFINDER, about="Its authors report no Path-X; the settings are PathFind's."
    ),
}
