"""cosFormer: linear attention whose weights fall off with distance as a cosine."""

import math

import torch
from torch import Tensor

from .linear import kernel_attention
from .mixer import About, HeadMixer, wipe_heads


class Cosformer(HeadMixer):
    """Weights relu(q_i) . relu(k_j) cos(pi (i - j) / 2M), M the sequence's length.

    cos(a - b) = cos a cos b + sin a sin b makes them a product of features of twice the width.
    """

    about = About(
        complexity="C N D",
        source="Zhen Qin et al. 2022, cosFormer: rethinking softmax in attention",
        row="LRA: Cosformer",
        left_out="the causal form; attention dropout (there is no map to drop from)",
    )

    def attend(self, x_bnc: Tensor, valid_bn: Tensor | None) -> Tensor:
        """Linear attention over the reweighted features."""
        q_bhnd, k_bhnd, v_bhnd = self.project(x_bnc)
        samples = x_bnc.shape[1]
        n = torch.arange(1, samples + 1, device=x_bnc.device)
        longest = samples if valid_bn is None else valid_bn.sum(dim=1)[:, None, None, None]
        angle = (math.pi / 2) * (n[:, None] / longest)
        cos, sin = angle.cos().to(q_bhnd.dtype), angle.sin().to(q_bhnd.dtype)
        q_bhnd, k_bhnd = q_bhnd.relu(), wipe_heads(k_bhnd.relu(), valid_bn)
        q_bhnf = torch.cat((q_bhnd * cos, q_bhnd * sin), dim=-1)
        k_bhnf = torch.cat((k_bhnd * cos, k_bhnd * sin), dim=-1)
        return kernel_attention(q_bhnf, k_bhnf, v_bhnd)
