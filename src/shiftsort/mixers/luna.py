"""Luna: attention packed into a short learned sequence and unpacked from it."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from .mixer import About, FusedLinear, HeadMixer, check_size


class Luna(HeadMixer):
    """Y_P = Attention(P; X, X), then Y = Attention(X; Y_P, Y_P), with P learned, (packed, dim).

    As in the published code, keys and values of each of the two share a projection.

    Args:
        packed: how long P is.
    """

    about = About(
        complexity="C N l, l packed samples",
        source="Ma et al. 2021, Luna: linear unified nested attention",
        row="none: the paper cites it only",
        left_out="P handed on from layer to layer (each layer learns its own); the causal form",
    )
    parts = 2

    def __init__(self, dim: int, *, packed: int = 16, **options: Any) -> None:
        super().__init__(dim, **options)
        bias = self.inner.bias is not None
        check_size("packed", packed)
        self.pack = nn.Parameter(torch.randn(packed, dim) * dim**-0.5)
        self.pack_query = FusedLinear(dim, self.channels, 1, bias)
        self.unpack_key = FusedLinear(self.channels, self.channels, 1, bias)

    def attend(self, x_bnc: Tensor, valid_bn: Tensor | None) -> Tensor:
        """Pack, then unpack."""
        q_bhnd, context_bhnd = self.project(x_bnc)
        (pack_1hld,) = self.split(self.pack_query(self.pack)[None])
        keep = None if valid_bn is None else valid_bn[:, None, None, :]
        packed_bhld = scaled_dot_product_attention(
            pack_1hld.expand(len(x_bnc), -1, -1, -1),
            context_bhnd,
            context_bhnd,
            attn_mask=keep,
            dropout_p=self.attention_dropout,
        )
        packed_blc = packed_bhld.transpose(1, 2).flatten(2)
        (context_bhld,) = self.split(self.unpack_key(packed_blc))
        return scaled_dot_product_attention(
            q_bhnd, context_bhld, context_bhld, dropout_p=self.attention_dropout
        )
