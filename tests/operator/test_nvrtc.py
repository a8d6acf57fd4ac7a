"""The CUDA sources go through the real compiler, which needs no GPU, and are kept on disk."""

import contextlib
import re
from collections.abc import Callable
from importlib import resources
from pathlib import Path

import pytest
import torch

from shiftsort.operator import nvrtc, pairs, sorts
from shiftsort.operator.layout import Packing

BF16, FP32 = torch.bfloat16, torch.float32
Compiled = tuple[str, tuple[str, ...]]


def has_nvrtc() -> bool:
    try:
        nvrtc._library()
    except OSError:
        return False
    return True


needs_nvrtc = pytest.mark.skipif(not has_nvrtc(), reason="this build of torch brings no NVRTC")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Compiled]:
    """What would be compiled. Nothing runs."""
    seen: list[Compiled] = []

    def kernel(
        file: str, name: str, defines: tuple[str, ...], device: object
    ) -> Callable[..., None]:
        seen.append((file, defines))
        return lambda *args: None

    monkeypatch.setattr(nvrtc, "kernel", kernel)
    monkeypatch.setattr(nvrtc, "shared_memory", lambda device: 227 * 1024)
    return seen


def launch(samples: int, group_size: int | None, dtype: torch.dtype, *, token_major: bool) -> None:
    """Forward and back, of whatever family takes it."""
    v = torch.zeros(1, 8, samples, dtype=dtype).transpose(1, 2)
    v = v.contiguous() if token_major else v
    steps = torch.zeros(8, dtype=torch.int64)
    family = pairs if group_size in (1, 2) else sorts
    kept = {1: Packing.NOTHING, 2: Packing.BITS}.get(group_size or 0)
    if kept is None:
        kept = Packing.BYTES if (group_size or samples) <= 256 else Packing.SHORTS
    _, packed = family.forward(v, steps, None, group_size, False, kept)
    family.permute(v, packed, steps, None, group_size, True)


