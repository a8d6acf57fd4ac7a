"""What takes part in a benchmark."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from .case import Case

Function = Callable[..., Tensor]


class Unsupported(Exception):
    """A candidate cannot run a case; the message is the reason that the table shows."""


@dataclass(frozen=True)
class Candidate:
    """A function of some tensors, and how to tell that its result is right."""

    name: str
    #: Called once for each case, outside of the timing: compiles, allocates, or raises Unsupported.
    prepare: Callable[[Case], Function]
    #: The tensors that the function is called with, from a seed. Gradients go to all of them.
    inputs: Callable[[Case, int], tuple[Tensor, ...]]
    layout: str = ""
    #: What the function must return, bit for bit; None where rounding makes that meaningless.
    expected: Callable[[Case, tuple[Tensor, ...]], Tensor] | None = None
    backward: bool = True
    #: Whether the group size makes a difference. If not, a shape is measured once.
    grouped: bool = True
    #: Whether what it saves for backward is written and read besides the values themselves.
    packs: bool = False


def is_right(result: Tensor, expected: Tensor | None) -> bool:
    """Outputs are poisoned with NaN before, so a NaN is a place that nobody wrote."""
    if expected is None:
        return not bool(result.isnan().any())
    return result.shape == expected.shape and torch.equal(result, expected)
