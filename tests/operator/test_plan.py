"""Which kernel runs, and what is said where none does. Fake tensors of a GPU need no GPU."""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from shiftsort.operator import nvrtc, plan, sorts
from shiftsort.operator.layout import Packing, empty_packed

BF16, FP32, FP64 = torch.bfloat16, torch.float32, torch.float64
H200, A100, RTX = (kib * 1024 for kib in (227, 163, 99))


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """As if there were one, with as much shared memory as an H200."""
    monkeypatch.setattr(nvrtc, "unavailable", lambda: None)
    monkeypatch.setattr(nvrtc, "shared_memory", lambda device: H200)
    forget()
    with FakeTensorMode():
        yield monkeypatch
    forget()


def forget() -> None:
    plan._plan.cache_clear()


def values(samples: int, dtype: torch.dtype = BF16) -> Tensor:
    return torch.empty(2, samples, 4, dtype=dtype, device="cuda")


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(
    ("samples", "group_size", "dtype", "kernel", "reason"),
    [
        (9, 1, BF16, "pairs", None),
        (9, 2, FP64, "pairs", None),
        (0, None, BF16, "sorts", None),
        (9, 3, FP32, "sorts", None),
        (9, 3, FP64, "eager", "no float64 kernel"),
        (16_384, None, FP32, "sorts", None),
        (100_000, 16_384, BF16, "sorts", None),
        (16_385, None, BF16, "eager", None),
        (65_536, None, BF16, "eager", None),
        (65_537, None, BF16, "eager", "a group of 65,537 samples is above 65,536"),
    ],
)
def test_what_sorts(
    samples: int, group_size: int | None, dtype: torch.dtype, kernel: str, reason: str | None
) -> None:
    chosen = plan.plan(values(samples, dtype), group_size)
    assert chosen.kernel == kernel
    assert reason in chosen.reason if reason else chosen.reason is None


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(
    ("samples", "group_size", "dtype", "kernel"),
    [
        (9, 1, FP64, "pairs"),
        (9, 2, BF16, "pairs"),
        (0, None, BF16, "sorts"),
        (9, 3, FP64, "sorts"),  # eager sorts float64, and any kernel can move it
        (65_536, None, BF16, "sorts"),
        (65_536, None, FP64, "sorts"),
        (65_537, None, BF16, "eager"),
    ],
)
def test_what_permutes(
    samples: int, group_size: int | None, dtype: torch.dtype, kernel: str
) -> None:
    x = values(samples, dtype)
    packed = empty_packed(plan.packing_for(x, group_size), x)
    assert plan.plan_permute(x, packed, group_size) == plan.Plan(kernel)


@pytest.mark.parametrize("samples", [3, 512, 513, 1024, 1025, 16_384])
@pytest.mark.parametrize("dtype", [BF16, FP32])
def test_every_group_fits_into_the_shared_memory_of_an_a100(
    samples: int, dtype: torch.dtype
) -> None:
    assert sorts.shared_to_sort(dtype, samples) <= A100


def test_a_gpu_with_less_shared_memory_says_so(gpu: pytest.MonkeyPatch) -> None:
    gpu.setattr(nvrtc, "shared_memory", lambda device: RTX)
    assert plan.plan(values(16_384), None) == plan.Plan("sorts")
    assert plan.plan(values(8192, FP32), None) == plan.Plan("sorts")
    chosen = plan.plan(values(16_384, FP32), None)
    assert chosen.kernel == "eager"
    assert chosen.reason == (
        "a group of 16,384 samples needs 112 KiB of shared memory, and a block of this GPU has 99"
    )


def test_what_is_unavailable_is_said(gpu: pytest.MonkeyPatch) -> None:
    gpu.setattr(nvrtc, "unavailable", lambda: "no driver")
    x = values(9)
    assert plan.plan(x, 2) == plan.Plan("eager", "no driver")
    assert plan.packing_for(x, 2) is Packing.FLAGS
