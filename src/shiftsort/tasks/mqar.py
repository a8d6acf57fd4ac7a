"""Associative recall with many queries, as zoology defines it (Arora et al., 2023)."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from .chunks import chunk_seed, fill
from .store import Writer
from .task import NO_LABEL, Batch, Facts, Task

_CHUNK = 500


@dataclass(frozen=True)
class Mqar(Task):
    """Keys with values, then queries among noise; at each query the key's value is the label.

    Few gaps between a pair and its query are long: they follow a power law, as in language.
    """

    name: ClassVar[str] = "mqar"
    about: ClassVar[str] = "associative recall, a label at each query; generated"

    seed: int = 0
    train: int = 100_000
    validation: int = 3_000
    test: int = 3_000
    length: int = 256
    pairs: int = 16
    vocabulary: int = 8_192
    power: float = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        fits = 4 <= 4 * self.pairs <= self.length and self.length % 2 == 0
        if not fits or not 2 * self.pairs + 2 <= self.vocabulary <= 2**15:
            raise ValueError(
                f"length={self.length}, pairs={self.pairs}, vocabulary={self.vocabulary} were "
                "given; expected an even length >= 4 * pairs >= 4 and 2 * pairs + 2 <= vocabulary "
                "<= 32768"
            )
        # With a steeper law far places practically never come, and are waited for.
        if not 0 < self.power <= 2:
            raise ValueError(f"power={self.power} was given; expected more than 0, at most 2")

    def facts(self) -> Facts:
        return Facts(
            kind="tokens",
            classes=self.vocabulary,
            length=self.length,
            vocabulary=self.vocabulary,
            labels_per_position=True,
        )

    def write(self, out: Writer, source: Path, workers: int) -> None:
        splits = {"train": self.train, "validation": self.validation, "test": self.test}
        out.begin(
            splits,
            inputs=((self.length,), np.int16),
            lengths=((), np.int32),
            labels=((self.length,), np.int16),
        )
        fill(out, self._draw, _CHUNK, workers)

    def describe(self, sample: Batch) -> str:
        tokens, labels = sample.inputs.tolist(), sample.labels.tolist()
        context = " ".join(
            f"{tokens[place]}:{tokens[place + 1]}" for place in range(0, 2 * self.pairs, 2)
        )
        asked = (
            f"{place}: {tokens[place]} -> {label}"
            for place, label in enumerate(labels)
            if label != NO_LABEL
        )
        return f"{context} | {', '.join(asked)}"

    def _draw(self, chunk: int) -> dict[str, np.ndarray]:
        from .compiled import random_state
        from .mqar_kernel import draw_many

        tokens = np.empty((_CHUNK, self.length), np.int16)
        labels = np.full((_CHUNK, self.length), NO_LABEL, np.int16)
        places = np.arange(1, (self.length - 2 * self.pairs) // 2 + 1)
        chances = np.cumsum(places ** (self.power - 1.0))
        state = random_state(chunk_seed(self.seed, chunk))
        draw_many(state, tokens, labels, self.pairs, self.vocabulary, chances)
        lengths = np.full(_CHUNK, self.length, np.int32)
        return {"inputs": tokens, "lengths": lengths, "labels": labels}
