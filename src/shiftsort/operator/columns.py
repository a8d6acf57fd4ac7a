"""Shift and pairs on CUDA where a sample's channels are neighbours in memory: cuda/columns.cu."""

from torch import Tensor

from . import nvrtc

_THREADS = 256
_CHUNK = 16
_TILE = 512
_STRIP_LOG = 6  # 64 bytes of channels
#: Shared memory for the rows of a strip: four blocks to a multiprocessor of 228 KiB. Where shifts
#: are far apart, which is where sequences are long, more rows for three blocks.
_ROOM, _ROOM_LONG = 50 * 1024, 68 * 1024
_LONG = 8192


def launch(
    mode: int,
    defines: list[str],
    x_bnc: Tensor,
    order: Tensor | None,
    packed: Tensor,
    steps: Tensor,
    lengths: Tensor | None,
    y_bnc: Tensor,
) -> None:
    """Compile if need be, and go."""
    batch, samples, channels = x_bnc.shape
    size = x_bnc.element_size()
    index = x_bnc.device.index
    starts = (x_bnc.data_ptr(), x_bnc.stride(0) * size, x_bnc.stride(1) * size)
    vector = all(start % 16 == 0 for start in starts)
    compiled = (f"MODE={mode}", f"VECTOR={int(vector)}", f"STRIP_LOG={_STRIP_LOG}", *defines)
    tile = min(_TILE, -(-samples // _CHUNK) * _CHUNK)
    tiles = -(-samples // tile)
    width = (1 << _STRIP_LOG) // size
    strips = -(-channels // width)
    room = _ROOM if samples < _LONG else _ROOM_LONG
    shared = room + 20 + 8 * width + width * (tile // _CHUNK + 4)
    nvrtc.kernel("columns.cu", "columns", compiled, index)(
        batch * tiles * strips, _THREADS, shared,
        x_bnc, x_bnc.stride(0), x_bnc.stride(1), steps, lengths, order, packed,
        y_bnc, y_bnc.stride(0), y_bnc.stride(1),
        samples, channels, tiles, strips, tile, room,
    )  # fmt: skip
