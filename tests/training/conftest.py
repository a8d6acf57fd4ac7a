"""Tiny runs on digits, whose data is made once."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from shiftsort import recipes, tasks

pytest.importorskip("lightning")

#: A model so small that starting is what takes time.
_TINY = ("depth=1", "dim=16", "mlp_dim=16", "heads=2", "dropout=0.2", "steps=12", "every=4")


@pytest.fixture(scope="session")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = tmp_path_factory.mktemp("data")
    tasks.get("digits").make(data)
    return data


@pytest.fixture
def tiny_words() -> tuple[str, ...]:
    return _TINY


@pytest.fixture
def tiny(tiny_words: tuple[str, ...]) -> Callable[..., recipes.Recipe]:
    def make(*words: str, name: str = "digits/csp") -> recipes.Recipe:
        return recipes.override(recipes.get(name), [*tiny_words, *words])[0]

    return make


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    # Small tensors on a busy machine: threads would wait for each other.
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
