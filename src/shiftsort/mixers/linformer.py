"""Linformer: keys and values projected along the sequence to a fixed number of rows."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from .mixer import About, HeadMixer, check_size, wipe_heads


class Linformer(HeadMixer):
    """softmax(Q (E^T K)^T / sqrt(D)) (E^T V), with E learned, (samples, rank).

    Args:
        rank: rows that keys and values are projected to. 16 is Long Range Arena's.
        share: one E for keys and values (as in Long Range Arena), else one for each.
    """

    about = About(
        complexity="C N r, r the rank",
        source="Wang et al. 2020, Linformer: self-attention with linear complexity",
        row="LRA: Linformer",
        left_out="an E for each head, an E for all layers",
    )
    made_to_length = True

    def __init__(self, dim: int, *, rank: int = 16, share: bool = True, **options: Any) -> None:
        super().__init__(dim, **options)
        check_size("rank", rank)
        self.rows = nn.Parameter(torch.randn(1 if share else 2, self.samples, rank))
        with torch.no_grad():
            self.rows *= self.samples**-0.5

    def attend(self, x_bnc: Tensor, valid_bn: Tensor | None) -> Tensor:
        """Attend to the projected keys. Padding is zero in them, and needs no mask further on."""
        q_bhnd, k_bhnd, v_bhnd = self.project(x_bnc)
        self.check_samples(x_bnc.shape[1])
        rows_rn = self.rows[:, : x_bnc.shape[1]].transpose(1, 2).to(k_bhnd.dtype)
        return scaled_dot_product_attention(
            q_bhnd,
            rows_rn[0] @ wipe_heads(k_bhnd, valid_bn),
            rows_rn[-1] @ wipe_heads(v_bhnd, valid_bn),
            dropout_p=self.attention_dropout,
        )
