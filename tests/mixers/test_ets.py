"""ETSMLP against the recurrence of exponential smoothing."""

import math

import pytest
import torch

from shiftsort import mixers

DIM, HIDDEN = 4, 6


def build(**options):
    torch.manual_seed(0)
    return mixers.build("ets", dim=DIM, samples=64, channels=HIDDEN, **options).double()


def inputs(samples=64, width=HIDDEN):
    torch.manual_seed(1)
    return torch.randn(2, samples, width, dtype=torch.float64, requires_grad=True)


def factors(mixer):
    """lambda^alpha and exp(beta) of each direction, written out."""
    alpha = torch.complex(mixer.log_alpha[:, 0].exp(), mixer.log_alpha[:, 1].exp())
    log_lambda = torch.exp(torch.complex(*mixer.log_rate.unbind(-1)))
    factor = torch.exp(alpha * log_lambda)
    shrunk = factor / factor.abs() * factor.abs().clamp(max=mixer.longest)
    return shrunk.chunk(2), torch.exp(torch.complex(*mixer.log_beta.unbind(-1))).chunk(2)


def recurrence(mixer, x_bnh):
    (forth, back), (forth_beta, back_beta) = factors(mixer)
    samples = x_bnh.shape[1]
    y = [mixer.omega * x_bnh[:, n] for n in range(samples)]
    state = torch.zeros(len(x_bnh), HIDDEN, dtype=torch.complex128)
    for n in range(samples):
        state = forth * state + (1 - forth) * x_bnh[:, n]
        y[n] = y[n] + (forth_beta * state).real
    state = torch.zeros_like(state)
    for n in reversed(range(samples)):
        y[n] = y[n] + (back_beta * state).real  # what comes after n, and not n
        state = back * state + (1 - back) * x_bnh[:, n]
    return torch.stack(y, dim=1)


@pytest.mark.parametrize("samples", [1, 2, 64])
def test_its_convolution_is_the_recurrence(samples):
    mixer, x_bnh = build(), inputs(samples)
    mixer.log_rate.data[0] = torch.tensor([-9.0, 0.0])  # |lambda| as good as 1: the limit holds
    direction = torch.randn_like(x_bnh)
    weights = [x_bnh, mixer.log_rate, mixer.log_alpha, mixer.log_beta, mixer.omega]
    got, want = (
        (y, torch.autograd.grad((y * direction).sum(), weights))
        for y in (mixer.smooth(x_bnh), recurrence(mixer, x_bnh))
    )
    torch.testing.assert_close(got, want)


def test_no_factor_is_longer_than_the_limit():
    mixer = build(longest=0.9)
    mixer.log_rate.data[:] = torch.tensor([0.0, 2.0])  # log lambda has a positive real part here
    mixer.log_alpha.data[:] = 0.0
    forth_hl, back_hl = mixer.kernels(60)
    for kernel_hl in (forth_hl, back_hl):
        assert (kernel_hl[:, 50:].abs() <= 0.9**50 * 2 * kernel_hl.abs().amax() / 0.9).all()


def test_it_begins_inside_of_the_ring():
    mixer = mixers.build("ets", dim=500, samples=4, radius_min=0.6, radius_max=0.9, phase_max=3.0)
    log_lambda = torch.view_as_complex(mixer.log_rate.data).exp()
    radius, phase = log_lambda.exp().abs(), log_lambda.imag
    assert 0.6 <= radius.min() < 0.61
    assert 0.89 < radius.max() <= 0.9001
    assert 0 <= phase.min() < phase.max() <= 3.0001
    # The squares are uniform: as many samples in each ring as it is large.
    assert radius.square().mean().item() == pytest.approx((0.36 + 0.81) / 2, rel=0.02)
    steps = mixer.log_alpha.data.exp()
    assert math.isclose(steps.min(), 0.001, rel_tol=0.1)
    assert math.isclose(steps.max(), 0.1, rel_tol=0.1)


def test_the_way_back_is_the_way_forth_reversed_and_a_sample_late():
    mixer, x_bnh = build(), inputs(33)
    mixer.omega.data.zero_()
    mixer.log_beta.data[HIDDEN:, 0] = -torch.inf  # the way back is silent
    before = mixer.smooth(x_bnh)
    for weight in (mixer.log_rate, mixer.log_alpha, mixer.log_beta):
        weight.data = weight.data.roll(HIDDEN, 0)
    after = mixer.smooth(x_bnh.flip(1)).flip(1)
    torch.testing.assert_close(after[:, 1:], before[:, :-1])


@pytest.mark.parametrize("gate", ["sigmoid", "none"])
def test_the_mlp_around_it(gate):
    mixer, x_bnc = build(gate=gate), inputs(7, DIM)
    expected = mixer.out(mixer.smooth(mixer.inner(x_bnc)).relu())
    if gate == "sigmoid":
        expected = expected * mixer.gate(x_bnc).sigmoid()
    torch.testing.assert_close(mixer(x_bnc), expected)


def test_a_wrong_gate_is_named():
    with pytest.raises(ValueError, match="gate must be one of sigmoid, none, got 'relu'"):
        build(gate="relu")
