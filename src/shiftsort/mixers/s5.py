"""S5: one state-space model with as many inputs and outputs as channels, run by a scan.

Shapes in names: b batch, n samples, c channels, p states, one of each pair of conjugates. Complex
parameters are pairs of real numbers, in a last dimension of 2.
"""

import math
from typing import ClassVar, Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu

from .convolution import full
from .mixer import About, ChannelDropout, Mixer, check_size, valid_samples, wipe_padding
from .scan import scan
from .state_space import hippo_normal

Activation = Literal["half_glu1", "half_glu2", "full_glu", "gelu"]
Discretisation = Literal["zoh", "bilinear"]
Output = Literal["truncated_normal", "lecun_normal", "complex_normal"]

_TRUNCATED = 0.87962566103423978  # deviation of a normal distribution cut at two deviations


class S5(Mixer):
    """x' = Lambda x + B u, y = Re(C x) + D u in discrete time and both directions; then a gate.

    Lambda is diagonal; of each pair of conjugate states one is kept. It starts as the normal part
    of HiPPO-LegS, once for each block, and B and C in that basis.

    Args:
        dim: width of x and y.
        samples, layer, depth, heads, channels, bias: unused.
        dropout: of whole channels, before the gate.
        out_bias: whether the linear layers of the gate have a bias.
        states: how many, conjugates counted.
        blocks: how many HiPPO matrices these are shared out to at the start.
        bidirectional: whether a second C reads the states of a scan from the other end.
        discretisation: "zoh" or "bilinear".
        step_min, step_max: the time steps begin between these.
        output: how C starts: "truncated_normal" or "lecun_normal", in the basis of the states, or
            "complex_normal", in no basis.
        clip: whether to keep the real parts of Lambda below zero.
        activation: with g = gelu(y): "half_glu1" is g * sigmoid(W g), "half_glu2" y * sigmoid(W g),
            "full_glu" W g * sigmoid(W' g), "gelu" is g.
    """

    about = About(
        complexity="C N P, P states",
        source="Smith et al. 2023, Simplified state space layers for sequence modeling",
        row="LRA: S5",
        left_out="steps of varying length; states that are no conjugate pairs",
    )
    kinds: ClassVar = {"eigenvalues": "A", "log_step": "dt", "b": "B"}

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
        states: int = 256,
        blocks: int = 8,
        bidirectional: bool = True,
        discretisation: Discretisation = "zoh",
        step_min: float = 0.001,
        step_max: float = 0.1,
        output: Output = "truncated_normal",
        clip: bool = False,
        activation: Activation = "half_glu1",
    ) -> None:
        super().__init__()
        check_size("blocks", blocks)
        if check_size("states", states) % (2 * blocks):
            raise ValueError(
                f"states must be a multiple of 2 * blocks, got states={states} with blocks={blocks}"
            )
        for name, value, choices in (
            ("activation", activation, get_args(Activation)),
            ("discretisation", discretisation, get_args(Discretisation)),
            ("output", output, get_args(Output)),
        ):
            if value not in choices:
                raise ValueError(f"{name} must be one of {', '.join(choices)}, got {value!r}")
        self.dropout = ChannelDropout(dropout)
        self.discretisation = discretisation
        self.clip = clip
        self.activation = activation
        eigenvalues, basis = hippo_blocks(states, blocks)
        self.eigenvalues = _pairs(eigenvalues)
        low, high = math.log(step_min), math.log(step_max)
        self.log_step = nn.Parameter(low + (high - low) * torch.rand(states // 2))
        self.b = _pairs(basis.mH @ _truncated((states, dim), 1 / states).to(basis.dtype))
        self.c = _pairs(_start_of_output(output, 1 + bidirectional, dim, basis))
        self.d = nn.Parameter(torch.randn(dim))
        gates = {"gelu": 0, "full_glu": 2}.get(activation, 1)
        self.gate = nn.Linear(dim, gates * dim, bias=out_bias) if gates else None

    def forward(self, x_bnc: Tensor, lengths_b: Tensor | None = None) -> Tensor:
        """Run the system, then gate."""
        if lengths_b is not None:
            x_bnc = wipe_padding(x_bnc, valid_samples(x_bnc.shape[1], lengths_b))
        y_bnc = self.system(x_bnc)
        inner_bnc = self.dropout(gelu(y_bnc, approximate="tanh"))
        if self.gate is None:
            return inner_bnc
        gate_bnc = self.gate(inner_bnc)
        if self.activation == "full_glu":
            return nn.functional.glu(gate_bnc)
        gated_bnc = inner_bnc if self.activation == "half_glu1" else y_bnc
        return gated_bnc.to(gate_bnc.dtype) * gate_bnc.sigmoid()

    def system(self, x_bnc: Tensor) -> Tensor:
        """The outputs of the linear system."""
        u_bnc = full(x_bnc)
        dtype = u_bnc.dtype
        # Powers of a number near 1 in half precision would be those of another one.
        with torch.autocast(x_bnc.device.type, enabled=False):
            a_p, b_pc = self.discrete(dtype)
            # Products with the real and the imaginary parts side by side are real ones.
            b_cp2 = torch.view_as_real(b_pc.mT)
            bu_bnp = torch.view_as_complex((u_bnc @ b_cp2.flatten(1)).unflatten(-1, (-1, 2)))
            y_bnc = u_bnc * self.d.to(dtype)
            for reverse, c_cp2 in enumerate(self.c.to(dtype)):
                state_bnp2 = torch.view_as_real(scan(a_p, bu_bnp, bool(reverse)))
                # A state and its conjugate together are twice the real part of one.
                weight_cp2 = torch.stack((2 * c_cp2[..., 0], -2 * c_cp2[..., 1]), dim=-1)
                y_bnc = y_bnc + state_bnp2.flatten(-2) @ weight_cp2.flatten(1).mT
        return y_bnc.to(x_bnc.dtype)

    def discrete(self, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """What a sample leaves of the state before it, and what it adds to it: (P,) and (P, C)."""
        real_p, imaginary_p = self.eigenvalues.to(dtype).unbind(-1)
        if self.clip:
            real_p = real_p.clamp(max=-1e-4)
        lambda_p = torch.complex(real_p, imaginary_p)
        b_pc = torch.view_as_complex(self.b.to(dtype))
        step_p = self.log_step.to(dtype).exp()
        if self.discretisation == "zoh":
            a_p = (lambda_p * step_p).exp()
            # Published as a - 1, which for small steps has few digits.
            return a_p, (torch.expm1(lambda_p * step_p) / lambda_p)[:, None] * b_pc
        half_p = lambda_p * step_p / 2
        return (1 + half_p) / (1 - half_p), (step_p / (1 - half_p))[:, None] * b_pc


def hippo_blocks(states: int, blocks: int) -> tuple[Tensor, Tensor]:
    """Eigenvalues of HiPPO's normal part, once for each block, and eigenvectors.

    One of each pair of conjugates, (P,), and (states, P): a diagonal of blocks.
    """
    parts = hippo_normal(states // blocks)
    eigenvalues, vectors = (part.to(torch.get_default_device()) for part in parts)
    return eigenvalues.repeat(blocks), torch.block_diag(*[vectors] * blocks)


def _start_of_output(kind: str, directions: int, dim: int, basis: Tensor) -> Tensor:
    """C of each direction, (directions, C, P)."""
    states = len(basis)
    if kind == "complex_normal":
        return torch.randn(directions, dim, states // 2, dtype=basis.dtype)
    # As published: the second counts the outputs as inputs too, and begins much smaller.
    variance = 1 / states if kind == "truncated_normal" else 1 / (states * dim)
    parts = _truncated((directions, dim, states, 2), variance).to(basis.real.dtype)
    return torch.view_as_complex(parts) @ basis


def _truncated(shape: tuple[int, ...], variance: float) -> Tensor:
    """Normal values of this variance, cut at two deviations before they are scaled."""
    uniform = (2 * torch.rand(shape) - 1) * math.erf(math.sqrt(2))
    return torch.erfinv(uniform) * math.sqrt(2 * variance) / _TRUNCATED


def _pairs(values: Tensor) -> nn.Parameter:
    return nn.Parameter(torch.view_as_real(values).to(torch.get_default_dtype()).contiguous())
