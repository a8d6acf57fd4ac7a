"""Every CUDA kernel against the spec, value for value and bit for bit.

On the host (compiled by the machine's C++ compiler, a fiber for each thread) at small sizes, and on
the GPU itself, with larger ones, where there is one.
"""

import math
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import host_gpu
import pytest
import torch
from torch import Tensor

from shiftsort import CSP, csp
from shiftsort.operator import columns, eager, layout, nvrtc, pairs, plan, sorts
from shiftsort.operator.layout import Packing
from shiftsort.operator.spec import csp_spec

FAMILIES = {"rows": pairs, "columns": pairs, "sorts": sorts}
needs_compiler = pytest.mark.skipif(host_gpu.COMPILER is None, reason="no C++ compiler")


@dataclass(frozen=True)
class Case:
    """One compiled kernel, and the shapes it is tried on."""

    family: str
    group_size: int | None
    dtype: torch.dtype
    order: str
    layout: str  # as the dimensions lie in memory
    shapes: tuple[tuple[int, int, int], ...]

    def __str__(self) -> str:
        dtype = str(self.dtype).removeprefix("torch.")
        return f"{self.family}-{self.group_size}-{dtype}-{self.order}-{self.layout}"


BF16, FP16, FP32, FP64 = torch.bfloat16, torch.float16, torch.float32, torch.float64
UGLY = ((2, 1, 3), (1, 2, 5), (2, 7, 2), (3, 16, 4), (1, 33, 9), (2, 100, 5), (1, 257, 6))
WIDE = ((1, 1104, 5), (2, 1101, 3))  # more than one tile or run of a row
SHORT = ((2, 64, 19), (1, 196, 9), (2, 20, 35))  # rows that share a warp, a block
LONG = ((1, 1100, 3), (2, 1537, 2))

HOST_CASES = [
    Case("rows", 2, BF16, "reference", "bcn", (*UGLY, (2, 16, 9), (1, 136, 6), *WIDE)),
    Case("rows", 2, FP64, "ascending", "cbn", (*UGLY, (2, 48, 5))),
    Case("rows", 1, FP16, "reference", "bcn", (*UGLY, (1, 80, 3))),
    Case("columns", 2, BF16, "reference", "bnc", (*UGLY, (1, 50, 32), (1, 40, 70), *WIDE)),
    Case("columns", 2, FP64, "ascending", "bnc", (*UGLY, (2, 64, 16))),
    Case("columns", 1, FP32, "reference", "bnc", (*UGLY, (1, 50, 40))),
    Case("sorts", 3, BF16, "reference", "bcn", (*UGLY, *WIDE)),
    Case("sorts", 16, FP32, "reference", "cbn", (*UGLY, (1, 512, 2))),
    Case("sorts", 33, FP16, "ascending", "bcn", (*UGLY, *WIDE)),
    Case("sorts", 256, BF16, "reference", "bnc", (*UGLY, (1, 1024, 2))),
    Case("sorts", 8, BF16, "reference", "bnc", SHORT),
    Case("sorts", 7, FP32, "ascending", "bcn", SHORT),
    Case("sorts", None, FP32, "reference", "bnc", SHORT),
    Case("sorts", None, FP16, "ascending", "cbn", SHORT),
    Case("sorts", None, BF16, "reference", "bcn", LONG),
    Case("sorts", 1200, FP32, "ascending", "cbn", (*LONG, (1, 2500, 2))),
]
GPU_CASES = [
    Case(
        "sorts" if group not in (1, 2) else "columns" if order_in_memory == "bnc" else "rows",
        group,
        dtype,
        order,
        order_in_memory,
        ((3, 1, 5), (2, 63, 8), (2, 196, 17), (1, 1001, 64), (2, 2000, 70), (1, 4096, 33)),
    )
    for group in (1, 2, 3, 8, 20, 32, 33, 64, 100, 256, 300, 1024, 1500, None)
    for dtype in (BF16, FP16, FP32, FP64)
    if dtype != FP64 or group in (1, 2)
    for order in ("reference", "ascending")
    for order_in_memory in ("bnc", "bcn", "cbn")
]


