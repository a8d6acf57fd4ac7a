"""The recipes of state-space layers: their rates hold."""

import dataclasses

import pytest
import torch

from shiftsort import recipes, tasks
from shiftsort.training import TrainingModule

pytest.importorskip("lightning")


@pytest.mark.parametrize("row", ["s4", "s4d", "spade"])
def test_gradients_are_finite_after_100_updates_at_the_highest_rates(row: str) -> None:
    recipe, _ = recipes.override(recipes.get(f"lra/listops/{row}"), ["dim=16", "depth=2"])
    facts = dataclasses.replace(tasks.get("listops").facts(), length=50)
    module = TrainingModule(recipe, facts, steps=100, updates_per_epoch=10)
    optimiser = module.configure_optimizers()
    assert [group["lr"] for group in optimiser.param_groups[1:]] == [
        1e-3,
        1e-3,
        recipe.optimiser.lr,
    ]
    inputs, labels = torch.randint(1, 16, (8, 50)), torch.randint(10, (8,))
    batch = tasks.Batch(inputs, torch.randint(1, 51, (8,)), labels)
    losses = []
    for _ in range(100):
        optimiser.zero_grad()
        loss = module.training_step(batch, 0)["loss"]
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    gradients = [p.grad for p in module.model.parameters() if p.requires_grad]
    assert all(gradient.isfinite().all() for gradient in gradients)
    assert losses[-1] < losses[0] / 2, "eight samples are learned by heart"
