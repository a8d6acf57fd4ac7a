"""What every task is: settings, a set of arrays on the disk, and batches from them.

Shape suffixes: b samples of a batch, n positions.
"""

import dataclasses
import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, get_args

import numpy as np
import torch
from torch import Tensor

from . import store
from .chunks import default_workers
from .errors import DataError

#: Where choices are made: on a part split from train (the default), on the test set as some of
#: the published protocols do, or on nothing, with every labelled sample in train.
ChooseOn = Literal["validation", "test", "nothing"]
_CHOICES = get_args(ChooseOn)
#: The label of a position that asks for nothing; torch's losses ignore it.
NO_LABEL = -100
#: The least that published sweeps over lengths keep of a text. Texts that agree so far count as
#: the same one, so that splits stay apart however short they are cut.
SHORTEST = 1_000


@dataclasses.dataclass(frozen=True)
class Facts:
    """What a model must know of a task."""

    kind: Literal["tokens", "pixels"]
    classes: int
    #: Positions of one tower; for pixels the height times the width.
    length: int
    #: Number of different tokens, padding included; None for pixels.
    vocabulary: int | None = None
    #: Channels, height, width; also given where the tokens are gray values of an image.
    image: tuple[int, int, int] | None = None
    #: 2 where a sample is a pair of sequences that share the model.
    towers: int = 1
    #: The token that is not to be looked at, wherever it stands; None where all positions count.
    padding: int | None = None
    #: True where each position has a label of its own (or NO_LABEL) instead of each sample.
    labels_per_position: bool = False
    #: Of pixel values divided by 255, for each channel.
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    #: The classes' names, where they have any.
    class_names: tuple[str, ...] = ()


class Batch(NamedTuple):
    """Samples side by side; a single sample has no batch dimension.

    `inputs` are tokens (b, n) or (b, 2, n), or pixels (b, channels, height, width), in the
    smallest dtype that holds them: what travels to a device is small and is widened there.
    """

    inputs: Tensor
    lengths: Tensor
    labels: Tensor


class Split(torch.utils.data.Dataset[Batch]):
    """The samples of one split, sliced by whole batches.

    It works as a dataset for a DataLoader (whole batches are fetched at once), and without one:
    `batches` walks over it. `to(device)` moves all of it, after which a batch costs one gather on
    the device and no transfer: that is how a small model keeps a fast GPU busy.
    """

    def __init__(self, inputs: Tensor, lengths: Tensor, labels: Tensor) -> None:
        self.inputs, self.lengths, self.labels = inputs, lengths, labels

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> Batch:
        """One sample: (tokens or pixels, length, label), the tokens and labels as int64."""
        inputs = self.inputs[index]
        if inputs.dim() < 3:
            inputs = inputs.long()
        return Batch(inputs, self.lengths[index].long(), self.labels[index].long())

    def __getitems__(self, index: list[int]) -> list[Batch]:
        batch = self.batch(torch.as_tensor(index))
        inputs = batch.inputs.long() if self.inputs.dim() < 4 else batch.inputs
        return [Batch(*row) for row in zip(inputs, batch.lengths, batch.labels, strict=True)]

    def batch(self, index: Tensor | np.ndarray) -> Batch:
        """The samples at an index array, in its order."""
        index = torch.as_tensor(index, device=self.inputs.device)
        return Batch(
            self.inputs.index_select(0, index),
            self.lengths.index_select(0, index).long(),
            self.labels.index_select(0, index).long(),
        )

    def batches(
        self, size: int, generator: torch.Generator | None = None, *, drop_last: bool = False
    ) -> Iterator[Batch]:
        """One pass, shuffled where a generator is given; the order depends on it alone."""
        order = torch.arange(len(self))
        if generator is not None:
            order = torch.randperm(len(self), generator=generator, device=generator.device)
        order = order.to(self.inputs.device)
        last = len(self) - len(self) % size if drop_last else len(self)
        for start in range(0, last, size):
            yield self.batch(order[start : min(start + size, last)])

    def to(self, device: torch.device | str) -> "Split":
        """The same split with all its samples on a device."""
        return Split(self.inputs.to(device), self.lengths.to(device), self.labels.to(device))


@dataclasses.dataclass(frozen=True)
class Data:
    """A task's samples, opened: `data.split("train")`, `data.facts`, `data.sizes`."""

    facts: Facts
    #: Where choices are made; a result records it.
    choose_on: ChooseOn
    manifest: dict[str, Any]
    splits: dict[str, Split]

    @property
    def sizes(self) -> dict[str, int]:
        """The number of samples of each split."""
        return {name: len(split) for name, split in self.splits.items()}

    def split(self, name: str) -> Split:
        """The samples of "train", "validation" or "test"."""
        if name not in self.splits:
            raise ValueError(
                f"split is {name!r}, expected one of {', '.join(map(repr, self.splits))} "
                f"(opened with choose_on={self.choose_on!r})"
            )
        return self.splits[name]

    def valid(self, inputs: Tensor) -> Tensor:
        """True at the positions of a batch of tokens that are not padding."""
        if self.facts.padding is None:
            return torch.ones_like(inputs, dtype=torch.bool)
        return inputs != self.facts.padding


