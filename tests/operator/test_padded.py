"""All sequences of a padded batch at once, against one at a time: the same bits, and no waiting."""

import math

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from shiftsort import csp
from shiftsort.operator import eager, padded
from shiftsort.operator.layout import Packing, empty_like_layout
from shiftsort.operator.plan import packing_for

BF16, FP16, FP32, FP64 = torch.bfloat16, torch.float16, torch.float32, torch.float64


def values(shape: tuple[int, int, int], dtype: torch.dtype, layout: str) -> Tensor:
    """Ties, zeros of both signs, infinities and NaN of both signs."""
    v = torch.randint(-3, 4, shape).to(dtype)
    for special in (math.nan, math.copysign(math.nan, -1), -0.0, math.inf, -math.inf):
        v[torch.rand(shape) < 0.08] = special
    if layout == "token-major":
        return v
    if layout == "channel-major":
        return v.transpose(1, 2).contiguous().transpose(1, 2)
    return v.permute(2, 0, 1).contiguous().permute(1, 2, 0)


def bits(x: Tensor) -> Tensor:
    """All NaN count as the same: torch's copies of bfloat16 on a CPU change theirs."""
    return x.masked_fill(x.isnan(), math.nan).contiguous().view(torch.uint8)


@pytest.mark.parametrize("layout", ["token-major", "channel-major", "channel-outer"])
@pytest.mark.parametrize("dtype", [BF16, FP16, FP32, FP64])
@pytest.mark.parametrize("ascending", [False, True])
@pytest.mark.parametrize("group_size", [1, 2, 3, 7, 300, None])
def test_the_same_bits_as_one_at_a_time(
    group_size: int | None, ascending: bool, dtype: torch.dtype, layout: str
) -> None:
    for samples in (1, 2, 21, 40) if group_size != 300 else (310,):
        v = values((5, samples, 4), dtype, layout)
        g = values((5, samples, 4), dtype, layout)
        steps = torch.tensor([0, 3, -(10**9), 10**9])
        lengths = torch.tensor([samples, 0, samples // 2, samples // 3 + 1, samples + 7])
        packing = packing_for(v, group_size)
        arguments = (v, steps, lengths, group_size, ascending)
        y, packed = padded.forward(*arguments, packing)
        y_each, packed_each = eager.forward(*arguments, packing)
        assert torch.equal(bits(y), bits(y_each))
        assert torch.equal(packed, packed_each)
        assert y.stride() == empty_like_layout(v).stride()
        assert torch.equal(bits(padded.forward(*arguments, Packing.NOTHING)[0]), bits(y))
        for inverse in (False, True):
            rest = (packed, steps, lengths, group_size, inverse)
            moved, moved_each = padded.permute(g, *rest), eager.permute(g, *rest)
            assert torch.equal(bits(moved), bits(moved_each)), f"inverse={inverse}"
            assert moved.stride() == empty_like_layout(g).stride()


@pytest.mark.parametrize("shape", [(0, 5, 2), (2, 0, 2), (2, 5, 0)])
@pytest.mark.parametrize("group_size", [1, 2, 3])
def test_nothing_at_all(shape: tuple[int, int, int], group_size: int) -> None:
    v, steps = torch.zeros(shape), torch.zeros(shape[2], dtype=torch.int64)
    lengths = torch.zeros(shape[0], dtype=torch.int64)
    y, packed = padded.forward(v, steps, lengths, group_size, False, packing_for(v, group_size))
    assert y.shape == padded.permute(v, packed, steps, lengths, group_size, True).shape == shape


@pytest.mark.parametrize("group_size", [1, 2, 8, None])
def test_no_value_is_looked_at_on_a_gpu(group_size: int | None) -> None:
    """Fake tensors have no values: who asks for one gets an error."""
    with FakeTensorMode():
        v = torch.empty(3, 20, 4, dtype=FP64, device="cuda")
        steps, lengths = (torch.empty(n, dtype=torch.int64, device="cuda") for n in (4, 3))
        packing = packing_for(v, group_size)
        y, packed = eager.forward(v, steps, lengths, group_size, False, packing)
        assert eager.permute(y, packed, steps, lengths, group_size, True).shape == v.shape


@pytest.mark.gpu
@pytest.mark.parametrize("group_size", [8, None])
def test_a_cuda_graph_captures_it(group_size: int | None) -> None:
    """float64 groups, which no kernel takes."""
    steps = torch.arange(6, device="cuda")
    v = torch.randn(3, 40, 6, device="cuda", dtype=FP64).requires_grad_()
    g = torch.randn_like(v)
    lengths = torch.tensor([40, 0, 17], device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.autograd.grad(csp(v, steps, group_size, lengths=lengths), v, g)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = csp(v, steps, group_size, lengths=lengths)
        (grad,) = torch.autograd.grad(y, v, g)
    with torch.no_grad():
        v.normal_()
        lengths.copy_(torch.tensor([5, 40, 33]))
    graph.replay()
    w = v.detach().cpu().requires_grad_()
    wanted = csp(w, steps.cpu(), group_size, lengths=lengths.cpu())
    assert torch.equal(y.cpu(), wanted)
    assert torch.equal(grad.cpu(), torch.autograd.grad(wanted, w, g.cpu())[0])
