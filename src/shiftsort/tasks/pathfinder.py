"""Pathfinder: do two discs lie on the same dashed contour, among distractors?"""

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np

from .chunks import chunk_seed, fill
from .pathfinder_tables import CONTOUR_LENGTHS, GEOMETRIES, tables
from .store import Writer
from .task import Batch, Facts, Task, shade

_CHUNK = 250
_SPLITS = {"train": 0.8, "validation": 0.1, "test": 0.1}


class Drawn(NamedTuple):
    """One chunk of images."""

    images: np.ndarray
    labels: np.ndarray
    #: The places (y, x) of the two markers of each image.
    tips: np.ndarray
    #: (images, 2, side, side): each contour alone, enlarged, without gaps; empty unless asked for.
    plains: np.ndarray
    #: How many pairs of snakes were grown until all images had theirs.
    pairs: int


@dataclass(frozen=True)
class Pathfinder(Task):
    """The geometry and the parameters of the published sets; half of each chunk is positive."""

    name: ClassVar[str] = "pathfinder"
    about: ClassVar[str] = "are two discs joined by a dashed contour?; generated, 32 to 256 pixels"
    served: ClassVar[frozenset[str]] = frozenset({"black_is_padding"})

    seed: int = 0
    size: int = 32
    difficulty: str = "hard"
    samples: int = 200_000
    #: The published generator lets the two contours cross now and then; False draws no such image.
    crossings: bool = True
    #: As the original's input pipeline reads it: black pixels are padding.
    black_is_padding: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.size not in GEOMETRIES or self.difficulty not in CONTOUR_LENGTHS:
            raise ValueError(
                f"size={self.size}, difficulty={self.difficulty!r} were given; expected size in "
                f"{list(GEOMETRIES)}, difficulty in {list(CONTOUR_LENGTHS)}"
            )

    def facts(self) -> Facts:
        return Facts(
            kind="tokens",
            classes=2,
            length=self.size**2,
            vocabulary=256,
            image=(1, self.size, self.size),
            padding=0 if self.black_is_padding else None,
            mean=(0.5,),
            std=(0.5,),
            class_names=("apart", "joined"),
        )

    def write(self, out: Writer, source: Path, workers: int) -> None:
        length = self.size**2
        out.begin(
            _split_counts(self.samples),
            inputs=((length,), np.uint8),
            lengths=((), np.int32),
            labels=((), np.uint8),
        )
        pairs = []

        def rows(chunk: int) -> dict[str, np.ndarray]:
            drawn = self.draw(chunk)
            pairs.append(drawn.pairs)
            return {
                "inputs": drawn.images.reshape(_CHUNK, length),
                "lengths": np.full(_CHUNK, length, np.int32),
                "labels": drawn.labels,
            }

        fill(out, rows, _CHUNK, workers)
        out.notes["pairs of snakes grown for an image"] = round(sum(pairs) / _CHUNK / len(pairs), 2)

    def draw(self, chunk: int, *, plain: bool = False) -> Drawn:
        """The images of one chunk, with what a label means on request."""
        from .compiled import random_state, shuffle
        from .pathfinder_kernel import PLAIN_SIZE, draw_many

        geometry = GEOMETRIES[self.size]
        paddles = CONTOUR_LENGTHS[self.difficulty]
        state = random_state(chunk_seed(self.seed, self.size, paddles, chunk))
        labels = np.arange(_CHUNK, dtype=np.uint8) % 2
        shuffle(state, labels)
        margins = np.arange(_CHUNK) % len(geometry.margins)
        shuffle(state, margins)

        images = np.empty((_CHUNK, self.size, self.size), np.uint8)
        tips = np.empty((_CHUNK, 2, 2), np.int64)
        plains = np.zeros((_CHUNK if plain else 0, 2, PLAIN_SIZE, PLAIN_SIZE), np.uint8)
        pairs = 0
        for index, margin in enumerate(geometry.margins):
            rows = np.flatnonzero(margins == index)
            drawn, places, contours = images[rows], tips[rows], plains[rows if plain else []]
            pairs += draw_many(
                state, tables(geometry, margin), drawn, labels[rows], places, geometry.border,
                geometry.seed_distance, paddles, geometry.distractor_paddles // (paddles // 3),
                paddles // 3, geometry.contrast, geometry.target_contrast,
                self.crossings, contours,
            )  # fmt: skip
            images[rows], tips[rows] = drawn, places
            plains[rows if plain else []] = contours
        return Drawn(images, labels, tips, plains, pairs)

    def describe(self, sample: Batch) -> str:
        return shade(sample.inputs.reshape(self.size, self.size))


@dataclass(frozen=True)
class PathX(Pathfinder):
    """Pathfinder at 128 pixels: sequences of 16,384."""

    name: ClassVar[str] = "pathx"
    about: ClassVar[str] = "Pathfinder at 128 pixels, 16,384 tokens; generated"

    size: int = 128


def _split_counts(samples: int) -> dict[str, int]:
    ends = [round(share * samples) for share in itertools.accumulate(_SPLITS.values())]
    starts = [0, *ends[:-1]]
    return {name: end - start for name, start, end in zip(_SPLITS, starts, ends, strict=True)}
