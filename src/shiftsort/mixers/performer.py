"""Performer: softmax attention in expectation, through positive random features (FAVOR+)."""

from typing import Any

import torch
from torch import Tensor

from .linear import kernel_attention
from .mixer import About, HeadMixer, check_size, wipe_heads

_EPSILON = 1e-6


class Performer(HeadMixer):
    """exp(q . k) as the mean of exp(w . q - |q|^2 / 2) exp(w . k - |k|^2 / 2) over random w.

    Args:
        features: how many w there are.
        redraw: draw them anew at every training step. The last ones drawn are kept in the state.
    """

    about = About(
        complexity="C N r, r features",
        source="Choromanski et al. 2021, Rethinking attention with Performers",
        row="LRA: Performer",
        left_out="the causal form; the ReLU kernel; attention dropout (there is no map)",
    )

    #: The QR decomposition of every redraw waits for the device.
    capturable = False

    directions_fd: Tensor

    def __init__(
        self, dim: int, *, features: int = 256, redraw: bool = True, **options: Any
    ) -> None:
        super().__init__(dim, **options)
        check_size("features", features)
        self.redraw = redraw
        width = self.channels // self.heads
        self.register_buffer("directions_fd", orthogonal_directions(features, width))

    def attend(self, x_bnc: Tensor, valid_bn: Tensor | None) -> Tensor:
        """Linear attention over the random features."""
        q_bhnd, k_bhnd, v_bhnd = self.project(x_bnc)
        directions_fd = self.directions_fd
        if self.training and self.redraw:
            # The gradient needs those of each call, which the next one may overwrite.
            directions_fd = orthogonal_directions(*directions_fd.shape, device=x_bnc.device)
            self.directions_fd.copy_(directions_fd)
        # Exponentials of bfloat16 are off by per cents, so the features are made in float32.
        with torch.autocast(x_bnc.device.type, enabled=False):
            directions_df = directions_fd.float().T
            q_bhnf, k_bhnf = (_logarithms(x.float(), directions_df) for x in (q_bhnd, k_bhnd))
            # Any factor common to a query's features, or to all keys, cancels out.
            q_bhnf = (q_bhnf - q_bhnf.amax(dim=-1, keepdim=True).detach()).exp() + _EPSILON
            if valid_bn is not None:
                k_bhnf = k_bhnf.masked_fill(~valid_bn[:, None, :, None], -torch.inf)
            k_bhnf = (k_bhnf - k_bhnf.amax(dim=(-1, -2), keepdim=True).detach()).exp() + _EPSILON
            y_bhnd = kernel_attention(q_bhnf, wipe_heads(k_bhnf, valid_bn), v_bhnd.float())
        return y_bhnd.to(v_bhnd.dtype)


def _logarithms(x_bhnd: Tensor, directions_df: Tensor) -> Tensor:
    """Of the features of x / D^(1/4): softmax attention divides the product q . k by sqrt(D)."""
    x_bhnd = x_bhnd * x_bhnd.shape[-1] ** -0.25
    return x_bhnd @ directions_df - x_bhnd.square().sum(dim=-1, keepdim=True) / 2


def orthogonal_directions(
    features: int, width: int, device: torch.device | str | None = None
) -> Tensor:
    """Gaussian vectors, (features, width), orthogonal in blocks of `width`."""
    blocks = -(-features // width)
    gaussian = torch.randn(blocks, width, width, device=device)
    q, r = torch.linalg.qr(gaussian)
    # LAPACK's signs make the first entries all negative; with R's diagonal positive, Q is uniform.
    q = q * r.diagonal(dim1=1, dim2=2).sign()[:, None]
    rotation = q.transpose(1, 2).flatten(0, 1)[:features]
    # Rows of the length of Gaussian ones, independent of their direction.
    length = torch.randn(features, width, device=device).norm(dim=1, keepdim=True)
    return rotation * length
