"""SPADE: attention in a window, and in the bottom layer states beside it that see everything."""

from typing import Any

import torch
from torch import Tensor, nn

from .longformer import Longformer
from .mixer import About
from .s4 import S4


class Spade(Longformer):
    """Attention in a window; in layer 0 joined with S4, each normalised, by a projection of both.

    Args:
        window: width of the window, even.
        states, copies, dt_min, dt_max: of S4, see there.
    """

    about = About(
        complexity="C N E, E the window; C N log N + C N S in layer 0, S states",
        source="Zuo et al. 2024, Efficient long sequence modeling via state space augmented "
        "transformer",
        row="LRA: SPADE",
        left_out="the causal form; the bias of relative positions; chunks, and MEGA, in the place "
        "of the window",
    )
    made_to_length = True
    withheld = ("global_samples",)

    def __init__(
        self,
        dim: int,
        *,
        window: int = 128,
        states: int = 64,
        copies: int | None = None,
        dt_min: float = 1e-3,
        dt_max: float = 0.1,
        **options: Any,
    ) -> None:
        super().__init__(dim, window=window, global_samples=0, **options)
        self.everything: S4 | None = None
        if self.layer == 0:
            self.everything = S4(
                dim,
                samples=self.samples,
                dropout=self.dropout,
                states=states,
                copies=copies,
                dt_min=dt_min,
                dt_max=dt_max,
            )
            self.everything_norm = nn.LayerNorm(dim)
            self.window_norm = nn.LayerNorm(dim)
            self.join = nn.Linear(2 * dim, dim)

    def forward(self, x_bnc: Tensor, lengths_b: Tensor | None = None) -> Tensor:
        """Look around, and in the bottom layer everywhere."""
        y_bnc = super().forward(x_bnc, lengths_b)
        if self.everything is None:
            return y_bnc
        far_bnc = self.everything_norm(self.everything(x_bnc, lengths_b))
        return self.join(torch.cat((far_bnc, self.window_norm(y_bnc)), dim=-1))
