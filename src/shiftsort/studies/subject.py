"""What is looked at: a model, trained or fresh, and samples of its task's test set.

Shapes in names: b batch, n samples, c channels.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from .. import mixers, recipes, tasks


@dataclass(frozen=True)
class Subject:
    """A model in evaluation mode, and what it is called with."""

    recipe: str
    mixer: str
    trained: bool
    model: nn.Module
    inputs: tuple[Tensor, ...]

    @property
    def name(self) -> str:
        """For titles."""
        return f"{self.recipe}, {self.mixer}, {'trained' if self.trained else 'fresh'}"

    def mixers(self, kind: type[mixers.Mixer]) -> list[mixers.Mixer]:
        """Its mixers of a kind, from the first layer to the last."""
        found = [module for module in self.model.modules() if isinstance(module, kind)]
        if not found:
            raise ValueError(
                f"this study looks at {kind.__name__}, and {self.name}, has none; "
                "name another run with --run"
            )
        return found


def fresh(recipe: recipes.Recipe, data: Path | None = None, samples: int = 32) -> Subject:
    """A recipe's model as its seed makes it."""
    # Lightning comes with it, and takes its time: only here.
    from ..training import build

    task = tasks.get(recipe.task, **recipe.task_settings)
    task.make(data)
    split = task.open(data, choose_on=recipe.choose_on).split("test")
    batch = tasks.Batch(*map(torch.stack, zip(*(split[i] for i in range(samples)), strict=True)))
    torch.manual_seed(recipe.seed)
    model = build.model(recipe, task.facts()).eval()
    inputs = build.Inputs(task.facts())(batch.inputs, batch.lengths)
    size: Any = recipe.model
    mixer = size.attention if size.kind == "mega" else size.mixer
    return Subject(recipe.name.partition("/")[0], mixer, False, model, inputs)


def before_and_after(run: Path, data: Path | None = None) -> list[Subject]:
    """The model of a run folder as it was at the start, and with the weights it ended with."""
    from ..training import checkpoints, folder
    from ..training.train import final_weights

    recipe, _ = folder.read_recipe(run)
    weights = checkpoints.load_weights(final_weights(run))
    start, end = fresh(recipe, data), fresh(recipe, data)
    end.model.load_state_dict(weights)
    return [start, replace(end, trained=True)]


@torch.no_grad()
def watch(subject: Subject, modules: list[nn.Module]) -> list[list[tuple[Tensor, Tensor]]]:
    """What goes into each module and what comes out, one sequence after the other, unpadded."""
    seen: dict[nn.Module, list[tuple[Tensor, Tensor]]] = {}

    def keep(module: nn.Module, args: tuple[Any, ...], y_bnc: Tensor) -> None:
        x_bnc, lengths = args[0], args[1] if len(args) > 1 else None
        valid = [x_bnc.shape[1]] * len(x_bnc) if lengths is None else lengths.tolist()
        seen[module] = [(x[:n], y[:n]) for x, y, n in zip(x_bnc, y_bnc, valid, strict=True)]

    hooks = [module.register_forward_hook(keep) for module in modules]
    try:
        subject.model(*subject.inputs)
    finally:
        for hook in hooks:
            hook.remove()
    return [seen[module] for module in modules]
