"""A task's batches for Lightning, each device with its share."""

from typing import Any

import lightning.pytorch as pl
import torch

from .. import recipes, tasks
from . import folders
from .batches import EvaluationBatches, Order, TrainBatches

#: Arrays up to this share of a GPU's free memory move there as a whole.
_RESIDENT = 0.25


class TaskData(pl.LightningDataModule):
    """The splits of an opened task, from update `first` to before `last`."""

    def __init__(self, recipe: recipes.Recipe, data: tasks.Data, first: int, last: int) -> None:
        super().__init__()
        self.recipe, self.data, self.first, self.last = recipe, data, first, last

    def train_dataloader(self) -> Any:
        """The rest of the training."""
        recipe, strategy = self.recipe, self.trainer.strategy
        split = self.data.split("train")
        order = order_of(recipe, len(split), strategy.global_rank, strategy.world_size)
        if not isinstance(split, tasks.Split):
            return folders.train_loader(split, order, self.first, self.last)
        return TrainBatches(self._on_device(split), order, self.first, self.last)

    def val_dataloader(self) -> Any:
        """What choices are made on; nothing where all labelled samples train."""
        return self._judged("validation") if "validation" in self.data.splits else []

    def test_dataloader(self) -> Any:
        """The test set."""
        return self._judged("test")

    def _judged(self, name: str) -> Any:
        recipe, strategy = self.recipe, self.trainer.strategy
        split = self.data.split(name)
        share = max(recipe.batch // (recipe.accumulate * strategy.world_size), 1)
        if not isinstance(split, tasks.Split):
            return folders.evaluation_loader(
                split, share, strategy.global_rank, strategy.world_size
            )
        split = self._on_device(split)
        return EvaluationBatches(split, share, strategy.global_rank, strategy.world_size)

    def _on_device(self, split: tasks.Split) -> tasks.Split:
        device = self.trainer.strategy.root_device
        if device.type != "cuda":
            return split
        free, _ = torch.cuda.mem_get_info(device)
        size = sum(array.nbytes for array in (split.inputs, split.lengths, split.labels))
        return split.to(device) if size < _RESIDENT * free else split


def order_of(recipe: recipes.Recipe, samples: int, rank: int = 0, world: int = 1) -> Order:
    """The order in which a recipe sees its training samples."""
    return Order(samples, recipe.batch, recipe.seed, recipe.accumulate, rank, world)


def updates_of(recipe: recipes.Recipe, samples: int) -> int:
    """How many updates a run with so many training samples has."""
    if recipe.steps is not None:
        return recipe.steps
    return max(round((recipe.epochs or 0) * (samples // recipe.batch)), 1)
