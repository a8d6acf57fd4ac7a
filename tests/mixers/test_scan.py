"""The scan against a loop."""

import pytest
import torch

from shiftsort.mixers.scan import scan


def loop(a_p, b_bnp, reverse):
    order = range(b_bnp.shape[1])
    x_bp, found = torch.zeros_like(b_bnp[:, 0]), {}
    for n in reversed(order) if reverse else order:
        x_bp = a_p * x_bp + b_bnp[:, n]
        found[n] = x_bp
    return torch.stack([found[n] for n in order], dim=1)


def inputs(samples, dtype=torch.complex128):
    torch.manual_seed(samples)
    a_p = torch.polar(0.5 + 0.5 * torch.rand(5).double(), 6 * torch.rand(5).double())
    return [x.to(dtype).requires_grad_() for x in (a_p, torch.randn(2, samples, 5, dtype=dtype))]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("samples", [1, 2, 3, 7, 8, 33, 64, 100])
def test_a_scan_is_the_loop_in_value_and_gradient(samples, reverse):
    a_p, b_bnp = inputs(samples)
    direction = torch.randn_like(b_bnp)

    def outcome(x_bnp):
        return x_bnp, torch.autograd.grad((x_bnp * direction).sum().real, (a_p, b_bnp))

    torch.testing.assert_close(
        outcome(scan(a_p, b_bnp, reverse)), outcome(loop(a_p, b_bnp, reverse))
    )


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_gradients_are_those_of_finite_differences_twice(dtype):
    a_p, b_bnp = (
        inputs(6, torch.complex128)
        if dtype.is_complex
        else (
            torch.rand(3, dtype=dtype, requires_grad=True),
            torch.randn(2, 6, 3, dtype=dtype, requires_grad=True),
        )
    )
    for reverse in (False, True):
        torch.autograd.gradcheck(lambda a, b, r=reverse: scan(a, b, r), (a_p, b_bnp))
        torch.autograd.gradgradcheck(lambda a, b, r=reverse: scan(a, b, r), (a_p, b_bnp))


def test_a_long_scan_in_single_precision_stays_with_the_loop_in_double():
    a_p, b_bnp = inputs(4097)
    exact = loop(a_p, b_bnp, False)
    single = scan(a_p.to(torch.complex64), b_bnp.to(torch.complex64), False)
    torch.testing.assert_close(single.to(exact.dtype), exact, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("reverse", [False, True])
def test_torch_knows_all_it_must_of_the_operator(reverse):
    a_p, b_bnp = inputs(5)
    strided = b_bnp.detach().mT.contiguous().mT.requires_grad_()
    for values in (b_bnp, strided):
        torch.library.opcheck(scan, (a_p, values, reverse))
