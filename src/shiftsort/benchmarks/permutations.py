"""Candidates: CSP, and other ways to move the same values.

Shapes: B batch, N samples, C channels, K groups, G samples in a group.
"""

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

import shiftsort
from shiftsort.operator import eager
from shiftsort.operator.layout import Packing
from shiftsort.operator.plan import packing_for

from .candidate import Candidate, Function, Unsupported
from .case import LAYOUTS, Case


def candidates() -> list[Candidate]:
    """All of them, copies first."""
    return [
        Candidate("copy", _prepare_copy, _inputs_in("token-major"), "token-major", _same,
                  backward=False, grouped=False),
        Candidate("clone", lambda case: torch.clone, _inputs_in("token-major"), "token-major",
                  _same, backward=False, grouped=False),
        *(
            Candidate("csp", _prepare_csp(layout), _inputs_in(layout), layout,
                      _expect_csp(layout), packs=True)
            for layout in LAYOUTS
        ),
        Candidate("csp, ascending", _prepare_ascending, _inputs_in("channel-major"),
                  "channel-major", _expect_csp("channel-major", order="ascending"), packs=True),
        Candidate("csp with lengths", _prepare_csp("channel-major", padded=True),
                  _inputs_in("channel-major"), "channel-major", _expect_padded, packs=True),
        Candidate("csp, plain torch", _prepare_eager, _inputs_in("token-major"), "token-major",
                  _expect_csp("token-major"), packs=True),
        Candidate("torch.compile", _prepare_compiled, _inputs_in("token-major"), "token-major",
                  _expect_csp("token-major")),
        Candidate("gather + torch.sort", _prepare_gather_sort, _inputs_in("token-major"),
                  "token-major", _expect_csp("token-major", order="ascending")),
        Candidate("torch.sort alone", _prepare_sort, _inputs_in("channel-major"),
                  "channel-major", expect_sorted),
    ]  # fmt: skip


def _inputs_in(layout: str) -> Callable[[Case, int], tuple[Tensor, ...]]:
    return lambda case, seed: (case.values(seed, layout),)


def _same(case: Case, inputs: tuple[Tensor, ...]) -> Tensor:
    return inputs[0]


def _prepare_copy(case: Case) -> Function:
    y_bnc = torch.full(case.shape, torch.nan, dtype=case.dtype, device=case.device)
    return lambda v_bnc: y_bnc.copy_(v_bnc)


def _prepare_csp(
    layout: str, order: str | None = None, *, padded: bool = False
) -> Callable[[Case], Function]:
    dim = -2 if layout == "token-major" else -1

    def prepare(case: Case) -> Function:
        return functools.partial(
            shiftsort.csp,
            steps=case.shift_steps(),
            group_size=case.group_size,
            order=order or case.order,
            dim=dim,
            lengths=_lengths(case) if padded else None,
        )

    return prepare


def _prepare_ascending(case: Case) -> Function:
    if case.order == "ascending":
        raise Unsupported("csp itself is in ascending order")
    if case.group_size == 1:
        raise Unsupported("groups of one have no order")
    return _prepare_csp("channel-major", "ascending")(case)


