"""A step's forward and backward as CUDA graphs: two launches in the place of hundreds.

A small model on a fast GPU waits for the host to launch its kernels. They are launched once, while
the graph is captured, and it replays them on the same addresses; so all batches must have one
shape, and nothing in the step may ask the device for a value.
"""

import torch
from torch import Tensor, nn

from .. import mixers


def reason_against(
    model: nn.Module,
    device: torch.device,
    *,
    devices: int = 1,
    accumulate: int = 1,
    compiled: bool = False,
) -> str | None:
    """Why a step of this model is not captured, or None if it is."""
    if device.type != "cuda":
        return f"CUDA graphs need a CUDA device, and this is {device.type}"
    if devices > 1:
        return f"with {devices} devices the gradients are exchanged while they are made"
    if accumulate > 1:
        return f"accumulate={accumulate} adds up gradients, which a graph writes to one place"
    if compiled:
        return "a compiled model launches little as it is"
    for module in model.modules():
        if isinstance(module, mixers.Mixer) and not module.capturable:
            return f"{type(module).__name__} computes what a graph cannot hold"
    return None


def capture(step: nn.Module, sample: tuple[Tensor, ...]) -> None:
    """Make `step`, while it trains, replay graphs captured on a batch like this one.

    Weights, statistics and gradients are as they were when this returns.
    """
    kept = [(buffer, buffer.clone()) for buffer in step.buffers()]
    torch.cuda.make_graphed_callables(
        step,
        tuple(tensor.clone() for tensor in sample),
        # A model may have parameters that its outputs do not depend on.
        allow_unused_input=True,
    )
    with torch.no_grad():
        # The runs before the capture moved running statistics.
        for buffer, before in kept:
            buffer.copy_(before)
