"""MEGA: a moving average along the sequence, then gated attention, which CSP may replace.

Ma et al. 2022, Mega: moving average equipped gated attention. Left out: the causal form and its
step by step decoding, the rotary bias, squared ReLU in attention, feature dropout, layer drop.

Shapes in names: b batch, n samples, k chunks, m samples in a chunk, c channels, h hidden channels,
z channels of queries and keys, e averages of a channel.
"""

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout, pad, scaled_dot_product_attention, silu

from ..mixers.convolution import convolve
from ..operator.csp import csp
from ..operator.schedule import shift_steps
from .parts import NORMS, Norm, Pixels, by_tower, classifier, mean_of_valid, read

ATTENTIONS = ("softmax", "laplace", "csp")
_SCALE = 0.02  # of normally distributed weights at the start


class Mega(nn.Module):
    """Tokens or pixels, layers of gated attention and feed-forward, mean pooling, a classifier.

    Args:
        vocabulary: how many tokens there are; None reads 8-bit gray values, see `pixels`.
        classes: how many classes.
        samples: the longest sequence that will come.
        dim, depth: width and layers.
        hidden: width of the values, of the feed-forward part and of the classifier.
        z: width of queries and keys.
        attention: "softmax", "laplace" or "csp".
        chunk: samples that attend to each other; None is all. Not for CSP, which is linear anyway.
        csp: group_size, shift and order of CSP, as `shiftsort.CSP` takes them.
        norm: "layer", "scale", "rms", "batch" or "syncbatch".
        prenorm: normalise before each part, and at the end; else after each part.
        averages: exponential moving averages of each channel, in each direction.
        truncation: how far they reach; None is over the whole sequence.
        towers: 1, or 2 for pairs of sequences read by the same layers.
        dropout, attention_dropout, hidden_dropout: after each part; of the map; of the values and
            inside of the feed-forward part.
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
        hidden: int,
        z: int,
        attention: str = "softmax",
        chunk: int | None = None,
        csp: Mapping[str, Any] | None = None,
        norm: str = "layer",
        prenorm: bool = False,
        averages: int = 16,
        truncation: int | None = 1024,
        towers: int = 1,
        dropout: float = 0.1,
        attention_dropout: float = 0.0,
        hidden_dropout: float = 0.0,
        pixels: tuple[float, float] = (0.5, 0.5),
    ) -> None:
        super().__init__()
        for name, value, choices in (
            ("attention", attention, ATTENTIONS),
            ("norm", norm, NORMS),
            ("towers", towers, (1, 2)),
        ):
            if value not in choices:
                raise ValueError(
                    f"{name} must be one of {', '.join(map(str, choices))}, got {value!r}"
                )
        if attention == "csp" and chunk is not None:
            raise ValueError(f"chunk is for softmax and laplace, got chunk={chunk} with csp")
        if attention != "csp" and csp is not None:
            raise ValueError(f"csp= is for attention='csp', got it with {attention!r}")
        self.samples = samples
        self.towers = towers
        self.pixels = pixels if vocabulary is None else None
        self.embedding = Pixels(dim) if vocabulary is None else nn.Embedding(vocabulary, dim)
        if vocabulary is not None:
            nn.init.normal_(self.embedding.weight, std=dim**-0.5)
        self.dropout = nn.Dropout(dropout)
        layers: list[nn.Module] = []
        for layer in range(depth):
            if attention == "csp":
                mix: nn.Module = Permutation(samples, hidden, layer, depth, **(csp or {}))
            else:
                mix = Attention(samples, z, attention, chunk, attention_dropout)
            layers += [
                GatedAttention(
                    dim, hidden, mix, averages, truncation, norm, prenorm, dropout, hidden_dropout
                ),
                FeedForward(dim, hidden, norm, prenorm, dropout, hidden_dropout),
            ]
        self.layers = nn.ModuleList(layers)
        self.norm = Norm(norm, dim) if prenorm else None
        self.head = classifier(towers * dim, hidden, classes, dropout)

    def forward(self, tokens: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Logits, (B, classes).

        tokens: (B, N), with two towers (B, 2, N). lengths: (B,), with two towers (B, 2).
        """
        return self.head(torch.cat(by_tower(self.encode, tokens, lengths, self.towers), dim=-1))

    def encode(self, tokens_bn: Tensor, lengths_b: Tensor | None = None) -> Tensor:
        """Each sequence as one vector, (B, dim)."""
        read_bn, lengths_b, valid_bn = read(tokens_bn, lengths_b, self.samples, self.pixels)
        x_bnc = self.dropout(self.embedding(read_bn))
        for layer in self.layers:
            x_bnc = layer(x_bnc, lengths_b, valid_bn)
        if self.norm is not None:
            x_bnc = self.norm(x_bnc, valid_bn)
        return mean_of_valid(x_bnc, lengths_b)


