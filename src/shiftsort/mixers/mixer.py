"""What every mixer is: (B, N, dim) in and out, no leak from the padding, a word on its origin.

Shapes in names: b batch, n samples, c channels, h heads, d channels of a head.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout1d


@dataclass(frozen=True)
class About:
    """A mixer as `shiftsort models` lists it."""

    #: Operations of one layer, as published.
    complexity: str
    #: Whose idea it is.
    source: str
    #: Where it stands in the paper's tables.
    row: str
    #: What the original has and this has not.
    left_out: str = "nothing"


class Mixer(nn.Module):
    """Mixes the samples of a sequence: `forward(x_bnc, lengths_b=None) -> y_bnc`.

    `lengths_b` says how many samples of each right-padded sequence are valid. What stands in the
    padding, NaN included, changes no valid output; what comes out in the padding means nothing.
    """

    about: ClassVar[About]
    #: Options of an ancestor that this mixer settles itself.
    withheld: ClassVar[tuple[str, ...]] = ()
    #: Whether it must know the longest sequence when it is built.
    made_to_length: ClassVar[bool] = False
    #: Whether a training step with it may become a CUDA graph: it asks the device for no value.
    capturable: ClassVar[bool] = True
    #: Parameters of its own that a recipe may train apart from all others: name to kind. "A" is how
    #: a state decays, "B" what enters it, "dt" how fast its time runs.
    kinds: ClassVar[Mapping[str, str]] = {}

    def forward(self, x_bnc: Tensor, lengths_b: Tensor | None = None) -> Tensor:
        """Mix."""
        raise NotImplementedError


class FusedLinear(nn.Linear):
    """Several projections of one input as one product: `parts` matrices, one below the other."""

    def __init__(self, dim: int, channels: int, parts: int, bias: bool) -> None:
        super().__init__(dim, parts * channels, bias=bias)
        self.parts = parts


class ChannelDropout(nn.Dropout):
    """A channel is dropped at all samples or at none."""

    def forward(self, x_bnc: Tensor) -> Tensor:
        """Drop."""
        return dropout1d(x_bnc.transpose(1, 2), self.p, self.training).transpose(1, 2)


class HeadMixer(Mixer):
    """A mixer with heads, around the one method that tells it from the others.

    Args:
        dim: width of x and y.
        samples: the longest sequence that will come; None is any.
        layer, depth: which layer of how many this is.
        heads: heads of attention.
        channels: width of queries, keys and values, all heads together (default `dim`).
        dropout: dropout of the attention map, where the method has one.
        bias: whether the projections to queries, keys and values have a bias.
        out_bias: whether the projection back has one.
    """

    #: How many projections of x there are: queries, keys and values for most.
    parts: ClassVar[int] = 3

    def __init__(
        self,
        dim: int,
        *,
        samples: int | None,
        layer: int = 0,
        depth: int = 1,
        heads: int = 8,
        channels: int | None = None,
        dropout: float = 0.0,
        bias: bool = False,
        out_bias: bool = True,
    ) -> None:
        super().__init__()
        channels = dim if channels is None else channels
        if heads < 1 or channels % heads:
            raise ValueError(
                f"heads must divide the {channels} channels, got heads={heads}; "
                "choose another number of heads, or another width with channels="
            )
        self.samples = samples
        self.layer = layer
        self.depth = depth
        self.heads = heads
        self.channels = channels
        self.dropout = dropout
        self.inner = FusedLinear(dim, channels, self.parts, bias)
        self.out = nn.Linear(channels, dim, bias=out_bias)

    def forward(self, x_bnc: Tensor, lengths_b: Tensor | None = None) -> Tensor:
        """Project, attend, project back."""
        valid_bn = None
        if lengths_b is not None:
            valid_bn = valid_samples(x_bnc.shape[1], lengths_b)
            x_bnc = wipe_padding(x_bnc, valid_bn)
        return self.out(self.attend(x_bnc, valid_bn).transpose(1, 2).flatten(2))

    def attend(self, x_bnc: Tensor, valid_bn: Tensor | None) -> Tensor:
        """What the method is, (B, H, N, D). `valid_bn` is None where nothing is padded."""
        raise NotImplementedError

    def project(self, x_bnc: Tensor) -> tuple[Tensor, ...]:
        """The fused projections of x, each (B, H, N, D)."""
        return self.split(self.inner(x_bnc))

    def split(self, fused_bnc: Tensor) -> tuple[Tensor, ...]:
        """A product of several projections taken apart, each part (B, H, N, D)."""
        parts = fused_bnc.shape[-1] // self.channels
        return fused_bnc.unflatten(-1, (parts, self.heads, -1)).permute(2, 0, 3, 1, 4).unbind(0)

    @property
    def attention_dropout(self) -> float:
        """The dropout that applies now."""
        return self.dropout if self.training else 0.0

    def check_samples(self, samples: int) -> None:
        """For the methods whose parameters are tied to the longest sequence."""
        if samples > self.samples:
            raise ValueError(
                f"this mixer was made for up to {self.samples} samples, got {samples}; "
                "build it with a larger samples="
            )


def valid_samples(samples: int, lengths_b: Tensor) -> Tensor:
    """Which samples are valid, (B, N).

    An empty sequence counts as one of length 1: a softmax over nothing would be NaN, and with it
    the gradient of the whole batch.
    """
    n = torch.arange(samples, device=lengths_b.device)
    return n < lengths_b.clamp(min=1)[:, None]


def wipe_padding(x_bnc: Tensor, valid_bn: Tensor) -> Tensor:
    """Zeros in the padding. A weight of zero, or a gradient of zero, would not silence a NaN."""
    return x_bnc.masked_fill(~valid_bn[..., None], 0)


def wipe_heads(x_bhnd: Tensor, valid_bn: Tensor | None) -> Tensor:
    """The same behind a projection, whose bias the padding has again."""
    return x_bhnd if valid_bn is None else x_bhnd.masked_fill(~valid_bn[:, None, :, None], 0)


def check_size(name: str, value: int, least: int = 1) -> int:
    """An option that counts something."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}")
    return value
