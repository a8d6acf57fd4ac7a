"""CSP as operators of torch.library: what torch.compile, export, autograd and vmap see.

    shiftsort::csp          (v, steps, lengths, ...) -> (y, packed permutation)
    shiftsort::csp_permute  (x, packed, ...)         -> x permuted, or permuted back

A permutation is linear and its transpose is its inverse, so the gradient of each is csp_permute.
Arguments arrive here checked: see csp.py.
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


# vmap: the mapped dimension joins the batch, so that one launch does all.


def _join(x: Tensor, dim: int | None, count: int) -> Tensor:
    """The mapped dimension and the batch as one."""
    mapped = x.expand(count, *x.shape) if dim is None else x.movedim(dim, 0)
    return mapped.flatten(0, 1)


def _vmap_over_steps(op: Any, count: int, in_dims: tuple[Any, ...], args: tuple[Any, ...]) -> Any:
    """Steps that differ along the mapped dimension: one call each."""
    outs = [
        op(*(a if d is None else a.select(d, i) for a, d in zip(args, in_dims, strict=True)))
        for i in range(count)
    ]
    if isinstance(outs[0], Tensor):
        return torch.stack(outs), 0
    return tuple(torch.stack(parts) for parts in zip(*outs, strict=True)), (0, 0)


@csp_op.register_vmap
def _(info: Any, in_dims: tuple[Any, ...], *args: Any) -> Any:
    count = info.batch_size
    if in_dims[1] is not None:
        return _vmap_over_steps(csp_op, count, in_dims, args)
    v, steps, lengths, *rest = args
    if lengths is not None:
        lengths = _join(lengths, in_dims[2], count)
    y, packed = csp_op(_join(v, in_dims[0], count), steps, lengths, *rest)
    shape = (count, y.shape[0] // count)
    return (y.unflatten(0, shape), packed.unflatten(0, shape)), (0, 0)


@csp_permute_op.register_vmap
def _(info: Any, in_dims: tuple[Any, ...], *args: Any) -> Any:
    count = info.batch_size
    if in_dims[2] is not None:
        return _vmap_over_steps(csp_permute_op, count, in_dims, args)
    x, packed, steps, lengths, *rest = args
    if lengths is not None:
        lengths = _join(lengths, in_dims[3], count)
    x, packed = _join(x, in_dims[0], count), _join(packed, in_dims[1], count)
    y = csp_permute_op(x, packed, steps, lengths, *rest)
    return y.unflatten(0, (count, y.shape[0] // count)), 0
