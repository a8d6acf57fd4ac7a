"""What a training step computes on its device: from a batch to its loss, and nothing of the host.

It is apart from the Lightning module so that a CUDA graph can hold it whole (`graph.py`).
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from .. import recipes, tasks
from . import build


class Computation(nn.Module):
    """A recipe's model, what it reads, and its loss."""

    def __init__(self, recipe: recipes.Recipe, facts: tasks.Facts, precision: str) -> None:
        super().__init__()
        self.model = build.model(recipe, facts)
        self.inputs = build.Inputs(facts)
        self.precision = precision
        self.crops = recipe.augment == "crop-flip"
        self.smoothing = recipe.label_smoothing

    def logits(self, inputs: Tensor, lengths: Tensor) -> Tensor:
        """Of a task's batch."""
        widened = self.inputs(inputs, lengths)
        with torch.autocast(
            inputs.device.type, torch.bfloat16, enabled=self.precision == "bfloat16"
        ):
            return self.model(*widened)

    def forward(
        self, inputs: Tensor, lengths: Tensor, labels: Tensor, targets: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The loss; and to be added up over steps: its sum, right labels, and all labels.

        `targets` are the labels, or probabilities in their place where samples were mixed.
        """
        if self.crops:
            from ..tasks.vision import crop_and_flip

            inputs = crop_and_flip(inputs, _generator(inputs.device))
        logits = self.logits(inputs, lengths).float()
        loss = cross_entropy(
            logits.flatten(0, -2),
            targets.flatten(0, -2) if targets.is_floating_point() else targets.flatten(),
            label_smoothing=self.smoothing,
        )
        with torch.no_grad():
            right = (logits.argmax(-1) == labels).sum()
            total = (labels != tasks.NO_LABEL).sum()
            sums = torch.stack((loss.float() * total, right, total))
        return loss, sums


def set_seed(device: torch.device, number: int) -> None:
    """What `torch.manual_seed` does, for all that a step on this device draws from.

    That one turns to every kind of device, and formats a stack trace for each that is not in use: a
    small model on a fast GPU would wait for it in every step.
    """
    if device.type not in ("cpu", "cuda"):
        torch.manual_seed(number)
        return
    torch.default_generator.manual_seed(number)
    _generator(device).manual_seed(number)


def _generator(device: torch.device) -> torch.Generator:
    """The one that `torch.manual_seed` sets for a device."""
    if device.type == "cuda":
        return torch.cuda.default_generators[device.index]
    return torch.default_generator
