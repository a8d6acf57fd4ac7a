"""Every recipe fits its task, says what the paper prints, and trains."""

import dataclasses
import math

import pytest
import torch

from shiftsort import mixers, recipes, tasks
from shiftsort.training import TrainingModule, build

pytest.importorskip("lightning")

_SEQUENCE = 96


def _facts(recipe: recipes.Recipe) -> tasks.Facts:
    return tasks.get(recipe.task, **recipe.task_settings).facts()


@pytest.mark.parametrize("name", recipes.names())
def test_its_model_fits_its_task(name: str) -> None:
    recipe = recipes.get(name)
    with torch.device("meta"):
        build.model(recipe, _facts(recipe))


@pytest.mark.parametrize("name", ["google/image/mha", "mega/pathfinder/csp", "lra/pathx/s4d"])
def test_padding_within_an_image_is_refused_and_not_passed_over(name: str) -> None:
    recipe, _ = recipes.override(recipes.get(name), ["task_settings.black_is_padding=true"])
    with pytest.raises(ValueError, match="black_is_padding puts padding anywhere"):
        build.model(recipe, _facts(recipe))


def _shallow(recipe: recipes.Recipe) -> recipes.Recipe:
    """Two samples and one layer of full width; the sequence is cut in the facts."""
    model = dataclasses.replace(recipe.model, depth=1)
    return dataclasses.replace(recipe, model=model, batch=2, steps=4, epochs=None, accumulate=1)


def _batch(facts: tasks.Facts, augment: str, samples: int = 2) -> tasks.Batch:
    if facts.kind == "pixels":
        inputs = torch.randint(256, (samples, *facts.image), dtype=torch.uint8)
        inputs = inputs / 255 if augment == "mix" else inputs  # what a reader of files gives
        lengths = torch.full((samples,), facts.length)
    else:
        towers = (facts.towers,) if facts.towers == 2 else ()
        inputs = torch.randint(1, facts.vocabulary, (samples, *towers, facts.length))
        lengths = torch.randint(1, facts.length + 1, (samples, *towers))
    shape = (samples, facts.length) if facts.labels_per_position else (samples,)
    return tasks.Batch(inputs, lengths, torch.randint(facts.classes, shape))


@pytest.mark.parametrize("name", [n for n in recipes.names() if not n.startswith("google/")])
def test_it_trains(name: str) -> None:
    recipe = _shallow(recipes.get(name))
    facts = _facts(recipe)
    if facts.kind == "tokens":
        facts = dataclasses.replace(facts, length=_SEQUENCE)
    module = TrainingModule(recipe, facts, steps=recipe.steps, updates_per_epoch=10)
    optimiser = module.configure_optimizers()
    before = {name: tensor.clone() for name, tensor in module.model.named_parameters()}
    batch = _batch(facts, recipe.augment)
    for _ in range(2):
        loss = module.training_step(batch, 0)["loss"]
        assert math.isfinite(loss.item())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    moved = {n for n, p in module.model.named_parameters() if not torch.equal(p, before[n])}
    assert len(moved) > len(before) / 2
    assert all(p.isfinite().all() for p in module.model.parameters())


def test_long_range_arena_has_a_recipe_for_every_mixer_and_task() -> None:
    wanted = {f"lra/{t}/{m}" for t in ("listops", "pathx") for m in mixers.names()}
    assert wanted <= set(recipes.names())


def test_what_the_paper_prints_stands_in_its_row() -> None:
    assert recipes.get("lra/image/csp").paper.top1 == 48.02
    assert recipes.get("lra/text/linear").paper.top1 == 65.90
    assert recipes.get("lra/pathx/csp").paper is None
    assert recipes.get("mega/pathx/mega").paper.top1 == 97.98
    for task, average in {"mha": 54.39, "csp": 58.91, "cosformer": 55.23, "local": 46.06}.items():
        printed = [
            recipes.get(f"lra/{t}/{task}").paper.top1
            for t in ("listops", "text", "retrieval", "image", "pathfinder")
        ]
        assert sum(printed) / 5 == pytest.approx(average, abs=0.006), "the paper's own average"
    for row, average in {"mega": 88.21, "chunk": 85.66, "csp": 85.89}.items():
        six = [recipes.get(f"mega/{t}/{row}").paper.top1 for t in _MEGA_TASKS]
        assert sum(six) / 6 == pytest.approx(average, abs=0.006)
    for row, average in {"s4": 80.48, "s5": 87.46, "spade": 86.19, "ets": 83.09}.items():
        six = [recipes.get(f"lra/{t}/{row}").paper.top1 for t in _MEGA_TASKS]
        assert sum(six) / 6 == pytest.approx(average, abs=0.006)
    ccnn = [recipes.get(f"lra/{t}/ccnn").paper for t in _MEGA_TASKS]
    assert [paper is None for paper in ccnn] == [t in ("retrieval", "pathx") for t in _MEGA_TASKS]


_MEGA_TASKS = ("listops", "text", "retrieval", "image", "pathfinder", "pathx")


def test_csp_is_what_the_paper_says_task_by_task() -> None:
    for task in ("listops", "text", "retrieval", "pathfinder"):
        options = recipes.get(f"lra/{task}/csp").model.mixer_options
        assert options == {"group_size": None, "shift": "none"}, "a complete sort"
    assert recipes.get("lra/image/csp").model.mixer_options["group_size"] == 1, "shifts alone"
    pathfinder = recipes.get("mega/pathfinder/csp").model.csp
    assert pathfinder == {"group_size": 1024 // 512, "shift": "linear"}
    assert recipes.get("mega/pathx/csp").model.csp["shift"] == "exponential"
