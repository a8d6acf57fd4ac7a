"""What S4 and S4D share: a linear state of many small parts for each channel, run both ways.

x' = A x + B u and y = C x + D u in each channel, with steps of dt. Half of the states stand for
all: the others are their conjugates. Gu et al. 2022, Efficiently modeling long sequences with
structured state spaces; initialisation as in the code that they maintain.

Shapes in names: b batch, n samples, c channels, s states (a half of them), k copies of A and B,
w ways (one, or forth and back).
"""

import math
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, glu, softplus

from .convolution import convolve, full
from .mixer import ChannelDropout, FusedLinear, Mixer, check_size, valid_samples, wipe_padding


class StateSpace(Mixer):
    """One long convolution of each channel, GELU, and a gated linear unit over the channels.

    Args:
        dim, layer, depth: as in every mixer.
        samples: the longest sequence that will come.
        heads: unused, there is no attention.
        channels: how many have states; with another number than `dim` (the default) there is a
            projection to them.
        dropout: of whole channels, before the gated linear unit.
        bias, out_bias: whether that projection, and the gated linear unit, have a bias.
        states: of each channel and direction.
        copies: how many A and B there are, each for as many channels; None is one for each channel.
        bidirectional: look at what comes later too.
        dt_min, dt_max: between which the steps are drawn.
    """

    kinds: ClassVar = {"dt": "dt", "decay": "A", "frequency": "A", "b": "B"}

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
        states: int = 64,
        copies: int | None = 1,
        bidirectional: bool = True,
        dt_min: float = 1e-3,
        dt_max: float = 0.1,
    ) -> None:
        super().__init__()
        channels = dim if channels is None else channels
        copies = channels if copies is None else check_size("copies", copies)
        if check_size("states", states, 2) % 2:
            raise ValueError(f"states must be even, as they are pairs, got {states}")
        if channels % copies:
            raise ValueError(f"copies must divide the {channels} channels, got {copies}")
        if not 0 < dt_min <= dt_max:
            raise ValueError(f"dt_min must be above 0 and not above {dt_max}, got {dt_min}")
        self.samples = samples
        self.inner = None if channels == dim else nn.Linear(dim, channels, bias=bias)
        ways, half = 1 + bidirectional, states // 2
        low, high = math.log(dt_min), math.log(dt_max)
        self.dt = nn.Parameter(torch.empty(channels).uniform_(low, high).exp().expm1().log())
        a_s, b_s = self.start(states)
        self.decay = nn.Parameter((-a_s.real).log().repeat(copies, 1))
        self.frequency = nn.Parameter((-a_s.imag).repeat(copies, 1))
        self.b = nn.Parameter(torch.view_as_real(b_s).repeat(copies, 1, 1))
        self.c = nn.Parameter(torch.randn(ways, channels, half, 2) * math.sqrt(0.5))
        self.d = nn.Parameter(torch.randn(channels))
        self.dropout = ChannelDropout(dropout)
        self.out = FusedLinear(channels, dim, 2, out_bias)

    def start(self, states: int) -> tuple[Tensor, Tensor]:
        """Of one copy: the eigenvalues of A below the real line, and B; complex, (S,)."""
        raise NotImplementedError

    def kernels(self, samples: int) -> Tensor:
        """What lag 0, 1, ... weighs in each channel, (W, C, N)."""
        raise NotImplementedError

    def forward(self, x_bnc: Tensor, lengths_b: Tensor | None = None) -> Tensor:
        """Convolve, and mix the channels of each sample."""
        valid_bn = None
        if lengths_b is not None:
            valid_bn = valid_samples(x_bnc.shape[1], lengths_b)
            x_bnc = wipe_padding(x_bnc, valid_bn)
        if self.inner is not None:
            x_bnc = self.inner(x_bnc)
            if valid_bn is not None:  # its bias
                x_bnc = wipe_padding(x_bnc, valid_bn)
        with torch.autocast(x_bnc.device.type, enabled=False):
            x_bcn = full(x_bnc).transpose(1, 2)
            y_bcn = convolve(x_bcn, *self.kernels(x_bcn.shape[-1]))
            y_bcn = gelu(y_bcn + x_bcn * full(self.d)[:, None])
        return glu(self.out(self.dropout(y_bcn.transpose(1, 2).to(x_bnc.dtype))))

    def parts(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """dt (C, 1), A (C, S), B (C, S) and C (W, C, S), the last three complex."""
        a_ks = torch.complex(-full(self.decay).exp(), -full(self.frequency))
        return (
            softplus(full(self.dt))[:, None],
            self.of_channels(a_ks),
            self.of_channels(torch.view_as_complex(full(self.b))),
            torch.view_as_complex(full(self.c)),
        )

    def of_channels(self, copies_ks: Tensor) -> Tensor:
        """A copy for each channel, in turns, (C, S)."""
        return copies_ks.repeat(len(self.dt) // len(copies_ks), 1)


def hippo(states: int) -> tuple[Tensor, Tensor, Tensor]:
    """HiPPO-LegS in the basis where it is diagonal but for a part of rank one: A - P P*, with B.

    One eigenvalue, and entry of P and B, for each pair.
    """
    a, vectors = hippo_normal(states)
    root = torch.sqrt(2 * torch.arange(states, dtype=torch.float64, device="cpu") + 1)
    b, p = (vectors.mH @ x.to(vectors.dtype) for x in (root, root / math.sqrt(2)))
    # Published for the sake of stability.
    b = torch.complex(b.real, b.imag.clamp(-2, 2))
    return tuple(x.to(torch.complex64).to(torch.get_default_device()) for x in (a, p, b))


def hippo_normal(states: int) -> tuple[Tensor, Tensor]:
    """HiPPO-LegS and P P^T: eigenvalues below the real line and their eigenvectors, (S, S / 2).

    In double precision.
    """
    # On the CPU even where a model is built without memory.
    root = torch.sqrt(2 * torch.arange(states, dtype=torch.float64, device="cpu") + 1)
    # With P = root / sqrt(2), the sum of LegS and P P^T is a skew-symmetric matrix less a half.
    product = root[:, None] * root / 2
    skew = product.triu(1) - product.tril(-1)
    frequency, vectors = torch.linalg.eigh(-1j * skew)
    half = slice(0, states // 2)  # below the real line
    return torch.complex(torch.full_like(frequency[half], -0.5), frequency[half]), vectors[:, half]
