"""Long convolutions, and kernels of exponentials, against sums written out."""

import pytest
import torch

from shiftsort.mixers.convolution import convolve, exponentials, fast_length


@pytest.mark.parametrize("lags", [1, 3, 9, 12])
@pytest.mark.parametrize("samples", [1, 2, 7, 9])
def test_a_convolution_is_its_sum(samples, lags):
    x, forth, back = (
        torch.randn(*s, dtype=torch.float64) for s in ((2, 3, samples), *[(3, lags)] * 2)
    )
    inside = [(n, m) for n in range(samples) for m in range(samples) if abs(n - m) < lags]
    for other in (None, back):
        expected = torch.zeros_like(x)
        for n, m in inside:
            if m <= n:
                expected[..., n] += forth[:, n - m] * x[..., m]
            if m >= n and other is not None:
                expected[..., n] += other[:, m - n] * x[..., m]
        torch.testing.assert_close(convolve(x, forth, other), expected)


def test_a_convolution_stays_in_float32_under_autocast():
    x, kernel = torch.randn(1, 2, 50), torch.randn(2, 50)
    with torch.autocast("cpu", torch.bfloat16):
        inside = convolve(x, kernel)
    assert torch.equal(inside, convolve(x, kernel))
    assert convolve(x.bfloat16(), kernel.bfloat16()).dtype == torch.float32


@pytest.mark.parametrize("lags", [1, 2, 3, 16, 17, 1000])
def test_a_sum_of_exponentials_is_its_terms(lags):
    weight = torch.randn(2, 3, 4, dtype=torch.complex128)
    rate = torch.complex(-torch.rand(3, 4).double(), 10 * torch.randn(3, 4).double())
    terms = weight[..., None] * torch.exp(rate[..., None] * torch.arange(lags))
    torch.testing.assert_close(exponentials(weight, rate, lags), terms.sum(-2).real)


def test_a_fast_length_is_a_little_longer():
    for least in range(1, 5000):
        assert least <= fast_length(least) <= max(1.25 * least, least + 1)
