"""CSP under torch.func: vmap, grad, jvp, and forward-mode gradients.

An operator of torch.library has a gradient that torch.func.grad cannot use, and no forward mode at
all (which passes for a tangent of zero). An autograd.Function has both, so under a transform the
same operators run inside one.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from .ops import csp_op, csp_permute_op


def transforms_active() -> bool:
    """Whether torch.func or forward-mode gradients are at work around this call."""
    return torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0


def csp_transformed(
    v_bnc: Tensor,
    steps: Tensor,
    lengths: Tensor | None,
    group_size: int | None,
    ascending: bool,
) -> tuple[Tensor, Tensor]:
    """`csp_op` with keep=True, for use under transforms."""
    function = _Csp if torch.compiler.is_compiling() else _CspForwardMode
    y_bnc, packed = function.apply(v_bnc, steps, lengths, group_size, ascending)
    return y_bnc, packed


def csp_permute_transformed(
    x_bnc: Tensor,
    packed: Tensor,
    steps: Tensor,
    lengths: Tensor | None,
    group_size: int | None,
    inverse: bool,
) -> Tensor:
    """`csp_permute_op`, for use under transforms."""
    function = _Permute if torch.compiler.is_compiling() else _PermuteForwardMode
    y_bnc: Tensor = function.apply(x_bnc, packed, steps, lengths, group_size, inverse)
    return y_bnc


# vmap: the mapped dimension joins the batch, so that one launch does all.

Rule = Callable[..., tuple[Any, Any]]


def _vmap_rule(call: Callable[..., Any], tensors: int, steps_at: int) -> Rule:
    """The rule for `call`, whose first arguments are `tensors` tensors with the steps among them.

    All of them but the steps have the batch as their first dimension.
    """

    def rule(info: Any, in_dims: tuple[Any, ...], *args: Any) -> tuple[Any, Any]:
        count = info.batch_size
        if in_dims[steps_at] is not None:
            return _one_by_one(call, count, in_dims, args)
        batch = args[0].shape[0] if in_dims[0] is None else args[0].movedim(in_dims[0], 0).shape[1]
        joined = [
            arg if at == steps_at or arg is None else _join(arg, dim, count)
            for at, (arg, dim) in enumerate(zip(args[:tensors], in_dims, strict=False))
        ]
        outs = call(*joined, *args[tensors:])
        if isinstance(outs, Tensor):
            return _part(outs, count, batch), 0
        return tuple(_part(out, count, batch) for out in outs), (0, 0)

    return rule


def _join(x: Tensor, dim: int | None, count: int) -> Tensor:
    """The mapped dimension and the batch as one."""
    mapped = x.expand(count, *x.shape) if dim is None else x.movedim(dim, 0)
    return mapped.flatten(0, 1)


def _part(x: Tensor, count: int, batch: int) -> Tensor:
    return x.reshape(count, batch, *x.shape[1:])


def _one_by_one(
    call: Callable[..., Any], count: int, in_dims: tuple[Any, ...], args: tuple[Any, ...]
) -> tuple[Any, Any]:
    """Steps that differ along the mapped dimension: one call each."""
    # Even of nothing the shapes must be known: one call on zeros, of which nothing is returned.
    outs = [
        call(*(a if d is None else _select(a, d, i) for a, d in zip(args, in_dims, strict=True)))
        for i in range(max(count, 1))
    ]
    if isinstance(outs[0], Tensor):
        return torch.stack(outs)[:count], 0
    return tuple(torch.stack(parts)[:count] for parts in zip(*outs, strict=True)), (0, 0)


def _select(x: Tensor, dim: int, index: int) -> Tensor:
    if x.shape[dim]:
        return x.select(dim, index)
    return x.new_zeros([size for at, size in enumerate(x.shape) if at != dim])


class _Csp(torch.autograd.Function):
    generate_vmap_rule = True  # by the rules of the operators within

    @staticmethod
    def forward(
        v_bnc: Tensor,
        steps: Tensor,
        lengths: Tensor | None,
        group_size: int | None,
        ascending: bool,
    ) -> tuple[Tensor, Tensor]:
        y_bnc, packed = csp_op(v_bnc, steps, lengths, group_size, ascending, True)
        return y_bnc, packed

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        _, steps, lengths, ctx.group_size, _ = inputs
        packed = output[1]
        ctx.mark_non_differentiable(packed)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(packed, steps, lengths)
        ctx.save_for_forward(packed, steps, lengths)

    @staticmethod
    def backward(ctx: Any, grad_y: Tensor | None, _grad_packed: Any) -> tuple[Any, ...]:
        if grad_y is None:
            return (None,) * 5
        packed, steps, lengths = ctx.saved_tensors
        grad_v = csp_permute_transformed(grad_y, packed, steps, lengths, ctx.group_size, True)
        return grad_v, None, None, None, None


class _Permute(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(
        x_bnc: Tensor,
        packed: Tensor,
        steps: Tensor,
        lengths: Tensor | None,
        group_size: int | None,
        inverse: bool,
    ) -> Tensor:
        y_bnc: Tensor = csp_permute_op(x_bnc, packed, steps, lengths, group_size, inverse)
        return y_bnc

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        _, packed, steps, lengths, ctx.group_size, ctx.inverse = inputs
        ctx.save_for_backward(packed, steps, lengths)
        ctx.save_for_forward(packed, steps, lengths)

    @staticmethod
    def backward(ctx: Any, grad_y: Tensor) -> tuple[Any, ...]:
        packed, steps, lengths = ctx.saved_tensors
        grad_x = csp_permute_transformed(
            grad_y, packed, steps, lengths, ctx.group_size, not ctx.inverse
        )
        return grad_x, None, None, None, None, None


# torch.compile traces no autograd.Function that has a jvp.


class _CspForwardMode(_Csp):
    @staticmethod
    def jvp(ctx: Any, tangent_v: Tensor, *_others: None) -> tuple[Tensor, None]:
        packed, steps, lengths = ctx.saved_tensors
        tangent_y = csp_permute_transformed(
            tangent_v, packed, steps, lengths, ctx.group_size, False
        )
        return tangent_y, None


class _PermuteForwardMode(_Permute):
    @staticmethod
    def jvp(ctx: Any, tangent_x: Tensor, *_others: None) -> Tensor:
        packed, steps, lengths = ctx.saved_tensors
        return csp_permute_transformed(
            tangent_x, packed, steps, lengths, ctx.group_size, ctx.inverse
        )


csp_op.register_vmap(_vmap_rule(csp_op, tensors=3, steps_at=1))
csp_permute_op.register_vmap(_vmap_rule(csp_permute_op, tensors=4, steps_at=2))
