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

    def attend(
        self, q_bhnd: Tensor, k_bhnd: Tensor, v_bhnd: Tensor, valid_bn: Tensor | None
    ) -> Tensor:
        """Attend to every valid sample."""
        keep = None if valid_bn is None else valid_bn[:, None, None, :]
        return scaled_dot_product_attention(
            q_bhnd, k_bhnd, v_bhnd, attn_mask=keep, dropout_p=self.attention_dropout
        )
