"""CCNN against a direct convolution, and the network that draws its kernels."""

import math

import pytest
import torch

from shiftsort import mixers

DIM, SAMPLES = 6, 40


def build(**options):
    torch.manual_seed(0)
    options = {"dim": DIM, "samples": SAMPLES, "width": 0.4, **options}
    return mixers.build("ccnn", **options).double()


def inputs(samples=SAMPLES, dim=DIM):
    torch.manual_seed(1)
    return torch.randn(2, samples, dim, dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize("samples", [1, 2, 17, SAMPLES, 50])
def test_its_convolution_is_the_direct_one(samples):
    mixer, x_bnc = build(), inputs(samples)
    mixer.conv_bias.data.normal_()
    kernel_cl = mixer.kernel(SAMPLES)
    padded_bcn = torch.nn.functional.pad(x_bnc.mT, (SAMPLES - 1, 0))
    direct_bcn = torch.nn.functional.conv1d(
        padded_bcn, kernel_cl.flip(-1)[:, None], mixer.conv_bias, groups=DIM
    )
    direction = torch.randn_like(x_bnc)
    weights = [x_bnc, *(p for name, p in mixer.named_parameters() if "ner" not in name[:5])]
    got, want = (
        (y, torch.autograd.grad((y * direction).sum(), weights, allow_unused=True))
        for y in (mixer.convolved(x_bnc), direct_bcn.mT)
    )
    torch.testing.assert_close(got, want)


def test_a_shorter_sequence_meets_the_same_kernel():
    mixer, x_bnc = build().eval(), inputs()
    torch.testing.assert_close(mixer(x_bnc[:, :23]), mixer(x_bnc)[:, :23])
    torch.testing.assert_close(mixer.kernel(7), mixer.kernel(SAMPLES)[:, :7])


def test_the_kernel_is_a_product_of_filters_in_a_window():
    mixer = build(layers=2, hidden=5)
    net = mixer.kernel_net
    lag = 9
    place = 1 - 2 * lag / (SAMPLES - 1)

    def gabor(f):
        window = torch.exp(-((net.gamma[f] * (place - net.mu[f])) ** 2) / 2)
        return window * torch.sin(net.omega[f] * place + net.phase[f])

    value = gabor(0)
    for f in (1, 2):
        value = gabor(f) * (net.weight[f - 1] @ value + net.bias[f - 1])
    value = net.out_weight @ value + net.out_bias
    window = math.exp(-0.5 * ((place - 1) / 0.4) ** 2)
    torch.testing.assert_close(mixer.kernel(SAMPLES)[:, lag], value * window, rtol=1e-6, atol=0)


def test_the_kernel_ends_behind_the_first_lag_where_its_window_is_below_a_tenth():
    mixer = build(width=0.2)
    drawn = (mixer.kernel(SAMPLES) != 0).any(dim=0)
    window = [math.exp(-0.5 * (2 * lag / (SAMPLES - 1) / 0.2) ** 2) for lag in range(SAMPLES)]
    assert drawn.tolist() == [lag == 0 or window[lag - 1] > 0.1 for lag in range(SAMPLES)]


@pytest.mark.parametrize("width", [0.0, -0.2])
def test_a_window_may_shrink_to_nothing_and_beyond(width):
    mixer, mirrored = build(width=0.2), build(width=0.2)
    mixer.width.data.fill_(width)
    kernel_cl = mixer.kernel(SAMPLES)
    if width:
        torch.testing.assert_close(kernel_cl, mirrored.kernel(SAMPLES), rtol=1e-6, atol=0)
    else:
        assert (kernel_cl[:, 1:] == 0).all()
    kernel_cl.sum().backward()
    assert mixer.width.grad.isfinite().all()


def test_what_comes_out_begins_as_large_at_any_length():
    sizes = []
    for samples in (100, 1600):
        mixer = build(dim=64, samples=samples)
        sizes.append(mixer.convolved(inputs(samples, 64)).std().item())
    assert 0.3 < sizes[0] < 1.5
    assert sizes[1] == pytest.approx(sizes[0], rel=0.3)


def test_channels_are_mixed_behind_the_convolution():
    mixer, x_bnc = build(channels=9).eval(), inputs()
    gelu = torch.nn.functional.gelu
    expected = gelu(mixer.out(gelu(mixer.inner(mixer.convolved(x_bnc)))))
    torch.testing.assert_close(mixer(x_bnc), expected)


@pytest.mark.parametrize("tied", [True, False])
def test_dropout_takes_whole_channels_where_it_is_tied(tied):
    mixer = build(dropout=0.5, tied=tied, channels=64).train()
    seen = []
    mixer.out.register_forward_pre_hook(lambda _, arguments: seen.append(arguments[0] == 0))
    mixer(inputs())
    (dropped_bnc,) = seen
    whole = dropped_bnc.all(dim=1) == dropped_bnc.any(dim=1)
    assert whole.all() if tied else not whole.any()
