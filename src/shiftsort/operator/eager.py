"""CSP on any device in plain torch.

Shift: one gather through an index of a single sample, shared by the whole batch.
Pairs: a comparison and a masked exchange of bits, whole vectors at a time, no sort and no index.
Larger groups: one call of torch.sort over channel-major rows.

Shapes: B batch, N samples, C channels, K groups, G samples in a group.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from .layout import Packing, empty_like_layout, empty_packed, is_channel_major, packing_of

_BITS_OF_SIZE = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def forward(
    v_bnc: Tensor,
    steps: Tensor,
    lengths: Tensor | None,
    group_size: int | None,
    ascending: bool,
    packing: Packing,
) -> tuple[Tensor, Tensor]:
    """y and its packed permutation; with `Packing.NOTHING` only y is made."""
    y_bnc = empty_like_layout(v_bnc)
    packed = empty_packed(packing, v_bnc)
    if lengths is not None:
        packed.zero_()
        y_bnc.copy_(v_bnc)  # what is past the length passes through
    for v, y, p in _valid_parts(lengths, v_bnc, y_bnc, packed):
        _forward_unpadded(v, steps, group_size, ascending, y, p)
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
    y_bnc = empty_like_layout(x_bnc)
    if lengths is not None:
        y_bnc.copy_(x_bnc)
    for x, y, p in _valid_parts(lengths, x_bnc, y_bnc, packed):
        _permute_unpadded(x, p, steps, group_size, inverse, y)
    return y_bnc


def _valid_parts(
    lengths: Tensor | None, x_bnc: Tensor, y_bnc: Tensor, packed: Tensor
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """The batch as one, or one sequence at a time without its padding."""
    if lengths is None:
        if x_bnc.numel():
            yield x_bnc, y_bnc, packed
        return
    packing = packing_of(packed)
    for b, length in enumerate(lengths.clamp(0, x_bnc.shape[1]).tolist()):
        p = packed[b : b + 1]
        if packing is Packing.FLAGS:
            p = p[:, : length // 2]
        elif packing is not Packing.NOTHING:
            p = p[:, :, :length]
        if length and x_bnc.shape[2]:
            yield x_bnc[b : b + 1, :length], y_bnc[b : b + 1, :length], p


def _forward_unpadded(
    v_bnc: Tensor,
    steps: Tensor,
    group_size: int | None,
    ascending: bool,
    y_bnc: Tensor,
    packed: Tensor,
) -> None:
    samples = v_bnc.shape[1]
    keep = packing_of(packed) is not Packing.NOTHING
    if group_size == 1:
        y_bnc.copy_(_shift(v_bnc, steps, is_channel_major(y_bnc)))
    elif group_size == 2:
        u_bnc = _shift(v_bnc, steps, is_channel_major(y_bnc))
        swap_bkc = _is_descending(u_bnc)
        if not ascending:
            swap_bkc ^= swap_bkc[:, :, :1].clone()
        _swap_pairs(u_bnc, swap_bkc)
        y_bnc.copy_(u_bnc)
        if keep:
            packed.copy_(swap_bkc)
    else:
        u_bcn = _shift(v_bnc, steps, channel_major=True).transpose(1, 2)
        for part, size in _groups(samples, group_size):
            values, source = _split(u_bcn[:, :, part], size).sort(dim=-1, stable=True)
            if not ascending:
                rank_b1kg = source[:, :1].argsort(dim=-1).expand_as(source)
                values = values.gather(-1, rank_b1kg)
                source = source.gather(-1, rank_b1kg) if keep else source
            y_bnc.transpose(1, 2)[:, :, part] = values.flatten(2)
            if keep:
                packed[:, :, part] = source.flatten(2)


def _permute_unpadded(
    x_bnc: Tensor,
    packed: Tensor,
    steps: Tensor,
    group_size: int | None,
    inverse: bool,
    y_bnc: Tensor,
) -> None:
    samples = x_bnc.shape[1]
    packing = packing_of(packed)
    turn = packing not in (Packing.NOTHING, Packing.FLAGS)
    channel_major = turn or is_channel_major(y_bnc)
    u_bnc = _copy(x_bnc, channel_major) if inverse else _shift(x_bnc, steps, channel_major)
    if packing is Packing.FLAGS:
        _swap_pairs(u_bnc, packed)
    elif turn:
        u_bcn = u_bnc.transpose(1, 2)
        moved_bcn = torch.empty_like(u_bcn)
        for part, size in _groups(samples, group_size):
            source = _split(packed[:, :, part].to(torch.int64), size)
            u, moved = _split(u_bcn[:, :, part], size), _split(moved_bcn[:, :, part], size)
            if inverse:
                moved_bcn[:, :, part] = torch.empty_like(moved).scatter_(-1, source, u).flatten(2)
            else:
                moved_bcn[:, :, part] = u.gather(-1, source).flatten(2)
        u_bnc = moved_bcn.transpose(1, 2)
    y_bnc.copy_(_shift(u_bnc, -steps, is_channel_major(y_bnc)) if inverse else u_bnc)


def _copy(x_bnc: Tensor, channel_major: bool) -> Tensor:
    batch, samples, channels = x_bnc.shape
    if channel_major:
        copy = x_bnc.new_empty((batch, channels, samples)).transpose(1, 2)
    else:
        copy = x_bnc.new_empty((batch, samples, channels))
    return copy.copy_(x_bnc)


def _shift(x_bnc: Tensor, steps: Tensor, channel_major: bool) -> Tensor:
    """Sample n of channel c from sample n - steps[c], into fresh memory of the layout asked for."""
    batch, samples, channels = x_bnc.shape
    if steps.device.type == "cpu" and not bool(steps.remainder(samples).any()):
        return _copy(x_bnc, channel_major)
    source_nc = torch.arange(samples, device=x_bnc.device)[:, None] - steps.remainder(samples)
    source_nc += samples * (source_nc < 0)
    c = torch.arange(channels, device=x_bnc.device)
    # A position within one sequence as it lies in memory. The index has the order of the result.
    if is_channel_major(x_bnc):
        flat = x_bnc.transpose(1, 2).reshape(batch, -1)
        position_nc = source_nc + c * samples
    else:
        flat = x_bnc.reshape(batch, -1)
        position_nc = source_nc * channels + c
    position = (position_nc.t() if channel_major else position_nc).reshape(-1)
    if x_bnc.device.type == "cpu":  # a gather along one dimension is the fastest that torch has
        shifted = torch.empty_like(flat)
        for b in range(batch):
            torch.gather(flat[b], 0, position, out=shifted[b])
    else:
        shifted = flat.gather(1, position.expand(batch, -1))
    if channel_major:
        return shifted.view(batch, channels, samples).transpose(1, 2)
    return shifted.view(batch, samples, channels)


def _is_descending(u_bnc: Tensor) -> Tensor:
    """For each pair, whether its second sample ranks before its first. NaN ranks last."""
    even = u_bnc.shape[1] // 2 * 2
    first, second = u_bnc[:, 0:even:2], u_bnc[:, 1:even:2]
    # second is a number, and not (second >= first), which also says yes to a NaN in first
    return torch.gt(second == second, second >= first)


def _swap_pairs(u_bnc: Tensor, swap_bkc: Tensor) -> None:
    """Exchange the pairs that are marked, in place. On bits, so that NaN and -0.0 survive."""
    even = u_bnc.shape[1] // 2 * 2
    bits = u_bnc.view(_BITS_OF_SIZE[u_bnc.element_size()])
    first, second = bits[:, 0:even:2], bits[:, 1:even:2]
    difference = first ^ second
    difference &= swap_bkc.to(bits.dtype).neg_()
    first ^= difference
    second ^= difference


def _groups(samples: int, group_size: int | None) -> Iterator[tuple[slice, int]]:
    """The whole groups, and the shorter last one."""
    size = samples if group_size is None else min(group_size, samples)
    whole = samples // size * size
    yield slice(0, whole), size
    if whole < samples:
        yield slice(whole, samples), samples - whole


def _split(x_bcn: Tensor, size: int) -> Tensor:
    batch, channels, samples = x_bcn.shape
    return x_bcn.view(batch, channels, samples // size, size)
