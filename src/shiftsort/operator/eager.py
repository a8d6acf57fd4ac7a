"""CSP on any device in plain torch.

Shift: one gather through an index of a single sample, shared by the whole batch.
Pairs: a comparison and a masked exchange of bits, whole vectors at a time, no sort and no index.
Larger groups: one call of torch.sort over channel-major rows.
Lengths: one sequence at a time on a CPU, elsewhere all at once (padded.py).

Shapes: B batch, N samples, C channels, K groups, G samples in a group.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from . import padded
from .layout import (
    Packing,
    empty_like_layout,
    empty_packed,
    is_channel_major,
    is_channel_outer,
    packing_of,
)
from .parts import BITS_OF_SIZE, descending, groups, split, swap_pairs

#: The values of a sequence from which on torch turns it over in blocks, if it is turned alone.
_TRANSPOSED_ALONE = 60 * 60


def forward(
    v_bnc: Tensor,
    steps: Tensor,
    lengths: Tensor | None,
    group_size: int | None,
    ascending: bool,
    packing: Packing,
) -> tuple[Tensor, Tensor]:
    """y and its packed permutation; with `Packing.NOTHING` only y is made."""
    if lengths is not None and v_bnc.device.type != "cpu":
        return padded.forward(v_bnc, steps, lengths, group_size, ascending, packing)
    packed = empty_packed(packing, v_bnc)
    if lengths is None:
        return _laid(_forward(v_bnc, steps, group_size, ascending, packed), v_bnc), packed
    packed.zero_()
    y_bnc = _copy(v_bnc, is_channel_major(v_bnc))  # what is past the length passes through
    for v, y, p in _valid_parts(lengths, v_bnc, y_bnc, packed):
        y.copy_(_forward(v, steps, group_size, ascending, p))
    return y_bnc, packed


def permute(
    x_bnc: Tensor,
    packed: Tensor,
    steps: Tensor,
    lengths: Tensor | None,
    group_size: int | None,
    inverse: bool,
) -> Tensor:
    """Apply a packed permutation (or its inverse, which is the gradient) to any tensor."""
    if lengths is not None and x_bnc.device.type != "cpu":
        return padded.permute(x_bnc, packed, steps, lengths, group_size, inverse)
    if lengths is None:
        return _laid(_permute(x_bnc, packed, steps, group_size, inverse), x_bnc)
    y_bnc = _copy(x_bnc, is_channel_major(x_bnc))
    for x, y, p in _valid_parts(lengths, x_bnc, y_bnc, packed):
        y.copy_(_permute(x, p, steps, group_size, inverse))
    return y_bnc


def _valid_parts(
    lengths: Tensor, x_bnc: Tensor, y_bnc: Tensor, packed: Tensor
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """One sequence at a time, without its padding."""
    packing = packing_of(packed)
    for b, length in enumerate(lengths.clamp(0, x_bnc.shape[1]).tolist()):
        p = packed[b : b + 1]
        if packing is Packing.FLAGS:
            p = p[:, : length // 2]
        elif packing is not Packing.NOTHING:
            p = p[:, :, :length]
        yield x_bnc[b : b + 1, :length], y_bnc[b : b + 1, :length], p


def _forward(
    v_bnc: Tensor, steps: Tensor, group_size: int | None, ascending: bool, packed: Tensor
) -> Tensor:
    """A new y; the permutation goes into `packed` unless that is to hold nothing."""
    keep = packing_of(packed) is not Packing.NOTHING
    if v_bnc.numel() == 0:
        return empty_like_layout(v_bnc)
    if group_size == 1:
        return _shift(v_bnc, steps, is_channel_major(v_bnc))
    if group_size == 2:
        y_bnc = _shift(v_bnc, steps, is_channel_major(v_bnc))
        swap_bkc = descending(y_bnc)
        if not ascending:
            swap_bkc ^= swap_bkc[:, :, :1].clone()
        swap_pairs(y_bnc, swap_bkc)
        if keep:
            packed.copy_(swap_bkc)
        return y_bnc
    u_bcn = _shift(v_bnc, steps, channel_major=True).transpose(1, 2)
    for part, size in groups(v_bnc.shape[1], group_size):
        u = split(u_bcn[:, :, part], size)
        if u.device.type == "cpu":
            values, source = u.sort(dim=-1, stable=True)
        else:  # long rows are sorted by their bits there, where one NaN is not as any other
            source = u.where(u == u, torch.nan).sort(dim=-1, stable=True).indices
            values = u.gather(-1, source)
        if not ascending:
            rank_b1kg = source[:, :1].argsort(dim=-1).expand_as(source)
            values = values.gather(-1, rank_b1kg)
            source = source.gather(-1, rank_b1kg) if keep else source
        u_bcn[:, :, part] = values.flatten(2)
        if keep:
            packed[:, :, part] = source.flatten(2)
    y_bnc = u_bcn.transpose(1, 2)
    return y_bnc if is_channel_major(v_bnc) else _copy(y_bnc, channel_major=False)


def _permute(
    x_bnc: Tensor, packed: Tensor, steps: Tensor, group_size: int | None, inverse: bool
) -> Tensor:
    """A new y."""
    packing = packing_of(packed)
    channel_major = is_channel_major(x_bnc)
    if x_bnc.numel() == 0:
        return empty_like_layout(x_bnc)
    if packing is Packing.NOTHING:
        return _shift(x_bnc, -steps if inverse else steps, channel_major)
    if packing is Packing.FLAGS:
        swap_bkc = packed.to(BITS_OF_SIZE[x_bnc.element_size()]).neg_()
        u_bnc = _copy(x_bnc, channel_major) if inverse else _shift(x_bnc, steps, channel_major)
        swap_pairs(u_bnc, swap_bkc)
        return _shift(u_bnc, -steps, channel_major) if inverse else u_bnc
    u_bnc = _copy(x_bnc, True) if inverse else _shift(x_bnc, steps, channel_major=True)
    u_bcn = u_bnc.transpose(1, 2)
    moved_bcn = torch.empty_like(u_bcn)
    for part, size in groups(x_bnc.shape[1], group_size):
        source = split(packed[:, :, part].to(torch.int64), size)
        u = split(u_bcn[:, :, part], size)
        moved = torch.empty_like(u).scatter_(-1, source, u) if inverse else u.gather(-1, source)
        moved_bcn[:, :, part] = moved.flatten(2)
    moved_bnc = moved_bcn.transpose(1, 2)
    return _shift(moved_bnc, -steps, channel_major) if inverse else _copy(moved_bnc, channel_major)


def _laid(y_bnc: Tensor, x_bnc: Tensor) -> Tensor:
    """In the layout of x: what comes out channel-major may have to be channel-outer."""
    return empty_like_layout(x_bnc).copy_(y_bnc) if is_channel_outer(x_bnc) else y_bnc


def _copy(x_bnc: Tensor, channel_major: bool) -> Tensor:
    """Fresh memory: the layout of x if that is major in the same way, else the plain one."""
    batch, samples, channels = x_bnc.shape
    if channel_major == is_channel_major(x_bnc):
        return empty_like_layout(x_bnc).copy_(x_bnc)
    if channel_major:
        copy = x_bnc.new_empty((batch, channels, samples)).transpose(1, 2)
    else:
        copy = x_bnc.new_empty((batch, samples, channels))
    if x_bnc.device.type == "cpu" and samples * channels >= _TRANSPOSED_ALONE:
        for x_nc, y_nc in zip(x_bnc.unbind(), copy.unbind(), strict=True):
            y_nc.copy_(x_nc)
        return copy
    return copy.copy_(x_bnc)


def _shift(x_bnc: Tensor, steps: Tensor, channel_major: bool) -> Tensor:
    """Sample n of channel c from sample n - steps[c], into fresh memory."""
    batch, samples, channels = x_bnc.shape
    steps = steps.remainder(samples)
    unmoved = steps.device.type == "cpu" and not bool(steps.any())
    if unmoved or channel_major != is_channel_major(x_bnc):
        x_bnc = _copy(x_bnc, channel_major)  # turned first: a gather that also turns is slower
    if unmoved:
        return x_bnc
    flat = (x_bnc.transpose(1, 2) if channel_major else x_bnc).reshape(batch, -1)
    # Where each value of the result lies within one sequence in memory. The index is as large as a
    # sequence: every pass over it counts.
    n = torch.arange(samples, device=x_bnc.device)
    c = torch.arange(channels, device=x_bnc.device)
    n, c, s = (n, c[:, None], steps[:, None]) if channel_major else (n[:, None], c, steps)
    apart_n, apart_c = (1, samples) if channel_major else (channels, 1)
    position = n * apart_n + (c * apart_c - s * apart_n)
    position = torch.add(position, n < s, alpha=samples * apart_n, out=position)
    shifted = flat.gather(1, position.view(-1).expand(batch, -1))
    if not channel_major:
        return shifted.view(batch, samples, channels)
    return shifted.view(batch, channels, samples).transpose(1, 2)
