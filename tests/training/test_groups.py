"""Which parameters train apart from the others, at which rates."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from shiftsort import models, recipes, tasks
from shiftsort.training import TrainingModule, build


class Layer(nn.Module):
    kinds = {"rate": "A", "step": "dt"}  # noqa: RUF012

    def __init__(self):
        super().__init__()
        self.rate, self.step, self.free = (nn.Parameter(torch.ones(1)) for _ in range(3))


def groups(**options):
    model = nn.Sequential(Layer(), nn.Linear(1, 1))
    found = build.parameter_groups(model, recipes.Optimiser(lr=0.1, weight_decay=0.3, **options))
    names = {parameter: name for name, parameter in model.named_parameters()}
    return [
        ([names[p] for p in group["params"]], group["lr"], group["weight_decay"]) for group in found
    ]


def test_the_states_of_a_mixer_do_not_decay():
    rest = ["0.free", "1.weight", "1.bias"]
    assert groups() == [(rest, 0.1, 0.3), (["0.rate"], 0.1, 0.0), (["0.step"], 0.1, 0.0)]


def test_a_recipe_gives_kinds_rates():
    rest = ["0.step", "0.free", "1.weight", "1.bias"]
    assert groups(apart={"A": 0.001, "B": 0.002}) == [(rest, 0.1, 0.3), (["0.rate"], 0.001, 0.0)]


def test_norms_can_be_apart():
    stack = models.Stack(vocabulary=4, classes=2, samples=5, dim=4, depth=1, mixer="shift")
    apart = recipes.Optimiser(lr=0.1, apart={"norm": None})
    assert [len(group["params"]) for group in build.parameter_groups(stack, apart)][1] == 4


def test_each_group_has_the_schedule_of_the_recipe():
    recipe, _ = recipes.override(
        recipes.get("digits/csp"),
        ["schedule.kind=linear", "warmup=0", "optimiser.apart={'A': 0.5}"],
    )
    module = TrainingModule(recipe, tasks.get("digits").facts(), steps=4, updates_per_epoch=2)
    module.model.layers[0].mixer.out.kinds = {"bias": "A"}
    optimiser = module.configure_optimizers()
    module._trainer = SimpleNamespace(optimizers=[optimiser], global_step=2)
    module._trainer.global_rank = 0
    module.on_train_batch_start(None, 0)
    assert [g["lr"] for g in optimiser.param_groups] == pytest.approx(
        [recipe.optimiser.lr / 2, 0.25]
    )


def test_a_wrong_rate_is_named():
    with pytest.raises(ValueError, match=r"optimiser\.apart must hold rates or none, got A=-1"):
        recipes.override(recipes.get("digits/csp"), ["optimiser.apart={'A': -1}"])
