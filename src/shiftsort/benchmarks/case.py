"""What is measured: a batch of tokens, a group size, a dtype and a device.

Shapes: B batch, N samples, C channels.
"""

import dataclasses
import functools
from dataclasses import dataclass

import torch
from torch import Tensor

import shiftsort

#: How values lie in memory, outermost dimension first.
LAYOUTS = {"token-major": "B N C", "channel-major": "B C N", "channel-outer": "C B N"}


@dataclass(frozen=True)
class Case:
    """One shape with one group size. `group_size=None` is a single group of all samples."""

    batch: int
    samples: int
    channels: int
    group_size: int | None = 2
    dtype: torch.dtype = torch.float32
    device: str = "cpu"
    steps: str = "linear"
    order: str = "reference"
    heads: int = 8

    @property
    def shape(self) -> tuple[int, int, int]:
        """(B, N, C)."""
        return self.batch, self.samples, self.channels

    @property
    def value_bytes(self) -> int:
        """The bytes of one tensor of values."""
        return self.batch * self.samples * self.channels * self.dtype.itemsize

    @property
    def whole(self) -> bool:
        """Whether all samples are one group."""
        return self.group_size is None or self.group_size >= self.samples

    def with_group(self, group_size: int | None) -> "Case":
        """The same tokens in other groups."""
        return dataclasses.replace(self, group_size=group_size)

    def shift_steps(self) -> Tensor:
        """The shift of each channel, on the case's device."""
        return _shift_steps(self.steps, self.samples, self.channels, self.device)

    def values(self, seed: int, layout: str = "token-major") -> Tensor:
        """Normal values, the same for each layout: (B, N, C) if token-major, else (B, C, N)."""
        generator = torch.Generator(self.device).manual_seed(seed)
        v_bnc = torch.randn(self.shape, generator=generator, dtype=self.dtype, device=self.device)
        if layout == "token-major":
            return v_bnc
        if layout == "channel-major":
            return v_bnc.transpose(1, 2).contiguous()
        return v_bnc.permute(2, 0, 1).contiguous().transpose(0, 1)


@functools.lru_cache(maxsize=32)
def _shift_steps(kind: str, samples: int, channels: int, device: str) -> Tensor:
    return shiftsort.shift_steps(kind, samples, channels).to(device)


def default_cases(device: str) -> list[Case]:
    """What is measured when nothing is asked for: small on a CPU, 2^18 tokens on a GPU."""
    if device == "cpu":
        shapes = [(8, 1024, 512), (2, 4096, 512)]
        return [Case(*shape, group) for shape in shapes for group in (2, None)]
    return [
        Case(2**18 // samples, samples, 512, group, torch.bfloat16, device)
        for samples in (1024, 4096, 16384)
        for group in (1, 2, 8, 32, 256, None)
    ]
