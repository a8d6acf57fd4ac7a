"""Shift and pairs on CUDA where a sample's channels are neighbours in memory: cuda/columns.cu."""

from torch import Tensor

from . import nvrtc
from .layout import Packing, empty_like_layout, empty_packed

_FORWARD, _APPLY, _UNDO = range(3)
_THREADS = 256
_STRIPS = 4
_CHUNK = 16
_TILE = 1024
#: Shared memory for the rows of a strip: three blocks to a multiprocessor of 228 KiB.
_ROOM = 68 * 1024


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
    starts = (x_bnc.data_ptr(), x_bnc.stride(0) * size, x_bnc.stride(1) * size)
    vector = all(start % 16 == 0 for start in starts)
    defines = [f"MODE={mode}", f"VECTOR={int(vector)}", "STRIDED=1", *defines]
    kernel = nvrtc.kernel("columns.cu", "columns", tuple(defines), x_bnc.device.index)
    tile = min(_TILE, -(-samples // _CHUNK) * _CHUNK)
    tiles = -(-samples // tile)
    width = 32 // size
    across = -(-channels // (width * _STRIPS))
    shared = _ROOM + tile // _CHUNK + width * (tile // _CHUNK + 4) + 8 * width
    kernel(
        batch * tiles * across, _THREADS, shared,
        x_bnc, x_bnc.stride(0), x_bnc.stride(1), steps, lengths, packed,
        y_bnc, y_bnc.stride(0), y_bnc.stride(1),
        samples, channels, tiles, across, tile, _ROOM,
    )  # fmt: skip