def _lengths(case: Case) -> Tensor:
    """From the whole length down to half of it."""
    b = torch.arange(case.batch, device=case.device)
    return case.samples - b * (case.samples // 2) // case.batch


def _expect_padded(case: Case, inputs: tuple[Tensor, ...]) -> Tensor:
    y_bnc, _ = eager.forward(
        inputs[0].detach().transpose(1, 2),
        case.shift_steps(),
        _lengths(case),
        case.group_size,
        case.order == "ascending",
        Packing.NOTHING,
    )
    return y_bnc.transpose(1, 2)


def _expect_csp(
    layout: str, order: str | None = None
) -> Callable[[Case, tuple[Tensor, ...]], Tensor]:
    def expected(case: Case, inputs: tuple[Tensor, ...]) -> Tensor:
        v = inputs[0].detach()
        v_bnc = v if layout == "token-major" else v.transpose(1, 2)
        ascending = (order or case.order) == "ascending"
        y_bnc = _EagerCSP.apply(v_bnc, case.shift_steps(), case.group_size, ascending)
        return y_bnc if layout == "token-major" else y_bnc.transpose(1, 2)

    return expected


class _EagerCSP(torch.autograd.Function):
    """The library's path for any device, whatever kernels the present one has."""

    @staticmethod
    def forward(
        ctx: Any, v_bnc: Tensor, steps: Tensor, group_size: int | None, ascending: bool
    ) -> Tensor:
        # A tensor of no device is one that no kernel takes.
        packing = packing_for(v_bnc.to("meta"), group_size)
        y_bnc, packed = eager.forward(v_bnc, steps, None, group_size, ascending, packing)
        ctx.save_for_backward(packed, steps)
        ctx.group_size = group_size
        return y_bnc

    @staticmethod
    def backward(ctx: Any, grad_bnc: Tensor) -> tuple[Any, ...]:
        packed, steps = ctx.saved_tensors
        grad_v = eager.permute(grad_bnc, packed, steps, None, ctx.group_size, True)
        return grad_v, None, None, None


def _prepare_eager(case: Case) -> Function:
    if case.device == "cpu":
        raise Unsupported("csp itself is plain torch on a CPU")
    steps, ascending = case.shift_steps(), case.order == "ascending"
    return lambda v_bnc: _EagerCSP.apply(v_bnc, steps, case.group_size, ascending)


def _prepare_compiled(case: Case) -> Function:
    if case.group_size not in (1, 2):
        raise Unsupported("beyond pairs it compiles to the same gather and torch.sort")
    torch._dynamo.reset()  # a case is a program of its own: no limit on recompiling is reached
    steps, ascending = case.shift_steps(), case.order == "ascending"
    compiled = torch.compile(plain_csp, dynamic=False)
    return lambda v_bnc: compiled(v_bnc, steps, case.group_size, ascending)


def plain_csp(v_bnc: Tensor, steps: Tensor, group_size: int | None, ascending: bool) -> Tensor:
    """What one would write first for groups of 1 or 2: gather, compare, choose."""
    samples = v_bnc.shape[1]
    source_nc = (torch.arange(samples, device=v_bnc.device)[:, None] - steps) % samples
    u_bnc = v_bnc.gather(1, source_nc.expand_as(v_bnc))
    if group_size == 1:
        return u_bnc
    even = samples // 2 * 2
    first, second = u_bnc[:, 0:even:2], u_bnc[:, 1:even:2]
    low, high = torch.minimum(first, second), torch.maximum(first, second)
    if ascending:
        pairs = torch.stack((low, high), dim=2)
    else:
        falling = first[:, :, :1] > second[:, :, :1]
        pairs = torch.stack((torch.where(falling, high, low), torch.where(falling, low, high)), 2)
    return torch.cat((pairs.flatten(1, 2), u_bnc[:, even:]), dim=1)


def _prepare_gather_sort(case: Case) -> Function:
    """As the authors' release does it: an index as large as the values, then torch.sort."""
    steps, (batch, samples, channels) = case.shift_steps(), case.shape

    def shift_and_sort(v_bnc: Tensor) -> Tensor:
        n_bnc = torch.arange(samples, device=v_bnc.device)[None, :, None]
        n_bnc = n_bnc.repeat(batch, 1, channels)
        u_bnc = torch.gather(v_bnc, 1, (n_bnc - steps) % samples)
        return sort_groups(u_bnc.transpose(1, 2), case.group_size).transpose(1, 2)

    return shift_and_sort


def _prepare_sort(case: Case) -> Function:
    if case.group_size == 1:
        raise Unsupported("groups of one need no sort")
    return lambda v_bcn: sort_groups(v_bcn, case.group_size)


def sort_groups(v_bcn: Tensor, group_size: int | None) -> Tensor:
    """Ascending order in each group, by torch.sort."""
    samples = v_bcn.shape[-1]
    if group_size == 1:
        return v_bcn
    if group_size is None or group_size >= samples:
        return v_bcn.sort(dim=-1).values
    whole = samples // group_size * group_size
    groups = v_bcn[..., :whole].unflatten(-1, (-1, group_size)).sort(dim=-1).values.flatten(-2)
    if whole == samples:
        return groups
    return torch.cat((groups, v_bcn[..., whole:].sort(dim=-1).values), dim=-1)


def expect_sorted(case: Case, inputs: tuple[Tensor, ...]) -> Tensor:
    """Each group ascending, nothing shifted: what a sort alone returns."""
    ascending = _EagerCSP.apply(
        inputs[0].detach().transpose(1, 2),
        torch.zeros(case.channels, dtype=torch.int64, device=case.device),
        case.group_size,
        True,
    )
    return ascending.transpose(1, 2)
