"""CSP as operators of torch.library: what torch.compile, export and autograd see.

    shiftsort::csp          (v, steps, lengths, ...) -> (y, packed permutation)
    shiftsort::csp_permute  (x, packed, ...)         -> x permuted, or permuted back

A permutation is linear and its transpose is its inverse, so the gradient of each is csp_permute.
Arguments arrive here checked: see csp.py. What torch.func needs beside this is in transforms.py.
"""

from typing import Any

import torch
from torch import Tensor

from . import eager
from .layout import Packing, empty_like_layout, empty_packed
from .plan import plan, say_once


@torch.library.custom_op("shiftsort::csp", mutates_args=())
def csp_op(
    v_bnc: Tensor,
    steps: Tensor,
    lengths: Tensor | None,
    group_size: int | None,
    ascending: bool,
    keep: bool,
) -> tuple[Tensor, Tensor]:
    """Permute v. `keep` also returns the packed permutation, which the gradient needs."""
    chosen = plan(v_bnc, group_size)
    if chosen.reason is not None:
        say_once(chosen.reason)
    packing = chosen.packing if keep else Packing.NOTHING
    return eager.forward(v_bnc, steps, lengths, group_size, ascending, packing)


@csp_op.register_fake
def _(
    v_bnc: Tensor,
    steps: Tensor,
    lengths: Tensor | None,
    group_size: int | None,
    ascending: bool,
    keep: bool,
) -> tuple[Tensor, Tensor]:
    packing = plan(v_bnc, group_size).packing if keep else Packing.NOTHING
    return empty_like_layout(v_bnc), empty_packed(packing, v_bnc)


@torch.library.custom_op("shiftsort::csp_permute", mutates_args=())
def csp_permute_op(
    x_bnc: Tensor,
    packed: Tensor,
    steps: Tensor,
    lengths: Tensor | None,
    group_size: int | None,
    inverse: bool,
) -> Tensor:
    """Apply the permutation that `csp_op` kept, or its inverse."""
    return eager.permute(x_bnc, packed, steps, lengths, group_size, inverse)


@csp_permute_op.register_fake
def _(
    x_bnc: Tensor,
    packed: Tensor,
    steps: Tensor,
    lengths: Tensor | None,
    group_size: int | None,
    inverse: bool,
) -> Tensor:
    return empty_like_layout(x_bnc)


def _csp_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    _, steps, lengths, group_size, _, keep = inputs
    packed = output[1]
    ctx.mark_non_differentiable(packed)
    ctx.save_for_backward(packed, steps, lengths)
    ctx.group_size = group_size
    ctx.kept = keep or group_size == 1


def _csp_backward(ctx: Any, grad_y: Tensor, _grad_packed: Any) -> tuple[Any, ...]:
    if not ctx.kept:
        raise RuntimeError("shiftsort::csp was called with keep=False, so it has no gradient")
    packed, steps, lengths = ctx.saved_tensors
    grad_v = csp_permute_op(grad_y, packed, steps, lengths, ctx.group_size, True)
    return grad_v, None, None, None, None, None


def _permute_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    _, packed, steps, lengths, ctx.group_size, ctx.inverse = inputs
    ctx.save_for_backward(packed, steps, lengths)


def _permute_backward(ctx: Any, grad_y: Tensor) -> tuple[Any, ...]:
    packed, steps, lengths = ctx.saved_tensors
    grad_x = csp_permute_op(grad_y, packed, steps, lengths, ctx.group_size, not ctx.inverse)
    return grad_x, None, None, None, None, None


csp_op.register_autograd(_csp_backward, setup_context=_csp_context)
csp_permute_op.register_autograd(_permute_backward, setup_context=_permute_context)
