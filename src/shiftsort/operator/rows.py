"""Shift and pairs on CUDA where the samples of a channel are neighbours in memory: cuda/rows.cu."""

from torch import Tensor

from . import nvrtc
from .layout import Packing, empty_like_layout, empty_packed

_FORWARD, _APPLY, _UNDO = range(3)
_THREADS = 128
_CHANNELS = 4  # a thread's


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
    defines = [f"KEY={nvrtc.KEYS[v_bnc.dtype]}", f"REFERENCE={int(not ascending)}"]
    defines += [f"KEEP={int(packing is Packing.BITS)}", f"PAIRS={int(group_size == 2)}"]
    _launch(_FORWARD, defines, v_bnc, packed, steps, lengths, y_bnc)
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
    _launch(_UNDO if inverse else _APPLY, defines, x_bnc, packed, steps, lengths, y_bnc)
    return y_bnc


def _launch(
    mode: int,
    defines: list[str],
    x_bnc: Tensor,
    packed: Tensor,
    steps: Tensor,
    lengths: Tensor | None,
    y_bnc: Tensor,
) -> None:
    batch, samples, channels = x_bnc.shape
    if x_bnc.numel() == 0:
        return
    size = x_bnc.element_size()
    starts = (y_bnc.data_ptr(), y_bnc.stride(0) * size, y_bnc.stride(2) * size)
    aligned = all(start % 16 == 0 for start in starts)
    defines = [f"MODE={mode}", f"ALIGNED={int(aligned)}", *defines]
    kernel = nvrtc.kernel("rows.cu", "rows", tuple(defines), x_bnc.device.index)
    units = (samples + 15) // 16  # sixteen samples: a byte of bits, `size` words of 16 bytes
    lanes_log = min(7, (units * size - 1).bit_length())
    across = -(-units * size // (1 << lanes_log))
    down = -(-channels // (_CHANNELS * (_THREADS >> lanes_log)))
    kernel(
        batch * down * across, _THREADS, 0,
        x_bnc, x_bnc.stride(0), x_bnc.stride(2), steps, lengths, packed,
        y_bnc, y_bnc.stride(0), y_bnc.stride(2),
        samples, channels, units, across, down, lanes_log,
    )  # fmt: skip
