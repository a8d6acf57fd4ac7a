"""Retrieval: are two documents related, from their bytes? Two towers share one model."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from .chunks import chunk_seed, fill
from .distinct import apart, digest
from .errors import DataError
from .store import Writer
from .task import SHORTEST, Batch, Facts, Split, Task, cut

#: Pairs in the released files.
PAIRS = {"train": 147_086, "eval": 18_090, "test": 17_437}
_FOLDERS = ("", "tsv_data", "lra_release/tsv_data", "lra_release/lra_release/tsv_data")
_BLOCK = 500
_CHUNK = 500
#: All codes of the stand-in are rearrangements of these letters.
_LETTERS = "abcdefgh"


@dataclass(frozen=True)
class _Pairs(Task):
    """Two documents of bytes, padded with 0."""

    def describe(self, sample: Batch) -> str:
        documents = (
            bytes(row[:length].tolist()).decode("utf-8", "replace")
            for row, length in zip(sample.inputs, sample.lengths.tolist(), strict=True)
        )
        return "\n".join(f"  {number}: {text}" for number, text in enumerate(documents, 1))

    def parse(self, content: bytes) -> list[list[bytes]]:
        """A pair a line, a tab between its documents."""
        length, pairs = self.facts().length, []
        for number, line in enumerate(content.replace(b"\0", b"").splitlines(), 1):
            documents = line.split(b"\t")
            if len(documents) != 2:
                raise ValueError(
                    f"line {number} has {len(documents) - 1} tabs, expected one between two "
                    "documents"
                )
            pairs.append([document[:length] for document in documents])
        return pairs


@dataclass(frozen=True)
class Retrieval(_Pairs):
    """AAN: does one paper cite the other? Pairs from the released new_aan_pairs.*.tsv."""

    name: ClassVar[str] = "retrieval"
    about: ClassVar[str] = "pairs of papers as bytes: related or not; reads new_aan_pairs.*.tsv"
    served: ClassVar[frozenset[str]] = frozenset({"max_length"})

    stored_length: int = 4_000
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
            towers=2,
            padding=0,
            class_names=("unrelated", "related"),
        )

    def write(self, out: Writer, source: Path, workers: int) -> None:
        files = {part: _tsv(source, part) for part in PAIRS}
        hashes = {part: [self._digest(texts) for _, *texts in _rows(files[part])] for part in PAIRS}
        for part, count in PAIRS.items():
            if len(hashes[part]) != count:
                raise DataError(
                    f"{files[part]} has {len(hashes[part])} pairs, expected {count}; "
                    "put the whole file there"
                )
        kept = apart(hashes)
        train, held, test = (int(kept[part].sum()) for part in PAIRS)
        out.notes["pairs left out because a later split has them"] = sum(PAIRS.values()) - (
            train + held + test
        )
        out.begin(
            {"train": train, "validation": held, "test": test},
            inputs=((2, self.stored_length), np.uint8),
            lengths=((2,), np.int32),
            labels=((), np.uint8),
        )
        for part, file in files.items():
            self._add(out, itertools.compress(_rows(file), kept[part]))

    def serve(self, split: Split) -> Split:
        return cut(split, self.max_length)

    def _digest(self, texts: list[bytes]) -> bytes:
        """Of a pair, whichever of the two comes first."""
        compared = min(SHORTEST, self.stored_length)
        return digest(b"\t".join(sorted(text[:compared] for text in texts)))

    def _add(self, out: Writer, rows: Iterator[tuple[int, bytes, bytes]]) -> None:
        while True:
            tokens = np.zeros((_BLOCK, 2, self.stored_length), np.uint8)
            lengths = np.zeros((_BLOCK, 2), np.int32)
            labels = np.zeros(_BLOCK, np.uint8)
            count = 0
            for count, (label, *texts) in zip(range(1, _BLOCK + 1), rows, strict=False):
                labels[count - 1] = label
                for tower, text in enumerate(texts):
                    document = np.frombuffer(text[: self.stored_length], np.uint8)
                    tokens[count - 1, tower, : len(document)] = document
                    lengths[count - 1, tower] = len(document)
            if count == 0:
                return
            out.add(inputs=tokens[:count], lengths=lengths[:count], labels=labels[:count])


def _tsv(source: Path, part: str) -> Path:
    name = f"new_aan_pairs.{part}.tsv"
    for folder in _FOLDERS:
        if (source / folder / name).exists():
            return source / folder / name
    raise DataError(
        f"{source / name} is missing and can not be downloaded: the authors ask for a form. Put "
        "the released tsv_data there, name its folder with --source DIR, or use the task "
        "retrieval-synthetic"
    )


def _rows(path: Path) -> Iterator[tuple[int, bytes, bytes]]:
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            fields = line.rstrip(b"\r\n").replace(b"\0", b"").split(b"\t")
            if len(fields) != 5 or fields[0] not in (b"0", b"1", b"0.0", b"1.0"):
                raise DataError(
                    f"{path}, line {number}: expected label, id, id, text, text between tabs; "
                    "the file is truncated or another one"
                )
            yield int(float(fields[0])), fields[3], fields[4]


@dataclass(frozen=True)
class RetrievalSynthetic(_Pairs):
    """A stand-in for Retrieval that makes itself: do two documents cite a common source?

    Each document is filler with `citations` codes in brackets, at random places; a pair is
    positive when exactly one code stands in both. All codes have the same letters, so byte
    counts and lengths say nothing, and neither does a single document: the codes must be found
    and compared. It is not language, and a score on it says nothing about the real task.
    """

    name: ClassVar[str] = "retrieval-synthetic"
    about: ClassVar[str] = "pairs of generated documents: do they cite a common source?; generated"

    seed: int = 0
    train: int = 80_000
    validation: int = 8_000
    test: int = 8_000
    length: int = 4_000
    sources: int = 32
    citations: int = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.citations < 1 or self.sources < 2 * self.citations or self.length < self._shortest:
            raise ValueError(
                f"length={self.length}, sources={self.sources}, citations={self.citations} were "
                f"given; expected length >= {self._shortest}, sources >= 2 * citations >= 2"
            )
        if self.sources > math.factorial(len(_LETTERS)) // 2:
            raise ValueError(
                f"sources={self.sources} was given, expected at most half of the "
                f"{math.factorial(len(_LETTERS))} codes that {len(_LETTERS)} letters make"
            )

    @property
    def _shortest(self) -> int:
        # Documents are at least half the length, and citations at most half of a document.
        return 4 * self.citations * (len(_LETTERS) + 3)

    def facts(self) -> Facts:
        return Facts(
            kind="tokens",
            classes=2,
            length=self.length,
            vocabulary=256,
            towers=2,
            padding=0,
            class_names=("no common source", "a common source"),
        )

    def write(self, out: Writer, source: Path, workers: int) -> None:
        splits = {"train": self.train, "validation": self.validation, "test": self.test}
        out.begin(
            splits,
            inputs=((2, self.length), np.uint8),
            lengths=((2,), np.int32),
            labels=((), np.uint8),
        )
        fill(out, self._draw, _CHUNK, workers)

    def _draw(self, chunk: int) -> dict[str, np.ndarray]:
        from .compiled import random_state, shuffle
        from .retrieval_kernel import draw_many

        state = random_state(chunk_seed(self.seed, chunk))
        rows = {
            "inputs": np.zeros((_CHUNK, 2, self.length), np.uint8),
            "lengths": np.empty((_CHUNK, 2), np.int32),
            "labels": np.arange(_CHUNK, dtype=np.uint8) % 2,
        }
        shuffle(state, rows["labels"])
        codes = source_codes(self.sources)
        draw_many(state, codes, self.citations, rows["inputs"], rows["lengths"], rows["labels"])
        return rows


def source_codes(sources: int) -> np.ndarray:
    """The codes of all sources as bytes, the same for every seed, so that they can be learned."""
    letters = np.frombuffer(_LETTERS.encode(), np.uint8)
    random = np.random.RandomState(0)
    codes: dict[bytes, None] = {}
    while len(codes) < sources:
        codes[random.permutation(letters).tobytes()] = None
    return np.array([list(code) for code in codes], np.uint8)
