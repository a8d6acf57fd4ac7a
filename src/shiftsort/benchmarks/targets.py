"""What the kernels are to reach on an H200, and whether the files of `shiftsort bench` say they do.

A target is a limit on a ratio of two measurements of one file; the worst of all shapes counts.
"""

import math
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from .record import TOLERANCE, Row, label

Ratios = Iterator[tuple[Row, float]]

_CSP = "csp"
_MAJOR = ("channel-major",)
_BOTH = ("channel-major", "token-major")
_LARGEST_SORTED = 16_384
_ATTENTION = "attention layer, cudnn"


@dataclass(frozen=True)
class Target:
    """A ratio, from the rows of one file, that is to be at least or at most so much."""

    what: str
    limit: float
    at_least: bool
    bench: str
    ratios: Callable[[list[Row]], Ratios]
    steps: str = "linear"


@dataclass(frozen=True)
class Finding:
    """The worst that was measured, and where."""

    target: Target
    worst: float | None = None
    where: str = ""

    @property
    def verdict(self) -> str:
        """In words."""
        if self.worst is None:
            return "not measured"
        target = self.target
        met = self.worst >= target.limit if target.at_least else self.worst <= target.limit
        return "met" if met else "missed"


def judge(documents: Iterable[dict[str, Any]]) -> list[Finding]:
    """One finding for each target, from all files that have bfloat16 values."""
    documents = [d for d in documents if d.get("settings", {}).get("dtype") == "bfloat16"]
    return [_judge_one(target, documents) for target in TARGETS]


def _judge_one(target: Target, documents: list[dict[str, Any]]) -> Finding:
    found = [
        (ratio, label(row))
        for document in documents
        if document["bench"] == target.bench and document["settings"]["steps"] == target.steps
        for row, ratio in target.ratios([r for r in document["results"] if r["failed"] is None])
    ]
    if not found:
        return Finding(target)
    return Finding(target, *(min if target.at_least else max)(found))


def _of_copy(
    passes: Collection[str],
    groups: Collection[int],
    layouts: Collection[str],
    samples: tuple[float, float],
    rows: list[Row],
) -> Ratios:
    """The share of a copy's bandwidth, for lengths above the first and up to the second number."""
    for row in _csp(rows, groups, layouts):
        if samples[0] < row["shape"][1] <= samples[1]:
            yield from ((row, row["of_copy"][name]) for name in passes if name in row["of_copy"])


def _copies(rows: list[Row]) -> Ratios:
    """The backward of a complete sort, in copies."""
    for row in _csp(rows, ("all",), _BOTH):
        if row["shape"][1] <= _LARGEST_SORTED:
            yield row, row["copies"]["backward"]


def _all_against_groups(size: int, rows: list[Row]) -> Ratios:
    """How many times as long a complete sort takes."""
    for row in _csp(rows, (size,), _BOTH):
        for other in _csp(rows, ("all",), (row["layout"],)):
            if other["shape"] == row["shape"]:
                yield row, _ms(other, "forward") / _ms(row, "forward")


def _sample_against(rows: list[Row]) -> Ratios:
    """A sample's cost in a complete sort at an ugly length, in that of the power of two above."""
    for row in _csp(rows, ("all",), _BOTH):
        samples = row["shape"][1]
        for other in _csp(rows, ("all",), (row["layout"],)):
            if (samples, other["shape"][1]) in ((2000, 2048), (4000, 4096)):
                yield row, _each(row) / _each(other)


def _against(
    name: str, groups: Collection[int | str] | None, passes: tuple[str, str], rows: list[Row]
) -> Ratios:
    """Times of csp, channel-major, in those of another candidate."""
    for row in _csp(rows, groups, _MAJOR):
        for other in rows:
            same = (other["layout"], other["shape"], other["group_size"]) == (
                row["layout"], row["shape"], row["group_size"],
            )  # fmt: skip
            if other["candidate"] == name and same and row["shape"][1] <= _LARGEST_SORTED:
                yield row, _ms(row, passes[0]) / _ms(other, passes[1])


def _inverse(ratios: Callable[[list[Row]], Ratios], rows: list[Row]) -> Ratios:
    """The other way round."""
    for row, ratio in ratios(rows):
        yield row, 1 / ratio


def _projection(rows: list[Row]) -> Ratios:
    """Projection and pairs, in bare projections."""
    for row in rows:
        pairs = row["candidate"] == "projection + csp" and row["group_size"] == 2
        if pairs and row["shape"][1:] == [4096, 512]:
            yield row, row["of_projection"]["forward"]


