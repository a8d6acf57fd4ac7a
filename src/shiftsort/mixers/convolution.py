"""Convolutions as long as the sequence, by the FFT, and kernels that are sums of exponentials.

Shapes in names: b batch, n samples, c channels, l lags, s states.
"""

import torch
from torch import Tensor


def convolve(x_bcn: Tensor, forth_cl: Tensor, back_cl: Tensor | None = None) -> Tensor:
    """y(n) = sum_l forth(l) x(n - l) + back(l) x(n + l), in float32 or, for float64, in that.

    Nothing stands outside of the sequence. Both directions have a weight for lag 0.
    """
    samples = x_bcn.shape[-1]
    reach = min(samples, forth_cl.shape[-1])
    circle = fast_length(samples + reach - 1)
    # Products of spectra in half precision would lose the small differences they stand for.
    with torch.autocast(x_bcn.device.type, enabled=False):
        spectrum = torch.fft.rfft(full(forth_cl[..., :reach]), n=circle)
        if back_cl is not None:
            # Lags run the other way round the circle.
            spectrum = spectrum + torch.fft.rfft(full(back_cl[..., :reach]), n=circle).conj()
        spectrum = torch.fft.rfft(full(x_bcn), n=circle) * spectrum
        return torch.fft.irfft(spectrum, n=circle)[..., :samples]


def exponentials(weight_cs: Tensor, rate_cs: Tensor, lags: int) -> Tensor:
    """Re sum_s weight_s exp(l rate_s) for l = 0, 1, ..., (..., lags); both are complex.

    A lag is a multiple of a power of two and a rest, so its exponential is a product, and the sum a
    product of matrices: no tensor holds each state at each lag.
    """
    near = 1 << (lags.bit_length() + 1) // 2
    far = -(-lags // near)
    with torch.autocast(rate_cs.device.type, enabled=False):
        rest_csl = torch.exp(rate_cs[..., None] * torch.arange(near, device=rate_cs.device))
        multiple = near * torch.arange(far, device=rate_cs.device)
        multiple_csl = weight_cs[..., None] * torch.exp(rate_cs[..., None] * multiple)
        left = torch.cat((multiple_csl.real, -multiple_csl.imag), dim=-2)
        right = torch.cat((rest_csl.real, rest_csl.imag), dim=-2)
        return (left.transpose(-1, -2) @ right).flatten(-2)[..., :lags]


def fast_length(least: int) -> int:
    """A length from `least` on with small prime factors, at most a quarter longer."""
    step = 1 << max(least.bit_length() - 3, 0)
    return -(-least // step) * step


def full(x: Tensor) -> Tensor:
    """In float32, unless it is wider."""
    return x.to(torch.promote_types(x.dtype, torch.float32))
