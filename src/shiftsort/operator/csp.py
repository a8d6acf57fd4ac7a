"""The public functions: check the arguments, plan, run."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from .ops import csp_op, csp_permute_op
from .transforms import csp_transformed, transforms_active

DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
ORDERS = ("reference", "ascending")


def csp(
    v: Tensor,
    steps: Tensor | Sequence[int],
    group_size: int | None = 2,
    *,
    order: str = "reference",
    dim: int = -2,
    lengths: Tensor | Sequence[int] | None = None,
) -> Tensor:
    """Channel-wise sample permutation: shift each channel circularly, then sort within groups.

    Args:
        v: values, (..., N, C) with `dim=-2` or (..., C, N) with `dim=-1`; float64, float32,
            bfloat16 or float16, any strides.
        steps: C integers, taken modulo the length: sample n of channel c comes from n - steps[c].
            See `shift_steps`. A list is copied to v's device at each call; a tensor is not.
        group_size: after the shift, samples [0, G), [G, 2G), ... are sorted, each group for itself;
            the last may be shorter. 1 only shifts. None is one group of all samples.
        order: "reference" leaves channel 0 as it is (its step must be 0) and arranges every other
            channel, in each group, to the order of channel 0. "ascending" sorts every channel.
        dim: the dimension of the samples, -2 or -1.
        lengths: for each sequence of a right-padded batch, how many samples are valid. Shift and
            groups live inside the valid part; the rest passes through. Shape: v's leading
            dimensions, or a single one with as many entries.

    Returns:
        A permutation of each channel of v, of v's shape, dtype and layout. Ranks are stable, NaN
        ranks last. The gradient is the inverse permutation; channel 0's order gets none.

    On the CPU the values of `steps` and `lengths` are checked. On other devices, where a look at a
    value would stall the stream, `steps` is checked once for each tensor and `lengths` is clamped
    to [0, N].
    """
    checked = _Arguments(v, steps, group_size, order, dim, lengths)
    y_bnc, _ = checked.run(keep=v.requires_grad and torch.is_grad_enabled())
    return checked.restore(y_bnc)


def permutation(
    v: Tensor,
    steps: Tensor | Sequence[int],
    group_size: int | None = 2,
    *,
    order: str = "reference",
    dim: int = -2,
    lengths: Tensor | Sequence[int] | None = None,
) -> Tensor:
    """Where each sample comes from: int64 p of v's shape, with y[n, c] = v[p[n, c], c]."""
    checked = _Arguments(v, steps, group_size, order, dim, lengths)
    with torch.no_grad():
        _, packed = checked.run(keep=True)
    v_bnc = checked.v_bnc
    n_bnc = torch.arange(v_bnc.shape[1], device=v.device, dtype=torch.int32)
    n_bnc = n_bnc[None, :, None].expand(v_bnc.shape).contiguous()
    p_bnc = csp_permute_op(n_bnc, packed, checked.steps, checked.lengths, checked.group_size, False)
    return checked.restore(p_bnc.to(torch.int64))


def attention_maps(
    v: Tensor,
    steps: Tensor | Sequence[int],
    group_size: int | None = 2,
    *,
    order: str = "reference",
    dim: int = -2,
    lengths: Tensor | Sequence[int] | None = None,
) -> Tensor:
    """The dense P_c with y_c = P_c v_c, (..., C, N, N) in v's dtype. For looking: N^2 a channel."""
    p = permutation(v, steps, group_size, order=order, dim=dim, lengths=lengths)
    p_cn = p if dim % v.dim() == v.dim() - 1 else p.transpose(-1, -2)
    n = torch.arange(p_cn.shape[-1], device=v.device)
    return (p_cn[..., None] == n).to(v.dtype)


class _Arguments:
    """The arguments of a call, checked, and in the operators' normal form (B, N, C)."""

    def __init__(
        self,
        v: Tensor,
        steps: Tensor | Sequence[int],
        group_size: int | None,
        order: str,
        dim: int,
        lengths: Tensor | Sequence[int] | None,
    ) -> None:
        _check_values(v)
        if dim not in (-2, -1, v.dim() - 2, v.dim() - 1):
            raise ValueError(f"dim must be -2 or -1 (where the samples are), got {dim}")
        if order not in ORDERS:
            raise ValueError(f"order must be 'reference' or 'ascending', got {order!r}")
        self.samples_last = dim % v.dim() == v.dim() - 1
        x = v.transpose(-1, -2) if self.samples_last else v
        self.leading = x.shape[:-2]
        # A fixed rank, whatever the leading dimensions; a view wherever strides allow one.
        self.v_bnc = x[None] if x.dim() == 2 else x.flatten(0, -3)
        self.group_size = _check_group_size(group_size, x.shape[-2])
        self.ascending = order == "ascending"
        self.steps = _check_steps(steps, x.shape[-1], v.device, self.ascending)
        self.lengths = _check_lengths(lengths, self.leading, x.shape[-2], v.device)

    def run(self, keep: bool) -> tuple[Tensor, Tensor]:
        """Call the operator."""
        if transforms_active():
            return csp_transformed(
                self.v_bnc, self.steps, self.lengths, self.group_size, self.ascending
            )
        y_bnc, packed = csp_op(
            self.v_bnc, self.steps, self.lengths, self.group_size, self.ascending, keep
        )
        return y_bnc, packed

    def restore(self, y_bnc: Tensor) -> Tensor:
        """Back to the caller's shape."""
        y = y_bnc.reshape(*self.leading, *y_bnc.shape[-2:])
        return y.transpose(-1, -2) if self.samples_last else y


