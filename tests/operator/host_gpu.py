"""The CUDA kernels on the host: compiled by the machine's C++ compiler against host_gpu.h."""

import ctypes
import functools
import shutil
import subprocess
import tempfile
from importlib import resources
from pathlib import Path

from torch import Tensor

COMPILER = shutil.which("g++") or shutil.which("clang++")
_FOLDER = Path(tempfile.mkdtemp(prefix="shiftsort-host-"))


class HostKernel:
    """What `nvrtc.CudaKernel` is, for tensors in the host's memory."""

    def __init__(self, file: str, name: str, defines: tuple[str, ...]) -> None:
        folder = resources.files("shiftsort.operator") / "cuda"
        stem = _FOLDER / f"{name}-{abs(hash((file, defines)))}"
        source = stem.with_suffix(".cpp")
        source.write_text(
            '#include "host_gpu.h"\n'
            + (folder / "common.cuh").read_text()
            + (folder / file).read_text()
            + f"\nLAUNCHER({name})\n"
        )
        library = stem.with_suffix(".so")
        subprocess.run(
            [
                *(COMPILER, "-std=c++17", "-O1", "-fPIC", "-shared", "-w"),
                # a misaligned access traps, as on a GPU
                *("-fsanitize=alignment", "-fsanitize-undefined-trap-on-error"),
                *(f"-I{Path(__file__).parent}", *(f"-D{d}" for d in defines)),
                *("-o", str(library), str(source)),
            ],
            check=True,
        )
        self._launch = ctypes.CDLL(str(library)).launch
        self._launch.argtypes = [ctypes.c_int64] * 3 + [ctypes.c_void_p]

    def __call__(self, blocks: int, threads: int, shared: int, *args: Tensor | int | None) -> None:
        """Run every block."""
        values = [a if isinstance(a, int) else 0 if a is None else a.data_ptr() for a in args]
        array = (ctypes.c_int64 * 24)(*values)
        self._launch(blocks, threads, shared, ctypes.addressof(array))


@functools.cache
def kernel(file: str, name: str, defines: tuple[str, ...], device: int | None) -> HostKernel:
    """Stands in for `nvrtc.kernel`."""
    return HostKernel(file, name, defines)
