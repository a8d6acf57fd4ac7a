"""Longformer: a sliding window, and a few samples that see and are seen by all."""

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from .blocked import (
    attend,
    from_blocks,
    is_valid,
    neighbour_positions,
    positions,
    to_blocks,
    with_neighbours,
)
from .mixer import About, FusedLinear, HeadMixer, check_size


class Longformer(HeadMixer):
    """Sample i attends to every j with |i - j| <= window / 2, and to the global samples.

    The global samples attend to all, through projections of their own.

    Args:
        window: width of the window, even.
        global_samples: how many samples at the start are global; 1 is a class token.
    """

    about = About(
        complexity="C N E, E the window",
        source="Beltagy et al. 2020, Longformer",
        row="LRA: Longformer",
        left_out="dilated windows; the causal form",
    )

    def __init__(
        self, dim: int, *, window: int = 512, global_samples: int = 1, **options: Any
    ) -> None:
        super().__init__(dim, **options)
        if check_size("window", window, 2) % 2:
            raise ValueError(f"window must be even, got {window}")
        self.reach = window // 2
        self.global_samples = check_size("global_samples", global_samples, 0)
        if global_samples:
            bias = self.inner.bias is not None
            self.global_query = FusedLinear(dim, self.channels, 1, bias)
            self.global_context = FusedLinear(dim, self.channels, 2, bias)

    def attend(self, x_bnc: Tensor, valid_bn: Tensor | None) -> Tensor:
        """Every sample through the window, then the first ones anew."""
        y_bhnd = self._through_window(x_bnc, valid_bn)
        if not self.global_samples:
            return y_bhnd
        g = self.global_samples
        (q_bhgd,) = self.split(self.global_query(x_bnc[:, :g]))
        k_bhnd, v_bhnd = self.split(self.global_context(x_bnc))
        keep = None if valid_bn is None else valid_bn[:, None, None, :]
        global_bhgd = scaled_dot_product_attention(
            q_bhgd, k_bhnd, v_bhnd, attn_mask=keep, dropout_p=self.attention_dropout
        )
        return torch.cat((global_bhgd, y_bhnd[:, :, g:]), dim=2)

    def _through_window(self, x_bnc: Tensor, valid_bn: Tensor | None) -> Tensor:
        samples, g = x_bnc.shape[1], self.global_samples
        q, k, v = (to_blocks(x, self.reach) for x in self.project(x_bnc))
        n_kg = positions(q.shape[1], self.reach, x_bnc.device)
        n_kw = neighbour_positions(n_kg)
        distance_kgw = (n_kg[:, :, None] - n_kw[:, None, :]).abs()
        seen = is_valid(n_kw, samples, valid_bn)[:, :, None, :] & (distance_kgw <= self.reach)
        # Global keys stand before the window, and must not be counted in it again.
        seen = seen & (n_kw >= g)[:, None, :] | (distance_kgw == 0)
        k_bkhwd, v_bkhwd = with_neighbours(k), with_neighbours(v)
        if g:
            # The global samples may reach into the second block, so they are taken from the whole.
            k_bhgd, v_bhgd = (from_blocks(x, min(g, samples)) for x in (k, v))
            first = is_valid(torch.arange(k_bhgd.shape[2], device=x_bnc.device), samples, valid_bn)
            first = first[:, None, None, :].expand(len(seen), *n_kg.shape, -1)
            seen = torch.cat((first, seen), dim=-1)
            k_bkhwd, v_bkhwd = (
                torch.cat((x_bhgd[:, None].expand(-1, len(n_kg), -1, -1, -1), window), dim=3)
                for x_bhgd, window in ((k_bhgd, k_bkhwd), (v_bhgd, v_bkhwd))
            )
        y = attend(q, k_bkhwd, v_bkhwd, seen[:, :, None], self.attention_dropout)
        return from_blocks(y, samples)
