"""Candidate: CUB's block radix sort, 16-bit keys with a 16-bit payload, where nvcc is found.

Shapes: B batch, N samples, C channels.
"""

import ctypes
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from .candidate import Candidate, Unsupported
from .case import Case
from .permutations import expect_sorted

SOURCE = Path(__file__).with_name("cub_sort.cu")
_KEYS = {torch.bfloat16: "__nv_bfloat16", torch.float16: "__half"}
_TRIES = 5


def candidates() -> list[Candidate]:
    """The one."""
    return [
        Candidate(
            "CUB BlockRadixSort",
            _prepare,
            lambda case, seed: (case.values(seed, "channel-major"),),
            "channel-major",
            expect_sorted,
            backward=False,
        )
    ]


def find_nvcc() -> str | None:
    """The compiler, from the path or from where CUDA is usually installed."""
    homes = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    places = [str(Path(home) / "bin") for home in homes if home]
    return shutil.which("nvcc") or shutil.which("nvcc", path=os.pathsep.join(places))


def build(nvcc: str, arch: str, dtype: torch.dtype) -> Path:
    """The shared library for an architecture, compiled once for each version of the source."""
    digest = hashlib.sha256(f"{arch} {dtype} {SOURCE.read_text()}".encode()).hexdigest()[:16]
    library = Path(tempfile.gettempdir()) / f"shiftsort-cub-{os.getuid()}" / f"{digest}.so"
    if library.exists():
        return library
    library.parent.mkdir(mode=0o700, exist_ok=True)
    unfinished = library.with_suffix(f".{os.getpid()}")
    command = [nvcc, "-O3", "-std=c++17", f"-arch={arch}", f"-DKEY={_KEYS[dtype]}"]
    command += ["-shared", "-Xcompiler", "-fPIC", "-o", str(unfinished), str(SOURCE)]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    if made.returncode:
        errors = [li for li in made.stderr.splitlines() if "error" in li] or ["nvcc failed"]
        raise Unsupported(f"nvcc could not compile it: {errors[0][:160]}")
    unfinished.rename(library)
    return library


@dataclass(frozen=True)
class Variant:
    """One instance of the template: threads x items samples to a row."""

    index: int
    threads: int
    items: int
    bits: int

    def __str__(self) -> str:
        return f"{self.threads} threads x {self.items} keys, {self.bits} bits a pass"


def variants(library: ctypes.CDLL) -> list[Variant]:
    """All that were compiled."""
    found: list[Variant] = []
    numbers = [ctypes.c_int() for _ in range(3)]
    while library.describe_variant(len(found), *(ctypes.byref(n) for n in numbers)):
        found.append(Variant(len(found), *(n.value for n in numbers)))
    return found


class BlockSort:
    """Sorts the rows of (B, C, N) values into memory of its own."""

    def __init__(self, case: Case, library: ctypes.CDLL, variant: Variant) -> None:
        shape = (case.batch, case.channels, case.samples)
        self.sorted = torch.full(shape, torch.nan, dtype=case.dtype, device=case.device)
        self.source = torch.empty(shape, dtype=torch.uint16, device=case.device)
        self.rows = case.batch * case.channels
        self.library = library
        self.variant = variant

    @property
    def detail(self) -> str:
        """Which instance it is."""
        return str(self.variant)

    def __call__(self, v_bcn: Tensor) -> Tensor:
        places = [ctypes.c_void_p(t.data_ptr()) for t in (v_bcn, self.sorted, self.source)]
        stream = ctypes.c_void_p(torch.cuda.current_stream(v_bcn.device).cuda_stream)
        error = self.library.sort_with_variant(self.variant.index, *places, self.rows, stream)
        if error:
            raise RuntimeError(f"CUB's kernel was not launched: CUDA error {error}")
        return self.sorted


def _prepare(case: Case) -> BlockSort:
    if case.device == "cpu":
        raise Unsupported("it needs a GPU")
    if case.dtype not in _KEYS:
        raise Unsupported("it is built for keys of 16 bits")
    if not case.whole:
        raise Unsupported("it is built for the complete sort")
    nvcc = find_nvcc()
    if nvcc is None:
        raise Unsupported("nvcc is not found")
    major, minor = torch.cuda.get_device_capability(case.device)
    library = _load(nvcc, f"sm_{major}{minor}", case.dtype)
    fitting = [v for v in variants(library) if v.threads * v.items == case.samples]
    if not fitting:
        raise Unsupported(f"it is built for no row of {case.samples}")
    v_bcn = case.values(0, "channel-major")
    sorts = [BlockSort(case, library, variant) for variant in fitting]
    return min(sorts, key=lambda sort: _milliseconds(sort, v_bcn))


@functools.cache
def _load(nvcc: str, arch: str, dtype: torch.dtype) -> ctypes.CDLL:
    return ctypes.CDLL(str(build(nvcc, arch, dtype)))


def _milliseconds(sort: BlockSort, v_bcn: Tensor) -> float:
    """The best of a few: enough to choose among variants."""
    times = []
    for _ in range(_TRIES):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        sort(v_bcn)
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end))
    return min(times)
