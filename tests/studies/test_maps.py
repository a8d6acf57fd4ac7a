"""Heads are counted, and the maps shown are those of the model."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import shiftsort
from shiftsort.mixers.csp import CSPMixer
from shiftsort.studies import maps
from shiftsort.studies.subject import watch


@settings(max_examples=60)
@given(
    st.integers(1, 12),
    st.integers(1, 6),
    st.sampled_from([1, 2, 3, None]),
    st.sampled_from(["linear", "exponential", "none"]),
    st.integers(0, 999),
)
def test_counted_and_composed_as_matrices_are(samples, channels, group_size, shift, seed):
    torch.manual_seed(seed)
    v = torch.randn(samples, channels)
    steps = shiftsort.shift_steps(shift, samples, channels)
    p_nc = shiftsort.permutation(v, steps, group_size)
    dense = shiftsort.attention_maps(v, steps, group_size)
    different = {tuple(matrix.flatten().tolist()) for matrix in dense}
    assert maps.count_maps(p_nc) == len(different)
    one = channels // 2
    composed = maps.compose(p_nc[:, one], p_nc[:, -1])
    assert torch.equal((dense[one].T @ dense[-1]).argmax(1), composed)


@given(st.integers(1, 40), st.integers(1, 40))
def test_shifts_alone_give_the_smaller_of_n_and_c_at_most(samples, channels):
    heads = maps.count_on_random("linear shifts", samples, channels)
    assert heads <= min(samples, channels)
    if samples <= channels or samples % channels == 0:
        assert heads == min(samples, channels)


def test_shifts_that_come_round_too_early_give_fewer():
    assert maps.count_on_random("linear shifts", 66, 64) == 33
    assert maps.count_on_random("linear shifts, pairs sorted", 66, 64) == 64


def test_the_maps_are_those_of_the_model(tiny):
    subject = tiny("csp", group_size=4)
    found = maps.measure([subject], lengths=(4, 8))
    layers = subject.mixers(CSPMixer)
    x_nc, y_nc = watch(subject, layers)[1][0]
    v_nc = x_nc @ layers[1].csp.weight.T
    inner_nc = torch.linalg.solve(layers[1].out.weight, (y_nc - layers[1].out.bias).T).T
    for c, sources in zip(found.channels, found.sources, strict=True):
        torch.testing.assert_close(inner_nc[:, c], v_nc[sources, c], rtol=1e-2, atol=1e-3)
    assert found.layer == 1
    assert found.sources[0] == list(range(16))
    assert all(1 < heads <= 12 for heads in found.heads)
    assert found.counts["linear shifts"] == [4, 8]
    assert "tiny, csp, fresh" in found.findings()[0]
    assert maps.draw(found).get_suptitle()
