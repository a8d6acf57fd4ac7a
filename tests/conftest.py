"""What every test shares: no chance, no quarrel over cores, and no silence about a missing GPU."""

import os

import pytest
import torch
from hypothesis import HealthCheck, settings

# The same examples in every run. To look for new ones: HYPOTHESIS_PROFILE=search pytest ...
settings.register_profile(
    "ci",
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=150,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "search", settings.get_profile("ci"), derandomize=False, max_examples=2000
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

if "PYTEST_XDIST_WORKER" in os.environ:
    torch.set_num_threads(1)  # the workers are as many as the cores


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs a GPU where there is none, and say so."""
    if torch.cuda.is_available():
        return
    for item in items:
        if item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason="needs a CUDA device, and torch sees none"))


@pytest.fixture(autouse=True)
def _same_numbers() -> None:
    torch.manual_seed(0)


@pytest.fixture
def fresh_compiler() -> None:
    """No graph and no count of recompilations from an earlier test."""
    torch.compiler.reset()