class GatedAttention(nn.Module):
    """Attention whose queries and keys, gates and shortcut see the moving average."""

    def __init__(
        self,
        dim: int,
        hidden: int,
        attention: "Attention | Permutation",
        averages: int,
        truncation: int | None,
        norm: str,
        prenorm: bool,
        dropout: float,
        hidden_dropout: float,
    ) -> None:
        super().__init__()
        self.prenorm = prenorm
        self.norm = Norm(norm, dim)
        self.move = MovingAverage(dim, averages, truncation)
        self.attention = attention
        self.widths = (dim, dim, hidden, attention.z)
        self.value = _normal_linear(dim, hidden)
        self.gates = _normal_linear(dim, sum(self.widths))
        self.back = _normal_linear(hidden, dim)
        self.dropout = nn.Dropout(dropout)
        self.hidden_dropout = nn.Dropout(hidden_dropout)

    def forward(self, x_bnc: Tensor, lengths_b: Tensor | None, valid_bn: Tensor | None) -> Tensor:
        inner_bnc = self.norm(x_bnc, valid_bn) if self.prenorm else x_bnc
        value_bnh = self.hidden_dropout(silu(self.value(inner_bnc)))
        moved_bnc = self.dropout(self.move(inner_bnc, valid_bn))
        update, shortcut, reset, z_bnz = self.gates(moved_bnc).split(self.widths, dim=-1)
        mixed_bnh = self.attention(silu(z_bnz), value_bnh, lengths_b, valid_bn) * silu(reset)
        y_bnc = self.dropout(silu(shortcut + self.back(mixed_bnh)))
        y_bnc = torch.lerp(x_bnc, y_bnc.to(x_bnc.dtype), update.sigmoid().to(x_bnc.dtype))
        return y_bnc if self.prenorm else self.norm(y_bnc, valid_bn)


class FeedForward(nn.Module):
    """Two linear layers around SiLU."""

    def __init__(
        self,
        dim: int,
        hidden: int,
        norm: str,
        prenorm: bool,
        dropout: float,
        hidden_dropout: float,
    ) -> None:
        super().__init__()
        self.prenorm = prenorm
        self.norm = Norm(norm, dim)
        self.mlp = nn.Sequential(
            _normal_linear(dim, hidden),
            nn.SiLU(),
            nn.Dropout(hidden_dropout),
            _normal_linear(hidden, dim),
            nn.Dropout(dropout),
        )

    def forward(self, x_bnc: Tensor, lengths_b: Tensor | None, valid_bn: Tensor | None) -> Tensor:
        if self.prenorm:
            return x_bnc + self.mlp(self.norm(x_bnc, valid_bn))
        return self.norm(x_bnc + self.mlp(x_bnc), valid_bn)


class MovingAverage(nn.Module):
    """Damped exponential moving averages in both directions, as one FFT convolution.

    Each channel c keeps `averages` states a_e(n) = q_e a_e(n-1) + p_e beta_e x(n), with
    q_e = 1 - p_e alpha_e, and gives sum_e gamma_e a_e / sqrt(averages); so it does from the other
    end, and the two are added to omega x.
    """

    def __init__(self, dim: int, averages: int, truncation: int | None) -> None:
        super().__init__()
        self.dim = dim
        self.truncation = truncation
        shape = (2 * dim, averages)  # one direction, then the other
        self.delta = nn.Parameter(torch.randn(shape) * 0.2)
        self.alpha = nn.Parameter(torch.randn(shape) * 0.2)
        signs = 1 - 2 * (torch.arange(averages) % 2)  # alternating ones are said to be more stable
        self.beta = nn.Parameter(torch.randn(shape) * 0.02 + signs)
        self.gamma = nn.Parameter(torch.randn(shape))
        self.omega = nn.Parameter(torch.randn(dim))

    def forward(self, x_bnc: Tensor, valid_bn: Tensor | None = None) -> Tensor:
        samples = x_bnc.shape[1]
        reach = samples if self.truncation is None else min(samples, self.truncation)
        # In half precision small weights, and with them far samples, would be lost.
        with torch.autocast(x_bnc.device.type, enabled=False):
            x_bcn = x_bnc.float().transpose(1, 2)
            if valid_bn is not None:
                x_bcn = x_bcn.masked_fill(~valid_bn[:, None], 0)
            y_bcn = convolve(x_bcn, *self.kernels(reach))
            y_bnc = silu(y_bcn.transpose(1, 2) + x_bnc.float() * self.omega.float())
        return y_bnc.to(x_bnc.dtype)

    def kernels(self, reach: int) -> tuple[Tensor, Tensor]:
        """What lag 0, 1, ... weighs in each channel, (C, reach), forth and back."""
        p = self.delta.float().sigmoid()
        log_q = torch.log1p(-p * self.alpha.float().sigmoid())
        weight = p * self.beta.float() * self.gamma.float() / math.sqrt(self.delta.shape[1])
        lag = torch.arange(reach, device=p.device, dtype=torch.float32)
        decay_cel = torch.exp(log_q[..., None] * lag)
        kernel = torch.einsum("cel,ce->cl", decay_cel, weight)
        return kernel[: self.dim], kernel[self.dim :]


