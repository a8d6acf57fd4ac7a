"""A small vision transformer on handwritten digits: seconds on a laptop, offline."""

from .recipe import Optimiser, Recipe, Schedule, ViT

ROWS = ("mha", "csp")


def digits(row: str) -> Recipe:
    """16 patches of 2 x 2 pixels."""
    return Recipe(
        name=f"digits/{row}",
        table="digits",
        row=row,
        about="For the demo; the paper has no such row.",
        task="digits",
        model=ViT(patch_size=2, dim=64, depth=3, heads=4, mlp_dim=128, mixer=row, dropout=0.0),
        optimiser=Optimiser(lr=2e-3, weight_decay=0.01),
        schedule=Schedule("cosine", warmup=20),
        batch=64,
        epochs=40,
    )
