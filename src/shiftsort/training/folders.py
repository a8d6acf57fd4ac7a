"""Batches of what does not fit into arrays: files that workers read and augment."""

import os
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset

from .. import tasks
from .batches import Counted, Order, evaluation_share, seed_of
from .computation import set_seed


class _Seeded(Dataset[tuple[tasks.Batch, bool]]):
    """Samples whose augmentation depends on the seed, the epoch and the sample, not the worker."""

    def __init__(self, samples: Any, seed: int) -> None:
        self.samples, self.seed = samples, seed

    def __getitem__(self, key: tuple[int, int, bool]) -> tuple[tasks.Batch, bool]:
        epoch, index, counted = key
        # Workers are processes that use the CPU alone.
        set_seed(torch.device("cpu"), seed_of("augment", self.seed, epoch, index))
        return self.samples[index], counted


class _Keys:
    """The keys of each batch; as a batch sampler it must know how many there are."""

    def __init__(self, make: Any, length: int) -> None:
        self.make, self.length = make, length

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[list[tuple[int, int, bool]]]:
        return self.make()


def train_loader(split: Any, order: Order, first: int, last: int) -> DataLoader[Any]:
    """From one update to before another."""

    def keys() -> Iterator[list[tuple[int, int, bool]]]:
        for epoch, indices in order.share(first, last):
            yield [(epoch, index, True) for index in indices.tolist()]

    return _loader(split, order.seed, _Keys(keys, (last - first) * order.parts), _batch)


def evaluation_loader(split: Any, batch: int, rank: int, world: int) -> DataLoader[Any]:
    """Every sample once."""

    def keys() -> Iterator[list[tuple[int, int, bool]]]:
        for indices, counted in evaluation_share(len(split), batch, rank, world):
            yield [(0, *key) for key in zip(indices.tolist(), counted.tolist(), strict=True)]

    length = -(-len(split) // (batch * world))
    return _loader(split, 0, _Keys(keys, length), _counted)


def _loader(split: Any, seed: int, keys: _Keys, collate: Any) -> DataLoader[Any]:
    return DataLoader(
        _Seeded(split, seed),
        batch_sampler=keys,
        collate_fn=collate,
        num_workers=min(os.cpu_count() or 1, 16),
        pin_memory=torch.cuda.is_available(),
    )


def _batch(samples: list[tuple[tasks.Batch, bool]]) -> tasks.Batch:
    return tasks.Batch(*map(torch.stack, zip(*(sample for sample, _ in samples), strict=True)))


def _counted(samples: list[tuple[tasks.Batch, bool]]) -> Counted:
    return Counted(*_batch(samples), torch.tensor([counted for _, counted in samples]))
