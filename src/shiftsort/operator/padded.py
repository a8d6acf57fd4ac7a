"""CSP of a right-padded batch in plain torch, all sequences at once.

For devices where a look at a length would stall the stream and end the capture of a graph. An index
as large as the values says where each comes from, which on a CPU is slower than one sequence at a
time: see eager.py.

Shapes: B batch, N samples, C channels, K pairs or groups, G samples in a group.
"""

import torch
from torch import Tensor

from .layout import Packing, empty_like_layout, empty_packed, packing_of
from .parts import descending, groups, split, swap_pairs


def forward(
    v_bnc: Tensor,
    steps: Tensor,
    lengths: Tensor,
    group_size: int | None,
    ascending: bool,
    packing: Packing,
) -> tuple[Tensor, Tensor]:
    """y and its packed permutation, which is zero past the lengths."""
    packed = empty_packed(packing, v_bnc)
    if v_bnc.numel() == 0:
        return empty_like_layout(v_bnc), packed
    valid_b1n = _valid(v_bnc, lengths)
    u_bcn = v_bnc.transpose(1, 2).gather(2, _shifted_from(v_bnc, steps, lengths))
    if group_size == 2:
        u_bnc = u_bcn.transpose(1, 2)
        second_bk1 = valid_b1n[:, :, 1::2].transpose(1, 2)
        swap_bkc = descending(u_bnc).where(second_bk1, 0)
        if not ascending:
            swap_bkc ^= swap_bkc[:, :, :1].clone()
        swap_pairs(u_bnc, swap_bkc)
        if packing is not Packing.NOTHING:
            packed.copy_(swap_bkc)
    elif group_size != 1:
        for part, size in groups(v_bnc.shape[1], group_size):
            u, valid = split(u_bcn[:, :, part], size), split(valid_b1n[:, :, part], size)
            # Padding stands behind all samples of its group: as NaN, sorted stably, it stays there.
            key = u.where(valid & (u == u), torch.nan)
            source = key.sort(dim=-1, stable=True).indices
            if not ascending:
                source = source.gather(-1, source[:, :1].argsort(dim=-1).expand_as(source))
            u_bcn[:, :, part] = u.gather(-1, source).flatten(2)
            if packing is not Packing.NOTHING:
                packed[:, :, part] = source.where(valid, 0).flatten(2)
    return empty_like_layout(v_bnc).copy_(u_bcn.transpose(1, 2)), packed


def permute(
    x_bnc: Tensor,
    packed: Tensor,
    steps: Tensor,
    lengths: Tensor,
    group_size: int | None,
    inverse: bool,
) -> Tensor:
    """Apply a packed permutation, or its inverse."""
    y_bnc = empty_like_layout(x_bnc)
    if x_bnc.numel() == 0:
        return y_bnc
    from_bcn = _shifted_from(x_bnc, steps, lengths)
    if packing_of(packed) is not Packing.NOTHING:
        from_bcn = from_bcn.gather(2, _sorted_from(x_bnc, packed, lengths, group_size))
    x_bcn = x_bnc.transpose(1, 2)
    if inverse:
        y_bcn = torch.empty_like(x_bcn).scatter_(2, from_bcn, x_bcn)
    else:
        y_bcn = x_bcn.gather(2, from_bcn)
    return y_bnc.copy_(y_bcn.transpose(1, 2))


def _valid(x_bnc: Tensor, lengths: Tensor) -> Tensor:
    """(B, 1, N): which samples are within the lengths."""
    n = torch.arange(x_bnc.shape[1], device=x_bnc.device)
    return n < lengths[:, None, None]


def _shifted_from(x_bnc: Tensor, steps: Tensor, lengths: Tensor) -> Tensor:
    """(B, C, N): where the shift takes each sample from."""
    samples = x_bnc.shape[1]
    n = torch.arange(samples, device=x_bnc.device)
    length_b11 = lengths.clamp(0, samples)[:, None, None]
    step_bc1 = steps[:, None].remainder(length_b11.clamp(min=1))
    from_bcn = n - step_bc1
    from_bcn += length_b11 * (from_bcn < 0)
    return from_bcn.where(n < length_b11, n)


def _sorted_from(x_bnc: Tensor, packed: Tensor, lengths: Tensor, group_size: int | None) -> Tensor:
    """(B, C, N): where in the shifted sequence each sample of the result comes from."""
    batch, samples, channels = x_bnc.shape
    n = torch.arange(samples, device=x_bnc.device)
    if packing_of(packed) is Packing.FLAGS:
        from_bcn = n.repeat(batch, channels, 1)
        swap_bcn = packed.transpose(1, 2).repeat_interleave(2, dim=2)
        from_bcn[:, :, : samples // 2 * 2] ^= swap_bcn
        return from_bcn
    start = 0 if group_size is None else n // group_size * group_size
    return (packed.to(torch.int64) + start).where(_valid(x_bnc, lengths), n)