class Attention(nn.Module):
    """One head, with a bias learned for each distance, over all samples or chunk by chunk."""

    def __init__(self, samples: int, z: int, kind: str, chunk: int | None, dropout: float) -> None:
        super().__init__()
        self.z = z
        self.kind = kind
        self.chunk = chunk
        self.dropout = dropout
        self.longest = samples if chunk is None else min(samples, chunk)
        self.scale = nn.Parameter(torch.randn(2, z) * _SCALE)
        self.shift = nn.Parameter(torch.zeros(2, z))
        self.bias = nn.Parameter(torch.randn(2 * self.longest - 1) * _SCALE)

    def forward(
        self,
        z_bnz: Tensor,
        value_bnh: Tensor,
        lengths_b: Tensor | None,
        valid_bn: Tensor | None,
    ) -> Tensor:
        samples = z_bnz.shape[1]
        size = min(samples, self.longest)
        missing = -samples % size
        if missing:
            z_bnz, value_bnh = (pad(x, (0, 0, 0, missing)) for x in (z_bnz, value_bnh))
            if valid_bn is None:
                valid_bn = torch.ones(1, samples, dtype=torch.bool, device=z_bnz.device)
            valid_bn = pad(valid_bn, (0, missing))
        z_bkmz, value_bkmh = (x.unflatten(1, (-1, size)) for x in (z_bnz, value_bnh))
        valid_bkm = None if valid_bn is None else valid_bn.unflatten(1, (-1, size))
        q_bkmz, k_bkmz = (z_bkmz * self.scale[i] + self.shift[i] for i in (0, 1))
        attend = self._softmax if self.kind == "softmax" else self._laplace
        mixed_bkmh = attend(q_bkmz, k_bkmz, value_bkmh.to(q_bkmz.dtype), valid_bkm)
        return mixed_bkmh.flatten(1, 2)[:, :samples]

    def _softmax(self, q: Tensor, k: Tensor, value: Tensor, valid_bkm: Tensor | None) -> Tensor:
        bias = self.relative_bias(q.shape[2]).to(q.dtype)
        if valid_bkm is not None:
            # A chunk of nothing but padding attends to itself: a softmax over nothing is NaN.
            keep = valid_bkm | ~valid_bkm.any(dim=-1, keepdim=True)
            bias = bias.where(keep[:, :, None], -torch.inf)
        rate = self.dropout if self.training else 0.0
        return scaled_dot_product_attention(q, k, value, attn_mask=bias, dropout_p=rate)

    def _laplace(self, q: Tensor, k: Tensor, value: Tensor, valid_bkm: Tensor | None) -> Tensor:
        count: Tensor | int = q.shape[2]
        if valid_bkm is not None:
            count = valid_bkm.sum(dim=-1).clamp(min=1)[..., None, None]
        scores = q @ k.transpose(-1, -2) / count + self.relative_bias(q.shape[2])
        # A Gaussian distribution function that approximates squared ReLU, as published.
        weights = 0.5 * (1 + torch.erf((scores.float() - math.sqrt(0.5)) * math.sqrt(2 * math.pi)))
        if valid_bkm is not None:
            weights = weights * valid_bkm[:, :, None]
        return dropout(weights.to(value.dtype), self.dropout, self.training) @ value

    def relative_bias(self, samples: int) -> Tensor:
        """What is learned for distance j - i, at (i, j)."""
        n = samples
        row = self.bias[self.longest - n : self.longest + n - 1]
        # Rows of 2N read as rows of 2N - 1: each begins one further to the left than the last.
        skewed = pad(row, (0, 1)).expand(n, 2 * n).reshape(-1)[: n * (2 * n - 1)]
        return skewed.view(n, 2 * n - 1)[:, n - 1 :]


class Permutation(nn.Module):
    """CSP in the place of attention: no queries, no keys, no bias, no parameters."""

    z = 0
    steps: Tensor

    def __init__(
        self,
        samples: int,
        hidden: int,
        layer: int,
        depth: int,
        group_size: int | None = 2,
        shift: str = "linear",
        order: str = "reference",
    ) -> None:
        super().__init__()
        self.group_size = group_size
        self.order = order
        steps = shift_steps(shift, samples, hidden, layer=layer, depth=depth)
        self.register_buffer("steps", steps, persistent=False)

    def forward(
        self,
        z_bnz: Tensor,
        value_bnh: Tensor,
        lengths_b: Tensor | None,
        valid_bn: Tensor | None,
    ) -> Tensor:
        return csp(value_bnh, self.steps, self.group_size, order=self.order, lengths=lengths_b)


def _normal_linear(inputs: int, outputs: int) -> nn.Linear:
    linear = nn.Linear(inputs, outputs)
    nn.init.normal_(linear.weight, std=_SCALE)
    nn.init.zeros_(linear.bias)
    return linear
