"""What the bodies share: towers, norms, pixels as vectors, pooling, MEGA's classifier.

Shapes in names: b batch, n samples, c channels.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from .. import mixers
from ..mixers.convolution import full

NORMS = ("layer", "scale", "rms", "batch", "syncbatch")


def by_tower(
    encode: Callable[[Tensor, Tensor | None], Tensor],
    tokens: Tensor,
    lengths: Tensor | None,
    towers: int,
) -> tuple[Tensor, ...]:
    """What `encode` makes of each of the sequences that are judged together.

    tokens: (B, N), with two towers (B, 2, N). lengths: (B,), with two towers (B, 2).
    """
    if tokens.dim() != 1 + towers or (towers == 2 and tokens.shape[1] != 2):
        shape = "(batch, samples)" if towers == 1 else "(batch, 2, samples)"
        raise ValueError(f"tokens must be {shape}, got shape {tuple(tokens.shape)}")
    if towers == 1:
        return (encode(tokens, lengths),)
    # Both towers share their weights, so they are one batch.
    flat = None if lengths is None else lengths.flatten()
    return encode(tokens.flatten(0, 1), flat).unflatten(0, (-1, 2)).unbind(1)


def read(
    tokens_bn: Tensor,
    lengths_b: Tensor | None,
    longest: int,
    pixels: tuple[float, float] | None,
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Tokens, or with a mean and a deviation gray values; lengths of at least 1; what is valid."""
    if tokens_bn.shape[1] > longest:
        raise ValueError(
            f"sequences may have up to {longest} samples, got {tokens_bn.shape[1]}; "
            "build the model with a larger samples="
        )
    if pixels is not None:
        mean, deviation = pixels
        return (tokens_bn / 255 - mean) / deviation, None, None
    if lengths_b is None:
        return tokens_bn.long(), None, None
    lengths_b = lengths_b.clamp(min=1)
    return tokens_bn.long(), lengths_b, mixers.valid_samples(tokens_bn.shape[1], lengths_b)


def mean_of_valid(x_bnc: Tensor, lengths_b: Tensor | None) -> Tensor:
    """The mean over the samples that are no padding, (B, C)."""
    if lengths_b is None:
        return x_bnc.mean(dim=1)
    valid_bn1 = mixers.valid_samples(x_bnc.shape[1], lengths_b)[..., None]
    return x_bnc.masked_fill(~valid_bn1, 0).sum(dim=1) / lengths_b.clamp(min=1)[:, None]


def classifier(inputs: int, hidden: int, classes: int, dropout: float) -> nn.Sequential:
    """MEGA's head."""
    head = nn.Sequential(
        nn.Linear(inputs, hidden),
        nn.Dropout(dropout),
        nn.GELU(),
        nn.Linear(hidden, classes, bias=False),
    )
    nn.init.xavier_uniform_(head[0].weight)
    nn.init.zeros_(head[0].bias)
    nn.init.xavier_uniform_(head[3].weight)
    return head


class Norm(nn.Module):
    """One of the five norms, over (B, N, C)."""

    def __init__(self, kind: str, dim: int, **options: float) -> None:
        super().__init__()
        self.kind = kind
        self.norm = {
            "layer": nn.LayerNorm,
            "scale": ScaleNorm,
            "rms": nn.RMSNorm,
            "batch": BatchNorm,
            "syncbatch": nn.SyncBatchNorm,
        }[kind](dim, **{"eps": 1e-5, **options})
        # So that a recipe may treat it apart.
        self.norm.kinds = {name: "norm" for name, _ in self.norm.named_parameters()}

    def forward(self, x_bnc: Tensor, valid_bn: Tensor | None) -> Tensor:
        if self.kind == "batch":
            return self.norm(x_bnc, valid_bn)
        if self.kind != "syncbatch":
            return self.norm(x_bnc)
        if valid_bn is not None:
            raise ValueError(
                "norm='syncbatch' takes no lengths, as padding would enter its statistics; "
                "choose another norm for padded sequences"
            )
        return self.norm(x_bnc.transpose(1, 2)).transpose(1, 2)


class BatchNorm(nn.BatchNorm1d):
    """Over the samples of all sequences, those that are no padding."""

    def forward(self, x_bnc: Tensor, valid_bn: Tensor | None = None) -> Tensor:
        if valid_bn is None:
            return super().forward(x_bnc.transpose(1, 2)).transpose(1, 2)
        padding_bn1 = ~valid_bn[..., None]
        x_bnc = x_bnc.masked_fill(padding_bn1, 0)
        mean_c, variance_c = self.running_mean, self.running_var
        if self.training:
            count, x_wide = valid_bn.sum(), full(x_bnc)
            mean_c = x_wide.sum(dim=(0, 1)) / count
            centred = (x_wide - mean_c).masked_fill(padding_bn1, 0)
            variance_c = centred.square().sum(dim=(0, 1)) / count
            with torch.no_grad():
                self.num_batches_tracked += 1
                self.running_mean.lerp_(mean_c.to(self.running_mean.dtype), self.momentum)
                unbiased_c = variance_c * count / (count - 1).clamp(min=1)
                self.running_var.lerp_(unbiased_c.to(self.running_var.dtype), self.momentum)
        scale_c = self.weight * torch.rsqrt(variance_c + self.eps)
        return ((x_bnc - mean_c) * scale_c + self.bias).to(x_bnc.dtype)


class ScaleNorm(nn.Module):
    """Root mean square norm with a single learned scale."""

    def __init__(self, dim: int, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, x_bnc: Tensor) -> Tensor:
        return nn.functional.rms_norm(x_bnc, x_bnc.shape[-1:], eps=self.eps) * self.scale


class Pixels(nn.Module):
    """A number as a vector: weight x + bias."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(dim))
        self.bias = nn.Parameter(torch.randn(dim) * 0.1)

    def forward(self, x_bn: Tensor) -> Tensor:
        return (x_bn[..., None] * self.weight + self.bias).to(self.weight.dtype)
