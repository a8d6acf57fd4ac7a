"""Block-local attention."""

from typing import Any

from torch import Tensor

from .blocked import attend, from_blocks, is_valid, positions, to_blocks
from .mixer import About, HeadMixer, check_size


class Local(HeadMixer):
    """Softmax attention inside of blocks that do not overlap.

    Args:
        block: samples in a block.
    """

    about = About(
        complexity="C N E, E the block",
        source="Tay et al. 2021, Long Range Arena",
        row="LRA: LocalAttention",
        left_out="the released code's reshape, which puts every K-th sample into a block",
    )

    def __init__(self, dim: int, *, block: int = 64, **options: Any) -> None:
        super().__init__(dim, **options)
        self.block = check_size("block", block)

    def attend(self, x_bnc: Tensor, valid_bn: Tensor | None) -> Tensor:
        """Attend to one's own block."""
        samples = x_bnc.shape[1]
        q, k, v = (to_blocks(x, self.block) for x in self.project(x_bnc))
        keep = None
        if valid_bn is not None or samples % self.block:
            n_kg = positions(q.shape[1], self.block, x_bnc.device)
            keep = is_valid(n_kg, samples, valid_bn)[:, :, None, None, :]
            keep = keep | (n_kg[:, None, :, None] == n_kg[:, None, None, :])
        return from_blocks(attend(q, k, v, keep, self.attention_dropout), samples)