@needs_nvrtc
@pytest.mark.parametrize("dtype", [BF16, FP32])
@pytest.mark.parametrize("token_major", [False, True])
def test_every_source_compiles(
    asked: list[Compiled],
    token_major: bool,
    dtype: torch.dtype,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("SHIFTSORT_CACHE", str(tmp_path))
    for samples, group_size in ((64, 1), (64, 2), (61, 2), (64, 8), (1000, 200), (1100, None)):
        launch(samples, group_size, dtype, token_major=token_major)
    for file, defines in set(asked):
        assert nvrtc.compile_cubin(file, "sm_90", defines)[:4] == b"\x7fELF"


@pytest.mark.parametrize("group_size", [2, 20, 100, None])
def test_lengths_share_their_kernels(asked: list[Compiled], group_size: int | None) -> None:
    for samples in (1000, 1001, 1002, 1003):
        launch(samples, group_size, BF16, token_major=True)
    once = set(asked[: len(asked) // 4])
    assert set(asked) == once


@needs_nvrtc
def test_a_kernel_is_compiled_once_and_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SHIFTSORT_CACHE", str(tmp_path))
    first = nvrtc.compile_cubin("ranks.cu", "sm_90", ("KEY=0",))
    monkeypatch.setattr(nvrtc, "_compile", lambda *a: pytest.fail("compiled again"))
    assert nvrtc.compile_cubin("ranks.cu", "sm_90", ("KEY=0",)) == first


@needs_nvrtc
def test_another_architecture_is_another_kernel(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SHIFTSORT_CACHE", str(tmp_path))
    for arch in ("sm_80", "sm_90"):
        nvrtc.compile_cubin("ranks.cu", arch, ("KEY=0",))
    assert len(list((tmp_path / "kernels").iterdir())) == 2


@needs_nvrtc
def test_another_build_of_the_compiler_is_another_kernel(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SHIFTSORT_CACHE", str(tmp_path))
    nvrtc.compile_cubin("ranks.cu", "sm_90", ("KEY=0",))
    monkeypatch.setattr(nvrtc, "_compiler", lambda: "the same version, patched")
    nvrtc.compile_cubin("ranks.cu", "sm_90", ("KEY=0",))
    assert len(list((tmp_path / "kernels").iterdir())) == 2


@needs_nvrtc
@pytest.mark.parametrize(
    "damage", [lambda kept: b"", lambda kept: kept[:-9], lambda kept: kept[1:]]
)
def test_a_damaged_kernel_is_compiled_again(
    damage: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SHIFTSORT_CACHE", str(tmp_path))
    cubin = nvrtc.compile_cubin("ranks.cu", "sm_90", ("KEY=0",))
    (kept,) = (tmp_path / "kernels").iterdir()
    whole = kept.read_bytes()
    kept.write_bytes(damage(whole))
    assert nvrtc.compile_cubin("ranks.cu", "sm_90", ("KEY=0",)) == cubin
    assert kept.read_bytes() == whole


@needs_nvrtc
def test_a_folder_that_cannot_be_written_costs_no_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    taken = tmp_path / "file"
    taken.write_text("not a folder")
    monkeypatch.setenv("SHIFTSORT_CACHE", str(taken))
    assert nvrtc.compile_cubin("ranks.cu", "sm_90", ("KEY=0",))[:4] == b"\x7fELF"


@needs_nvrtc
def test_a_refusal_shows_the_compilers_words(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SHIFTSORT_CACHE", str(tmp_path))
    with pytest.raises(nvrtc.CompileError, match=r"ranks\.cu"):
        nvrtc.compile_cubin("ranks.cu", "sm_90", ("KEY=nonsense",))


def test_every_argument_is_eight_bytes_wide() -> None:
    """Launches pack them all as such; a kernel that takes an int would read half of one."""
    kernels = 0
    for file in (resources.files("shiftsort.operator") / "cuda").iterdir():
        for _, rest in re.findall(r'(extern "C" __global__)(.*?)\{', file.read_text(), re.DOTALL):
            kernels += 1
            for parameter in rest[rest.index("(\n") + 2 : rest.rindex(")")].split(","):
                assert "*" in parameter or parameter.split()[0] == "i64", (file.name, parameter)
    assert kernels == 9


class Driver:
    """Stands in for libcuda: notes what is called, and keeps one thread's context."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.context: int | None = None

    def __getattr__(self, name: str) -> Callable[..., int]:
        return lambda *args: self.calls.append(name) or 0

    def cuCtxGetCurrent(self, context: object) -> int:
        context._obj.value = self.context
        return 0

    def cuDevicePrimaryCtxRetain(self, context: object, device: object) -> int:
        context._obj.value = 7
        return 0

    def cuCtxSetCurrent(self, context: object) -> int:
        self.calls.append("cuCtxSetCurrent")
        self.context = context.value
        return 0


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    driver = Driver()
    monkeypatch.setattr(nvrtc, "_driver", lambda: driver)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    monkeypatch.setattr(torch.cuda, "device", lambda device: contextlib.nullcontext())
    return driver


def test_a_kernel_that_the_driver_refuses_is_compiled_again(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []

    def compile_cubin(*args: object, again: bool = False) -> bytes:
        asked.append(again)
        return b"good" if again else b"bad"

    monkeypatch.setattr(nvrtc, "compile_cubin", compile_cubin)
    monkeypatch.setattr(
        Driver, "cuModuleLoadData", lambda self, module, cubin: cubin != b"good", raising=False
    )
    nvrtc.CudaKernel("rows.cu", "rows", (), 0)
    assert asked == [False, True]


def test_a_thread_without_a_context_enters_one(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nvrtc, "compile_cubin", lambda *args: b"")
    stream = type("Stream", (), {"cuda_stream": 0})
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: stream)
    kernel = nvrtc.CudaKernel("rows.cu", "rows", (), 0)
    kernel(1, 32, 0, 5, None)
    driver.context = None  # another thread
    kernel(1, 32, 64 * 1024, 5, None)
    enter, launch = ["cuDeviceGet", "cuCtxSetCurrent"], ["cuLaunchKernel"]
    load = ["cuModuleLoadData", "cuModuleGetFunction"]
    assert driver.calls == enter + load + launch + enter + ["cuFuncSetAttribute"] + launch


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_no_gpu_says_why() -> None:
    assert nvrtc.unavailable() == "no CUDA device"