@dataclasses.dataclass(frozen=True)
class Task:
    """A task; the fields of a subclass are its settings, and name its set on the disk."""

    name: ClassVar[str]
    about: ClassVar[str]
    #: Raised whenever the same settings would write other bytes.
    version: ClassVar[int] = 1
    #: Settings that change how a set is served, not what is written.
    served: ClassVar[frozenset[str]] = frozenset()

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value, kind = getattr(self, field.name), type(field.default)
            fits = type(value) is kind or (kind is float and type(value) is int)
            if not fits or (kind is int and value < 0):
                least = " of 0 or more" if kind is int else ""
                raise ValueError(
                    f"{field.name}={value!r} was given, expected {kind.__name__}{least}"
                )

    def facts(self) -> Facts:
        """What a model must know of the task."""
        raise NotImplementedError

    def write(self, out: store.Writer, source: Path, workers: int) -> None:
        """Generate or read every sample; `source` has the publishers' folders."""
        raise NotImplementedError

    def describe(self, sample: Batch) -> str:
        """One sample as text, for looking."""
        raise NotImplementedError

    def parse(self, content: bytes) -> list[list[bytes]]:
        """The samples in somebody's text file: of each sequence of a sample, its tokens."""
        raise ValueError(f"{self.name} reads no text; give it an array as .npy")

    def settings(self, *, changed_only: bool = False) -> dict[str, Any]:
        """The settings that decide the bytes."""
        return {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if field.name not in self.served
            and not (changed_only and getattr(self, field.name) == field.default)
        }

    def folder(self, data: Path | str | None = None) -> Path:
        """Where the set lies: the name, and the settings that are not the defaults."""
        changed = [f"{key}={value}" for key, value in self.settings(changed_only=True).items()]
        return data_folder(data) / ",".join([self.name, *changed])

    def command(self, data: Path | str | None = None) -> str:
        """The command that makes the set."""
        words = ["shiftsort", "data", "make", self.name]
        for key, value in self.settings(changed_only=True).items():
            words += ["--set", f"{key}={value}"]
        return shlex.join([*words, "--data", str(data_folder(data))])

    def make(
        self,
        data: Path | str | None = None,
        *,
        source: Path | str | None = None,
        workers: int | None = None,
        force: bool = False,
        progress: store.Progress = store.unseen,
    ) -> bool:
        """Write the set unless it is there; True where this call wrote it.

        `source` is the folder with what the publishers distribute (by default the data folder).
        """
        folder = self.folder(data)
        header = {"name": self.name, "version": self.version, "settings": self.settings()}
        source = data_folder(data) if source is None else Path(source)

        def write(out: store.Writer) -> None:
            self.write(out, source, default_workers() if workers is None else workers)

        made = store.make(folder, header, write, progress, force=force)
        if not made:
            self._accept(store.manifest_of(folder, self.command(data)), data)
        return made

    def check(
        self,
        data: Path | str | None = None,
        progress: store.Progress = store.unseen,
    ) -> dict[str, Any]:
        """Read every byte of the set and compare hashes; returns the manifest."""
        manifest = store.check(self.folder(data), self.command(data), progress)
        self._accept(manifest, data)
        return manifest

    def open(self, data: Path | str | None = None, *, choose_on: ChooseOn = "validation") -> Data:
        """Map the set from the disk."""
        if choose_on not in _CHOICES:
            raise ValueError(f"choose_on is {choose_on!r}, expected one of {_CHOICES}")
        stored = store.read(self.folder(data), self.command(data))
        self._accept(stored.manifest, data)
        arrays = {name: torch.from_numpy(array) for name, array in stored.arrays.items()}
        ranges = _ranges(stored.manifest["splits"], choose_on)
        splits = {
            name: self.serve(Split(**{key: array[start:stop] for key, array in arrays.items()}))
            for name, (start, stop) in ranges.items()
        }
        return Data(self.facts(), choose_on, stored.manifest, splits)

    def serve(self, split: Split) -> Split:
        """What becomes of a stored split on its way to the user."""
        return split

    def _accept(self, manifest: dict[str, Any], data: Path | str | None) -> None:
        if manifest["version"] != self.version or manifest["settings"] != self.settings():
            raise DataError(
                f"{self.folder(data)} was made by version {manifest['version']} of {self.name} "
                f"with {manifest['settings']}, expected version {self.version} with "
                f"{self.settings()}; make it again with: {self.command(data)} --force"
            )


def _ranges(splits: dict[str, list[int]], choose_on: ChooseOn) -> dict[str, tuple[int, int]]:
    # The validation part lies right after train, so that both together are one range.
    train, part, test = (tuple(splits[name]) for name in ("train", "validation", "test"))
    if choose_on == "validation":
        return {"train": train, "validation": part, "test": test}
    everything = (train[0], part[1])
    if choose_on == "nothing":
        return {"train": everything, "test": test}
    return {"train": everything, "validation": test, "test": test}


def data_folder(data: Path | str | None = None) -> Path:
    """The folder that is named, else SHIFTSORT_DATA, else the platform's cache."""
    if data is not None:
        return Path(data)
    if named := os.environ.get("SHIFTSORT_DATA"):
        return Path(named)
    try:
        from platformdirs import user_cache_path
    except ModuleNotFoundError:
        raise DataError(
            "no data folder is named, and platformdirs, which knows the cache of this platform, "
            "is not installed: name one with --data DIR or SHIFTSORT_DATA"
        ) from None
    return user_cache_path("shiftsort", appauthor=False)


def cut(split: Split, length: int) -> Split:
    """The first positions of every sequence of tokens."""
    if length == split.inputs.shape[-1]:
        return split
    return Split(split.inputs[..., :length], split.lengths.clamp(max=length), split.labels)


def shade(gray: Tensor) -> str:
    """A gray image (height, width) as lines of characters."""
    shades = torch.tensor(list(b" .:-=+*#%@"))[gray.long() * 10 // 256]
    return "\n".join(bytes(row.tolist()).decode() for row in shades)
