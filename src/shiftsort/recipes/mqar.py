"""Associative recall: two layers, as zoology measures it, with each mixer.

The paper has no such row; its reviewers asked for one. `task_settings.pairs` is what to vary.
"""

from .recipe import Encoder, Optimiser, Recipe, Schedule

ROWS = ("mha", "csp", "shift", "sort")


def mqar(row: str) -> Recipe:
    """A row of the table."""
    return Recipe(
        name=f"mqar/{row}",
        table="mqar",
        row=row,
        about="Zoology's task, width and optimiser, looking both ways; the paper has no such row.",
        task="mqar",
        model=Encoder(
            dim=128,
            depth=2,
            heads=1,
            mlp_dim=512,
            mixer=row,
            positions="learned",
            pool="none",
            attention_dropout=0.0,
        ),
        optimiser=Optimiser(lr=1e-3, weight_decay=0.1),
        schedule=Schedule("cosine", warmup_epochs=1),
        batch=256,
        epochs=64,
    )
