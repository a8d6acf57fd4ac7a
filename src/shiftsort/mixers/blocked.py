"""Attention of blocks of queries to a few keys each: local, Longformer, BigBird, sparse, Sinkhorn.

FlexAttention is made for such masks, but it has no gradient on the CPU, and outside torch.compile
it writes the whole N x N map. This is plain torch on any device: the keys of each block are put
side by side, and torch's fused attention takes every block as a sequence of its own. Memory grows
with the keys that are looked at.

Shapes in names: b batch, k blocks, h heads, g queries in a block, w keys of a block, d channels.
"""

import torch
from torch import Tensor
from torch.nn.functional import pad, scaled_dot_product_attention


def to_blocks(x_bhnd: Tensor, size: int) -> Tensor:
    """(B, H, N, D) -> (B, K, H, G, D), the last block filled up with zeros."""
    x_bnhd = x_bhnd.transpose(1, 2)
    missing = -x_bnhd.shape[1] % size
    if missing:
        x_bnhd = pad(x_bnhd, (0, 0, 0, 0, 0, missing))
    return x_bnhd.unflatten(1, (-1, size)).transpose(2, 3)


def from_blocks(y_bkhgd: Tensor, samples: int) -> Tensor:
    """(B, K, H, G, D) -> (B, H, N, D)."""
    return y_bkhgd.transpose(2, 3).flatten(1, 2)[:, :samples].transpose(1, 2)


def with_neighbours(x_bkhgd: Tensor) -> Tensor:
    """Each block between the one before and the one after it: (B, K, H, 3G, D)."""
    blocks = x_bkhgd.shape[1]
    padded = pad(x_bkhgd, (0, 0, 0, 0, 0, 0, 1, 1))
    return torch.cat([padded[:, i : i + blocks] for i in range(3)], dim=3)


def positions(blocks: int, size: int, device: torch.device) -> Tensor:
    """Where the samples of each block stand in the sequence, (K, G)."""
    return torch.arange(blocks * size, device=device).view(blocks, size)


def neighbour_positions(n_kg: Tensor) -> Tensor:
    """Where the keys of `with_neighbours` stand, (K, 3G); outside of the sequence too."""
    size = n_kg.shape[1]
    return torch.cat((n_kg - size, n_kg, n_kg + size), dim=1)


def is_valid(n: Tensor, samples: int, valid_bn: Tensor | None) -> Tensor:
    """Which positions hold a valid sample, (B or 1, *n.shape)."""
    inside = (n >= 0) & (n < samples)
    if valid_bn is None:
        return inside[None]
    lengths_b = valid_bn.sum(dim=1).view(-1, *[1] * n.dim())
    return inside & (n < lengths_b)


def attend(
    q_bkhgd: Tensor, k_bkhwd: Tensor, v_bkhwd: Tensor, keep: Tensor | None, dropout: float
) -> Tensor:
    """Softmax attention in each block. `keep` has the shape of the map, (B, K, H, G, W), or ones.

    Every query must keep a key, those in the padding too.
    """
    batch, blocks = q_bkhgd.shape[:2]
    if keep is not None:
        keep = keep.expand(batch, blocks, *keep.shape[2:]).flatten(0, 1)
    y = scaled_dot_product_attention(
        q_bkhgd.flatten(0, 1),
        k_bkhwd.flatten(0, 1),
        v_bkhwd.flatten(0, 1),
        attn_mask=keep,
        dropout_p=dropout,
    )
    return y.unflatten(0, (batch, blocks))
