"""BigBird: a window of blocks, two global blocks, and a few random ones."""

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from .blocked import (
    attend,
    from_blocks,
    neighbour_positions,
    positions,
    to_blocks,
    with_neighbours,
)
from .mixer import About, HeadMixer, check_size


class BigBird(HeadMixer):
    """Block i attends to blocks i - 1, i, i + 1, to the first and the last, and to random ones.

    The first and the last block attend to all; the last is that of each sequence's own length.
    Which blocks are random differs from head to head and from layer to layer, and is the same in
    every run.

    Args:
        block: samples in a block.
        random: how many random blocks.
    """

    about = About(
        complexity="C N E, E the keys of a query",
        source="Zaheer et al. 2020, Big Bird: transformers for longer sequences",
        row="LRA: BigBird",
        left_out="extra global tokens (ETC); the causal form",
    )
    made_to_length = True

    preference_hkk: Tensor

    def __init__(self, dim: int, *, block: int = 64, random: int = 3, **options: Any) -> None:
        super().__init__(dim, **options)
        self.block = check_size("block", block)
        self.random = check_size("random", random, 0)
        blocks = -(-self.samples // block)
        seeded = torch.Generator().manual_seed(self.layer)
        # As integers, which a change of dtype leaves alone.
        preference = torch.rand(self.heads, blocks, blocks, generator=seeded, device="cpu")
        self.register_buffer("preference_hkk", preference.argsort(dim=-1), persistent=False)

    def attend(self, x_bnc: Tensor, valid_bn: Tensor | None) -> Tensor:
        """Full attention for the first and the last block, a few blocks of keys for the rest."""
        samples = x_bnc.shape[1]
        self.check_samples(samples)
        q_bhnd, k_bhnd, v_bhnd = self.project(x_bnc)
        everything = None if valid_bn is None else valid_bn[:, None, None, :]

        def attend_to_all(q_bhnd: Tensor) -> Tensor:
            return scaled_dot_product_attention(
                q_bhnd, k_bhnd, v_bhnd, attn_mask=everything, dropout_p=self.attention_dropout
            )

        if samples <= 2 * self.block:
            return attend_to_all(q_bhnd)
        if valid_bn is None:
            lengths_b = torch.full((1,), samples, device=x_bnc.device)  # broadcast over the batch
        else:
            lengths_b = valid_bn.sum(dim=1)
        last_b = (lengths_b - 1) // self.block
        q, k, v = (to_blocks(x, self.block) for x in (q_bhnd, k_bhnd, v_bhnd))
        y = self._attend_to_some(q, k, v, lengths_b, last_b)
        ends_bhgd = attend_to_all(torch.cat((q[:, 0], _of_each(q, last_b)), dim=2))
        first_bhgd, last_bhgd = ends_bhgd.chunk(2, dim=2)
        is_last_bk = torch.arange(q.shape[1], device=q.device) == last_b[:, None]
        y = torch.where(is_last_bk[:, :, None, None, None], last_bhgd[:, None], y)
        return from_blocks(torch.cat((first_bhgd[:, None], y[:, 1:]), dim=1), samples)

    def _attend_to_some(
        self, q: Tensor, k: Tensor, v: Tensor, lengths_b: Tensor, last_b: Tensor
    ) -> Tensor:
        """What holds for the blocks between the first and the last."""
        batch, blocks = q.shape[:2]
        chosen_bhkr, fresh_bhkr = self._random_blocks(blocks, last_b)

        def gather(x_bkhgd: Tensor) -> Tensor:
            ends_bhgd = torch.cat((x_bkhgd[:, 0], _of_each(x_bkhgd, last_b)), dim=2)
            b = torch.arange(batch, device=q.device)[:, None, None, None]
            h = torch.arange(self.heads, device=q.device)[:, None, None]
            random_bhkrgd = x_bkhgd.transpose(1, 2)[b, h, chosen_bhkr]
            return torch.cat(
                (
                    ends_bhgd[:, None].expand(-1, blocks, -1, -1, -1),
                    with_neighbours(x_bkhgd),
                    random_bhkrgd.transpose(1, 2).flatten(3, 4),
                ),
                dim=3,
            )

        # No key may count twice: the window leaves the ends out, as the random blocks do. All
        # between the ends is valid, and so is the very first sample, which every query keeps.
        n_kg = positions(blocks, self.block, q.device)
        first_b = (last_b * self.block)[:, None]  # sample of the last block
        n_bw = torch.cat((n_kg[:1].expand(len(last_b), -1), first_b + n_kg[0]), dim=1)
        ends = (n_bw < lengths_b[:, None])[:, None, None, None]
        n_kw = neighbour_positions(n_kg)
        window = ((n_kw >= self.block) & (n_kw < first_b[:, None]))[:, :, None, None]
        random = fresh_bhkr.transpose(1, 2).repeat_interleave(self.block, dim=-1)[:, :, :, None]
        shape = (len(last_b), blocks, self.heads, self.block, -1)
        keep = torch.cat([mask.expand(shape) for mask in (ends, window, random)], dim=-1)
        return attend(q, gather(k), gather(v), keep, self.attention_dropout)

    def _random_blocks(self, blocks: int, last_b: Tensor) -> tuple[Tensor, Tensor]:
        """For each head and block some others, and which of them are neither window nor ends."""
        i = torch.arange(blocks, device=last_b.device)
        inside_bk = (i > 0) & (i < last_b[:, None])
        free_bkk = inside_bk[:, None] & ((i[:, None] - i).abs() > 1)
        preference_hkk = self.preference_hkk[:, :blocks, :blocks]
        best = preference_hkk.where(free_bkk[:, None], -1).topk(min(self.random, blocks), dim=-1)
        return best.indices, best.values >= 0


def _of_each(x_bkhgd: Tensor, block_b: Tensor) -> Tensor:
    """One block of each sequence, (B, H, G, D)."""
    return x_bkhgd[torch.arange(len(x_bkhgd), device=block_b.device), block_b]
