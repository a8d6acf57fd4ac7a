"""How far each channel shifts."""

import torch
from torch import Tensor

KINDS = ("linear", "exponential", "heads", "none")


def shift_steps(
    kind: str,
    samples: int,
    channels: int,
    *,
    layer: int = 0,
    depth: int = 1,
    heads: int = 8,
    device: torch.device | str | None = None,
) -> Tensor:
    """The shift of each channel: `channels` integers in [0, samples).

    `"linear"`       c * ceil(N / C) mod N. The paper's choice where N is about C.
    `"exponential"`  The paper's power law for N much greater than C, over all channels of all
                     layers: N ** (g / (depth * C - 1)) - 1 with g = layer * C + c, rounded. (The
                     paper prints a floored base, which is 1 and shifts nothing for every
                     N < 2 ** (depth * C - 1); without the floor it runs from 0 to N - 1 as meant.)
    `"heads"`        One step for each of `heads` equal blocks of channels, heads * m mod N for
                     block m: the paper's S_{C(m-1)/D}.
    `"none"`         No shift.

    Channel 0 of every layer stays in place: it is the one that the others are aligned to.
    """
    if kind not in KINDS:
        raise ValueError(f"shift kind {kind!r} is unknown; choose one of {', '.join(KINDS)}")
    for name, value, least in (
        ("samples", samples, 0),
        ("channels", channels, 1),
        ("depth", depth, 1),
        ("layer", layer, 0),
        ("heads", heads, 1),
    ):
        if isinstance(value, bool) or not isinstance(value, (int, torch.SymInt)):
            raise TypeError(f"{name} must be an integer, got {type(value).__name__}")
        if value < least:
            raise ValueError(f"{name} must be at least {least}, got {value}")
    if layer >= depth:
        raise ValueError(f"layer must be below depth, got layer={layer} with depth={depth}")

    c = torch.arange(channels, device=device)
    if samples == 0 or kind == "none":
        return torch.zeros_like(c)
    if kind == "linear":
        return c * -(-samples // channels) % samples
    if kind == "heads":
        return (c * heads // channels) * heads % samples
    g = (layer * channels + c).to("cpu" if c.is_mps else c.device, torch.float64)  # MPS has none
    # A tensor, since inductor of torch 2.11 fails on a power of a symbolic number.
    base = torch.full_like(g, samples)
    steps = torch.pow(base, g / max(depth * channels - 1, 1)).round().long() - 1
    steps[0] = 0
    return steps.to(c.device)
