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
    return _halve(a_p, b_bnp, reverse)


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


def _halve(a_p: Tensor, b_bnp: Tensor, reverse: bool) -> Tensor:
    """Pairs of samples are one step with a^2; what is between follows from its neighbour."""
    samples = b_bnp.shape[1]
    if samples == 1:
        return b_bnp.clone(memory_format=torch.contiguous_format)
    even, odd = b_bnp[:, ::2], b_bnp[:, 1::2]
    pairs = samples // 2
    x_bnp = torch.empty_like(b_bnp, memory_format=torch.contiguous_format)
    if reverse:
        summed = even.clone()
        summed[:, :pairs] += a_p * odd
        summed = _halve(a_p * a_p, summed, reverse)
        x_bnp[:, ::2] = summed
        x_bnp[:, 1::2] = odd
        x_bnp[:, 1 : samples - 1 : 2] += a_p * summed[:, 1:]
    else:
        summed = _halve(a_p * a_p, torch.addcmul(odd, a_p, even[:, :pairs]), reverse)
        x_bnp[:, 1::2] = summed
        x_bnp[:, ::2] = even
        x_bnp[:, 2::2] += a_p * summed[:, : (samples - 1) // 2]
    return x_bnp
