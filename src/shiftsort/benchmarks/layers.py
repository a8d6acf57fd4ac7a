"""Candidates: whole layers, (B, N, C) in and out, and what the operator adds to a projection.

Shapes: B batch, H heads, N samples, C channels, D channels of a head.
"""

import functools

from torch import Tensor, nn

import shiftsort

from . import attention
from .candidate import Candidate
from .case import Case

ATTENTION = "attention layer"
PROJECTION = "projection"


class CSPLayer(nn.Module):
    """Value projection, CSP, out-projection."""

    def __init__(self, case: Case) -> None:
        super().__init__()
        self.mix = _csp(case)
        self.out = nn.Linear(case.channels, case.channels, bias=False)

    def forward(self, x_bnc: Tensor) -> Tensor:
        return self.out(self.mix(x_bnc))


class AttentionLayer(nn.Module):
    """One projection to queries, keys and values, attention, out-projection."""

    def __init__(self, case: Case, backend: str) -> None:
        super().__init__()
        self.backend, self.heads = backend, case.heads
        self.qkv = nn.Linear(case.channels, 3 * case.channels, bias=False)
        self.out = nn.Linear(case.channels, case.channels, bias=False)

    def forward(self, x_bnc: Tensor) -> Tensor:
        q_bhnd, k_bhnd, v_bhnd = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in self.qkv(x_bnc).chunk(3, dim=-1)
        )
        y_bhnd = attention.attend(self.backend, q_bhnd, k_bhnd, v_bhnd)
        return self.out(y_bhnd.transpose(1, 2).flatten(2))


def candidates() -> list[Candidate]:
    """CSP against attention, and against nothing at all."""
    return [
        Candidate(PROJECTION, lambda case: _on_device(_linear(case), case), _tokens, grouped=False),
        Candidate(f"{PROJECTION} + csp", lambda case: _on_device(_csp(case), case), _tokens),
        Candidate("csp layer", lambda case: _on_device(CSPLayer(case), case), _tokens),
        *(
            Candidate(
                f"{ATTENTION}, {backend}",
                functools.partial(_prepare_attention, backend),
                _tokens,
                grouped=False,
            )
            for backend in attention.BACKENDS
        ),
    ]


def _tokens(case: Case, seed: int) -> tuple[Tensor, ...]:
    return (case.values(seed),)


def _csp(case: Case) -> nn.Module:
    return shiftsort.CSP(
        case.channels, group_size=case.group_size, shift=case.steps, order=case.order
    )


def _linear(case: Case) -> nn.Module:
    return nn.Linear(case.channels, case.channels, bias=False)


def _prepare_attention(backend: str, case: Case) -> nn.Module:
    attention.require(backend, case)
    return _on_device(AttentionLayer(case, backend), case)


def _on_device(module: nn.Module, case: Case) -> nn.Module:
    return module.to(device=case.device, dtype=case.dtype)
