"""From shapes, strides, dtype, device and group size to the kernel that runs."""

import functools
import warnings
from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from .layout import Packing


@dataclass(frozen=True)
class Plan:
    """What runs, and how the permutation is kept for the gradient."""

    kernel: str
    packing: Packing
    #: Why a device that has kernels got plain torch instead.
    reason: str | None = None


@dataclass(frozen=True)
class Kernel:
    """A family of kernels, as `shiftsort doctor` lists it."""

    name: str
    serves: str
    #: None where it runs, else why it does not.
    unavailable: Callable[[], str | None]


def kernels() -> tuple[Kernel, ...]:
    """Every family there is, whether it runs here or not."""
    return (Kernel("eager", "any device, every group size, in plain torch", lambda: None),)


def plan(v_bnc: Tensor, group_size: int | None) -> Plan:
    """The plan for a tensor, real or fake."""
    return Plan("eager", _eager_packing(v_bnc.shape[1], group_size))


def _eager_packing(samples: int, group_size: int | None) -> Packing:
    # A group size that is given is not compared with the length: with dynamic shapes that would
    # tie the program to one side of the comparison.
    if group_size == 1:
        return Packing.NOTHING
    if group_size == 2:
        return Packing.FLAGS
    largest = samples if group_size is None else group_size
    if largest <= 256:
        return Packing.BYTES
    return Packing.SHORTS if largest <= 65_536 else Packing.INTS


@functools.cache
def say_once(reason: str) -> None:
    """A fall to plain torch is never silent, and never a flood."""
    warnings.warn(f"shiftsort runs in plain torch here: {reason}", stacklevel=2)
