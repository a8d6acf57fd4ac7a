"""What the other channels need to know of channel 0: cuda/ranks.cu."""

import torch
from torch import Tensor

from . import nvrtc

#: The largest group that is ranked by counting.
COUNTED = 64
_THREADS = 256


def order_of_pairs(v_bnc: Tensor, lengths: Tensor | None) -> Tensor:
    """Which pairs of channel 0 are descending: (B, ceil(N / 16)), a bit for each."""
    batch, samples, _ = v_bnc.shape
    units = -(-samples // 16)
    order = v_bnc.new_empty((batch, units), dtype=torch.uint8)
    _launch("order_of_pairs", v_bnc, lengths, order, units * 8, batch * units * 8)
    return order


def count_ranks(v_bnc: Tensor, lengths: Tensor | None, group_size: int) -> Tensor:
    """The rank of each sample of channel 0 in its group, up to 64 samples: (B, N)."""
    batch, samples, _ = v_bnc.shape
    ranks = v_bnc.new_empty((batch, samples), dtype=torch.uint8)
    _launch("count_ranks", v_bnc, lengths, ranks, group_size, batch * samples)
    return ranks


def _launch(
    name: str, v_bnc: Tensor, lengths: Tensor | None, out: Tensor, size: int, count: int
) -> None:
    defines = (f"KEY={nvrtc.KEYS[v_bnc.dtype]}",)
    nvrtc.kernel("ranks.cu", name, defines, v_bnc.device.index)(
        -(-count // _THREADS), _THREADS, 0,
        v_bnc, v_bnc.stride(0), v_bnc.stride(1), lengths, out, v_bnc.shape[1], size, count,
    )  # fmt: skip
