"""Shift and pairs on CUDA where the samples of a channel are neighbours in memory.

cuda/rows.cu where rows of the output are aligned to 16 bytes, cuda/ragged.cu where not.
"""

from torch import Tensor

from . import nvrtc

# rows.cu: the threads of a block, and how many channels each takes
_THREADS = 128
_CHANNELS = (4, 4, 2)  # for each mode
# ragged.cu: the warps of a block, the channels of a warp, and how many of these at once
_WARPS = 8
_RUN = 8
_UNROLL = 4


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
    starts = (y_bnc.data_ptr(), y_bnc.stride(0) * size, y_bnc.stride(2) * size)
    arguments = (
        x_bnc, x_bnc.stride(0), x_bnc.stride(2), steps, lengths, order, packed,
        y_bnc, y_bnc.stride(0), y_bnc.stride(2), samples, channels,
    )  # fmt: skip
    compiled = [f"MODE={mode}", *defines]
    if all(start % 16 == 0 for start in starts):
        units = -(-samples // 16)  # sixteen samples: a byte of bits, `size` words of 16 bytes
        lanes_log = min(7, (units * size - 1).bit_length())
        across = -(-units * size // (1 << lanes_log))
        down = -(-channels // (_CHANNELS[mode] * (_THREADS >> lanes_log)))
        compiled.append(f"CHANNELS={_CHANNELS[mode]}")
        kernel = nvrtc.kernel("rows.cu", "rows", tuple(compiled), x_bnc.device.index)
        kernel(batch * down * across, _THREADS, 0, *arguments, units, across, down, lanes_log)
        return
    aligned = all(start % (2 * size) == 0 for start in starts)  # a pair is stored at once
    compiled += [f"ALIGNED={int(aligned)}", f"UNROLL={_UNROLL}"]
    units = -(-samples // 64)  # what a warp takes of a row
    warps_log = min(3, (units - 1).bit_length())
    across = -(-units // (1 << warps_log))
    down = -(-channels // (_RUN * (_WARPS >> warps_log)))
    kernel = nvrtc.kernel("ragged.cu", "ragged_rows", tuple(compiled), x_bnc.device.index)
    kernel(batch * down * across, 32 * _WARPS, 0, *arguments, across, down, warps_log)
