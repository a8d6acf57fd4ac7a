"""The gradient is the inverse permutation, and costs its packed bits alone."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad, gradcheck, gradgradcheck
from torch.func import vjp

from seen_operators import SeenOperators
from shiftsort import csp, permutation

GROUPS = [1, 2, 3, 7, None]
ORDERS = ["reference", "ascending"]


def well_separated(*shape: int) -> Tensor:
    """Values so far apart that no finite difference changes their order."""
    return torch.randperm(torch.Size(shape).numel()).double().reshape(shape).requires_grad_()


@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((2, 5, 3), {}),
        ((2, 3, 5), {"dim": -1}),
        ((2, 5, 3), {"order": "ascending"}),
        ((2, 5, 3), {"lengths": [5, 3]}),
    ],
    ids=["plain", "samples last", "ascending", "lengths"],
)
@pytest.mark.parametrize("group_size", [1, 2, 3, None])
def test_gradcheck(
    group_size: int | None, shape: tuple[int, ...], options: dict[str, object]
) -> None:
    v = well_separated(*shape)

    def f(v: Tensor) -> Tensor:
        return csp(v, [0, 2, 4], group_size, **options)

    assert gradcheck(f, v, check_batched_grad=True, check_forward_ad=True)
    assert gradgradcheck(lambda v: f(v) ** 2, v)


@pytest.mark.parametrize("group_size", GROUPS)
def test_forward_mode(group_size: int | None) -> None:
    v, tangent = torch.randn(2, 2, 9, 3)
    with forward_ad.dual_level():
        y = csp(forward_ad.make_dual(v, tangent), [0, 2, 7], group_size)
        _, y_tangent = forward_ad.unpack_dual(y)
    assert torch.equal(y_tangent, tangent.gather(1, permutation(v, [0, 2, 7], group_size)))


@pytest.mark.parametrize("layout", ["token-major", "channel-major", "channel-outer", "expanded"])
@pytest.mark.parametrize("group_size", GROUPS)
def test_incoming_gradients_of_any_layout(group_size: int | None, layout: str) -> None:
    v = torch.randn(3, 8, 4, requires_grad=True)
    grad = {
        "token-major": lambda g: g,
        "channel-major": lambda g: g.mT.contiguous().mT,
        "channel-outer": lambda g: g.permute(2, 0, 1).contiguous().permute(1, 2, 0),
        "expanded": lambda g: g[:1, :1, :1].expand_as(g),
    }[layout](torch.randn(3, 8, 4))
    steps = [0, 1, 2, 3]
    (grad_v,) = torch.autograd.grad(csp(v, steps, group_size), v, grad)
    p = permutation(v, steps, group_size)
    assert torch.equal(grad_v, torch.empty_like(v).scatter_(1, p, grad))


@contextmanager
def saved() -> Iterator[list[Tensor]]:
    """The tensors that are kept for backward meanwhile."""
    tensors: list[Tensor] = []

    def pack(tensor: Tensor) -> Tensor:
        tensors.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        yield tensors


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("group_size", "most_bytes"),
    [
        (1, 0),
        (2, 4 * 100 * 16 // 2),
        (3, 4 * 100 * 16),
        (256, 4 * 100 * 16),
        (257, 4 * 100 * 16 * 2),
        (None, 4 * 100 * 16),
    ],
)
def test_only_the_packed_permutation_is_kept(
    group_size: int | None, most_bytes: int, order: str, dtype: torch.dtype
) -> None:
    samples, channels = 100, 16
    v = torch.randn(4, samples, channels, dtype=dtype, requires_grad=True)
    steps = torch.arange(channels)
    with saved() as tensors:
        y = csp(v, steps, group_size, order=order)
    assert y.grad_fn is not None
    own = [t for t in tensors if t.data_ptr() != steps.data_ptr()]
    assert sum(t.nbytes for t in own) <= most_bytes
    assert not any(t.is_floating_point() for t in own)


@pytest.mark.parametrize(("samples", "bytes_each"), [(256, 1), (257, 2), (300, 2)])
def test_a_complete_sort_keeps_as_many_bytes_as_its_length_needs(
    samples: int, bytes_each: int
) -> None:
    v = torch.randn(2, samples, 3, requires_grad=True)
    steps = torch.arange(3)
    with saved() as tensors:
        csp(v, steps, None)
    assert sum(t.nbytes for t in tensors if t.data_ptr() != steps.data_ptr()) == (
        v.numel() * bytes_each
    )


@pytest.mark.parametrize("samples", [65_536, 65_537])
def test_the_longest_groups(samples: int) -> None:
    v = torch.randn(samples, 2, requires_grad=True)
    y = csp(v, [0, 5], None)
    weight = torch.randn_like(v)
    (grad_v,) = torch.autograd.grad(y, v, weight)
    p = permutation(v, [0, 5], None)
    assert torch.equal(y, v.gather(0, p))
    assert torch.equal(grad_v, torch.empty_like(v).scatter_(0, p, weight))


def test_nothing_is_kept_without_a_gradient() -> None:
    v = torch.randn(2, 8, 4)
    with saved() as tensors:
        csp(v, range(4))
        with torch.no_grad():
            csp(v.requires_grad_(), range(4))
    assert tensors == []


@pytest.mark.parametrize("group_size", GROUPS)
def test_backward_moves_the_gradient_and_makes_nothing_else(group_size: int | None) -> None:
    """No zeros for the packed permutation, which has no gradient and is large."""
    v, grad = torch.randn(2, 2, 9, 3)
    y = csp(v.requires_grad_(), [0, 2, 7], group_size)
    _, pull = vjp(lambda v: csp(v, [0, 2, 7], group_size), v.detach())
    for backward in (lambda: torch.autograd.grad(y, v, grad), lambda: pull(grad)):
        with SeenOperators() as seen:
            backward()
        moving = [n for n in seen.names if n not in ("aten.view", "aten.detach")]
        assert moving == ["shiftsort.csp_permute"]


def test_a_gradient_that_does_not_come() -> None:
    class Blocked(torch.autograd.Function):
        @staticmethod
        def forward(ctx: object, x: Tensor) -> Tensor:
            return x.clone()

        @staticmethod
        def backward(ctx: object, grad: Tensor) -> None:
            return None

    v = torch.randn(2, 9, 3, requires_grad=True)
    Blocked.apply(csp(v, [0, 2, 7])).sum().backward()
    assert v.grad is None


def test_the_gradient_is_the_same_bit_for_bit_on_a_second_run() -> None:
    v = torch.randn(4, 101, 8, requires_grad=True)
    weight = torch.randn_like(v)
    for group_size in GROUPS:
        first, second = (
            torch.autograd.grad(csp(v, range(8), group_size), v, weight)[0] for _ in range(2)
        )
        assert torch.equal(first, second)


def test_v_may_be_overwritten_before_backward() -> None:
    v = torch.randn(2, 8, 4, requires_grad=True)
    values = v * 1
    y = csp(values, range(4))
    weight = torch.randn_like(v)
    expected = torch.autograd.grad(y, v, weight, retain_graph=True)[0]
    values.data.zero_()
    assert torch.equal(torch.autograd.grad(y, v, weight)[0], expected)


def test_ascending_and_reference_route_gradients_through_their_own_order() -> None:
    v = torch.tensor([[3.0, 1.0], [1.0, 2.0]], requires_grad=True)
    weight = torch.tensor([[10.0, 1.0], [20.0, 2.0]])
    (reference,) = torch.autograd.grad(csp(v, [0, 0]), v, weight)
    (ascending,) = torch.autograd.grad(csp(v, [0, 0], order="ascending"), v, weight)
    assert reference.tolist() == [[10, 2], [20, 1]]
    assert ascending.tolist() == [[20, 1], [10, 2]]
