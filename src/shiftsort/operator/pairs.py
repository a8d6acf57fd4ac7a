"""Shift and pairs on CUDA: a permutation of one bit a pair.

rows.py launches what serves memory where the samples of a channel are neighbours, columns.py what
serves it where the channels of a sample are.
"""

from torch import Tensor

from . import columns, nvrtc, rows
from .layout import Packing, empty_like_layout, empty_packed, is_channel_major
from .ranks import order_of_pairs

# What common code of the kernels calls MODE.
_SORT, _APPLY, _UNDO = range(3)


def forward(
    v_bnc: Tensor,
    steps: Tensor,
    lengths: Tensor | None,
    group_size: int | None,
    ascending: bool,
    packing: Packing,
) -> tuple[Tensor, Tensor]:
    """y and a bit for each pair."""
    y_bnc, packed = empty_like_layout(v_bnc), empty_packed(packing, v_bnc)
    defines = [
        f"KEY={nvrtc.KEYS[v_bnc.dtype]}",
        f"PAIRS={int(group_size == 2)}",
        f"REFERENCE={int(not ascending)}",
        f"KEEP={int(packing is Packing.BITS)}",
    ]
    order = None if ascending or group_size == 1 else order_of_pairs(v_bnc, lengths)
    _launch(_SORT, defines, v_bnc, order, packed, steps, lengths, y_bnc)
    return y_bnc, packed


def permute(
    x_bnc: Tensor,
    packed: Tensor,
    steps: Tensor,
    lengths: Tensor | None,
    group_size: int | None,
    inverse: bool,
) -> Tensor:
    """Apply kept bits, or undo them."""
    y_bnc = empty_like_layout(x_bnc)
    defines = [f"BYTES={x_bnc.element_size()}", f"PAIRS={int(group_size == 2)}"]
    _launch(_UNDO if inverse else _APPLY, defines, x_bnc, None, packed, steps, lengths, y_bnc)
    return y_bnc


def _launch(mode: int, defines: list[str], x_bnc: Tensor, *rest: Tensor | None) -> None:
    if x_bnc.numel():
        layout = rows if is_channel_major(x_bnc) else columns
        layout.launch(mode, defines, x_bnc, *rest)
