"""The Sparse Transformer's two patterns."""

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import dropout

from .blocked import (
    attend,
    from_blocks,
    is_valid,
    neighbour_positions,
    positions,
    to_blocks,
    with_neighbours,
)
from .mixer import About, HeadMixer, check_size

PATTERNS = ("fixed", "strided")


class Sparse(HeadMixer):
    """Softmax attention to the union of two sets of keys, both about sqrt(N) large.

    - "fixed": the query's own block of `stride` samples, and the last `summary` of every block;
    - "strided": every |i - j| < stride, and every j with i - j a multiple of the stride.

    Args:
        pattern: which.
        stride: default sqrt(samples), rounded.
        summary: samples at the end of a block that all look at; with "strided" unused.
    """

    about = About(
        complexity="C N^1.5",
        source="Child et al. 2019, Generating long sequences with sparse transformers",
        row="LRA: SparseTrans",
        left_out="the causal form (keys may come after the query); the two sets in separate heads",
    )
    made_to_length = True

    def __init__(
        self,
        dim: int,
        *,
        pattern: str = "fixed",
        stride: int | None = None,
        summary: int = 8,
        **options: Any,
    ) -> None:
        super().__init__(dim, **options)
        if pattern not in PATTERNS:
            raise ValueError(f"pattern must be one of {', '.join(PATTERNS)}, got {pattern!r}")
        self.pattern = pattern
        self.stride = check_size("stride", stride or round(self.samples**0.5))
        self.summary = min(check_size("summary", summary), self.stride)

    def attend(self, x_bnc: Tensor, valid_bn: Tensor | None) -> Tensor:
        """By the pattern."""
        q, k, v = (to_blocks(x, self.stride) for x in self.project(x_bnc))
        how = self._fixed if self.pattern == "fixed" else self._strided
        return from_blocks(how(q, k, v, x_bnc.shape[1], valid_bn), x_bnc.shape[1])

    def _fixed(
        self, q: Tensor, k: Tensor, v: Tensor, samples: int, valid_bn: Tensor | None
    ) -> Tensor:
        n_kg = positions(q.shape[1], self.stride, q.device)
        summary_s = n_kg[:, -self.summary :].flatten()

        def gather(x_bkhgd: Tensor) -> Tensor:
            x_bhsd = x_bkhgd[:, :, :, -self.summary :].transpose(1, 2).flatten(2, 3)
            return torch.cat((x_bkhgd, x_bhsd[:, None].expand(-1, len(n_kg), -1, -1, -1)), dim=3)

        own = is_valid(n_kg, samples, valid_bn)[:, :, None, :]
        own = own | (n_kg[:, :, None] == n_kg[:, None, :])
        # The summary of a query's own block is in the block already.
        other = is_valid(summary_s, samples, valid_bn)[:, None] & (
            summary_s // self.stride != n_kg[:, :1] // self.stride
        )
        other = other[:, :, None].expand(len(own), *n_kg.shape, -1)
        keep = torch.cat((own, other), dim=-1)[:, :, None]
        return attend(q, gather(k), gather(v), keep, self.attention_dropout)

    def _strided(
        self, q: Tensor, k: Tensor, v: Tensor, samples: int, valid_bn: Tensor | None
    ) -> Tensor:
        n_kg = positions(q.shape[1], self.stride, q.device)
        n_kw = neighbour_positions(n_kg)
        scale = q.shape[-1] ** -0.5

        near = q @ with_neighbours(k).transpose(-1, -2) * scale  # b k h g w
        distance_kgw = (n_kg[:, :, None] - n_kw[:, None, :]).abs()
        seen = is_valid(n_kw, samples, valid_bn)[:, :, None] & (distance_kgw < self.stride)
        near = near.masked_fill(~(seen | (distance_kgw == 0))[:, :, None], -torch.inf)

        # Samples a multiple of the stride apart stand at the same place of their blocks.
        q_bghkd, k_bghkd, v_bghkd = (x.permute(0, 3, 2, 1, 4) for x in (q, k, v))
        far = (q_bghkd @ k_bghkd.transpose(-1, -2) * scale).permute(0, 3, 2, 1, 4)  # b k h g l
        seen_lg = is_valid(n_kg, samples, valid_bn).transpose(1, 2)[:, None, None]
        own = torch.eye(len(n_kg), dtype=torch.bool, device=q.device)[:, None, None]
        far = far.masked_fill(~seen_lg | own, -torch.inf)

        weights = torch.cat((near, far), dim=-1).softmax(dim=-1).to(v.dtype)
        weights = dropout(weights, self.attention_dropout)
        near, far = weights.tensor_split((n_kw.shape[1],), dim=-1)
        y_far = (far.permute(0, 3, 2, 1, 4) @ v_bghkd).permute(0, 3, 2, 1, 4)
        return near @ with_neighbours(v) + y_far
