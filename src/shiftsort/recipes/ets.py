"""Long Range Arena with ETSMLP-Gate: sizes and beginnings as in the released code.

One command to train is released, for ListOps. The code builds on MEGA's and is trained on MEGA's
data, so that elsewhere batch, steps, decay and dropout are MEGA's, and so are the rates.
"""

from dataclasses import replace
from typing import Any

from .mega import mega
from .recipe import Recipe, Stack


def ets(task: str) -> Recipe:
    """A task's row."""
    size = _SIZES[task]
    published = mega(task, "mega")
    optimiser = replace(published.optimiser, apart={})  # all parameters decay
    about = "ETSMLP's released sizes, trained as MEGA was, for want of published settings."
    dropout = published.model.dropout
    if task == "listops":
        optimiser, dropout = replace(optimiser, lr=1e-2), 0.0
        about = "ETSMLP's released command, with the released sizes of the gated model."
    return replace(
        published,
        about=about,
        model=Stack(
            dim=size["dim"],
            depth=size["depth"],
            mixer="ets",
            mixer_options=size["options"],
            norm="batch" if task in _IMAGES else "layer",
            embedding_norm=True,
            hidden=size["dim"] if task == "retrieval" else None,
            dropout=dropout,
            tied_dropout=False,
            pixels=task in _IMAGES,
        ),
        optimiser=optimiser,
    )


def _size(dim: int, depth: int, channels: int, *radius: float, phase: float) -> dict[str, Any]:
    low, high = radius
    options = {"channels": channels, "radius_min": low, "radius_max": high, "phase_max": phase}
    return {"dim": dim, "depth": depth, "options": options}


_IMAGES = ("image", "pathfinder", "pathx")
_SIZES = {
    "listops": _size(160, 12, 160, 0.1, 0.9, phase=3.14),
    "text": _size(160, 6, 160, 0.1, 0.9, phase=3.14),
    "retrieval": _size(160, 6, 160, 0.9, 0.99, phase=0.314),
    "image": _size(160, 12, 320, 0.6, 0.9, phase=3.14),
    "pathfinder": _size(128, 6, 256, 0.9, 0.9999, phase=0.314),
    "pathx": _size(128, 6, 256, 0.99, 0.9999, phase=0.314),
}
