"""CSP as operators of torch.library: what torch.compile, export and autograd see.

    shiftsort::csp          (v, steps, lengths, ...) -> (y, packed permutation)
    shiftsort::csp_permute  (x, packed, ...)         -> x permuted, or permuted back

A permutation is linear and its transpose is its inverse, so the gradient of each is csp_permute.
Arguments arrive here checked: see csp.py. What torch.func needs beside this is in transforms.py.
"""

from typing import Any, Protocol

import torch
from torch import Tensor

from . import eager, pairs, sorts
from .layout import Packing, empty_like_layout, empty_packed, packing_of
from .plan import Plan, packing_for, plan, plan_permute, say_once


class _Family(Protocol):
    """What each family of kernels offers."""

    def forward(
        self,
        v_bnc: Tensor,
        steps: Tensor,
        lengths: Tensor | None,
        group_size: int | None,
        ascending: bool,
        packing: Packing,
    ) -> tuple[Tensor, Tensor]: ...

    def permute(
        self,
        x_bnc: Tensor,
        packed: Tensor,
        steps: Tensor,
        lengths: Tensor | None,
        group_size: int | None,
        inverse: bool,
    ) -> Tensor: ...


_FAMILIES: dict[str, _Family] = {"pairs": pairs, "sorts": sorts, "eager": eager}


def _family(chosen: Plan) -> _Family:
    if chosen.reason is not None:
        say_once(chosen.reason)
    return _FAMILIES[chosen.kernel]


def _regular(x_bnc: Tensor) -> Tensor:
    """Kernels want samples or channels to be neighbours in memory."""
    return x_bnc if x_bnc.stride(1) == 1 or x_bnc.stride(2) == 1 else x_bnc.contiguous()


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
    v_bnc = _regular(v_bnc)
    packing = packing_for(v_bnc, group_size) if keep else Packing.NOTHING
    family = _family(plan(v_bnc, group_size))
    return family.forward(v_bnc, steps, lengths, group_size, ascending, packing)


@csp_op.register_fake
def _(
    v_bnc: Tensor,
    steps: Tensor,
    lengths: Tensor | None,
    group_size: int | None,
    ascending: bool,
    keep: bool,
) -> tuple[Tensor, Tensor]:
    packing = packing_for(v_bnc, group_size) if keep else Packing.NOTHING
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
    if group_size != 1 and packing_of(packed) is Packing.NOTHING:
        raise RuntimeError("shiftsort: this permutation was not kept, so it has no gradient")
    x_bnc = _regular(x_bnc)
    family = _family(plan_permute(x_bnc, packed, group_size))
    return family.permute(x_bnc, packed, steps, lengths, group_size, inverse)


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
    _, steps, lengths, ctx.group_size, _, _ = inputs
    packed = output[1]
    ctx.mark_non_differentiable(packed)
    ctx.set_materialize_grads(False)  # zeros for `packed`, as large as it is, for nobody to read
    ctx.save_for_backward(packed, steps, lengths)


def _csp_backward(ctx: Any, grad_y: Tensor | None, _grad_packed: Any) -> tuple[Any, ...]:
    if grad_y is None:
        return (None,) * 6
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
