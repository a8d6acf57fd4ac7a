"""x_n = a x_{n-1} + b_n for all n, in a number of steps that grows as the logarithm of the length.

torch's own associative scan is not public yet, and would keep the multiplier, which is the same
everywhere here, and its powers for each sample. To the compiler this is one operator.

Shapes in names: b batch, n samples, p states.
"""

from typing import Any

import torch
from torch import Tensor


@torch.library.custom_op("shiftsort::scan", mutates_args=())
def scan(a_p: Tensor, b_bnp: Tensor, reverse: bool) -> Tensor:
    """Every x_n, with x_{-1} = 0; in reverse x_n = a x_{n+1} + b_n, from the other end."""
    return _sweep(a_p, b_bnp, reverse)


@scan.register_fake
def _(a_p: Tensor, b_bnp: Tensor, reverse: bool) -> Tensor:
    return torch.empty_like(b_bnp, memory_format=torch.contiguous_format)


def _context(ctx: Any, inputs: tuple[Tensor, Tensor, bool], output: Tensor) -> None:
    a_p, _, ctx.reverse = inputs
    ctx.save_for_backward(a_p, output)


def _backward(ctx: Any, grad_bnp: Tensor) -> tuple[Tensor, Tensor, None]:
    """A scan the other way, so that the states are all that was kept."""
    a_p, x_bnp = ctx.saved_tensors
    grad_bnp = scan(a_p.conj_physical(), grad_bnp, not ctx.reverse)
    before, after = slice(None, -1), slice(1, None)
    if ctx.reverse:
        before, after = after, before
    return (grad_bnp[:, after] * x_bnp[:, before].conj()).sum((0, 1)), grad_bnp, None


scan.register_autograd(_backward, setup_context=_context)


def _sweep(a_p: Tensor, b_bnp: Tensor, reverse: bool) -> Tensor:
    """Brent and Kung's: up, to sums over twice the samples each time; down, to those between."""
    x_bnp = b_bnp.clone(memory_format=torch.contiguous_format)
    samples, power_p, powers = b_bnp.shape[1], a_p, []
    while 2 << len(powers) <= samples:
        powers.append(power_p)
        power_p = power_p * power_p
    for k, power_p in enumerate(powers):
        _add(x_bnp, (2 << k) - 1, 1 << k, power_p, reverse)
    for k, power_p in reversed(list(enumerate(powers))):
        _add(x_bnp, (3 << k) - 1, 1 << k, power_p, reverse)
    return x_bnp


def _add(x_bnp: Tensor, first: int, back: int, power_p: Tensor, reverse: bool) -> None:
    """To sample `first` and every 2 * back after it: what the one `back` before it leaves there."""
    samples, step = x_bnp.shape[1], 2 * back
    if first >= samples:
        return
    start, stop = first, samples
    if reverse:
        start, stop, back = (samples - 1 - first) % step, samples - first, -back
    x_bnp[:, start:stop:step].addcmul_(power_p, x_bnp[:, start - back : stop - back : step])