def _layers(group: int | str, samples: int | None, value: Callable[[Row], float]) -> Any:
    """The attention layer in CSP layers of the same shape."""

    def ratios(rows: list[Row]) -> Ratios:
        for row in rows:
            mine = row["candidate"] == "csp layer" and row["group_size"] == group
            if not mine or samples not in (None, row["shape"][1]):
                continue
            for other in rows:
                if other["candidate"] == _ATTENTION and other["shape"] == row["shape"]:
                    yield row, value(other) / value(row)

    return ratios


def _csp(
    rows: list[Row], groups: Collection[int | str] | None, layouts: Collection[str]
) -> Iterator[Row]:
    for row in rows:
        wanted = groups is None or row["group_size"] in groups
        if wanted and row["candidate"] == _CSP and row["layout"] in layouts:
            yield row


def _ms(row: Row, name: str) -> float:
    return row["ms"][name]["median"]


def _each(row: Row) -> float:
    return _ms(row, "forward") / (row["shape"][0] * row["shape"][1])


def _both(row: Row) -> float:
    return _ms(row, "both")


def _peak(row: Row) -> float:
    return row["peak_bytes"]["both"]


def _operator(
    what: str, limit: float, at_least: bool, ratios: Any, steps: str = "linear"
) -> Target:
    return Target(what, limit, at_least, "operator", ratios, steps)


_EVERY = (0.0, math.inf)
_WAYS = ("forward", "backward")
_WITH_CUB = partial(_against, "CUB BlockRadixSort", ("all",), ("saving", "forward"))
_WITH_SORT = partial(_against, "torch.sort alone", ("all",), ("saving", "forward"))
_WITH_ASCENDING = partial(_against, "csp, ascending", ("all",), ("forward", "forward"))
_LAYERS: tuple[tuple[int | str, str, tuple[float, ...]], ...] = (
    (2, "pairs", (4, 10, 35)),
    ("all", "complete sort", (2.5, 6, 16)),
)
_WITH_LENGTHS = partial(_against, "csp with lengths", None, ("both", "both"))

TARGETS = (
    _operator("shift, pairs: channel-major, forward, of copy", 0.92, True,
              partial(_of_copy, ("forward",), (1, 2), _MAJOR, _EVERY)),
    _operator("shift, pairs: channel-major, backward, of copy", 0.90, True,
              partial(_of_copy, ("backward",), (1, 2), _MAJOR, _EVERY)),
    _operator("shift, pairs: token-major, linear steps, both ways, of copy", 0.80, True,
              partial(_of_copy, _WAYS, (1, 2), ("token-major",), _EVERY)),
    _operator("the same, exponential steps, N up to 4096", 0.80, True,
              partial(_of_copy, _WAYS, (1, 2), ("token-major",), (0.0, 4096)), "exponential"),
    _operator("the same, exponential steps, N beyond", 0.45, True,
              partial(_of_copy, _WAYS, (1, 2), ("token-major",), (4096, math.inf)), "exponential"),
    _operator("groups of 8 and 32: forward, of copy", 0.5, True,
              partial(_of_copy, ("forward",), (8, 32), _BOTH, _EVERY)),
    _operator("groups of 256: a complete sort takes so many times as long", 1.0, True,
              partial(_all_against_groups, 256)),
    _operator("complete sort: a sample at N = 2000, 4000, of one at 2048, 4096", 1.35, False,
              _sample_against),
    _operator("complete sort, permutation kept: time, of CUB's", 1.0, False, _WITH_CUB),
    _operator("complete sort, permutation kept: torch.sort takes so many times as long", 2.0, True,
              partial(_inverse, _WITH_SORT)),
    _operator("complete sort: time in reference order, of ascending", 1.15, False, _WITH_ASCENDING),
    _operator("complete sort: backward, in copies", 3.0, False, _copies),
    # Two timings of the same thing may differ by the tolerance.
    _operator("every group: time with lengths, of that without", 1 + TOLERANCE, False,
              partial(_inverse, _WITH_LENGTHS)),
    Target("projection + pairs: forward, of the projection, N = 4096", 1.7, False, "layer",
           _projection),
    *(
        Target(f"layer, {name}, N = {samples}: cuDNN's takes so many times as long, f + b",
               limit, True, "layer", _layers(group, samples, _both))
        for group, name, limits in _LAYERS
        for samples, limit in zip((1024, 4096, 16_384), limits, strict=True)
    ),
    *(
        Target(f"layer, {name}: cuDNN's peak is so many times as high", 2.0, True, "layer",
               _layers(group, None, _peak))
        for group, name, _ in _LAYERS
    ),
)  # fmt: skip