def values(shape: tuple[int, int, int], case: Case, device: str) -> Tensor:
    """Normal values, many ties, zeros of both signs, NaN and infinities."""
    v = torch.randn(shape)
    v = torch.where(torch.rand(shape) < 0.3, torch.randint(-2, 3, shape).float(), v)
    luck = torch.rand(shape)
    for low, special in ((0.0, math.nan), (0.03, -0.0), (0.06, math.inf), (0.08, -math.inf)):
        v[(luck >= low) & (luck < low + 0.02)] = special
    if torch.rand(()) < 0.5:  # and the plain way, which has none of these
        v = torch.randn(shape)
    return lay(v.to(case.dtype).to(device), case.layout)


def lay(v_bnc: Tensor, order: str) -> Tensor:
    """The same tensor with its dimensions in another order in memory."""
    if order == "bcn":
        return v_bnc.transpose(1, 2).contiguous().transpose(1, 2)
    if order == "cbn":
        return v_bnc.permute(2, 0, 1).contiguous().permute(1, 2, 0)
    return v_bnc.contiguous()


def bits(x: Tensor) -> Tensor:
    sizes = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    return x.contiguous().view(sizes[x.element_size()])


def packings(case: Case, samples: int) -> tuple[Packing, Packing]:
    """How the kernel keeps the permutation, and how plain torch does."""
    if case.group_size == 1:
        return Packing.NOTHING, Packing.NOTHING
    if case.group_size == 2:
        return Packing.BITS, Packing.FLAGS
    packing = plan.packing_for(torch.empty(1, samples, 1), case.group_size)
    return packing, packing


@pytest.fixture
def poisoned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Outputs start full of garbage: what a kernel leaves out shows."""

    def filled(x: Tensor) -> Tensor:
        return x.fill_(math.nan if x.is_floating_point() else x.dtype != torch.bool and 0xA5)

    for family in (pairs, sorts):
        for name in ("empty_like_layout", "empty_packed"):
            made = getattr(layout, name)
            monkeypatch.setattr(family, name, lambda *a, made=made, **k: filled(made(*a, **k)))


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Kernels run on the host, with the shared memory of an H200."""
    monkeypatch.setattr(nvrtc, "kernel", host_gpu.kernel)
    monkeypatch.setattr(nvrtc, "shared_memory", lambda device: 227 * 1024)
    return monkeypatch


def check(case: Case, shape: tuple[int, int, int], device: str, *, padded: bool) -> None:
    batch, samples, channels = shape
    family = FAMILIES[case.family]
    v = values(shape, case, device)
    if case.family == "rows" and v.stride(1) != 1:
        return  # one channel: token-major by its strides
    steps = torch.randint(-3 * samples, 3 * samples + 1, (channels,))
    steps[0] = 0
    lengths = torch.randint(0, samples + 1, (batch,)) if padded else None
    on_device = [v, steps.to(device), None if lengths is None else lengths.to(device)]
    ascending = case.order == "ascending"
    kept, kept_plain = packings(case, samples)

    y, packed = family.forward(*on_device, case.group_size, ascending, kept)
    w = v.cpu().clone().requires_grad_()
    if samples <= 300:
        wanted = csp_spec(w, steps, case.group_size, order=case.order, lengths=lengths)
    else:  # the spec is quadratic; eager is held against it elsewhere
        wanted = eager.forward(
            w.detach(), steps, lengths, case.group_size, ascending, Packing.NOTHING
        )[0]
    assert torch.equal(bits(y.cpu()), bits(wanted.detach()))

    without, _ = family.forward(*on_device, case.group_size, ascending, Packing.NOTHING)
    assert torch.equal(bits(without), bits(y)), "keeping the permutation changed the result"

    _, packed_plain = eager.forward(v.cpu(), steps, lengths, case.group_size, ascending, kept_plain)
    if kept is kept_plain and kept is not Packing.NOTHING:
        assert torch.equal(packed.cpu(), packed_plain)
    g = values(shape, case, device)
    rest = (on_device[1], on_device[2], case.group_size)
    plain_rest = (steps, lengths, case.group_size)
    for inverse in (True, False):
        moved = family.permute(g, packed, *rest, inverse)
        expected = eager.permute(g.cpu(), packed_plain, *plain_rest, inverse)
        assert torch.equal(bits(moved.cpu()), bits(expected)), f"inverse={inverse}"
    if samples <= 300:
        (grad,) = torch.autograd.grad(wanted, w, g.cpu())
        moved = family.permute(g, packed, *rest, True).cpu()
        # autograd adds to zeros, where -0.0 becomes 0.0: equal in value, not in bits
        torch.testing.assert_close(moved, grad, rtol=0, atol=0, equal_nan=True)


