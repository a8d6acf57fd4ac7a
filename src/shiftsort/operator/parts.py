"""Pairs and groups of a sequence in plain torch, for eager.py and padded.py.

Shapes: B batch, N samples, C channels, K groups, G samples in a group.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from .layout import is_channel_major

BITS_OF_SIZE = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def descending(u_bnc: Tensor) -> Tensor:
    """For each pair, all bits of a value if its second sample ranks before its first, else none.

    That is where the second is a number, for NaN ranks last, and not (second >= first), which also
    says yes to a NaN in the first.
    """
    first, second = halves(u_bnc)
    whole = BITS_OF_SIZE[u_bnc.element_size()]
    if u_bnc.device.type != "cpu" or is_channel_major(u_bnc):
        return torch.gt(second == second, second >= first).to(whole).neg_()
    # On a CPU torch takes three times as long to make bools of whole rows as ones and zeros of the
    # values' own type. The sign of a 1.0 that is negated as an integer then fills all bits.
    number = second.clone().eq_(second)
    swap = second.clone().ge_(first).lt_(number)
    return swap.view(whole).neg_().bitwise_right_shift_(8 * u_bnc.element_size() - 1)


def swap_pairs(u_bnc: Tensor, swap_bkc: Tensor) -> None:
    """Exchange the pairs whose bits are set, in place: NaN and -0.0 survive."""
    first, second = halves(u_bnc.view(swap_bkc.dtype))
    difference = first ^ second
    difference &= swap_bkc
    first ^= difference
    second ^= difference


def halves(u_bnc: Tensor) -> tuple[Tensor, Tensor]:
    """The first and the second sample of each pair."""
    even = u_bnc.shape[1] // 2 * 2
    return u_bnc[:, 0:even:2], u_bnc[:, 1:even:2]


def groups(samples: int, group_size: int | None) -> Iterator[tuple[slice, int]]:
    """The whole groups, and the shorter last one."""
    size = samples if group_size is None else min(group_size, samples)
    whole = samples // size * size
    yield slice(0, whole), size
    if whole < samples:
        yield slice(whole, samples), samples - whole


def split(x_bcn: Tensor, size: int) -> Tensor:
    """Its groups: (B, C, K, G)."""
    batch, channels, samples = x_bcn.shape
    return x_bcn.view(batch, channels, samples // size, size)
