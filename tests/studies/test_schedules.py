"""What is said to be out of reach is, and what is in reach is as in the matrices."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from shiftsort import CSP, shift_steps
from shiftsort.studies import schedules


def relation(samples, steps, group_size):
    """Which input (column) may change which output (row) of one layer."""
    meets = torch.zeros(samples, samples, dtype=torch.bool)
    for n in range(samples):
        start = n - n % group_size
        for member in range(start, start + group_size):
            for step in {0, *steps.tolist()}:
                meets[n, (member - step) % samples] = True
    return meets


@settings(max_examples=60)
@given(
    st.sampled_from([8, 12, 24]),
    st.integers(1, 5),
    st.integers(1, 3),
    st.sampled_from([1, 2, 4]),
    st.sampled_from(["linear", "exponential", "heads"]),
)
def test_reach_is_that_of_the_products_of_matrices(samples, channels, depth, group_size, kind):
    steps = [shift_steps(kind, samples, channels, layer=i, depth=depth) for i in range(depth)]
    product = torch.eye(samples)
    for step in steps:
        product = (relation(samples, step, group_size).float() @ product).bool().float()
    shares = product.mean(1)
    reached = schedules.reach(samples, steps, group_size, depth)
    assert shares.tolist() == pytest.approx([reached] * samples)


@settings(max_examples=30)
@given(
    st.integers(1, 4),
    st.sampled_from([1, 2, 4]),
    st.sampled_from(["linear", "exponential"]),
    st.integers(0, 99),
)
def test_what_is_out_of_reach_changes_nothing(channels, group_size, shift, seed):
    torch.manual_seed(seed)
    samples, depth = 16, 2
    layers = [
        CSP(channels, group_size=group_size, shift=shift, layer=layer, depth=depth)
        for layer in range(depth)
    ]
    steps = [shift_steps(shift, samples, channels, layer=i, depth=depth) for i in range(depth)]
    meets = relation(samples, steps[1], group_size).float()
    meets = meets @ relation(samples, steps[0], group_size).float()
    heard = meets[0].bool()
    x = torch.randn(samples, channels)
    other = torch.where(heard[:, None], x, torch.randn(samples, channels))
    with torch.no_grad():
        for layer in layers:
            x, other = layer(x), layer(other)
    assert torch.equal(x[0], other[0])


@given(st.integers(1, 10**6), st.integers(1, 60))
def test_the_printed_base_is_the_floor_of_the_root(samples, exponent):
    base = schedules.printed_base(samples, exponent + 1, 1)
    assert base**exponent <= samples < (base + 1) ** exponent


def test_the_printed_power_law_shifts_nothing_and_the_meant_one_reaches_all():
    found = schedules.measure(samples=256, channels=32, depth=3, layers=3, group_sizes=(1, 2))
    assert not any(step for layer in found.steps[schedules.PRINTED] for step in layer)
    covers = {(r.schedule, r.group_size): r.covers_at for r in found.reaches}
    assert covers["power law", 1] == 3
    assert covers["linear", 1] is None
    assert covers[schedules.PRINTED, 2] is None
    assert len(found.findings()) == len(schedules.KINDS)
    assert found.findings()[1].startswith("linear: 32, 32, 32 different shifts")
    assert schedules.draw(found).get_suptitle()


def test_a_group_that_does_not_divide_the_length_is_refused():
    with pytest.raises(ValueError, match="group_size must divide samples=10, got 4"):
        schedules.reach(10, [torch.zeros(2)], 4, 1)