@needs_compiler
@pytest.mark.usefixtures("poisoned", "host")
@pytest.mark.parametrize("case", HOST_CASES, ids=str)
def test_on_the_host(case: Case) -> None:
    for shape in case.shapes:
        for padded in (False, True):
            check(case, shape, "cpu", padded=padded)


@needs_compiler
def test_a_strip_that_does_not_fit_is_halved(host: pytest.MonkeyPatch) -> None:
    """Shifts that differ by more than shared memory holds, down to one channel at a time."""
    host.setattr(columns, "_ROOM", 1024)
    case = Case("columns", 2, BF16, "reference", "bnc", ())
    for shape in ((1, 200, 16), (1, 300, 33)):
        check(case, shape, "cpu", padded=False)


@needs_compiler
def test_tiles_that_end_anywhere_in_a_sequence(host: pytest.MonkeyPatch) -> None:
    """Many of them, so that shifts wrap and lengths end in, before and behind a tile."""
    host.setattr(columns, "_TILE", 32)
    case = Case("columns", 2, BF16, "reference", "bnc", ())
    for shape in ((3, 31, 7), (3, 65, 40), (4, 150, 9)):
        for padded in (False, True):
            check(case, shape, "cpu", padded=padded)


@needs_compiler
@pytest.mark.usefixtures("host")
def test_a_permutation_that_is_kept_in_more_than_it_needs() -> None:
    """As a traced program does that has groups of 300 and meets a shorter sequence."""
    v, steps = torch.randn(2, 40, 3), torch.tensor([0, 3, 7])
    y, packed = sorts.forward(v, steps, None, 300, False, Packing.SHORTS)
    y_narrow, narrow = sorts.forward(v, steps, None, 300, False, Packing.BYTES)
    assert (packed.dtype, narrow.dtype) == (torch.uint16, torch.uint8)
    assert torch.equal(packed.long(), narrow.long())
    assert torch.equal(sorts.permute(y, packed, steps, None, 300, True), v)
    assert torch.equal(sorts.permute(y_narrow, narrow, steps, None, 300, True), v)


@needs_compiler
@pytest.mark.usefixtures("poisoned")
@pytest.mark.parametrize("order_in_memory", ["bnc", "bcn"])
def test_a_group_that_no_block_can_hold_is_permuted_directly(
    host: pytest.MonkeyPatch, order_in_memory: str
) -> None:
    host.setattr(nvrtc, "shared_memory", lambda device: 1024)
    case = Case("sorts", 600, FP32, "reference", order_in_memory, ())
    for shape in ((1, 601, 2), (2, 2100, 2)):
        check(case, shape, "cpu", padded=shape[0] == 2)


@pytest.mark.gpu
@pytest.mark.usefixtures("poisoned")
@pytest.mark.parametrize("case", GPU_CASES, ids=str)
def test_on_the_gpu(case: Case) -> None:
    for shape in case.shapes:
        for padded in (False, True):
            check(case, shape, "cuda", padded=padded)


@pytest.mark.gpu
@pytest.mark.parametrize("samples", [5000, 8192, 16384])
@pytest.mark.parametrize("dtype", [BF16, FP32])
def test_long_groups_on_the_gpu(samples: int, dtype: torch.dtype) -> None:
    case = Case("sorts", None, dtype, "reference", "bcn", ())
    check(case, (2, samples, 5), "cuda", padded=True)


@pytest.mark.gpu
@pytest.mark.parametrize(("samples", "dtype"), [(20_000, BF16), (65_536, FP32)])
def test_groups_that_torch_sorts_on_the_gpu(samples: int, dtype: torch.dtype) -> None:
    """NaN of both signs among them; back by a kernel, through shared memory or without."""
    v = torch.randn(2, samples, 3)
    v[torch.rand(v.shape) < 0.01] = math.nan
    v[torch.rand(v.shape) < 0.01] = math.copysign(math.nan, -1)
    steps, g = torch.tensor([0, 70, -1]), torch.randn_like(v).to(dtype)
    results = []
    for device in ("cpu", "cuda"):
        x = v.to(device, dtype).requires_grad_()
        y = csp(x, steps.to(device), None)
        results.append([y.detach(), *torch.autograd.grad(y, x, g.to(device))])
    for mine, theirs in zip(*results, strict=True):
        torch.testing.assert_close(mine, theirs.cpu(), rtol=0, atol=0, equal_nan=True)


