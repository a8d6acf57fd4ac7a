"""Text: is a film review good or bad, from its bytes?"""

import collections
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from . import download
from .chunks import in_order
from .distinct import apart, digest
from .errors import DataError
from .store import Writer
from .task import SHORTEST, Batch, Facts, Split, Task, cut

_COUNT = 12_500
_BLOCK = 500


@dataclass(frozen=True)
class Text(Task):
    """IMDB reviews as bytes, cut to `max_length`, padded with 0.

    The published protocol chooses on the test set (open with choose_on="test" to do the same);
    here a tenth of train is split off. Reviews that occur twice stay in one split: what is in
    test is not in train, and what validates is not in train.
    """

    name: ClassVar[str] = "text"
    about: ClassVar[str] = "IMDB film reviews as bytes, 2 classes; reads aclImdb/"
    version: ClassVar[int] = 2
    served: ClassVar[frozenset[str]] = frozenset({"max_length"})

    seed: int = 0
    validation: int = 2_500
    stored_length: int = 4_000
    #: Between 1,000 and 4,000 in the published sweeps; a set on the disk serves all of them.
    max_length: int = 4_000

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.max_length <= self.stored_length:
            raise ValueError(
                f"max_length={self.max_length} was given, expected 1 to stored_length, "
                f"which is {self.stored_length}"
            )

    def facts(self) -> Facts:
        return Facts(
            kind="tokens",
            classes=2,
            length=self.max_length,
            vocabulary=256,
            padding=0,
            class_names=("negative", "positive"),
        )

    def write(self, out: Writer, source: Path, workers: int) -> None:
        folder = download.folder_of(download.IMDB, source, out.progress)
        test, test_labels = _reviews(folder, "test")
        train, train_labels = _reviews(folder, "train")
        read = _Reader(self.stored_length)
        files = [*train, *test]
        hashes = dict(zip(files, in_order(read.digest, files, workers), strict=True))
        stays = apart({"train": [hashes[path] for path in train],
                       "test": [hashes[path] for path in test]})  # fmt: skip
        kept = np.flatnonzero(stays["train"])
        chosen = self._choose([hashes[train[row]] for row in kept], train_labels[kept])
        order = [*kept[~chosen], *kept[chosen]]

        out.notes["train reviews left out because they are in test"] = len(train) - len(kept)
        out.begin(
            {
                "train": int((~chosen).sum()),
                "validation": int(chosen.sum()),
                "test": len(test),
            },
            inputs=((self.stored_length,), np.uint8),
            lengths=((), np.int32),
            labels=((), np.uint8),
        )
        paths = [train[row] for row in order] + test
        labels = np.concatenate([train_labels[order], test_labels])
        starts = range(0, len(paths), _BLOCK)
        blocks = in_order(read.block, [paths[start : start + _BLOCK] for start in starts], workers)
        for start, (tokens, lengths) in zip(starts, blocks, strict=True):
            out.add(inputs=tokens, lengths=lengths, labels=labels[start : start + len(tokens)])

    def serve(self, split: Split) -> Split:
        return cut(split, self.max_length)

    def describe(self, sample: Batch) -> str:
        return bytes(sample.inputs[: sample.lengths].tolist()).decode("utf-8", "replace")

    def parse(self, content: bytes) -> list[list[bytes]]:
        """One review."""
        return [[_clean(content)[: self.max_length]]]

    def _choose(self, hashes: list[bytes], labels: np.ndarray) -> np.ndarray:
        """Which reviews validate: half of each label, and none that train has a copy of."""
        copies = collections.Counter(hashes)
        once = np.array([copies[key] == 1 for key in hashes])
        random = np.random.RandomState(self.seed)
        held = np.zeros(len(hashes), bool)
        for label in (0, 1):
            rows = random.permutation(np.flatnonzero(once & (labels == label)))
            held[rows[: self.validation // 2]] = True
        if held.sum() != self.validation:
            raise ValueError(
                f"validation={self.validation} was given, expected an even number up to "
                f"{2 * min(int((once & (labels == label)).sum()) for label in (0, 1))}"
            )
        return held


class _Reader:
    def __init__(self, length: int) -> None:
        self.length = length

    def bytes_of(self, path: Path) -> bytes:
        return _clean(path.read_bytes())[: self.length]

    def digest(self, path: Path) -> bytes:
        return digest(self.bytes_of(path)[:SHORTEST])

    def block(self, paths: list[Path]) -> tuple[np.ndarray, np.ndarray]:
        tokens = np.zeros((len(paths), self.length), np.uint8)
        lengths = np.empty(len(paths), np.int32)
        for row, path in enumerate(paths):
            review = np.frombuffer(self.bytes_of(path), np.uint8)
            tokens[row, : len(review)] = review
            lengths[row] = len(review)
        return tokens, lengths


def _clean(review: bytes) -> bytes:
    # 0 is padding, and no review has a byte 0 that means anything.
    return review.strip().replace(b"\0", b"")


def _reviews(folder: Path, split: str) -> tuple[list[Path], np.ndarray]:
    """The files of a split by label and number, which is no platform's order of listing."""
    paths, labels = [], []
    for label, kind in enumerate(("neg", "pos")):
        place = folder / split / kind
        found = sorted(place.glob("*.txt"), key=lambda path: int(path.stem.split("_")[0]))
        if len(found) != _COUNT:
            raise DataError(
                f"{place} has {len(found)} reviews, expected {_COUNT}; "
                f"delete {folder} and run again to read or download it anew"
            )
        paths += found
        labels += [label] * len(found)
    return paths, np.array(labels, np.uint8)
