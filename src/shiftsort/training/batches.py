"""Which samples each update sees: decided by the seed and the epoch, whoever asks, and whenever.

A batch is shared out over the devices, so that the same samples make one update on any number of
them. A run that goes on in the middle of an epoch asks for the same order and starts further in.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from .. import tasks


class Counted(NamedTuple):
    """A batch to be judged. `counted` is false for what only fills a device's share up."""

    inputs: Tensor
    lengths: Tensor
    labels: Tensor
    counted: Tensor


def seed_of(*parts: object) -> int:
    """One seed from many things, the same on every machine."""
    return int.from_bytes(hashlib.blake2b(repr(parts).encode(), digest_size=7).digest(), "big")


@dataclass(frozen=True)
class Order:
    """The order of the training samples, and one device's share of it."""

    samples: int
    batch: int
    seed: int
    #: Parts of each device's share, whose gradients add up.
    parts: int = 1
    rank: int = 0
    world: int = 1

    def __post_init__(self) -> None:
        if self.batch > self.samples:
            raise ValueError(
                f"batch is {self.batch}, and there are {self.samples} training samples; "
                "set a smaller batch"
            )
        if self.batch % (self.parts * self.world):
            raise ValueError(
                f"batch is {self.batch}, which {self.world} devices x accumulate={self.parts} "
                "do not divide; set another batch"
            )

    @property
    def updates_per_epoch(self) -> int:
        """Whole batches of one pass; what is left over has another place in the next pass."""
        return self.samples // self.batch

    def share(
        self, first: int, last: int, where: torch.device | str = "cpu"
    ) -> Iterator[tuple[int, Tensor]]:
        """(epoch, indices) for each part of this device, from one update to before another.

        `where` is where the samples are. The order of an epoch goes there at once: to send each
        batch its indices, the host would wait until the device has done all that it was given.
        """
        epoch, order = -1, torch.empty(0)
        for update in range(first, last):
            passed, place = divmod(update, self.updates_per_epoch)
            if passed != epoch:
                generator = torch.Generator().manual_seed(seed_of("order", self.seed, passed))
                epoch = passed
                order = torch.randperm(self.samples, generator=generator).to(where)
            whole = order[place * self.batch : (place + 1) * self.batch]
            mine = whole.view(self.parts, self.world, -1)[:, self.rank]
            for indices in mine:
                yield epoch, indices


class TrainBatches:
    """A split's arrays as batches in an order, from one update to before another."""

    def __init__(self, split: tasks.Split, order: Order, first: int, last: int) -> None:
        self.split, self.order, self.first, self.last = split, order, first, last

    def __len__(self) -> int:
        return (self.last - self.first) * self.order.parts

    def __iter__(self) -> Iterator[tasks.Batch]:
        for _, indices in self.order.share(self.first, self.last, self.split.inputs.device):
            yield self.split.batch(indices)


def evaluation_share(
    samples: int, batch: int, rank: int, world: int, where: torch.device | str = "cpu"
) -> Iterator[tuple[Tensor, Tensor]]:
    """(indices, counted) of one device's batches: every sample counts once, on one device.

    There are as many batches on each device: the parts of a sharded model must stay in step.
    """
    for start in range(0, samples, batch * world):
        size = -(-min(batch * world, samples - start) // world)
        place = torch.arange(size, device=where) + start + rank * size
        yield place.clamp(max=samples - 1), place < samples


class EvaluationBatches:
    """A split's arrays as batches to be judged."""

    def __init__(self, split: tasks.Split, batch: int, rank: int, world: int) -> None:
        self.split, self.batch, self.rank, self.world = split, batch, rank, world

    def __len__(self) -> int:
        return -(-len(self.split) // (self.batch * self.world))

    def __iter__(self) -> Iterator[Counted]:
        where = self.split.inputs.device
        shares = evaluation_share(len(self.split), self.batch, self.rank, self.world, where)
        for indices, counted in shares:
            yield Counted(*self.split.batch(indices), counted)
