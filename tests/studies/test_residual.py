"""The rank-1 fits are the best there are, in both norms."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from shiftsort.studies.residual import residual, residual_1, residual_inf

SIZES = {"samples": st.integers(2, 10), "channels": st.integers(1, 5), "seed": st.integers(0, 999)}


def norm_1(x_nc):
    return float(x_nc.abs().sum(0).max())


def norm_inf(x_nc):
    return float(x_nc.abs().sum(1).max())


@settings(max_examples=40)
@given(**SIZES)
def test_no_other_row_is_nearer(samples, channels, seed):
    torch.manual_seed(seed)
    x = torch.randn(samples, channels, dtype=torch.float64)
    middle = (x.amax(0) + x.amin(0)) / 2
    rivals = [x.mean(0), x.median(0).values, middle, *(middle + torch.randn(20, channels) * 0.1)]
    least_1, least_inf = residual_1(x), residual_inf(x)
    for rival in rivals:
        assert least_1 <= norm_1(x - rival) * (1 + 1e-9)
        assert least_inf <= norm_inf(x - rival) * (1 + 1e-9)
    # A residual is at least half the distance of any two rows, whatever the row that is taken off.
    farthest = max(float((a - b).abs().sum()) for a in x for b in x)
    assert least_inf >= farthest / 2 * (1 - 1e-9)


def test_the_middle_of_each_range_is_not_the_best_fit_of_several_channels():
    x = 2 * torch.eye(3)
    assert norm_inf(x - 1) == 3
    assert residual_inf(x) == pytest.approx(2)  # x itself: take nothing off


@settings(max_examples=25)
@given(scale=st.sampled_from([1e-13, 1.0, 1e9]), **SIZES)
def test_a_row_added_to_all_changes_nothing_and_a_factor_comes_out(samples, channels, seed, scale):
    torch.manual_seed(seed)
    x = torch.randn(samples, channels, dtype=torch.float64)
    moved = scale * (x + torch.randn(channels, dtype=torch.float64))
    assert residual(moved) == pytest.approx(scale * residual(x), rel=1e-6)


def test_equal_rows_have_none():
    assert residual(torch.ones(5, 1) * torch.randn(3)) == 0
