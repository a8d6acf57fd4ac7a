"""From shapes, strides, dtype, device and group size to the kernel that runs."""

import functools
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from . import nvrtc, sorts
from .layout import Packing, packing_of


@dataclass(frozen=True)
class Kernel:
    """A family of kernels, as `shiftsort doctor` lists it."""

    name: str
    serves: str
    #: None where it runs, else why it does not.
    unavailable: Callable[[], str | None]


def kernels() -> tuple[Kernel, ...]:
    """Every family there is, whether it runs here or not."""
    return (
        Kernel("pairs", "CUDA: shift and pairs", nvrtc.unavailable),
        Kernel("sorts", f"CUDA: groups of 3 to {sorts.LARGEST:,}", nvrtc.unavailable),
        Kernel("eager", "any device, every group size, in plain torch", lambda: None),
    )


@dataclass(frozen=True)
class Plan:
    """What runs, and why a device that has kernels got plain torch instead, if it did."""

    kernel: str
    reason: str | None = None


def packing_for(v_bnc: Tensor, group_size: int | None) -> Packing:
    """How the permutation of v is kept. Also asked for fake tensors, whose length may be a symbol:
    a group size that is given is not compared with it, as that would tie a traced program to one
    side of the comparison.
    """
    if group_size == 1:
        return Packing.NOTHING
    if group_size == 2:
        on_kernels = v_bnc.device.type == "cuda" and nvrtc.unavailable() is None
        return Packing.BITS if on_kernels else Packing.FLAGS
    largest = v_bnc.shape[1] if group_size is None else group_size
    if largest <= 256:
        return Packing.BYTES
    return Packing.SHORTS if largest <= 65_536 else Packing.INTS


def plan(v_bnc: Tensor, group_size: int | None) -> Plan:
    """What sorts v."""
    if v_bnc.device.type != "cuda":
        return Plan("eager")
    return _plan(v_bnc.dtype, _largest(v_bnc, group_size), group_size in (1, 2), v_bnc.device.index)


def plan_permute(x_bnc: Tensor, packed: Tensor, group_size: int | None) -> Plan:
    """What applies a packed permutation to x."""
    if x_bnc.device.type != "cuda" or packing_of(packed) in (Packing.FLAGS, Packing.INTS):
        return Plan("eager")
    missing = nvrtc.unavailable()
    if missing is not None:
        return Plan("eager", missing)
    return Plan("pairs" if group_size in (1, 2) else "sorts")


def _largest(x_bnc: Tensor, group_size: int | None) -> int:
    return x_bnc.shape[1] if group_size is None else min(group_size, x_bnc.shape[1])


@functools.lru_cache(maxsize=4096)
def _plan(dtype: torch.dtype, largest: int, pairs: bool, device: int) -> Plan:
    missing = nvrtc.unavailable()
    if missing is not None:
        return Plan("eager", missing)
    if pairs:
        return Plan("pairs")
    if dtype == torch.float64:
        return Plan("eager", "groups of three and more have no float64 kernel")
    if largest <= sorts.LARGEST:
        return _if_it_fits(largest, sorts.shared_to_sort(dtype, largest), device)
    if largest <= 65_536:
        return Plan("eager")  # torch.sort over the whole device: the tool for few, long rows
    return Plan("eager", f"a group of {largest:,} samples is above 65,536")


def _if_it_fits(largest: int, shared: int, device: int) -> Plan:
    """The sorts, where a block of the device has that much shared memory."""
    there = nvrtc.shared_memory(device)
    if shared <= there:
        return Plan("sorts")
    return Plan(
        "eager",
        f"a group of {largest:,} samples needs {shared >> 10} KiB of shared memory, "
        f"and a block of this GPU has {there >> 10}",
    )


@functools.cache
def say_once(reason: str) -> None:
    """A fall to plain torch is never silent, and never a flood."""
    warnings.warn(f"shiftsort runs in plain torch here: {reason}", stacklevel=2)
