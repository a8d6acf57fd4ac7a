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
        heads: how many blocks of channels share a step with `shift="heads"`.
        order: "reference" (the paper) or "ascending" (the authors' released code).
        layer, depth: which layer of how many this is; exponential shifts go on from layer to layer.
        samples: the length that the steps are made for, taken modulo each sequence's own. Default:
            the length of each input, padding included. With it set, a sequence is shifted the same
            whatever it is padded to.
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
        heads: int = 8,
        samples: int | None = None,
        bias: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if shift not in KINDS:
            raise ValueError(f"shift must be one of {', '.join(KINDS)}, got {shift!r}")
        if order not in ORDERS:
            raise ValueError(f"order must be 'reference' or 'ascending', got {order!r}")
        self.dim = dim
        self.channels = dim if channels is None else channels
        sizes = {"dim": self.dim, "channels": self.channels, "heads": heads}
        if group_size is not None:
            sizes["group_size"] = group_size
        if samples is not None:
            sizes["samples"] = samples
        for name, value in sizes.items():
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} must be a positive integer, got {value!r}")
        if not 0 <= layer < depth:
            raise ValueError(f"layer must be in [0, depth), got layer={layer} with depth={depth}")
        self.group_size = group_size
        self.shift = shift
        self.order = order
        self.layer = layer
        self.depth = depth
        self.heads = heads
        self.samples = samples
        self.weight = nn.Parameter(torch.empty(self.channels, dim, device=device, dtype=dtype))
        self.bias = (
            nn.Parameter(torch.empty(self.channels, device=device, dtype=dtype)) if bias else None
        )
        steps = torch.zeros(self.channels, dtype=torch.int64, device=device)
        self.register_buffer("steps", steps, persistent=False)
        # What the buffer should be: which tensor, of which version, for which length. Whoever puts
        # something else there (functional_call, to_empty) or writes to it (DistributedDataParallel
        # sends the buffers of rank 0 to all) has the steps made anew.
        self._made: tuple[Tensor | None, int, int] = (None, 0, 0)
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
        v = self._project(x)
        return csp(v, self._steps_for(x), self.group_size, order=self.order, lengths=lengths)

    def _project(self, x: Tensor) -> Tensor:
        """XW. On a GPU as W X^T over all tokens at once, which lies channel-outer.

        That costs the matrix product nothing where its rows, all tokens long, are aligned. On a CPU
        the operator is as fast on what `linear` writes.
        """
        x_td = x.reshape(-1, self.dim) if x.is_cuda and x.numel() else None
        if x_td is None or x_td.shape[0] % 8:
            return nn.functional.linear(x, self.weight, self.bias)
        if self.bias is None:
            v_ct = self.weight @ x_td.t()
        else:
            v_ct = torch.addmm(self.bias[:, None], self.weight, x_td.t())
        return v_ct.view(self.channels, *x.shape[:-1]).movedim(0, -1)

    def _steps_for(self, x: Tensor) -> Tensor:
        samples = x.shape[-2] if self.samples is None else self.samples
        if torch.compiler.is_compiling():
            # One small kernel, which layers of the same steps share. The buffer would tie the
            # graph to its length.
            return self._make_steps(samples, x.device)
        made, version, made_for = self._made
        if (
            made is None
            or made is not self.steps
            or made._version != version
            or made_for != samples
            or made.device != x.device
        ):
            # They outlive the call: of no inference mode, and of no transform of torch.func. From
            # the CPU, so that they are the same on every device.
            with torch.inference_mode(False), torch._C._DisableFuncTorch():
                steps = self._make_steps(samples, "cpu").to(x.device)
            if type(steps) is not Tensor:
                return steps  # a fake one: not to be found here by the next real call
            self.steps = steps
            self._made = (steps, steps._version, samples)
        return self.steps

    def _make_steps(self, samples: int, device: torch.device | str) -> Tensor:
        # An attribute that is read is one that torch.compile guards: where it makes no difference
        # it is not, and layers share a graph.
        layer, depth = (self.layer, self.depth) if self.shift == "exponential" else (0, 1)
        return shift_steps(
            self.shift,
            samples,
            self.channels,
            layer=layer,
            depth=depth,
            heads=self.heads,
            device=device,
        )

    def extra_repr(self) -> str:
        """What print() shows."""
        return (
            f"{self.dim}, channels={self.channels}, group_size={self.group_size}, "
            f"shift={self.shift!r}, order={self.order!r}, layer={self.layer}, depth={self.depth}, "
            f"bias={self.bias is not None}"
        )
