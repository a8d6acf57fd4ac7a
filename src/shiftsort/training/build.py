"""From a recipe and the facts of its task to a model, and from a batch to what the model takes."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from .. import models, recipes, tasks


def model(recipe: recipes.Recipe, facts: tasks.Facts) -> nn.Module:
    """The recipe's model for a task."""
    size = vars(recipe.model).copy()
    kind = size.pop("kind")
    if kind == "vit":
        return models.ViT(**_square(recipe, facts), classes=facts.classes, **size)
    common = {"classes": facts.classes, "samples": facts.length, "towers": facts.towers}
    vocabulary: int | None = facts.vocabulary
    if vocabulary is None:
        raise ValueError(f"{kind} reads tokens, and {recipe.task} has pixels; give it a vit recipe")
    if facts.padding is not None and facts.image is not None:
        raise ValueError(
            "black_is_padding puts padding anywhere, and models take it on the right alone; "
            "leave it out"
        )
    if kind == "encoder":
        return models.Encoder(vocabulary=vocabulary, **common, **size)
    if size.pop("pixels"):
        vocabulary = None
        if facts.mean is None or facts.std is None:
            raise ValueError(f"pixels=true is for gray images, and {recipe.task} has none")
        size["pixels"] = (facts.mean[0], facts.std[0])
    if kind == "stack":
        return models.Stack(vocabulary=vocabulary, **common, **size)
    csp: Mapping[str, Any] = size.pop("csp")
    return models.Mega(vocabulary=vocabulary, csp=csp or None, **common, **size)


def parameter_groups(model: nn.Module, optimiser: recipes.Optimiser) -> list[dict[str, Any]]:
    """What the optimiser is told of the parameters: most of them first, then those apart."""
    kinds = {
        getattr(module, name): kind
        for module in model.modules()
        for name, kind in getattr(module, "kinds", {}).items()
    }
    rest: list[nn.Parameter] = []
    apart: dict[str, list[nn.Parameter]] = {}
    for parameter in model.parameters():
        if parameter.requires_grad:
            kind = kinds.get(parameter)
            group = apart.setdefault(kind, []) if kind in optimiser.apart else rest
            group.append(parameter)
    groups = [{"params": rest, "lr": optimiser.lr, "weight_decay": optimiser.weight_decay}]
    for kind, parameters in sorted(apart.items()):
        lr = optimiser.apart[kind]
        lr = optimiser.lr if lr is None else lr
        groups.append({"params": parameters, "lr": lr, "weight_decay": 0.0})
    return groups


def _square(recipe: recipes.Recipe, facts: tasks.Facts) -> dict[str, int]:
    if facts.kind != "pixels" or facts.image is None:
        raise ValueError(
            f"a vit reads pixels, and {recipe.task} has tokens; give it an encoder recipe"
        )
    return {"image_size": facts.image[1], "colours": facts.image[0]}


class Inputs(nn.Module):
    """Widens a batch of a task on its device, and normalises pixels."""

    mean: Tensor
    std: Tensor

    def __init__(self, facts: tasks.Facts) -> None:
        super().__init__()
        self.pixels = facts.kind == "pixels"
        self.padded = facts.padding is not None
        for name, values in (("mean", facts.mean), ("std", facts.std)):
            shape = torch.tensor(values or (1.0,)).view(-1, 1, 1)
            self.register_buffer(name, shape, persistent=False)

    def forward(self, inputs: Tensor, lengths: Tensor) -> tuple[Tensor, ...]:
        """What the model is called with."""
        if self.pixels:
            if not inputs.is_floating_point():
                inputs = inputs / 255
            return ((inputs - self.mean) / self.std,)
        # Without padding no mask is needed, and attention keeps its fastest kernel.
        return (inputs, lengths) if self.padded else (inputs,)
