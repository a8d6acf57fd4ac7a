"""`shiftsort evaluate` and `shiftsort predict`: what a run's weights can do."""

from pathlib import Path
from typing import Annotated

import typer

from . import errors
from .options import DataOption, DebugOption, RunArgument

_MOST_GUESSES = 5


def evaluate(
    run: RunArgument,
    split: Annotated[str, typer.Option(help="test, validation or train.")] = "test",
    data: DataOption = None,
    debug: DebugOption = False,
) -> None:
    """Judge a run's weights again, on its test set or another split."""
    with errors.one_line("evaluate", debug=debug):
        from shiftsort import training

        scores = training.evaluate(run, data=data, split=split)
        words = [f"top-1 {scores.top1:.2f} %"]
        if scores.top5 is not None:
            words.append(f"top-5 {scores.top5:.2f} %")
        print(f"{split}: {', '.join(words)}, loss {scores.loss:.4f}")


def predict(
    run: RunArgument,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="An image, a text, or samples as .npy.")
    ],
    debug: DebugOption = False,
) -> None:
    """Say what a run's weights see in a file of your own.

    Images are for tasks of images; of a text, listops reads an expression a line, text the whole
    file, retrieval two documents a line with a tab between. Every task reads its tokens or pixels
    as an array of integers in .npy. A line for each sample, its likeliest classes first.
    """
    with errors.one_line("predict", debug=debug):
        from shiftsort import training

        chances, facts = training.predict(run, file)
        names = facts.class_names or tuple(map(str, range(facts.classes)))
        for number, sample in enumerate(chances, 1):
            best = sample.topk(min(_MOST_GUESSES, facts.classes)).indices.tolist()
            print(f"{number}: " + ", ".join(f"{names[c]} {100 * sample[c]:.1f} %" for c in best))
