"""ETSMLP: exponential smoothing with complex factors, between the two layers of an MLP.

Shapes in names: b batch, n samples, c channels, h hidden channels, l lags. Complex parameters are
pairs of real numbers, in a last dimension of 2.
"""

import math
from typing import ClassVar, Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn.functional import relu

from .convolution import convolve, exponentials, full
from .mixer import About, Mixer, valid_samples, wipe_padding

Gate = Literal["sigmoid", "none"]


class ETS(Mixer):
    """y = W' relu(smooth(W x)) * sigmoid(G x); without the gate it is ETSMLP, with it ETSMLP-Gate.

    In each hidden channel s_n = lambda^alpha s_{n-1} + (1 - lambda^alpha) x_n, forth, and so it is
    from the other end; smooth(x)_n = Re(exp(beta) s_n) + Re(exp(beta') s'_{n+1}) + omega x_n.

    Args:
        dim: width of x and y.
        samples, layer, depth, heads, dropout: unused.
        channels: width of the hidden layer (default `dim`).
        bias, out_bias: whether W and G, and W', have a bias.
        gate: "sigmoid" or "none".
        radius_min, radius_max, phase_max: at the start |lambda| is between the first two, and its
            phase between 0 and the third.
        step_min, step_max: as the real and the imaginary part of alpha are at the start.
        longest: no |lambda^alpha| is above this.
    """

    about = About(
        complexity="C N log N",
        source="Chu and Lin 2024, Incorporating exponential smoothing into MLP",
        row="LRA: ETSMLP",
        left_out="the causal form; real factors",
    )
    kinds: ClassVar = {"log_rate": "A", "log_alpha": "dt"}

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
        bias: bool = True,
        out_bias: bool = True,
        gate: Gate = "sigmoid",
        radius_min: float = 0.1,
        radius_max: float = 0.9,
        phase_max: float = 3.14,
        step_min: float = 0.001,
        step_max: float = 0.1,
        longest: float = 0.9999,
    ) -> None:
        super().__init__()
        if gate not in get_args(Gate):
            raise ValueError(f"gate must be one of {', '.join(get_args(Gate))}, got {gate!r}")
        hidden = dim if channels is None else channels
        self.inner = nn.Linear(dim, hidden, bias=bias)
        self.gate = nn.Linear(dim, dim, bias=bias) if gate == "sigmoid" else None
        self.out = nn.Linear(hidden, dim, bias=out_bias)
        for linear in (self.inner, self.out, *([self.gate] if self.gate else [])):
            nn.init.xavier_uniform_(linear.weight)

        self.longest = longest
        factors = 2 * hidden  # one direction, then the other
        square = radius_min**2 + torch.rand(factors) * (radius_max**2 - radius_min**2)
        rate = torch.complex(0.5 * square.log(), phase_max * torch.rand(factors))
        #: log log lambda, of each factor.
        self.log_rate = nn.Parameter(torch.view_as_real(rate.log()).contiguous())
        low, high = math.log(step_min), math.log(step_max)
        log_step = low + (high - low) * torch.rand(factors)
        self.log_alpha = nn.Parameter(log_step[:, None].repeat(1, 2))
        self.log_beta = nn.Parameter(0.2 * torch.randn(factors, 2))
        self.omega = nn.Parameter(torch.randn(hidden))

    def forward(self, x_bnc: Tensor, lengths_b: Tensor | None = None) -> Tensor:
        """The MLP, with its samples mixed half way."""
        valid_bn = None if lengths_b is None else valid_samples(x_bnc.shape[1], lengths_b)
        if valid_bn is not None:
            x_bnc = wipe_padding(x_bnc, valid_bn)
        hidden_bnh = self.inner(x_bnc)
        if valid_bn is not None:  # the padding has the bias
            hidden_bnh = wipe_padding(hidden_bnh, valid_bn)
        y_bnc = self.out(relu(self.smooth(hidden_bnh)))
        return y_bnc if self.gate is None else y_bnc * self.gate(x_bnc).sigmoid()

    def smooth(self, x_bnh: Tensor) -> Tensor:
        """omega x, and what is before and after each sample with weights that fall off."""
        forth_hl, back_hl = self.kernels(x_bnh.shape[1])
        # A sample counts for itself on the way forth alone.
        back_hl = torch.cat((torch.zeros_like(back_hl[:, :1]), back_hl[:, :-1]), dim=-1)
        y_bnh = convolve(x_bnh.transpose(1, 2), forth_hl, back_hl).transpose(1, 2)
        return (y_bnh + full(x_bnh) * full(self.omega)).to(x_bnh.dtype)

    def kernels(self, lags: int) -> tuple[Tensor, Tensor]:
        """Re exp(beta) (1 - lambda^alpha) lambda^(alpha l) for l = 0, 1, ..., forth and back."""
        log_lambda_h = torch.view_as_complex(full(self.log_rate)).exp()
        # The exponential is that of the real and the imaginary part each, as published.
        rate_h = log_lambda_h * torch.view_as_complex(full(self.log_alpha).exp())
        rate_h = torch.complex(rate_h.real.clamp(max=math.log(self.longest)), rate_h.imag)
        weight_h = torch.view_as_complex(full(self.log_beta)).exp() * (1 - rate_h.exp())
        kernel_hl = exponentials(weight_h[:, None], rate_h[:, None], lags)
        forth_hl, back_hl = kernel_hl.chunk(2)
        return forth_hl, back_hl
