"""A run is looked at as it was at the start and as it ended; padding is not looked at."""

from pathlib import Path

import pytest
import torch

from shiftsort import recipes, tasks
from shiftsort.mixers import Mixer
from shiftsort.models import Encoder
from shiftsort.studies import subject

pytest.importorskip("lightning")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = tmp_path_factory.mktemp("data")
    tasks.get("digits").make(data)
    return data


@pytest.fixture
def recipe() -> recipes.Recipe:
    words = ("depth=1", "dim=8", "mlp_dim=8", "heads=2")
    return recipes.override(recipes.get("digits/csp"), words)[0]


def test_a_run_before_and_after(recipe, data, tmp_path):
    from shiftsort.training import checkpoints, folder

    first = subject.fresh(recipe, data, samples=4)
    weights = {name: value + 1 for name, value in first.model.state_dict().items()}
    folder.create(tmp_path, recipe, {}, "")
    checkpoints.save_weights(tmp_path / folder.WEIGHTS, weights)
    start, end = subject.before_and_after(tmp_path, data)
    for name, value in first.model.state_dict().items():
        assert torch.equal(start.model.state_dict()[name], value)
        assert torch.equal(end.model.state_dict()[name], value + 1)
    assert (start.name, end.name) == ("digits, csp, fresh", "digits, csp, trained")
    assert start.inputs[0].shape == (32, 1, 8, 8)


def test_a_run_that_has_not_ended_is_told(recipe, data, tmp_path):
    from shiftsort.training import RunError, folder

    folder.create(tmp_path, recipe, {}, "")
    with pytest.raises(RunError, match="has not ended"):
        subject.before_and_after(tmp_path, data)


def test_padding_is_left_out():
    sizes = {"vocabulary": 9, "classes": 2, "samples": 7, "dim": 8, "depth": 1, "heads": 2}
    model = Encoder(mlp_dim=8, mixer="csp", **sizes).eval()
    tokens = torch.randint(9, (2, 7))
    looked_at = subject.Subject("tiny", "csp", False, model, (tokens, torch.tensor([7, 3])))
    layers = looked_at.mixers(Mixer)
    [seen] = subject.watch(looked_at, layers)
    # The class token stands before each sequence.
    assert [len(x_nc) for x_nc, _ in seen] == [8, 4]
    assert not layers[0]._forward_hooks
