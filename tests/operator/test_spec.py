"""The spec itself: against the paper's formulas, and against examples worked by hand."""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from shiftsort.operator.spec import (
    csp_spec,
    permutation_matrices,
    shift_matrix,
    sort_matrix,
)

NAN = float("nan")


@given(st.integers(1, 12), st.integers(-30, 30))
def test_shift_matrix_is_the_paper_s_block_matrix(samples: int, step: int) -> None:
    j = step % samples
    expected = torch.zeros(samples, samples, dtype=torch.int64)
    expected[:j, samples - j :] = torch.eye(j, dtype=torch.int64)
    expected[j:, : samples - j] = torch.eye(samples - j, dtype=torch.int64)
    assert torch.equal(shift_matrix(samples, step), expected)


@given(st.integers(1, 12), st.integers(-30, 30))
def test_shift_matrix_rolls(samples: int, step: int) -> None:
    x = torch.arange(samples)
    assert torch.equal(shift_matrix(samples, step) @ x, x.roll(step))


def test_pairs_by_hand() -> None:
    #                  ch. 0: the reference    ch. 1, shifted by one: 5 1 | 2 3 | 4
    v = torch.tensor([[1.0, 1.0], [2.0, 2.0], [9.0, 3.0], [8.0, 4.0], [7.0, 5.0]])
    y = csp_spec(v[None], torch.tensor([0, 1]), 2)[0]
    assert y[:, 0].tolist() == [1, 2, 9, 8, 7]
    # rising where channel 0 rises, falling where it falls, the last one alone
    assert y[:, 1].tolist() == [1, 5, 3, 2, 4]


def test_ascending_by_hand() -> None:
    v = torch.tensor([[3.0, 1.0], [1.0, 2.0], [2.0, 0.0]])
    y = csp_spec(v[None], torch.tensor([1, 0]), None, order="ascending")[0]
    assert y.tolist() == [[1, 0], [2, 1], [3, 2]]


def test_lengths_by_hand() -> None:
    v = torch.arange(5.0)[:, None].repeat(1, 2)
    y = csp_spec(v[None], torch.tensor([0, 1]), 1, lengths=torch.tensor([3]))[0]
    assert y[:, 1].tolist() == [2, 0, 1, 3, 4]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([2.0, 1.0, 3.0], [1, 0, 2]),
        ([1.0, 1.0, 0.0, 1.0], [2, 0, 1, 3]),
        ([NAN, 1.0, NAN, float("inf")], [1, 3, 0, 2]),
        ([0.0, -0.0, -1.0], [2, 0, 1]),
    ],
    ids=["distinct", "ties keep their order", "NaN last", "zeros of either sign tie"],
)
def test_ranks(values: list[float], expected: list[int]) -> None:
    t = sort_matrix(torch.tensor(values), reference=None)
    assert t.argmax(dim=1).tolist() == expected


@given(st.integers(0, 2**31), st.integers(1, 5))
def test_sort_matrix_is_the_optimal_transport_to_the_reference(seed: int, size: int) -> None:
    """T is the permutation with the largest <v_1 v_c^T, T>: the paper's appendix."""
    v_1, v_c = torch.randn(2, size, generator=torch.Generator().manual_seed(seed)).double()
    best = max(itertools.permutations(range(size)), key=lambda p: float(v_1 @ v_c[torch.tensor(p)]))
    assert sort_matrix(v_c, v_1).argmax(dim=1).tolist() == list(best)


def test_the_first_channel_stays() -> None:
    v = torch.randn(7, 3)
    p = permutation_matrices(v, torch.tensor([0, 2, 5]), 3)
    assert torch.equal(p[0], torch.eye(7, dtype=torch.int64))


def test_the_two_orders_differ_by_one_permutation_of_the_rows_of_a_group() -> None:
    v = torch.randn(12, 5)
    steps = torch.tensor([0, 3, 4, 7, 11])
    reference = csp_spec(v[None], steps, 4)[0]
    ascending = csp_spec(v[None], steps, 4, order="ascending")[0]
    for start in range(0, 12, 4):
        rows = reference[start : start + 4]
        assert torch.equal(rows[rows[:, 0].argsort()], ascending[start : start + 4])
