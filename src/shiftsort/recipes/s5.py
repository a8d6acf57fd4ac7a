"""Long Range Arena with S5, in the settings of its released scripts."""

from typing import Any

from .recipe import Optimiser, Recipe, Schedule, Stack


def s5(task: str) -> Recipe:
    """A task's row."""
    return _PUBLISHED[task]


def _published(
    task: str,
    *,
    dim: int,
    depth: int,
    rates: tuple[float, float],
    slow: tuple[str, ...],
    decay: float,
    batch: int,
    epochs: int,
    dropout: float = 0.0,
    momentum: float = 0.05,
    warmup: int = 1,
    about: str = "",
    **options: Any,
) -> Recipe:
    """`rates` are those of all parameters but the `slow` kinds, and of these."""
    rate, slow_rate = rates
    return Recipe(
        name="",
        table="",
        row="",
        about=f"S5's released script. {about}".strip(),
        task=task,
        model=Stack(
            dim=dim,
            depth=depth,
            mixer="s5",
            mixer_options=options,
            momentum=momentum,
            final_norm=False,
            dropout=dropout,
            pixels=task in ("image", "pathfinder", "pathx"),
        ),
        optimiser=Optimiser(lr=rate, weight_decay=decay, apart=dict.fromkeys(slow, slow_rate)),
        schedule=Schedule("cosine", warmup_epochs=warmup),
        batch=batch,
        epochs=epochs,
    )


_PUBLISHED = {
    "listops": _published(
        "listops",
        dim=128,
        depth=8,
        states=16,
        blocks=8,
        output="lecun_normal",
        activation="half_glu2",
        rates=(3e-3, 1e-3),
        slow=("A", "dt"),
        decay=0.04,
        batch=50,
        epochs=40,
    ),
    "text": _published(
        "text",
        dim=256,
        depth=6,
        states=192,
        blocks=12,
        output="lecun_normal",
        activation="half_glu2",
        dropout=0.1,
        rates=(4e-3, 1e-3),
        slow=("A", "B"),
        decay=0.07,
        batch=50,
        epochs=35,
        warmup=0,
    ),
    "retrieval": _published(
        "retrieval",
        dim=128,
        depth=6,
        states=256,
        blocks=16,
        rates=(2e-3, 1e-3),
        slow=("A", "B"),
        decay=0.05,
        batch=32,
        epochs=20,
    ),
    "image": _published(
        "image",
        dim=512,
        depth=6,
        states=384,
        blocks=3,
        output="lecun_normal",
        clip=True,
        dropout=0.1,
        rates=(4.5e-3, 1e-3),
        slow=("A", "dt"),
        decay=0.07,
        batch=50,
        epochs=250,
    ),
    "pathfinder": _published(
        "pathfinder",
        dim=192,
        depth=6,
        states=256,
        blocks=8,
        dropout=0.05,
        momentum=0.1,
        rates=(4.5e-3, 9e-4),
        slow=("A", "B", "dt"),
        decay=0.03,
        batch=64,
        epochs=200,
    ),
    "pathx": _published(
        "pathx",
        dim=128,
        depth=6,
        states=256,
        blocks=16,
        output="complex_normal",
        step_min=1e-4,
        momentum=0.1,
        rates=(1.8e-3, 6e-4),
        slow=("A", "B", "dt"),
        decay=0.06,
        batch=32,
        epochs=75,
        about="B decays there and does not here: what has a rate of its own never does.",
    ),
}
