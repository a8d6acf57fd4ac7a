"""BigBird: a window of blocks, two global blocks, and a few random ones."""

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
from .mixer import About, HeadMixer, check_size


class BigBird(HeadMixer):
    """Block i attends to blocks i - 1, i, i + 1, to the first and the last, and to random ones.

    The first and the last block attend to all. Which blocks are random differs from head to head
    and from layer to layer, and is the same in every run. With padding, the last block is that of
    the padded sequence.

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
        preference = torch.rand(self.heads, blocks, blocks, generator=seeded, device="cpu")
        self.register_buffer("preference_hkk", preference, persistent=False)

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

        last = (samples - 1) // self.block * self.block
        if last <= self.block:
            return attend_to_all(q_bhnd)
        ends_bhnd = attend_to_all(
            torch.cat((q_bhnd[:, :, : self.block], q_bhnd[:, :, last:]), dim=2)
        )
        middle_bhnd = self._attend_to_some(q_bhnd, k_bhnd, v_bhnd, valid_bn)
        first_bhnd, last_bhnd = ends_bhnd.tensor_split((self.block,), dim=2)
        return torch.cat((first_bhnd, middle_bhnd[:, :, self.block : last], last_bhnd), dim=2)

    def _attend_to_some(
        self, q_bhnd: Tensor, k_bhnd: Tensor, v_bhnd: Tensor, valid_bn: Tensor | None
    ) -> Tensor:
        samples = q_bhnd.shape[2]
        q, k, v = (to_blocks(x, self.block) for x in (q_bhnd, k_bhnd, v_bhnd))
        blocks = q.shape[1]
        n_kg = positions(blocks, self.block, q.device)
        chosen_hkr, fresh_hkr = self._random_blocks(blocks)

        def gather(x_bkhgd: Tensor) -> Tensor:
            ends = x_bkhgd[:, (0, -1)].transpose(1, 2).flatten(2, 3)[:, None]
            head = torch.arange(self.heads, device=x_bkhgd.device)[:, None, None]
            random_bhkrgd = x_bkhgd.transpose(1, 2)[:, head, chosen_hkr]
            return torch.cat(
                (
                    ends.expand(-1, blocks, -1, -1, -1),
                    with_neighbours(x_bkhgd),
                    random_bhkrgd.transpose(1, 2).flatten(3, 4),
                ),
                dim=3,
            )

        # No key may count twice: the window leaves the ends out, as the random blocks do.
        n_kw = neighbour_positions(n_kg)
        inner = (n_kw >= self.block) & (n_kw < (blocks - 1) * self.block)
        window = is_valid(n_kw, samples, valid_bn) & inner
        own = (n_kg[:, :, None] == n_kw[:, None, :])[None, :, None]
        window = window[:, :, None, None] | own
        ends = is_valid(n_kg[(0, -1), :].flatten(), samples, valid_bn)[:, None, None, None]
        random = is_valid(n_kg[chosen_hkr], samples, valid_bn) & fresh_hkr[..., None]
        random = random.transpose(1, 2).flatten(3)[:, :, :, None]
        shape = (len(window), blocks, self.heads, self.block, -1)
        keep = torch.cat([mask.expand(shape) for mask in (ends, window, random)], dim=-1)
        return from_blocks(attend(q, gather(k), gather(v), keep, self.attention_dropout), samples)

    def _random_blocks(self, blocks: int) -> tuple[Tensor, Tensor]:
        """For each head and block some others, and which of them are neither window nor ends."""
        i = torch.arange(blocks, device=self.preference_hkk.device)
        taken = ((i[:, None] - i).abs() <= 1) | (i == 0) | (i == blocks - 1)
        preference = self.preference_hkk[:, :blocks, :blocks].masked_fill(taken, -1)
        best = preference.topk(min(self.random, blocks), dim=-1)
        return best.indices, best.values >= 0
