"""Attention collapses, permutations do not, and the bound is one."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from shiftsort import CSP
from shiftsort.studies import collapse


@settings(max_examples=30)
@given(
    st.integers(2, 12),
    st.integers(1, 6),
    st.sampled_from([1, 2, 3, None]),
    st.sampled_from(["reference", "ascending"]),
    st.integers(0, 999),
)
def test_orthogonal_weights_keep_the_distance_from_the_mean(samples, channels, size, order, seed):
    """The sum of squares about each channel's mean: no permutation changes it, at any depth."""
    torch.manual_seed(seed)
    x = y = torch.randn(samples, channels, dtype=torch.float64)
    for _ in range(5):
        layer = CSP(channels, group_size=size, order=order, dtype=torch.float64)
        torch.nn.init.orthogonal_(layer.weight)
        y = layer(y).detach()
    assert float((y - y.mean(0)).norm()) == pytest.approx(float((x - x.mean(0)).norm()))


@given(st.integers(1, 6), st.integers(0, 99))
def test_directions_counts_equal_singular_values(count, seed):
    torch.manual_seed(seed)
    centred = torch.linalg.qr(torch.cat((torch.ones(12, 1), torch.randn(12, count)), 1))[0][:, 1:]
    turned = centred.double() @ torch.linalg.qr(torch.randn(8, count).double())[0].T
    assert collapse.directions(3 * turned + 7) == pytest.approx(count, rel=1e-4)


def test_equal_tokens_differ_in_no_direction():
    assert collapse.directions(torch.ones(5, 1) * torch.randn(3)) is None


def test_stacks():
    found = collapse.measure(samples=12, channels=6, heads=2, layers=(0, 1, 2, 4, 8))
    stacks = {stack.name: stack for stack in found.stacks}
    assert stacks["attention"].residuals[-1] < 1e-12
    assert stacks["sort all"].directions[1] < 2
    for name in ("shift", "shift, sort pairs", "sort all"):
        assert all(0.3 < share < 5 for share in stacks[name].residuals)
    shares = stacks["shift, sort pairs"].residuals
    assert all(
        share <= bound * (1 + 1e-9) for share, bound in zip(shares, found.bound, strict=True)
    )
    assert found.findings()[0].startswith("attention: 1, 0.")
    assert collapse.draw(found).get_suptitle()
