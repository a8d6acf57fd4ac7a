"""CCNN: convolutions as long as the sequence, whose kernels a small network draws.

Shapes in names: b batch, n samples, c channels, l lags; of the network f filters, h channels.
"""

import math
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu

from .convolution import convolve, full
from .mixer import About, ChannelDropout, Mixer, check_size, valid_samples, wipe_padding

#: How many deviations out the window, which is 1 at lag 0, has fallen to a tenth. The kernel ends.
_END = math.sqrt(-2 * math.log(0.1))


class CCNN(Mixer):
    """y = gelu(W' gelu(W conv(x))): what stands between norm and sum in the published block.

    The kernel is a function of the place of a lag between 1, lag 0, and -1, lag samples - 1. So a
    shorter sequence meets the same kernel. It looks back only, as published for sequences.

    Args:
        dim: width of x and y.
        samples: the longest sequence that will come, which is the length of the kernel.
        layer, depth, heads: unused.
        channels: width between W and W' (default `dim`).
        dropout: between W and W'.
        tied: whether dropout takes whole channels.
        bias, out_bias: whether the convolution and W, and W', have a bias.
        hidden: width of the network that draws the kernels.
        layers: how many layers it has behind the first filter.
        frequency: of its filters at the start.
        width: deviation of the kernel's Gaussian window at the start, where the kernel is 2 long.
    """

    about = About(
        complexity="C N log N by FFT",
        source="Knigge et al. 2023, Modelling long range dependencies in ND",
        row="LRA: CCNN",
        left_out="images and point clouds; the centred kernel; a penalty on the kernel's norm",
    )
    made_to_length = True
    kinds: ClassVar = {"width": "mask"}

    def __init__(
        self,
        dim: int,
        *,
        samples: int,
        layer: int = 0,
        depth: int = 1,
        heads: int = 8,
        channels: int | None = None,
        dropout: float = 0.0,
        bias: bool = True,
        out_bias: bool = True,
        tied: bool = True,
        hidden: int = 32,
        layers: int = 3,
        frequency: float = 2000.0,
        width: float = 0.075,
    ) -> None:
        super().__init__()
        channels = dim if channels is None else channels
        self.samples = samples
        self.dropout = (ChannelDropout if tied else nn.Dropout)(dropout)
        self.kernel_net = MAGNet(
            dim, check_size("hidden", hidden), check_size("layers", layers, 0), frequency, width
        )
        self.width = nn.Parameter(torch.tensor([width]))
        # What comes out is to vary as much as what comes in, however many lags there are.
        reach = 1 + math.ceil(_END * width * (samples - 1) / 2)
        self.kernel_net.out_weight.data /= math.sqrt(min(reach, samples))
        self.conv_bias = nn.Parameter(torch.zeros(dim)) if bias else None
        self.inner = nn.Linear(dim, channels, bias=bias)
        self.out = nn.Linear(channels, dim, bias=out_bias)
        for linear in (self.inner, self.out):
            nn.init.kaiming_normal_(linear.weight)
            if linear.bias is not None:
                nn.init.zeros_(linear.bias)

    def forward(self, x_bnc: Tensor, lengths_b: Tensor | None = None) -> Tensor:
        """Convolve, then mix the channels."""
        if lengths_b is not None:
            x_bnc = wipe_padding(x_bnc, valid_samples(x_bnc.shape[1], lengths_b))
        return gelu(self.out(self.dropout(gelu(self.inner(self.convolved(x_bnc))))))

    def convolved(self, x_bnc: Tensor) -> Tensor:
        """Each channel with its kernel."""
        y_bcn = convolve(x_bnc.transpose(1, 2), self.kernel(min(x_bnc.shape[1], self.samples)))
        if self.conv_bias is not None:
            y_bcn = y_bcn + self.conv_bias[:, None]
        return y_bcn.transpose(1, 2).to(x_bnc.dtype)

    def kernel(self, lags: int) -> Tensor:
        """What the first lags weigh in each channel, (C, lags)."""
        width = full(self.width)
        with torch.autocast(width.device.type, enabled=False):
            lag_l = torch.arange(lags, device=width.device, dtype=width.dtype)
            place_l = 1 - lag_l * (2 / max(self.samples - 1, 1))
            window_l = torch.exp(-0.5 * (place_l - 1).square() / (width.square() + 1e-8))
            # Published as a cut of what is drawn; a factor of zero asks the device for no value.
            window_l = window_l * (lag_l < 1 + _END * width.abs() * (self.samples - 1) / 2)
            return self.kernel_net(place_l) * window_l


class MAGNet(nn.Module):
    """A product of filters with linear layers between them, of a place.

    Each filter is a wave in a Gaussian window, exp(-(gamma (p - mu))^2 / 2) sin(omega p + phase).
    """

    def __init__(
        self, channels: int, hidden: int, layers: int, frequency: float, width: float
    ) -> None:
        super().__init__()
        shape = (layers + 1, hidden)
        # Windows begin where that of the whole kernel is, near 1.
        self.mu = nn.Parameter(1 - 1.667 * width * torch.rand(shape))
        # Filters become wider from layer to layer, as their product becomes narrower. Drawn on the
        # CPU and unchecked: where a model is built without memory, there are no values to look at.
        shapes_fh = 6 / torch.arange(1, layers + 2, device="cpu")[:, None].expand(shape)
        one = torch.ones((), device="cpu")
        gamma = torch.distributions.Gamma(shapes_fh, one, validate_args=False).sample()
        self.gamma = nn.Parameter(gamma.to(torch.get_default_device()))
        omega = 2 * math.pi * frequency * self.gamma.data * (2 * torch.rand(shape) - 1)
        self.omega = nn.Parameter(omega)
        self.phase = nn.Parameter(torch.zeros(shape))
        bound = math.sqrt(3 / hidden)
        self.weight = nn.Parameter(bound * (2 * torch.rand(layers, hidden, hidden) - 1))
        self.bias = nn.Parameter(torch.ones(layers, hidden))
        self.out_weight = nn.Parameter(bound * (2 * torch.rand(channels, hidden) - 1))
        self.out_bias = nn.Parameter(torch.zeros(channels))

    def forward(self, place_l: Tensor) -> Tensor:
        """The value at each place, (C, L)."""
        mu, gamma, omega, phase = (
            full(p)[:, None] for p in (self.mu, self.gamma, self.omega, self.phase)
        )
        place_l1 = place_l[:, None]
        window_flh = torch.exp(-0.5 * (gamma * (place_l1 - mu)).square())
        value_lh, *rest = window_flh * torch.sin(omega * place_l1 + phase)
        for filter_lh, weight, bias in zip(rest, full(self.weight), full(self.bias), strict=True):
            value_lh = filter_lh * (value_lh @ weight.mT + bias)
        return full(self.out_weight) @ value_lh.mT + full(self.out_bias)[:, None]
