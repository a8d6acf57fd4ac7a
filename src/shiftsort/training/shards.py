"""Weights spread over devices (FSDP2): which parts, and single tensors to and from their shards."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor


def spread(model: nn.Module, mesh: Any) -> None:
    """Each layer for itself, so that only one is whole at a time; then what is left."""
    if isinstance(model, FSDPModule):
        return
    devices = mesh["data_parallel"]
    for layer in getattr(model, "layers", ()):
        fully_shard(layer, mesh=devices)
    # Between steps all weights are in shards: averages and checkpoints look at them there.
    fully_shard(model, mesh=devices, reshard_after_forward=True)


def whole(tensor: Tensor) -> Tensor:
    """The tensor with all its shards; every device must ask for it."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def like(tensor: Tensor, parameter: Tensor) -> Tensor:
    """A copy of a tensor, whole or not, spread as the parameter is."""
    tensor = tensor.detach()
    if isinstance(parameter, DTensor) and not isinstance(tensor, DTensor):
        local = tensor.to(parameter.device)
        return distribute_tensor(local, parameter.device_mesh, parameter.placements)
    return tensor.to(parameter.device, copy=True)


def strategy(devices: int, nodes: int) -> Any:
    """Lightning's for it."""
    from lightning.pytorch.strategies import ModelParallelStrategy

    return ModelParallelStrategy(
        data_parallel_size=devices * nodes,
        tensor_parallel_size=1,
        process_group_backend=None if torch.cuda.is_available() else "gloo",
    )
