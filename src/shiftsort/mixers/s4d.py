"""S4D: states that do not see each other, so that a channel's kernel is a sum of exponentials."""

import math
from typing import Any

import torch
from torch import Tensor

from .convolution import exponentials
from .mixer import About
from .state_space import StateSpace, hippo

STARTS = ("lin", "inv", "legs")
DISCRETISATIONS = ("zoh", "bilinear")


class S4D(StateSpace):
    """The layer of S4 with a diagonal A: its kernel is a Vandermonde product.

    Args:
        start: how A begins: "lin" (frequencies pi n), "inv" (as HiPPO's, in closed form) or "legs"
            (HiPPO-LegS without its part of rank one).
        discretisation: "zoh" or "bilinear".
    """

    about = About(
        complexity="C N log N + C N S, S states",
        source="Gu et al. 2022, On the parameterization of diagonal state space models",
        row="none: reviewers of the paper asked for it",
        left_out="the causal form's decoding; real states",
    )

    def __init__(
        self, dim: int, *, start: str = "lin", discretisation: str = "zoh", **options: Any
    ) -> None:
        for name, value, choices in (
            ("start", start, STARTS),
            ("discretisation", discretisation, DISCRETISATIONS),
        ):
            if value not in choices:
                raise ValueError(f"{name} must be one of {', '.join(choices)}, got {value!r}")
        self._start, self.discretisation = start, discretisation
        super().__init__(dim, **options)

    def start(self, states: int) -> tuple[Tensor, Tensor]:
        if self._start == "legs":
            a_s, _, b_s = hippo(states)
            return a_s, b_s
        n = torch.arange(states // 2)
        if self._start == "lin":
            frequency_s = math.pi * n
        else:
            frequency_s = states / math.pi * (states / (2 * n + 1) - 1)
        a_s = torch.complex(torch.full_like(frequency_s, -0.5), -frequency_s)
        return a_s, torch.ones_like(a_s)

    def kernels(self, samples: int) -> Tensor:
        dt, a_cs, b_cs, c_wcs = self.parts()
        step_cs = dt * a_cs
        if self.discretisation == "zoh":
            rate_cs, gain_cs = step_cs, torch.expm1(step_cs) / a_cs
        else:
            rate_cs = torch.log((1 + step_cs / 2) / (1 - step_cs / 2))
            gain_cs = dt / (1 - step_cs / 2)
        return exponentials(2 * c_wcs * b_cs * gain_cs, rate_cs, samples)