@pytest.mark.gpu
@pytest.mark.parametrize("order_in_memory", ["bnc", "bcn"])
@pytest.mark.parametrize("group_size", [2, 8, None])
def test_more_than_two_to_the_31_elements(group_size: int | None, order_in_memory: str) -> None:
    """Offsets past 32 bits: the last sequences equal the same ones alone."""
    v = torch.empty(1100, 4096, 512, device="cuda", dtype=BF16)
    assert v.numel() > 2**31
    torch.manual_seed(0)
    v.normal_()
    if order_in_memory == "bcn":
        v = v.view(1100, 512, 4096).transpose(1, 2)
    steps = torch.arange(512, device="cuda") * 8
    y = csp(v, steps, group_size)
    last = csp(v[-2:].clone(), steps, group_size)
    assert torch.equal(y[-2:], last)


@pytest.mark.gpu
@pytest.mark.parametrize("group_size", [1, 2, 8, 300])
def test_a_cuda_graph_replays_the_kernels(group_size: int) -> None:
    """Captured once with both passes, replayed on other values."""
    steps = torch.arange(16, device="cuda") * 3
    v = torch.randn(2, 600, 16, device="cuda").requires_grad_()
    g = torch.randn(2, 600, 16, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):  # compiles and loads what the capture may not
        torch.autograd.grad(csp(v, steps, group_size), v, g)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = csp(v, steps, group_size)
        (grad,) = torch.autograd.grad(y, v, g)
    with torch.no_grad():
        v.normal_()
    graph.replay()
    wanted = csp(v, steps, group_size)
    assert torch.equal(y, wanted)
    assert torch.equal(grad, torch.autograd.grad(wanted, v, g)[0])


@pytest.mark.gpu
def test_kernels_wait_for_their_stream() -> None:
    """Values that a stream of one's own is still making."""
    steps = torch.arange(64, device="cuda")
    csp(torch.zeros(1, 1024, 64, device="cuda"), steps)  # compiled before, so nothing waits by luck
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        v = torch.randn(64, 1024, 64, device="cuda")
        torch.cuda._sleep(50_000_000)
        v += 1
        y = csp(v, steps)
    stream.synchronize()
    assert torch.equal(y, csp(v, steps))


@pytest.mark.gpu
def test_a_thread_that_never_used_cuda() -> None:
    """All that it allocates comes from torch's cache, so that the launch is its first call."""
    v = torch.randn(1, 100, 4, device="cuda")
    steps = torch.arange(4, device="cuda")
    csp(v, steps)
    with ThreadPoolExecutor(1) as thread:
        y = thread.submit(csp, v, steps).result()
    assert torch.equal(y, csp(v, steps))


@pytest.mark.gpu
@pytest.mark.parametrize("group_size", [1, 2, 8, 300])
def test_the_second_of_two_devices(group_size: int) -> None:
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two CUDA devices")
    v = torch.randn(2, 600, 16)
    steps = torch.arange(16)
    with torch.cuda.device(0):
        y = csp(v.to("cuda:1"), steps.to("cuda:1"), group_size)
    assert torch.equal(y.cpu(), csp(v, steps, group_size))


@pytest.mark.gpu
def test_a_fall_to_plain_torch_is_said_once() -> None:
    plan.say_once.cache_clear()
    v = torch.randn(1, 50, 4, device="cuda", dtype=FP64)
    steps = torch.arange(4, device="cuda")
    with pytest.warns(UserWarning, match="plain torch here: .*float64"):
        csp(v, steps, 8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        csp(v, steps, 8)


@pytest.mark.gpu
@pytest.mark.parametrize("group_size", [2, None])
def test_the_module_projects_channel_outer(group_size: int | None) -> None:
    """Where all tokens together are a multiple of 8: no copy to change layout, the same values."""
    model = CSP(64, group_size=group_size, bias=True, device="cuda", dtype=FP64)
    x = torch.randn(2, 12, 64, device="cuda", dtype=FP64)
    y = model(x)
    assert y.stride() == (12, 1, 24)
    v = torch.nn.functional.linear(x, model.weight, model.bias)
    assert torch.allclose(y, csp(v, model.steps, group_size), atol=1e-12)
