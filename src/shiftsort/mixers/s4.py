"""S4: HiPPO's states, diagonal but for a part of rank one, and their kernel from its spectrum.

Shapes in names: those of `state_space.py`, f frequencies.
"""

import math
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from .convolution import full
from .mixer import About
from .state_space import StateSpace, hippo

#: Resolvents, one for each channel, state and frequency, that are in memory at a time.
_AT_A_TIME = 1 << 24


class S4(StateSpace):
    """A = diag(a) - P P*, bilinear steps; the kernel's spectrum at the roots of unity is a rational
    function, and the inverse FFT of that is the kernel.

    What is learned as C is C (1 - A^N) of the discrete A, N the longest sequence: the spectrum is
    that of the kernel's first N lags.
    """

    about = About(
        complexity="C N log N + C N S, S states",
        source="Gu et al. 2022, Efficiently modeling long sequences with structured state spaces",
        row="LRA: S4",
        left_out="the causal form's decoding; kernels of twice the length, made from shorter ones; "
        "zero-order hold, which has no such spectrum",
    )
    made_to_length = True
    kinds: ClassVar = {**StateSpace.kinds, "p": "A"}

    def __init__(self, dim: int, **options: Any) -> None:
        super().__init__(dim, **options)
        _, p_s, _ = hippo(2 * self.decay.shape[1])
        self.p = nn.Parameter(torch.view_as_real(p_s).repeat(len(self.decay), 1, 1))
        with torch.no_grad():
            self.c.copy_(self._of_first_lags())

    def start(self, states: int) -> tuple[Tensor, Tensor]:
        a_s, _, b_s = hippo(states)
        return a_s, b_s

    def kernels(self, samples: int) -> Tensor:
        if samples > self.samples:
            raise ValueError(
                f"this mixer was made for up to {self.samples} samples, got {samples}; "
                "build it with a larger samples="
            )
        dt, a_cs, b_cs, c_wcs = self.parts()
        p_cs = self.of_channels(torch.view_as_complex(full(self.p)))
        ways, half = len(c_wcs), c_wcs.shape[-1]
        terms_jcs = torch.cat((c_wcs * b_cs, c_wcs * p_cs, torch.stack((b_cs, p_cs)) * p_cs.conj()))
        frequencies = self.samples // 2 + 1
        size = max(_AT_A_TIME // (half * frequencies), 1)
        parts = [
            checkpoint(
                _spectrum,
                a,
                terms,
                self.samples,
                ways,
                use_reentrant=False,
                preserve_rng_state=False,
            )
            for a, terms in zip(
                (dt * a_cs).split(size), (dt * terms_jcs).split(size, dim=1), strict=True
            )
        ]
        return torch.fft.irfft(torch.cat(parts, dim=1), n=self.samples)[..., :samples]

    def _of_first_lags(self) -> Tensor:
        """C - C A^N for the C that was drawn, as `c` holds it."""
        dt, a_cs, _, c_wcs = self.parts()
        p_cs = self.of_channels(torch.view_as_complex(full(self.p)))
        # Real and imaginary parts of a half of the states, in the place of all of them.
        turn = torch.cat((torch.diag_embed(a_cs.real), -torch.diag_embed(a_cs.imag)), dim=-1)
        grow = torch.cat((torch.diag_embed(a_cs.imag), torch.diag_embed(a_cs.real)), dim=-1)
        p_ct = torch.cat((p_cs.real, p_cs.imag), dim=-1)
        step_ctt = dt[..., None] / 2 * (torch.cat((turn, grow), dim=-2) - 2 * _outer(p_ct))
        one = torch.eye(step_ctt.shape[-1])
        power_ctt = torch.linalg.solve(one - step_ctt, one + step_ctt)
        row_wct = torch.cat((c_wcs.real, -c_wcs.imag), dim=-1)
        later_wct, left = row_wct[..., None, :], self.samples
        while left:
            if left % 2:
                later_wct = later_wct @ power_ctt
            power_ctt, left = power_ctt @ power_ctt, left // 2
        real, imag = (row_wct - later_wct[..., 0, :]).chunk(2, dim=-1)
        return torch.stack((real, -imag), dim=-1)


def _spectrum(a_cs: Tensor, terms_jcs: Tensor, samples: int, ways: int) -> Tensor:
    """The kernels' spectrum, (W, C, F). Of A and the terms, dt is a factor already.

    At the root of unity exp(-2 i h), with s = sin(h) and c = cos(h), the sum of a term v over a
    state and its conjugate is v / (2 i s - a c) and the same of their conjugates, but for a factor
    of all. Multiplied out it has no pole at c = 0, and its numerator is two products of matrices.
    """
    number = torch.arange(samples // 2 + 1, dtype=a_cs.real.dtype, device=a_cs.device)
    scale = math.pi / (2 * samples)
    sine = torch.sin(2 * scale * number)
    cosine = torch.sin(scale * (samples - 2 * number))  # 0 where it is 0
    pole_csf = torch.complex(
        torch.addcmul(-4 * sine.square(), a_cs.abs().square()[..., None], cosine.square()),
        a_cs.real[..., None] * (-4 * sine * cosine),
    )
    both_cjs = torch.cat((terms_jcs.real, (terms_jcs * a_cs.conj()).real)).transpose(0, 1)
    above_jcf, below_jcf = (
        (2 * both_cjs.to(pole_csf.dtype) @ pole_csf.reciprocal()).transpose(0, 1).chunk(2)
    )
    sums = 2j * sine * above_jcf - cosine * below_jcf
    cb_wcf, cp_wcf, pb_cf, pp_cf = sums[:ways], sums[ways : 2 * ways], sums[-2], sums[-1]
    spectrum_wcf = cb_wcf - cosine * cp_wcf * pb_cf / (1 + cosine * pp_cf)
    return spectrum_wcf * torch.exp(2j * scale * number)


def _outer(x_ct: Tensor) -> Tensor:
    return x_ct[..., :, None] * x_ct[..., None, :]
