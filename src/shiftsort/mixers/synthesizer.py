"""Synthesizer: attention maps that no query meets a key for."""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout, relu

from .mixer import About, FusedLinear, HeadMixer, check_size

KINDS = ("dense", "factorized_dense", "random", "factorized")


class Synthesizer(HeadMixer):
    """softmax(R) V, where R is

    - "dense": W2 relu(W1 x_i), a row of R for each sample from that sample alone;
    - "factorized_dense": such a row as the outer product of two, each about sqrt(N) long;
    - "random": learned, and the same whatever comes in;
    - "factorized": random, as a product of two thin matrices. The default, as in Long Range Arena.

    Args:
        kind: which.
        rank: of "factorized"; otherwise unused.
    """

    about = About(
        complexity="C N^2",
        source="Tay et al. 2021, Synthesizer: rethinking self-attention",
        row="LRA: Synthesizer",
        left_out="random maps that are never trained; mixtures of several",
    )
    made_to_length = True
    parts = 1

    def __init__(
        self, dim: int, *, kind: str = "factorized", rank: int = 32, **options: Any
    ) -> None:
        super().__init__(dim, **options)
        if kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
        self.kind = kind
        n, h = self.samples, self.heads
        if "dense" in kind:
            bias = self.inner.bias is not None
            self.hidden = FusedLinear(dim, self.channels, 1, bias)
            long = math.isqrt(n - 1) + 1  # the root, rounded up
            self.factors = (n,) if kind == "dense" else (long, -(-n // long))
            self.rows = nn.Linear(self.channels // h, sum(self.factors), bias=bias)
        elif kind == "random":
            self.map = nn.Parameter(torch.randn(h, n, n) * n**-0.5)
        else:
            check_size("rank", rank)
            self.left = nn.Parameter(torch.randn(h, n, rank) * n**-0.5)
            self.right = nn.Parameter(torch.randn(h, rank, n) * rank**-0.5)

    def attend(self, x_bnc: Tensor, valid_bn: Tensor | None) -> Tensor:
        """Weigh the values by the synthesised map."""
        samples = x_bnc.shape[1]
        self.check_samples(samples)
        (v_bhnd,) = self.project(x_bnc)
        map_bhnn = self.scores(x_bnc)
        if valid_bn is not None:
            map_bhnn = map_bhnn.masked_fill(~valid_bn[:, None, None, :], -torch.inf)
        map_bhnn = map_bhnn.softmax(dim=-1).to(v_bhnd.dtype)
        return dropout(map_bhnn, self.attention_dropout) @ v_bhnd

    def scores(self, x_bnc: Tensor) -> Tensor:
        """R, (B or 1, H, N, N)."""
        n = x_bnc.shape[1]
        if "dense" in self.kind:
            (hidden_bhnd,) = self.split(self.hidden(x_bnc))
            row, *other = self.rows(relu(hidden_bhnd)).split(self.factors, dim=-1)
            for factor in other:
                row = (row[..., :, None] * factor[..., None, :]).flatten(-2)
            return row[..., :n]
        if self.kind == "random":
            return self.map[None, :, :n, :n]
        return (self.left[:, :n] @ self.right[..., :n])[None]
