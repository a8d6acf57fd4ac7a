"""Memory: the peak of a call, the bytes that it saves for backward, and pages that stay mapped.

A GPU's peak is `torch.cuda.max_memory_allocated` less what was allocated before the call. A CPU's
is the process's resident peak (Linux's VmHWM, reset before the call) less what was resident before:
it counts what any library allocates, and is None where the system does not tell.

On a CPU, fresh memory is given by the kernel one page at a time and zeroed, which costs several
times what a copy does and hides what is to be measured. `keep_freed_memory` tells glibc to keep
what is freed, as the pools of a long training run do, for every candidate alike.
"""

import ctypes
import gc
import platform
from collections.abc import Callable, Iterable
from pathlib import Path

import torch
from torch import Tensor

_M_MMAP_MAX, _M_TRIM_THRESHOLD = -4, -1  # malloc.h


def keep_freed_memory() -> bool:
    """Whether this process's malloc now reuses freed memory instead of giving it back."""
    if platform.libc_ver()[0] != "glibc":
        return False
    libc = ctypes.CDLL(None)
    return bool(libc.mallopt(_M_MMAP_MAX, 0) and libc.mallopt(_M_TRIM_THRESHOLD, -1))


def poison(byte_count: int, device: str) -> None:
    """Leave NaN in the memory that the next allocations of this size will get."""
    floats = max(byte_count // 4, 1)
    blocks = [torch.full((floats,), torch.nan, device=device) for _ in range(3)]
    del blocks


def peak_bytes(call: Callable[[], object], device: str) -> int | None:
    """How far memory rises during a call above what it was before."""
    gc.collect()
    if device != "cpu":
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        call()
        return torch.cuda.max_memory_allocated() - before
    try:
        _give_back_freed_memory()
        Path("/proc/self/clear_refs").write_text("5")
        before = _resident("VmRSS")
        call()
        return max(_resident("VmHWM") - before, 0)
    except OSError:  # not Linux, or a container that forbids it
        return None


def _give_back_freed_memory() -> None:
    if platform.libc_ver()[0] == "glibc":
        ctypes.CDLL(None).malloc_trim(0)


def _resident(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    kilobytes = next(line.split()[1] for line in lines if line.startswith(field))
    return 1024 * int(kilobytes)


def saved_bytes(forward: Callable[[], Tensor], parameters: Iterable[Tensor] = ()) -> int:
    """The storages that autograd keeps for backward, each once; parameters live anyway."""
    alive_anyway = {p.untyped_storage().data_ptr() for p in parameters}
    kept: dict[int, int] = {}

    def pack(saved: Tensor) -> Tensor:
        storage = saved.untyped_storage()
        if storage.data_ptr() not in alive_anyway:
            kept[storage.data_ptr()] = storage.nbytes()
        return saved

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda saved: saved):
        y = forward()  # alive until the end: an address must not be used twice
    del y
    return sum(kept.values())
