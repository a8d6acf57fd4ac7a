"""CSP as a module."""

import math

import torch
from torch import Tensor, nn

from .operator.csp import ORDERS, csp
from .operator.schedule import KINDS, shift_steps


class CSP(nn.Module):
    """X -> CSP(XW): the paper's replacement for multi-head attention, (..., N, dim) in and out.

    Args:
        dim: width of X.
        channels: width of W and of the result (default `dim`).
        group_size: samples in a group; 1 only shifts, None sorts all samples together.
        shift: "linear", "exponential", "heads" or "none"; see `shift_steps`.
        order: "reference" (the paper) or "ascending" (the authors' released code).
        layer, depth: which layer of how many this is; exponential shifts go on from layer to layer.
        bias: whether XW gets a bias.

    Any length at run time: the steps of the last length are kept in a buffer that follows the
    module's device. The state dict holds `weight` (and `bias`) alone. Both start as `nn.Linear`'s
    do, uniform in +-1/sqrt(dim).

    The result lies channel-outer in memory wherever the projection writes that for free, which is
    what the operator likes best and what a linear layer reads as well as any other layout. It is a
    view of shape (..., N, channels) all the same.
    """

    steps: Tensor

    def __init__(
        self,
        dim: int,
        *,
        channels: int | None = None,
        group_size: int | None = 2,
        shift: str = "linear",
        order: str = "reference",
        layer: int = 0,
        depth: int = 1,
        bias: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if shift not in KINDS:
            raise ValueError(f"shift must be one of {', '.join(KINDS)}, got {shift!r}")
        if order not in ORDERS:
            raise ValueError(f"order must be 'reference' or 'ascending', got {order!r}")
        if group_size is not None and (isinstance(group_size, bool) or group_size < 1):
            raise ValueError(f"group_size must be a positive integer or None, got {group_size}")
        self.dim = dim
        self.channels = dim if channels is None else channels
        for name, value in (("dim", self.dim), ("channels", self.channels)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} must be a positive integer, got {value}")
        if not 0 <= layer < depth:
            raise ValueError(f"layer must be in [0, depth), got layer={layer} with depth={depth}")
        self.group_size = group_size
        self.shift = shift
        self.order = order
        self.layer = layer
        self.depth = depth
        self.weight = nn.Parameter(torch.empty(self.channels, dim, device=device, dtype=dtype))
        self.bias = (
            nn.Parameter(torch.empty(self.channels, device=device, dtype=dtype)) if bias else None
        )
        self._steps_samples = 0
        steps = torch.zeros(self.channels, dtype=torch.int64, device=device)
        self.register_buffer("steps", steps, persistent=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform in +-1/sqrt(dim), as `nn.Linear`."""
        bound = 1 / math.sqrt(self.dim)
        nn.init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            nn.init.uniform_(self.bias, -bound, bound)

    def forward(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Permute the values XW. `lengths`: valid samples of each sequence of a padded batch."""
        if x.dim() < 2 or x.shape[-1] != self.dim:
            raise ValueError(f"x must be (..., N, {self.dim}), got shape {tuple(x.shape)}")
        v = nn.functional.linear(x, self.weight, self.bias)
        return csp(v, self._steps_for(x), self.group_size, order=self.order, lengths=lengths)

    def _steps_for(self, x: Tensor) -> Tensor:
        samples = x.shape[-2]
        if torch.compiler.is_compiling():
            # Constants of the graph where the length is static, a few small kernels where not.
            return self._make_steps(samples).to(x.device)
        if samples != self._steps_samples or self.steps.device != x.device:
            self.steps = self._make_steps(samples).to(x.device)
            self._steps_samples = samples
        return self.steps

    def _make_steps(self, samples: int) -> Tensor:
        return shift_steps(self.shift, samples, self.channels, layer=self.layer, depth=self.depth)

    def extra_repr(self) -> str:
        """What print() shows."""
        return (
            f"{self.dim}, channels={self.channels}, group_size={self.group_size}, "
            f"shift={self.shift!r}, order={self.order!r}, layer={self.layer}, depth={self.depth}, "
            f"bias={self.bias is not None}"
        )
