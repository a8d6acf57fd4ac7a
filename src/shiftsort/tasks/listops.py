"""ListOps: evaluate nested lists of MIN, MAX, median and sum modulo 10 over digits."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from .chunks import chunk_seed, fill
from .errors import DataError
from .store import Writer
from .task import Batch, Facts, Task

SYMBOLS = ("", *"0123456789", "[MIN", "[MAX", "[MED", "[SM", "]")
_CHUNK = 500


@dataclass(frozen=True)
class ListOps(Task):
    """The distribution of the published generator, with a vocabulary that never changes.

    An expression is kept when `min_length < tokens < max_length`. Longer ones need a larger
    `max_depth`.
    """

    name: ClassVar[str] = "listops"
    about: ClassVar[str] = "nested lists of MIN, MAX, MED, SM over digits; generated"

    seed: int = 0
    train: int = 96_000
    validation: int = 2_000
    test: int = 2_000
    min_length: int = 500
    max_length: int = 2_000
    max_depth: int = 10
    max_args: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_args < 2 or self.max_depth < 1 or self.max_length < self.min_length + 2:
            raise ValueError(
                f"max_args={self.max_args}, max_depth={self.max_depth}, lengths between "
                f"{self.min_length} and {self.max_length} were given; expected max_args >= 2, "
                "max_depth >= 1, max_length >= min_length + 2"
            )

    def facts(self) -> Facts:
        return Facts(
            kind="tokens",
            classes=10,
            length=self.max_length,
            vocabulary=len(SYMBOLS),
            padding=0,
            class_names=tuple("0123456789"),
        )

    def write(self, out: Writer, source: Path, workers: int) -> None:
        splits = {"train": self.train, "validation": self.validation, "test": self.test}
        out.begin(
            splits,
            inputs=((self.max_length,), np.uint8),
            lengths=((), np.int32),
            labels=((), np.uint8),
        )
        fill(out, self._draw, _CHUNK, workers)

    def describe(self, sample: Batch) -> str:
        return " ".join(SYMBOLS[token] for token in sample.inputs[: sample.lengths].tolist())

    def parse(self, content: bytes) -> list[list[bytes]]:
        """An expression a line, its symbols apart; round brackets mean nothing, as released."""
        samples = []
        for number, line in enumerate(content.decode("utf-8", "replace").splitlines(), 1):
            words = [word for word in line.split() if word not in ("(", ")")]
            for word in words:
                if word not in SYMBOLS:
                    known = " ".join(SYMBOLS[1:])
                    raise ValueError(f"line {number} has {word!r}, expected symbols of: {known}")
            if words:
                samples.append([bytes(map(SYMBOLS.index, words))])
        return samples

    def _draw(self, chunk: int) -> dict[str, np.ndarray]:
        from .compiled import random_state
        from .listops_kernel import GIVE_UP_AFTER, draw_many

        tokens = np.empty((_CHUNK, self.max_length), np.uint8)
        lengths, labels = np.empty(_CHUNK, np.int32), np.empty(_CHUNK, np.uint8)
        drawn = draw_many(
            random_state(chunk_seed(self.seed, chunk)),
            tokens,
            lengths,
            labels,
            self.min_length,
            self.max_length,
            self.max_depth,
            self.max_args,
        )
        if drawn < _CHUNK:
            raise DataError(
                f"listops: {GIVE_UP_AFTER} expressions in a row were not between "
                f"{self.min_length} and {self.max_length} tokens long: raise max_depth "
                f"(now {self.max_depth}) or max_args (now {self.max_args}), or lower min_length"
            )
        return {"inputs": tokens, "lengths": lengths, "labels": labels}
