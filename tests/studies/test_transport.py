"""Sorting is optimal transport, and Sinkhorn's plans tend to it."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from shiftsort.studies import transport


def cost(plan, first, second):
    return float(-(torch.outer(first, second) * plan).sum())


@settings(max_examples=80)
@given(st.integers(1, 20), st.booleans(), st.integers(0, 9999))
def test_a_sorted_group_is_the_optimal_assignment(size, ties, seed):
    torch.manual_seed(seed)
    values = torch.randint(3, (2, size)) if ties else torch.randn(2, size)
    first, second = values.double()
    sort, best = transport.group_map(first, second), transport.assignment(first, second)
    assert cost(sort, first, second) == pytest.approx(cost(best, first, second))
    if not ties:
        assert transport.is_optimal(first, second)


@settings(max_examples=8)
@given(st.integers(2, 5), st.integers(0, 999))
def test_theorem_2(size, seed):
    """Values with gaps of 1: at a temperature of 0.05 all but a trace of the weight is placed."""
    torch.manual_seed(seed)
    first, second = (torch.randperm(size).double() for _ in range(2))
    plans = transport.sinkhorn(first, second, (1.0, 0.3, 0.05), 500)
    torch.testing.assert_close(plans.sum(-1), torch.ones(3, size).double(), rtol=0, atol=5e-3)
    shares = transport.misplaced(plans, transport.group_map(first, second))
    assert shares == sorted(shares, reverse=True)
    assert shares[-1] < 5e-3 < shares[1]


def test_a_tie_is_halved():
    first, second = torch.tensor([1.0, 2.0, 3.0]).double(), torch.tensor([1.0, 0.0, 0.0]).double()
    plan = transport.sinkhorn(first, second, (0.02,), 3000)[0]
    half = torch.tensor([[0, 0.5, 0.5], [0, 0.5, 0.5], [1, 0, 0]]).double()
    torch.testing.assert_close(plan, half, rtol=0, atol=1e-2)
    assert transport.misplaced(plan[None], transport.group_map(first, second))[0] > 0.3


def test_measure():
    found = transport.measure(
        group_size=4, trials=5, sizes=(2, 3), iterations=(5, 500), temperatures=(1.0, 0.1, 0.03)
    )
    assert found.optimal == {2: 5, 3: 5}
    few, many = found.misplaced.values()
    assert many[-1] < 1e-3 < few[-1]
    assert found.tied_mean[-1] < 1e-3 < 0.2 < found.tied[-1]
    assert "5 of 5 sorts are the optimal assignment" in found.findings()[0]
    assert transport.draw(found).get_suptitle()
