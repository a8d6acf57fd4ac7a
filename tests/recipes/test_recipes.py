"""Every recipe is plain data, and its fields are set by words with their types checked."""

import json

import pytest

from shiftsort import recipes


@pytest.mark.parametrize("name", recipes.names())
def test_a_recipe_goes_through_json(name: str) -> None:
    recipe = recipes.get(name)
    assert recipe.name == name
    assert recipes.from_plain(json.loads(json.dumps(recipes.to_plain(recipe)))) == recipe


def test_a_wrong_name_is_told_the_nearest() -> None:
    with pytest.raises(ValueError, match="did you mean cifar10/csp"):
        recipes.get("cifar10/cps")


def test_fields_are_set_by_their_full_name_or_by_the_last_part() -> None:
    recipe = recipes.get("cifar10/csp")
    changed, names = recipes.override(
        recipe, ["optimiser.lr=3e-4", "depth=2", "mixer_options.group_size=None", "steps=7"]
    )
    assert (changed.optimiser.lr, changed.model.depth, changed.steps) == (3e-4, 2, 7)
    assert changed.model.mixer_options == {"group_size": None}
    assert changed.epochs is None, "steps replace epochs"
    assert names == {
        "optimiser.lr": 3e-4,
        "model.depth": 2,
        "model.mixer_options.group_size": None,
        "steps": 7,
        "epochs": None,
    }
    assert recipe.model.mixer_options == {}, "the recipe itself stays as it is"


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("btach=3", "did you mean batch"),
        ("optimizer.lr=3", "did you mean optimiser.lr"),
        ("batch=many", "expected an integer"),
        ("lr=fast", "expected a number"),
        ("model.bias=maybe", "expected true or false"),
        ("every=1.5", "expected none or an integer"),
        ("schedule.kind=sine", "expected one of constant, cosine, linear, rsqrt"),
        ("mixer_options=csp", "expected a table"),
        ("batch", "takes FIELD=VALUE"),
        ("batch=0", "at least 1"),
        ("optimiser.lr=0", "above 0"),
        ("row=mha", "no field is called 'row'"),
    ],
)
def test_a_wrong_setting_says_what_was_expected(word: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        recipes.override(recipes.get("cifar10/csp"), [word])


def test_setting_both_steps_and_epochs_is_refused() -> None:
    with pytest.raises(ValueError, match="either steps or epochs"):
        recipes.override(recipes.get("cifar10/csp"), ["steps=3", "epochs=2"])
