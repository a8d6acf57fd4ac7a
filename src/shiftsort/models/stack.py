"""The model that state-space layers and long convolutions are published with, for any mixer.

A token or pixel becomes a vector; blocks of norm, mixer and shortcut follow; the mean of all
samples is classified. The mixer brings its own activation and output map along, and there are no
positions.

Shapes in names: b batch, n samples, c channels.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from .. import mixers
from ..mixers.mixer import ChannelDropout
from .parts import NORMS, Norm, by_tower, classifier, mean_of_valid, read


class Stack(nn.Module):
    """Tokens or pixels, blocks, mean pooling, a linear head.

    Two towers meet as their vectors a and b, a - b and a * b, and a layer with GELU reads these.

    Args:
        vocabulary: how many tokens there are; None reads 8-bit gray values, see `pixels`.
        classes: how many classes.
        samples: the longest sequence that will come.
        dim, depth: width and blocks.
        mixer, mixer_options: which one, and what it takes (see `shiftsort.mixers`).
        norm, momentum: "layer", "scale", "rms", "batch" or "syncbatch"; how fast the statistics of
            the last two move.
        prenorm: normalise what a mixer reads; else what a block gives.
        final_norm: with `prenorm`, normalise before pooling too.
        embedding_norm: normalise what the first block reads.
        mlp_dim: inner width of a feed-forward part behind each mixer; None for no such part.
        hidden: inner width of MEGA's classifier in the place of the linear head.
        towers: 1, or 2 for pairs of sequences read by the same blocks.
        dropout: of what is added to the shortcut, and inside of mixers that have a place for it.
        tied_dropout: drop a channel of the former at all samples or at none.
        pixels: mean and deviation of gray values between 0 and 1, subtracted and divided by. An
            image has no padding: with pixels, lengths are not looked at.
    """

    def __init__(
        self,
        *,
        vocabulary: int | None,
        classes: int,
        samples: int,
        dim: int,
        depth: int,
        mixer: str,
        mixer_options: Mapping[str, Any] | None = None,
        norm: str = "batch",
        momentum: float = 0.1,
        prenorm: bool = True,
        final_norm: bool = True,
        embedding_norm: bool = False,
        mlp_dim: int | None = None,
        hidden: int | None = None,
        towers: int = 1,
        dropout: float = 0.0,
        tied_dropout: bool = True,
        pixels: tuple[float, float] = (0.5, 0.5),
    ) -> None:
        super().__init__()
        for name, value, choices in (("norm", norm, NORMS), ("towers", towers, (1, 2))):
            if value not in choices:
                raise ValueError(
                    f"{name} must be one of {', '.join(map(str, choices))}, got {value!r}"
                )
        self.samples = samples
        self.towers = towers
        self.pixels = pixels if vocabulary is None else None
        self.embedding = nn.Linear(1, dim) if vocabulary is None else nn.Embedding(vocabulary, dim)

        def normalise() -> Norm:
            return Norm(norm, dim, **({"momentum": momentum} if "batch" in norm else {}))

        def drop() -> nn.Module:
            return ChannelDropout(dropout) if tied_dropout else nn.Dropout(dropout)

        self.embedding_norm = normalise() if embedding_norm else None
        self.layers = nn.ModuleList()
        for layer in range(depth):
            mix = mixers.build(
                mixer,
                dim=dim,
                samples=samples,
                layer=layer,
                depth=depth,
                **{"dropout": dropout, **(mixer_options or {})},
            )
            self.layers.append(_Block(mix, normalise(), prenorm, drop()))
            if mlp_dim is not None:
                mlp = _FeedForward(dim, mlp_dim, dropout)
                self.layers.append(_Block(mlp, normalise(), prenorm, drop()))
        self.norm = normalise() if prenorm and final_norm else None
        if hidden is not None:
            self.head: nn.Module = classifier(towers * dim, hidden, classes, dropout)
        elif towers == 2:
            self.head = _Pair(dim, classes)
        else:
            self.head = nn.Linear(dim, classes)

    def forward(self, tokens: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Logits, (B, classes).

        tokens: (B, N), with two towers (B, 2, N). lengths: (B,), with two towers (B, 2).
        """
        return self.head(torch.cat(by_tower(self.encode, tokens, lengths, self.towers), dim=-1))

    def encode(self, tokens_bn: Tensor, lengths_b: Tensor | None = None) -> Tensor:
        """Each sequence as one vector, (B, dim)."""
        read_bn, lengths_b, valid_bn = read(tokens_bn, lengths_b, self.samples, self.pixels)
        if self.pixels is not None:
            read_bn = read_bn[..., None].to(self.embedding.weight.dtype)
        x_bnc = self.embedding(read_bn)
        if self.embedding_norm is not None:
            x_bnc = self.embedding_norm(x_bnc, valid_bn)
        for layer in self.layers:
            x_bnc = layer(x_bnc, lengths_b, valid_bn)
        if self.norm is not None:
            x_bnc = self.norm(x_bnc, valid_bn)
        return mean_of_valid(x_bnc, lengths_b)


class _Block(nn.Module):
    """A norm, a mixer or a feed-forward part, and the way round it."""

    def __init__(self, inner: nn.Module, norm: Norm, prenorm: bool, dropout: nn.Module) -> None:
        super().__init__()
        self.inner = inner
        self.norm = norm
        self.prenorm = prenorm
        self.dropout = dropout

    def forward(self, x_bnc: Tensor, lengths_b: Tensor | None, valid_bn: Tensor | None) -> Tensor:
        read_bnc = self.norm(x_bnc, valid_bn) if self.prenorm else x_bnc
        y_bnc = x_bnc + self.dropout(self.inner(read_bnc, lengths_b))
        return y_bnc if self.prenorm else self.norm(y_bnc, valid_bn)


class _FeedForward(nn.Sequential):
    def __init__(self, dim: int, mlp_dim: int, dropout: float) -> None:
        super().__init__(
            nn.Linear(dim, mlp_dim), nn.GELU(), nn.Dropout(dropout), nn.Linear(mlp_dim, dim)
        )

    def forward(self, x_bnc: Tensor, lengths_b: Tensor | None = None) -> Tensor:
        return super().forward(x_bnc)


class _Pair(nn.Module):
    def __init__(self, dim: int, classes: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4 * dim, dim), nn.GELU(), nn.Linear(dim, classes))

    def forward(self, pair_b2c: Tensor) -> Tensor:
        a_bc, b_bc = pair_b2c.chunk(2, dim=-1)
        return self.layers(torch.cat((a_bc, b_bc, a_bc - b_bc, a_bc * b_bc), dim=-1))
