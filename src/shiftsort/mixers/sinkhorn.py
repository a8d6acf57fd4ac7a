"""Sparse Sinkhorn attention: blocks attend to themselves and to a block sorted next to them."""

from typing import Any

import torch
from torch import Tensor, nn

from .balance import balance
from .blocked import attend, from_blocks, is_valid, positions, to_blocks
from .mixer import About, HeadMixer, check_size, wipe_heads


class Sinkhorn(HeadMixer):
    """Softmax attention to one's own block of keys and to one of keys sorted by a learned map.

    The map from blocks to blocks is made from the sum of each block's keys, and brought near a
    permutation by Sinkhorn's normalisations.

    Args:
        block: samples in a block.
        iterations: normalisations of rows and columns.
        temperature: what the map's logarithms are divided by.
        noise: whether Gumbel noise joins them in training.
    """

    about = About(
        complexity="C N E + C (N / E)^2, E the block",
        source="Tay et al. 2020, Sparse Sinkhorn attention",
        row="LRA: SinkhornTrans",
        left_out="the causal form; SortCut; the mixture with full attention",
    )
    made_to_length = True

    def __init__(
        self,
        dim: int,
        *,
        block: int = 64,
        iterations: int = 8,
        temperature: float = 0.75,
        noise: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(dim, **options)
        self.block = check_size("block", block)
        self.iterations = check_size("iterations", iterations)
        self.temperature = temperature
        self.noise = noise
        self.sort = nn.Linear(self.channels // self.heads, -(-self.samples // block), bias=False)

    def attend(self, x_bnc: Tensor, valid_bn: Tensor | None) -> Tensor:
        """Sort the blocks of keys and values, then attend."""
        samples = x_bnc.shape[1]
        self.check_samples(samples)
        q_bhnd, k_bhnd, v_bhnd = self.project(x_bnc)
        k_bhnd, v_bhnd = wipe_heads(k_bhnd, valid_bn), wipe_heads(v_bhnd, valid_bn)
        q, k, v = (to_blocks(x, self.block) for x in (q_bhnd, k_bhnd, v_bhnd))
        n_kg = positions(q.shape[1], self.block, x_bnc.device)
        own = is_valid(n_kg, samples, valid_bn)
        map_bhkl = self._sorting_map(k, None if valid_bn is None else own.any(dim=-1))

        def gather(x_bkhgd: Tensor) -> Tensor:
            sorted_blocks = torch.einsum("bkhgd,bhkl->blhgd", x_bkhgd, map_bhkl.to(x_bkhgd.dtype))
            return torch.cat((x_bkhgd, sorted_blocks), dim=3)

        # A place in the sorted block holds something if it does in any block, so in the first.
        places = own[:, :1].expand(-1, len(n_kg), -1)[:, :, None, None]
        own = own[:, :, None, None] | (n_kg[:, None, :, None] == n_kg[:, None, None, :])
        keep = torch.cat((own, places.expand(own.shape)), dim=-1)
        return from_blocks(attend(q, gather(k), gather(v), keep, self.attention_dropout), samples)

    def _sorting_map(self, k_bkhgd: Tensor, valid_bk: Tensor | None) -> Tensor:
        """How much of block k goes to place l, (B, H, K, K)."""
        sums_bhkd = k_bkhgd.sum(dim=3).transpose(1, 2)
        scores = self.sort(sums_bhkd)[..., : k_bkhgd.shape[1]].float()
        if self.training and self.noise:
            scores = scores - torch.empty_like(scores).exponential_().log()
        valid = None if valid_bk is None else valid_bk[:, None]
        return balance(scores / self.temperature, 2 * self.iterations, valid)
