"""Softmax attention, through torch's fused kernels."""

from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from .mixer import About, HeadMixer


class MHA(HeadMixer):
    """softmax(Q K^T / sqrt(D)) V in each head."""

    about = About(
        complexity="C N^2",
        source="Vaswani et al. 2017, Attention is all you need",
        row="LRA: Transformer; ViT: MHA; analysis: first row",
    )

    def attend(self, x_bnc: Tensor, valid_bn: Tensor | None) -> Tensor:
        """Each sample attends to every valid one."""
        q_bhnd, k_bhnd, v_bhnd = self.project(x_bnc)
        keep = None if valid_bn is None else valid_bn[:, None, None, :]
        return scaled_dot_product_attention(
            q_bhnd, k_bhnd, v_bhnd, attn_mask=keep, dropout_p=self.attention_dropout
        )
