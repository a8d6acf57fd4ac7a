"""What a run's weights say of somebody's own file."""

from pathlib import Path

import torch
from torch import Tensor

from .. import tasks
from . import checkpoints, folder
from .computation import Computation
from .errors import RunError
from .train import final_weights, precision_of


@torch.no_grad()
def predict(run: Path, path: Path) -> tuple[Tensor, tasks.Facts]:
    """For each sample in the file the probability of each class, and what the classes are."""
    recipe, _ = folder.read_recipe(run)
    weights = checkpoints.load_weights(final_weights(run))
    task = tasks.get(recipe.task, **recipe.task_settings)
    facts = task.facts()
    if facts.labels_per_position:
        raise RunError(f"{recipe.task} has a label at each query and not one for a sample")
    inputs, lengths = tasks.read(task, path)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    computation = Computation(recipe, facts, precision_of(recipe))
    computation.model.load_state_dict(weights)
    computation.to(device).eval()
    torch.manual_seed(recipe.seed)  # some mixers draw
    part = recipe.batch // recipe.accumulate  # what is known to fit
    logits = [
        computation.logits(some.to(device), their_lengths.to(device)).float().cpu()
        for some, their_lengths in zip(inputs.split(part), lengths.split(part), strict=True)
    ]
    return torch.cat(logits).softmax(-1), facts
