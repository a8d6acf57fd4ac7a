"""How a (B, N, C) tensor lies in memory, and how its permutation is packed for the gradient.

Three layouts matter, by what runs fastest and what slowest:

    token-major      B N C    what most models have
    channel-major    B C N    what the kernels like best
    channel-outer    C B N    what a projection writes as W X^T over all tokens at once

Everything here is decided from shapes and strides alone: a fake tensor gets the same answer.
"""

from enum import Enum

import torch
from torch import Tensor


def is_channel_major(x_bnc: Tensor) -> bool:
    """Whether neighbouring samples of one channel are neighbours in memory."""
    return x_bnc.stride(1) == 1 and x_bnc.stride(2) != 1


def is_channel_outer(x_bnc: Tensor) -> bool:
    """Channel-major, and a channel's sequences are neighbours too."""
    outer = x_bnc.shape[0] > 1 and x_bnc.stride(2) > x_bnc.stride(0)
    return outer and is_channel_major(x_bnc)


def empty_like_layout(
    x_bnc: Tensor, *, samples: int | None = None, dtype: torch.dtype | None = None
) -> Tensor:
    """An uninitialised (B, samples, C) tensor, dense, in the layout of x."""
    batch, length, channels = x_bnc.shape
    n = length if samples is None else samples
    if not is_channel_major(x_bnc):
        return x_bnc.new_empty((batch, n, channels), dtype=dtype)
    if is_channel_outer(x_bnc):
        return x_bnc.new_empty((channels, batch, n), dtype=dtype).permute(1, 2, 0)
    return x_bnc.new_empty((batch, channels, n), dtype=dtype).transpose(1, 2)


class Packing(Enum):
    """What is kept of the permutation within the groups. The shift is known without being kept."""

    NOTHING = "groups of one: the shift says it all"
    FLAGS = "groups of two in eager: a bool for each pair, whether it is swapped"
    BITS = "groups of two: a bit for each pair, a byte for 16 samples"
    BYTES = "up to 256 in a group: for each sample, where in its group it comes from"
    SHORTS = "the same up to 65,536"
    INTS = "the same beyond"


_INDEX_DTYPES = {
    Packing.BYTES: torch.uint8,
    Packing.SHORTS: torch.uint16,
    Packing.INTS: torch.int32,
}


def index_dtype(packing: Packing) -> torch.dtype:
    """What holds a place in a group."""
    return _INDEX_DTYPES[packing]


def packing_of(packed: Tensor) -> Packing:
    """Which packing a packed tensor has: its dtype and rank tell."""
    if packed.dim() == 2:
        return Packing.NOTHING
    if packed.dtype == torch.bool:
        return Packing.FLAGS
    if packed.dim() == 4:
        return Packing.BITS
    return next(p for p, dtype in _INDEX_DTYPES.items() if dtype == packed.dtype)


def empty_packed(packing: Packing, x_bnc: Tensor) -> Tensor:
    """Where the packed permutation of x goes. The batch always comes first."""
    batch, length, channels = x_bnc.shape
    if packing is Packing.NOTHING:
        return x_bnc.new_empty((batch, 0), dtype=torch.uint8)
    if packing is Packing.FLAGS:
        return empty_like_layout(x_bnc, samples=length // 2, dtype=torch.bool)
    if packing is Packing.BITS:
        # The fourth dimension only tells these bytes from BYTES.
        return x_bnc.new_empty((batch, channels, (length + 15) // 16, 1), dtype=torch.uint8)
    return x_bnc.new_empty((batch, channels, length), dtype=_INDEX_DTYPES[packing])
