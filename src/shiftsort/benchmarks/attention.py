"""Candidates: scaled_dot_product_attention on the same tokens, each backend by itself.

Shapes: B batch, H heads, N samples, D channels of a head.
"""

import functools
import os

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from .candidate import Candidate, Function, Unsupported
from .case import Case

BACKENDS = {
    "flash": SDPBackend.FLASH_ATTENTION,
    "cudnn": SDPBackend.CUDNN_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "math": SDPBackend.MATH,
}


def candidates() -> list[Candidate]:
    """One for each backend."""
    return [
        Candidate(
            f"attention, {name}",
            functools.partial(_prepare, name),
            _queries_keys_values,
            grouped=False,
        )
        for name in BACKENDS
    ]


def require(name: str, case: Case) -> None:
    """Raise Unsupported where a backend is known not to serve a case, before it does harm."""
    if case.device == "cpu" and name in ("cudnn", "efficient"):
        raise Unsupported(f"the backend {name!r} needs a GPU")
    if case.channels % case.heads:
        raise Unsupported(f"{case.channels} channels do not split into {case.heads} heads")
    if name == "math":
        # Scores and weights, forward and backward, in float32 at worst. On a CPU a process that
        # asks for too much is killed and reports nothing.
        needed = 5 * case.batch * case.heads * case.samples**2 * 4
        free = _free_bytes(case.device)
        if needed > 0.8 * free:
            raise Unsupported(
                f"N x N scores need about {needed / 1e9:.0f} GB, {free / 1e9:.0f} GB are free"
            )


def attend(name: str, q_bhnd: Tensor, k_bhnd: Tensor, v_bhnd: Tensor) -> Tensor:
    """Attention by one backend."""
    with sdpa_kernel(BACKENDS[name]):
        return scaled_dot_product_attention(q_bhnd, k_bhnd, v_bhnd)


def _prepare(name: str, case: Case) -> Function:
    require(name, case)
    return functools.partial(attend, name)


def _queries_keys_values(case: Case, seed: int) -> tuple[Tensor, ...]:
    return tuple(
        case.values(3 * seed + part).unflatten(-1, (case.heads, -1)).transpose(1, 2).contiguous()
        for part in range(3)
    )


def _free_bytes(device: str) -> int:
    if device != "cpu":
        return torch.cuda.mem_get_info(device)[0]
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):  # a system that does not tell
        return 4 * 2**30
