"""CUDA C++ compiled at first use by NVRTC, which every CUDA build of torch brings.

No compiler, no headers, nothing at install time. A compiled kernel is kept on disk, named by the
hash of all that went into it, so that it is compiled once a machine and not once a process.
"""

import ctypes
import functools
import hashlib
import os
import sys
import tempfile
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

import torch
from torch import Tensor

#: What common.cuh calls the dtypes.
KEYS = {torch.bfloat16: 0, torch.float16: 1, torch.float32: 2, torch.float64: 3}

_DIGEST_BYTES = hashlib.sha256().digest_size
_MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES


class CompileError(RuntimeError):
    """NVRTC refused a kernel; the message holds its log."""


@functools.cache
def unavailable() -> str | None:
    """Why CUDA C++ cannot run here, or None."""
    if not torch.cuda.is_available():
        return "no CUDA device"
    if torch.version.hip is not None:
        return "a ROCm build of torch has no NVRTC"
    major, minor = torch.cuda.get_device_capability()
    if major < 8:  # copies from global to shared memory that do not stop in registers
        return f"compute capability {major}.{minor} is below 8.0"
    try:
        _library()
        _driver()
    except OSError as error:
        return str(error)
    return None


@functools.cache
def _library() -> ctypes.CDLL:
    """NVRTC itself: beside torch, in the nvidia wheels, or where the loader finds it."""
    name = f"libnvrtc.so.{(torch.version.cuda or '13').split('.')[0]}"
    folders = [Path(torch.__file__).parent / "lib"]
    folders += [p for base in sys.path for p in Path(base or ".").glob("nvidia/*/lib")]
    for candidate in [*(str(f / name) for f in folders if (f / name).exists()), name]:
        try:
            return ctypes.CDLL(candidate)
        except OSError:
            continue
    raise OSError(f"{name} was not found beside torch, in the nvidia packages or by the loader")


@functools.cache
def _driver() -> ctypes.CDLL:
    return ctypes.CDLL("libcuda.so.1")


def _check_driver(code: int, what: str) -> None:
    if code:
        text = ctypes.c_char_p()
        _driver().cuGetErrorString(code, ctypes.byref(text))
        raise RuntimeError(f"CUDA: {what} failed: {(text.value or b'unknown error').decode()}")


def cache_folder() -> Path:
    """Where compiled kernels are kept; SHIFTSORT_CACHE names another place."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("SHIFTSORT_CACHE") or Path(base) / "shiftsort") / "kernels"


@functools.cache
def _compiler() -> str:
    """NVRTC's version and, as a patch changes code but not the version, which build of it."""
    library = _library()
    major, minor = ctypes.c_int(), ctypes.c_int()
    library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    version = f"{major.value}.{minor.value}"
    file = Path(library._name)
    if not file.is_absolute():  # the loader found it, and does not say where
        return version
    stat = file.stat()
    return f"{version} {stat.st_size} {stat.st_mtime_ns}"


def compile_cubin(file: str, arch: str, defines: Sequence[str], *, again: bool = False) -> bytes:
    """Machine code of one of this package's .cu files for an architecture such as "sm_90".

    `again` compiles it even if it is kept.
    """
    folder = resources.files(__package__) / "cuda"
    source = (folder / "common.cuh").read_text() + (folder / file).read_text()
    options = [
        f"--gpu-architecture={arch}",
        "--std=c++17",
        "-lineinfo",
        *(f"-D{define}" for define in defines),
    ]
    # All that is compiled is in `source`: the kernels include no header of CUDA's.
    identity = "\0".join([source, *options, _compiler()])
    kept = cache_folder() / f"{hashlib.sha256(identity.encode()).hexdigest()[:32]}.cubin"
    cubin = None if again else _read(kept)
    if cubin is None:
        cubin = _compile(source, file, options)
        _write(kept, cubin)
    return cubin


def _read(kept: Path) -> bytes | None:
    """What `_write` wrote; None if it is damaged, not there or not to be read."""
    try:
        content = kept.read_bytes()
    except OSError:
        return None
    digest, cubin = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
    return cubin if hashlib.sha256(cubin).digest() == digest else None


def _write(kept: Path, cubin: bytes) -> None:
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        # Written aside and renamed: another process never reads half a kernel.
        handle, aside = tempfile.mkstemp(dir=kept.parent)
        with os.fdopen(handle, "wb") as out:
            out.write(hashlib.sha256(cubin).digest() + cubin)
        os.replace(aside, kept)
    except OSError:
        pass  # a folder that cannot be written costs a compilation, not the run


