"""The Transformer encoder of Long Range Arena, with any mixer.

Shapes in names: b batch, t towers, n samples, c channels.
"""

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from .. import mixers
from ..nn import CSP
from .parts import by_tower, mean_of_valid

POOLS = ("cls", "mean", "max", "none")
POSITIONS = ("sinusoidal", "learned")
_EPSILON = 1e-6  # Flax's, for layer norms


class Encoder(nn.Module):
    """Tokens, positions, pre-norm layers, a final norm, pooling, and the published heads.

    Args:
        vocabulary: how many tokens there are.
        classes: how many classes.
        samples: the longest sequence; with learned positions none longer can come.
        dim, depth, heads, mlp_dim: width, layers, heads of each, inner width of the MLP and of the
            classifier.
        channels: width of queries, keys and values (default `dim`).
        mixer, mixer_options: which one, and what it takes (see `shiftsort.mixers`).
        positions: "sinusoidal" or "learned".
        pool: "cls", "mean" or "max"; "none" gives each sample logits of its own, with one linear
            layer as the head.
        towers: 1, or 2 for pairs of sequences read by the same encoder.
        dropout, attention_dropout: of the layers, and of attention maps.
    """

    def __init__(
        self,
        *,
        vocabulary: int,
        classes: int,
        samples: int,
        dim: int,
        depth: int,
        heads: int,
        mlp_dim: int,
        channels: int | None = None,
        mixer: str = "mha",
        mixer_options: Mapping[str, Any] | None = None,
        positions: str = "sinusoidal",
        pool: str = "cls",
        towers: int = 1,
        dropout: float = 0.1,
        attention_dropout: float = 0.1,
    ) -> None:
        super().__init__()
        if pool not in POOLS:
            raise ValueError(f"pool must be one of {', '.join(POOLS)}, got {pool!r}")
        if positions not in POSITIONS:
            raise ValueError(f"positions must be one of {', '.join(POSITIONS)}, got {positions!r}")
        if towers not in (1, 2):
            raise ValueError(f"towers must be 1 or 2, got {towers}")
        if towers == 2 and pool == "none":
            raise ValueError("two towers meet as one vector each: pool cannot be 'none'")
        self.pool = pool
        self.towers = towers
        self.tokens = nn.Embedding(vocabulary, dim)
        self.cls = nn.Parameter(torch.zeros(dim)) if pool == "cls" else None
        samples += pool == "cls"
        if positions == "learned":
            self.positions = nn.Parameter(torch.randn(samples, dim) * 0.02)
        else:
            self.register_buffer("positions", sinusoids(samples, dim), persistent=False)
        self.dropout = nn.Dropout(dropout)
        common = {
            "heads": heads,
            "channels": channels,
            "dropout": attention_dropout,
            "out_bias": False,
        }
        self.layers = nn.ModuleList(
            _Layer(
                dim,
                mlp_dim,
                mixers.build(
                    mixer,
                    dim=dim,
                    samples=samples,
                    layer=layer,
                    depth=depth,
                    **{**common, **(mixer_options or {})},
                ),
                dropout,
            )
            for layer in range(depth)
        )
        self.norm = nn.LayerNorm(dim, eps=_EPSILON)
        if pool == "none":
            self.head = nn.Sequential(nn.Linear(dim, classes))
        else:
            self.head = _head(dim, mlp_dim, classes, towers)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """As published: normal embeddings, Glorot's uniform projections, LeCun's normal heads."""
        for module in self.layers.modules():
            if isinstance(module, nn.Linear | CSP):
                # Fused projections have each a fan of their own.
                for weight in module.weight.data.chunk(getattr(module, "parts", 1)):
                    nn.init.xavier_uniform_(weight)
        for module in self.head.modules():
            if isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=module.in_features**-0.5)
        for module in self.modules():
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)

    def forward(self, tokens: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Logits, (B, classes), or (B, N, classes) with `pool="none"`.

        tokens: integers, (B, N), with two towers (B, 2, N). lengths: (B,), with two towers (B, 2).
        """
        return self.head(torch.cat(by_tower(self.encode, tokens, lengths, self.towers), dim=-1))

    def encode(self, tokens_bn: Tensor, lengths_b: Tensor | None = None) -> Tensor:
        """Each sequence as one vector, (B, dim); without a pool each sample, (B, N, dim)."""
        x_bnc = self.tokens(tokens_bn.long())
        if self.cls is not None:
            x_bnc = torch.cat((self.cls.expand(len(x_bnc), 1, -1), x_bnc), dim=1)
            lengths_b = None if lengths_b is None else lengths_b + 1
        x_bnc = self.dropout(x_bnc + self._positions_of(x_bnc))
        for layer in self.layers:
            x_bnc = layer(x_bnc, lengths_b)
        x_bnc = self.norm(x_bnc)
        return x_bnc if self.pool == "none" else _pool(x_bnc, lengths_b, self.pool)

    def _positions_of(self, x_bnc: Tensor) -> Tensor:
        samples, longest = x_bnc.shape[1], len(self.positions)
        if samples > longest:
            token = self.cls is not None
            raise ValueError(
                f"sequences may have up to {longest - token} samples, got {samples - token}; "
                "build the model with a larger samples="
            )
        return self.positions[:samples]


class _Layer(nn.Module):
    def __init__(self, dim: int, mlp_dim: int, mixer: mixers.Mixer, dropout: float) -> None:
        super().__init__()
        self.mixer_norm = nn.LayerNorm(dim, eps=_EPSILON)
        self.mixer = mixer
        self.mixer_dropout = nn.Dropout(dropout)
        self.mlp = nn.Sequential(
            nn.LayerNorm(dim, eps=_EPSILON),
            nn.Linear(dim, mlp_dim),
            nn.GELU(approximate="tanh"),
            nn.Dropout(dropout),
            nn.Linear(mlp_dim, dim),
            nn.Dropout(dropout),
        )

    def forward(self, x_bnc: Tensor, lengths_b: Tensor | None) -> Tensor:
        x_bnc = x_bnc + self.mixer_dropout(self.mixer(self.mixer_norm(x_bnc), lengths_b))
        return x_bnc + self.mlp(x_bnc)


def _head(dim: int, mlp_dim: int, classes: int, towers: int) -> nn.Sequential:
    if towers == 1:
        return nn.Sequential(nn.Linear(dim, mlp_dim), nn.ReLU(), nn.Linear(mlp_dim, classes))
    return nn.Sequential(
        nn.Linear(2 * dim, mlp_dim),
        nn.ReLU(),
        nn.Linear(mlp_dim, mlp_dim // 2),
        nn.ReLU(),
        nn.Linear(mlp_dim // 2, classes),
    )


def _pool(x_bnc: Tensor, lengths_b: Tensor | None, how: str) -> Tensor:
    if how == "cls":
        return x_bnc[:, 0]
    if how == "mean":
        return mean_of_valid(x_bnc, lengths_b)
    if lengths_b is not None:
        padding_bn1 = ~mixers.valid_samples(x_bnc.shape[1], lengths_b)[..., None]
        x_bnc = x_bnc.masked_fill(padding_bn1, -math.inf)
    return x_bnc.amax(dim=1)


def sinusoids(samples: int, dim: int) -> Tensor:
    """Fixed positions, (N, dim): sines in even channels, cosines in odd ones."""
    n = torch.arange(samples)[:, None]
    frequency = torch.exp(torch.arange(0, dim, 2) * (-math.log(10_000) / dim))
    return torch.stack((torch.sin(n * frequency), torch.cos(n * frequency)), -1).flatten(1)[:, :dim]