def _check_values(v: Tensor) -> None:
    if not isinstance(v, Tensor):
        raise TypeError(f"v must be a tensor, got {type(v).__name__}")
    if v.dtype not in DTYPES:
        names = ", ".join(str(d).removeprefix("torch.") for d in DTYPES)
        raise TypeError(f"v must be one of {names}, got {str(v.dtype).removeprefix('torch.')}")
    if v.dim() < 2:
        raise ValueError(
            f"v must have a sample and a channel dimension, (..., N, C), got shape {tuple(v.shape)}"
        )


def _check_group_size(group_size: int | None, samples: int) -> int | None:
    if group_size is None:
        return None
    if isinstance(group_size, bool) or not isinstance(group_size, (int, torch.SymInt)):
        raise TypeError(
            f"group_size must be a positive integer or None, got {type(group_size).__name__}"
        )
    if group_size < 1:
        raise ValueError(f"group_size must be at least 1 (or None for one group), got {group_size}")
    if torch.compiler.is_compiling():
        return group_size  # a comparison with the length would tie the program to one side of it
    return None if group_size > 256 and group_size >= samples else group_size


#: Steps whose first entry was seen to be 0, with the version of the tensor that was looked at.
_seen_steps: WeakIdKeyDictionary = WeakIdKeyDictionary()


def _check_steps(
    steps: Tensor | Sequence[int], channels: int, device: torch.device, ascending: bool
) -> Tensor:
    given = steps
    steps = _integers("steps", given)
    if steps.dim() != 1 or steps.shape[0] != channels:
        raise ValueError(
            f"steps must hold one integer for each of v's {channels} channels, "
            f"got shape {tuple(steps.shape)}"
        )
    if isinstance(given, Tensor) and steps.device != device:
        raise ValueError(f"steps must be on v's device {device}, got {steps.device}")
    if not ascending and channels:
        _check_first_step(steps)
    return steps.to(device, torch.int64)


def _integers(name: str, values: Tensor | Sequence[int]) -> Tensor:
    """The values as a tensor of integers: where they are, or on the CPU."""
    if not isinstance(values, Tensor):
        try:
            tensor = torch.tensor(values, device="cpu")
        except (TypeError, ValueError, RuntimeError):
            raise TypeError(f"{name} must be integers, got {values!r}") from None
        values = tensor if tensor.numel() else tensor.long()  # an empty list is of no type
    if values.is_floating_point() or values.is_complex() or values.dtype == torch.bool:
        raise TypeError(f"{name} must be integers, got {str(values.dtype).removeprefix('torch.')}")
    return values


def _check_first_step(steps: Tensor) -> None:
    if torch.compiler.is_compiling() or torch._C._functorch.is_functorch_wrapped_tensor(steps):
        return  # a value cannot be looked at while a program is being traced
    if type(steps) is not Tensor or steps.device.type == "meta":
        return
    version = None if steps.is_inference() else steps._version
    seen = steps in _seen_steps and _seen_steps[steps] == version
    if seen and steps.device.type != "cpu":
        return
    first = int(steps[0])
    if first != 0:
        raise ValueError(
            f"steps[0] must be 0 with order='reference', where channel 0 stays as it is; "
            f"got {first}"
        )
    _seen_steps[steps] = version


def _check_lengths(
    lengths: Tensor | Sequence[int] | None,
    leading: torch.Size,
    samples: int,
    device: torch.device,
) -> Tensor | None:
    if lengths is None:
        return None
    given = lengths
    lengths = _integers("lengths", given)
    batch = 1
    for size in leading:
        batch *= size
    if tuple(lengths.shape) not in (tuple(leading), (batch,)):
        raise ValueError(
            f"lengths must hold one integer for each of v's {batch} sequences, shape "
            f"{tuple(leading)}, got shape {tuple(lengths.shape)}"
        )
    if isinstance(given, Tensor) and lengths.device != device:
        raise ValueError(f"lengths must be on v's device {device}, got {lengths.device}")
    traced = torch.compiler.is_compiling() or torch._C._functorch.is_functorch_wrapped_tensor(
        lengths
    )
    if not traced and type(lengths) is Tensor and lengths.device.type == "cpu" and lengths.numel():
        low, high = int(lengths.min()), int(lengths.max())
        if low < 0 or high > samples:
            raise ValueError(
                f"lengths must lie between 0 and v's {samples} samples, got {low} to {high}"
            )
    return lengths.reshape(batch).to(device, torch.int64)
