"""Groups of three and more on CUDA: cuda/groups.cu up to 1,024 samples, cuda/radix.cu beyond.

Channel 0 is ranked by a launch of its own, once; the other channels then read where its samples
stand. Kernels take any strides, and read and write whole lines where samples are neighbours.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from . import nvrtc
from .layout import Packing, empty_like_layout, empty_packed, index_dtype, packing_of
from .ranks import COUNTED, count_ranks

#: The largest group that one block sorts in its shared memory.
LARGEST = 16_384
# permute.cu: the samples that a block takes at least, those of a thread, the rows of a block
_RUN = 2048
_EACH = 8
_MOST_ROWS = 32
_WARPS = 4  # of a block of groups.cu
_ITEMS = 16  # samples a thread of radix.cu


def _in_registers(dtype: torch.dtype) -> int:
    """The largest group that groups.cu takes: what one warp holds in registers."""
    return 512 if dtype == torch.float32 else 1024


def shared_to_sort(dtype: torch.dtype, size: int) -> int:
    """The bytes of shared memory that a block needs for a group beyond what it comes with."""
    if size <= _in_registers(dtype):
        return 0
    warps = _radix_warps(size)
    item = 6 if dtype == torch.float32 else 4
    return warps * 32 * _ITEMS * item + (warps + 1) * 256 * 2


def _radix_warps(size: int) -> int:
    return -(-size // (32 * _ITEMS))


def shared_to_permute(element_size: int, size: int) -> int:
    """The same to permute so many samples: they, and the step of each row."""
    return 4 * _MOST_ROWS + size * element_size


def _run(size: int) -> int:
    """The samples of whole groups that permute.cu takes at a time."""
    return size * max(1, _RUN // max(size, 1))


def forward(
    v_bnc: Tensor,
    steps: Tensor,
    lengths: Tensor | None,
    group_size: int | None,
    ascending: bool,
    packing: Packing,
) -> tuple[Tensor, Tensor]:
    """y and, for each sample, where in its group it comes from."""
    batch, samples, _ = v_bnc.shape
    size = samples if group_size is None else min(group_size, samples)
    keep = packing is not Packing.NOTHING
    narrow = Packing.BYTES if size <= 256 else Packing.SHORTS
    y_bnc = empty_like_layout(v_bnc)
    packed = empty_packed(narrow if keep else packing, v_bnc)
    if v_bnc.numel() == 0:
        return y_bnc, empty_packed(packing, v_bnc)
    launch = _launch_groups if size <= _in_registers(v_bnc.dtype) else _launch_radix
    ranks = None
    if not ascending:
        if size <= COUNTED:
            ranks = count_ranks(v_bnc, lengths, size)
        else:
            ranks = v_bnc.new_empty((batch, samples), dtype=_place_dtype(size))
            first = v_bnc[:, :, :1]
            launch(["RANKS", "KEEP=1", "REFERENCE=0"], first, steps, lengths, size, None, first,
                   ranks)  # fmt: skip
    launch([f"KEEP={int(keep)}", f"REFERENCE={int(not ascending)}"], v_bnc, steps, lengths, size,
           ranks, y_bnc, packed)  # fmt: skip
    # A traced program, which does not know how long its sequences will be, may want it wider.
    return y_bnc, packed.to(index_dtype(packing)) if keep else packed


def _place_dtype(size: int) -> torch.dtype:
    return torch.uint8 if size <= 256 else torch.uint16


def _launch_groups(
    defines: list[str],
    v_bnc: Tensor,
    steps: Tensor,
    lengths: Tensor | None,
    size: int,
    ranks: Tensor | None,
    y_bnc: Tensor,
    packed: Tensor,
) -> None:
    batch, samples, channels = v_bnc.shape
    lane = 16 if v_bnc.dtype == torch.float32 else 32
    # A group that fits into a lane has a network of its own size; larger ones are padded.
    padded = max(3, size) if size <= lane else 1 << (size - 1).bit_length()
    span = (32 * (lane // padded) if size <= lane else 32 * lane // padded) * padded
    groups = -(-samples // size)
    runs = -(-groups * padded // span)
    # A row with less than half of the groups of a warp shares it with other channels' rows.
    rows = max(1, min(_MOST_ROWS, channels, span // padded // groups)) if samples > 1 else 1
    short = rows > 1
    if short:
        runs = -(-channels // rows)
    warps = batch * runs if short else batch * channels * runs
    spot_inverse = _inverse(rows if _strided(v_bnc, y_bnc) else samples) if short else 0
    defines = [f"P={padded}", f"SHORT={int(short)}", *defines]
    threads = 32 * _WARPS
    _kernel("groups.cu", "sort_groups", defines, v_bnc, y_bnc)(
        -(-warps // _WARPS), threads, 0,
        v_bnc, *v_bnc.stride(), steps, lengths, ranks, y_bnc, *y_bnc.stride(), packed,
        warps, samples, channels, size, _inverse(size), runs, groups, rows, spot_inverse,
    )  # fmt: skip


def _launch_radix(
    defines: list[str],
    v_bnc: Tensor,
    steps: Tensor,
    lengths: Tensor | None,
    size: int,
    ranks: Tensor | None,
    y_bnc: Tensor,
    packed: Tensor,
) -> None:
    batch, samples, channels = v_bnc.shape
    groups = -(-samples // size)
    threads = 32 * _radix_warps(size)
    bound = next(t for t in (128, 256, 512, 1024) if threads <= t)
    _kernel("radix.cu", "radix_sort", [f"THREADS={bound}", *defines], v_bnc, y_bnc)(
        batch * channels * groups, threads, shared_to_sort(v_bnc.dtype, size),
        v_bnc, *v_bnc.stride(), steps, lengths, ranks, y_bnc, *y_bnc.stride(), packed,
        samples, channels, groups, size,
    )  # fmt: skip


def _kernel(
    file: str, name: str, defines: list[str], v_bnc: Tensor, y_bnc: Tensor
) -> Callable[..., None]:
    strided = int(_strided(v_bnc, y_bnc))
    keyed = (f"KEY={nvrtc.KEYS[v_bnc.dtype]}", f"STRIDED={strided}", *defines)
    return nvrtc.kernel(file, name, keyed, v_bnc.device.index)


def permute(
    x_bnc: Tensor,
    packed: Tensor,
    steps: Tensor,
    lengths: Tensor | None,
    group_size: int | None,
    inverse: bool,
) -> Tensor:
    """Apply the kept sources, or undo them: cuda/permute.cu."""
    y_bnc = empty_like_layout(x_bnc)
    batch, samples, channels = x_bnc.shape
    if x_bnc.numel() == 0:
        return y_bnc
    size = samples if group_size is None else min(group_size, samples)
    strided = _strided(x_bnc, y_bnc)
    defines = (
        f"BYTES={x_bnc.element_size()}",
        f"PLACE={1 if packing_of(packed) is Packing.BYTES else 2}",
        f"INVERSE={int(inverse)}",
        f"STRIDED={int(strided)}",
    )
    tensors = (x_bnc, *x_bnc.stride(), packed, steps, lengths, y_bnc, *y_bnc.stride())
    device, element = x_bnc.device.index, x_bnc.element_size()
    if shared_to_permute(element, size) > nvrtc.shared_memory(device):
        runs = -(-samples // _RUN)
        nvrtc.kernel("permute.cu", "permute_directly", (*defines, "SHORT=0"), device)(
            batch * channels * runs, _RUN // _EACH, 0,
            *tensors, samples, channels, runs, _RUN, size,
        )  # fmt: skip
        return y_bnc
    run = min(_run(size), samples)
    runs = -(-samples // run)
    rows = max(1, min(_MOST_ROWS, channels, _RUN // samples)) if samples > 1 else 1
    short = rows > 1
    pitch = _odd_words(run, element) if short else run
    threads = min(1024, 32 * -(-rows * run // (32 * _EACH)))
    nvrtc.kernel("permute.cu", "permute", (*defines, f"SHORT={int(short)}"), device)(
        batch * -(-channels // rows) * runs, threads, shared_to_permute(element, rows * pitch),
        *tensors, samples, channels, runs, run, size, _inverse(size) if run > size else 0,
        rows, _inverse(rows if strided else samples) if short else 0, pitch,
    )  # fmt: skip
    return y_bnc


def _strided(x_bnc: Tensor, y_bnc: Tensor) -> bool:
    """Whether samples are not neighbours in memory, on either side."""
    return x_bnc.stride(1) != 1 or y_bnc.stride(1) != 1


def _inverse(divisor: int) -> int:
    """By which a kernel multiplies to divide a small number: 2^32 / divisor, rounded up."""
    return (1 << 32) // divisor + 1


def _odd_words(values: int, element_size: int) -> int:
    """So many values, or a few more, that rows of them begin in different banks."""
    in_a_word = max(1, 4 // element_size)
    return (-(-values // in_a_word) | 1) * in_a_word
