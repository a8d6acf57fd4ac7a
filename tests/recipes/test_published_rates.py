"""Rates, decay and sizes as their authors have them, and that they can be trained with."""

import dataclasses

import pytest
import torch

from shiftsort import recipes, tasks
from shiftsort.models import count_parameters
from shiftsort.training import TrainingModule, build

pytest.importorskip("lightning")


def _facts(recipe: recipes.Recipe) -> tasks.Facts:
    return tasks.get(recipe.task, **recipe.task_settings).facts()


def _kinds_and_rates(name: str) -> dict[str, tuple[float, float]]:
    """Rate and decay of each kind of parameter of the mixer, and of all the rest."""
    recipe = recipes.get(name)
    recipe = dataclasses.replace(recipe, model=dataclasses.replace(recipe.model, depth=1))
    with torch.device("meta"):
        model = build.model(recipe, _facts(recipe))
    mixer = model.layers[0].inner
    kinds = {getattr(mixer, parameter): kind for parameter, kind in mixer.kinds.items()}
    return {
        kinds.get(parameter, "rest"): (group["lr"], group["weight_decay"])
        for group in build.parameter_groups(model, recipe.optimiser)
        for parameter in group["params"]
    }


def test_what_states_are_made_of_has_the_published_rates() -> None:
    slow, rest = (1e-3, 0.0), (3e-3, 0.04)
    assert _kinds_and_rates("lra/listops/s5") == {"A": slow, "dt": slow, "B": rest, "rest": rest}
    rest = (4e-3, 0.07)
    assert _kinds_and_rates("lra/text/s5") == {"A": slow, "B": slow, "dt": rest, "rest": rest}
    slow, rest = (9e-4, 0.0), (4.5e-3, 0.03)
    assert _kinds_and_rates("lra/pathfinder/s5") == {
        "A": slow, "dt": slow, "B": slow, "rest": rest,
    }  # fmt: skip
    rest = (0.01, 0.01)
    assert _kinds_and_rates("lra/listops/ets") == {"A": rest, "dt": rest, "rest": rest}
    assert _kinds_and_rates("lra/listops/ccnn") == {"mask": (1e-4, 0.0), "rest": (1e-3, 0.0)}
    assert _kinds_and_rates("lra/image/ccnn") == {"mask": (1e-2, 0.0), "rest": (1e-2, 0.0)}


@pytest.mark.parametrize("task", ["listops", "text", "image", "pathfinder"])
def test_ccnn_has_the_two_million_parameters_that_are_printed(task: str) -> None:
    recipe = recipes.get(f"lra/{task}/ccnn")
    with torch.device("meta"):
        assert round(count_parameters(build.model(recipe, _facts(recipe))) / 1e6) == 2


@pytest.mark.parametrize(
    "name",
    [
        "lra/image/s5",
        "lra/pathx/s5",
        "lra/listops/ets",
        "lra/pathx/ets",
        "lra/text/ccnn",
        "lra/pathfinder/ccnn",
    ],
)
def test_a_hundred_steps_at_the_full_rate_stay_finite(name: str) -> None:
    recipe = recipes.get(name)
    model = dataclasses.replace(recipe.model, dim=8, depth=2)
    recipe = dataclasses.replace(recipe, model=model)
    facts = dataclasses.replace(_facts(recipe), length=24)
    module = TrainingModule(recipe, facts, steps=100, updates_per_epoch=10)
    optimiser = module.configure_optimizers()
    batch = tasks.Batch(
        torch.randint(facts.vocabulary, (4, 24)),
        torch.tensor([24, 24, 24, 24] if recipe.model.pixels else [24, 9, 1, 17]),
        torch.randint(facts.classes, (4,)),
    )
    losses = []
    for _ in range(100):
        loss = module.training_step(batch, 0)["loss"]
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert all(parameter.grad.isfinite().all() for parameter in module.model.parameters())
    assert all(parameter.isfinite().all() for parameter in module.model.parameters())
    assert losses[-1] < losses[0], "four samples are learned by heart"