def _compile(source: str, name: str, options: Sequence[str]) -> bytes:
    nvrtc = _library()
    program = ctypes.c_void_p()

    def check(code: int) -> None:
        if code:
            nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p
            raise CompileError(f"NVRTC, {name}: {nvrtc.nvrtcGetErrorString(code).decode()}")

    check(
        nvrtc.nvrtcCreateProgram(
            ctypes.byref(program), source.encode(), name.encode(), 0, None, None
        )
    )
    try:
        encoded = (ctypes.c_char_p * len(options))(*(o.encode() for o in options))
        code = nvrtc.nvrtcCompileProgram(program, len(options), encoded)
        if code:
            size = ctypes.c_size_t()
            check(nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size)))
            log = ctypes.create_string_buffer(size.value)
            check(nvrtc.nvrtcGetProgramLog(program, log))
            raise CompileError(f"NVRTC, {name}, {' '.join(options)}:\n{log.value.decode()}")
        size = ctypes.c_size_t()
        check(nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size)))
        cubin = ctypes.create_string_buffer(size.value)
        check(nvrtc.nvrtcGetCUBIN(program, cubin))
        return cubin.raw
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _use_context(device: int) -> None:
    """Make the device's context this thread's, if it has none yet.

    torch leaves that to the first call of CUDA's runtime, which may be still to come in a thread
    that is new (autograd's, say) and got its memory from torch's cache.
    """
    context = ctypes.c_void_p()
    _check_driver(_driver().cuCtxGetCurrent(ctypes.byref(context)), "asking for the context")
    if not context:
        handle = ctypes.c_int()
        _check_driver(_driver().cuDeviceGet(ctypes.byref(handle), device), "finding the device")
        _check_driver(
            _driver().cuDevicePrimaryCtxRetain(ctypes.byref(context), handle), "making a context"
        )
        _check_driver(_driver().cuCtxSetCurrent(context), "entering the context")


@functools.cache
def shared_memory(device: int) -> int:
    """The bytes of shared memory that a block can have."""
    return torch.cuda.get_device_properties(device).shared_memory_per_block_optin


class CudaKernel:
    """One kernel of one .cu file on one device, ready to launch."""

    def __init__(self, file: str, name: str, defines: tuple[str, ...], device: int) -> None:
        self._device = device
        major, minor = torch.cuda.get_device_capability(device)
        source = (file, f"sm_{major}{minor}", defines)
        with torch.cuda.device(device):
            _use_context(device)
            module = ctypes.c_void_p()
            load = _driver().cuModuleLoadData
            if load(ctypes.byref(module), compile_cubin(*source)):  # kept, and of no use here
                cubin = compile_cubin(*source, again=True)
                _check_driver(load(ctypes.byref(module), cubin), "loading")
            self._function = ctypes.c_void_p()
            _check_driver(
                _driver().cuModuleGetFunction(ctypes.byref(self._function), module, name.encode()),
                f"finding {name}",
            )
        self._shared = 48 * 1024

    def __call__(self, blocks: int, threads: int, shared: int, *args: Tensor | int | None) -> None:
        """Launch on torch's current stream. A tensor passes as its address, None as null."""
        # Every argument is eight bytes wide, here and in the kernels: pointers and long long.
        values = (ctypes.c_int64 * len(args))(
            *(a if isinstance(a, int) else 0 if a is None else a.data_ptr() for a in args)
        )
        first = ctypes.addressof(values)
        pointers = (ctypes.c_void_p * len(args))(*range(first, first + 8 * len(args), 8))
        with torch.cuda.device(self._device):
            _use_context(self._device)
            if shared > self._shared:
                _check_driver(
                    _driver().cuFuncSetAttribute(self._function, _MAX_DYNAMIC_SHARED, shared),
                    f"asking for {shared} bytes of shared memory",
                )
                self._shared = shared
            stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
            code = _driver().cuLaunchKernel(
                self._function, blocks, 1, 1, threads, 1, 1, shared, stream, pointers, None
            )
        _check_driver(code, "launching")


@functools.cache
def kernel(file: str, name: str, defines: tuple[str, ...], device: int) -> CudaKernel:
    """The kernel, compiled and loaded at the first call."""
    return CudaKernel(file, name, defines, device)
