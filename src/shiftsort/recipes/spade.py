"""Long Range Arena with SPADE."""

from dataclasses import replace

from .mega import mega
from .recipe import Mega, Recipe, Stack


def spade(task: str) -> Recipe:
    """MEGA's body and training: SPADE's own for this benchmark are not in its released code."""
    base = mega(task, "mega")
    size = base.model
    assert isinstance(size, Mega)
    return replace(
        base,
        about="SPADE's released code has no settings for this benchmark: body and training are "
        "MEGA's, the window and the heads our choice.",
        model=Stack(
            dim=size.dim,
            depth=size.depth,
            mixer="spade",
            mixer_options={"heads": 4, "window": 128},
            norm=size.norm,
            prenorm=size.prenorm,
            mlp_dim=size.hidden,
            hidden=size.hidden,
            dropout=size.dropout,
            tied_dropout=False,
            pixels=size.pixels,
        ),
        optimiser=replace(base.optimiser, apart={"A": 1e-3, "B": 1e-3, "dt": None}),
    )
