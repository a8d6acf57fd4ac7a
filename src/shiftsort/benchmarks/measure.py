"""Candidates x cases -> measurements.

Every candidate of a shape is measured in each of two rounds, so that the same thing is timed twice
with everything else in between: a clock that drifts or a neighbour that wakes up shows as a
difference between the rounds. Inputs are rotated among as many sets as it takes to leave no cache
warm. The first round also checks the result, in memory that was filled with NaN, and measures
memory. A candidate that fails is a measurement too: one with a reason.
"""

import gc
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from . import clock, memory
from .candidate import Candidate, Function, Unsupported, is_right
from .case import Case

#: What is timed: without autograd; with it; its backward; and those two together.
PASSES = ("forward", "saving", "backward", "both")

_MOST_INPUT_SETS = 8
_CPU_CACHE_BYTES = 64 * 2**20


@dataclass(frozen=True)
class Effort:
    """How long to look. `budget` is in seconds, for each pair of passes in each round."""

    rounds: int = 2
    budget: float = 0.3
    least: int = 4
    most: int = 50


QUICK = Effort(budget=0.05, least=3, most=10)


@dataclass
class Measurement:
    """One candidate in one case: milliseconds of each pass, a list for each round."""

    candidate: Candidate
    case: Case
    times: list[dict[str, list[float]]] = field(default_factory=list)
    issue_times: list[float] = field(default_factory=list)
    peak_bytes: dict[str, int | None] = field(default_factory=dict)
    saved_bytes: int | None = None
    #: Which of its variants a candidate chose, where it has any.
    detail: str | None = None
    failed: str | None = None


def measure(
    cases: Iterable[Case],
    candidates: Iterable[Candidate],
    effort: Effort,
    say: Callable[[str], None] = lambda text: None,
    keep: Callable[[list[Measurement]], None] = lambda so_far: None,
) -> list[Measurement]:
    """Everything, shape by shape. `keep` gets all that there is after each."""
    candidates = list(candidates)
    results: list[Measurement] = []
    for group_cases in _by_tokens(cases):
        entries = [
            Measurement(candidate, case)
            for number, case in enumerate(group_cases)
            for candidate in candidates
            if candidate.grouped or number == 0
        ]
        functions: dict[int, Function] = {}
        for round_number in range(effort.rounds):
            for number, entry in enumerate(entries):
                if entry.failed is not None:
                    continue
                shape = " x ".join(map(str, entry.case.shape))
                say(f"{shape}, round {round_number + 1}: {entry.candidate.name}")
                _attempt(entry, functions, number, effort)
        results += entries
        keep(results)
    return results


def _by_tokens(cases: Iterable[Case]) -> Iterator[list[Case]]:
    """Cases that differ in their groups alone, together."""
    together: dict[Case, list[Case]] = {}
    for case in cases:
        together.setdefault(case.with_group(None), []).append(case)
    yield from together.values()


def _attempt(
    entry: Measurement, functions: dict[int, Function], number: int, effort: Effort
) -> None:
    try:
        if number not in functions:
            functions[number] = entry.candidate.prepare(entry.case)
            entry.detail = getattr(functions[number], "detail", None)
            _check(entry, functions[number])
            _weigh(entry, functions[number])
        _time(entry, functions[number], effort)
    except Unsupported as reason:
        entry.failed = str(reason)
    except torch.OutOfMemoryError:
        entry.failed = "out of memory"
    except Exception as error:  # whatever a backend or a compiler throws is a result here
        first_line = (str(error).strip() or "no message").splitlines()[0]
        entry.failed = f"{type(error).__name__}: {first_line[:160]}"
    if entry.failed is not None:
        functions.pop(number, None)
        gc.collect()
        if entry.case.device != "cpu":
            torch.cuda.empty_cache()


def _check(entry: Measurement, function: Function) -> None:
    inputs = entry.candidate.inputs(entry.case, 0)
    expected = None
    if entry.candidate.expected is not None:
        expected = entry.candidate.expected(entry.case, inputs)
    memory.poison(entry.case.value_bytes, entry.case.device)
    with torch.no_grad():
        if not is_right(function(*inputs), expected):
            raise Unsupported("its result is wrong")


def _weigh(entry: Measurement, function: Function) -> None:
    inputs, device = entry.candidate.inputs(entry.case, 0), entry.case.device
    with torch.no_grad():
        function(*inputs)  # what a first call loads and keeps is not the call's
        entry.peak_bytes["forward"] = memory.peak_bytes(lambda: function(*inputs), device)
    if not entry.candidate.backward:
        return
    parameters = _parameters(function)
    leaves = [x.requires_grad_() for x in inputs]
    entry.saved_bytes = memory.saved_bytes(lambda: function(*leaves), parameters)
    grad_y = torch.randn_like(function(*leaves).detach())

    def both() -> object:
        return torch.autograd.grad(function(*leaves), [*leaves, *parameters], grad_y)

    both()
    entry.peak_bytes["both"] = memory.peak_bytes(both, device)


def _time(entry: Measurement, function: Function, effort: Effort) -> None:
    case, candidate = entry.case, entry.candidate
    sets = _input_sets(candidate, case)

    def forward(number: int, mark: Callable[[], None]) -> None:
        inputs = sets[number % len(sets)]
        with torch.no_grad():
            mark()
            y = function(*inputs)
            mark()
        del y

    samples = clock.sample(forward, case.device, effort.budget, effort.least, effort.most)
    times = {"forward": [parts[0] for parts in samples.parts]}
    entry.issue_times += samples.issue
    if candidate.backward:
        times |= _time_both(sets, function, case, effort)
    entry.times.append(times)


def _time_both(
    sets: list[tuple[Tensor, ...]], function: Function, case: Case, effort: Effort
) -> dict[str, list[float]]:
    parameters = _parameters(function)
    leaves = [[x.requires_grad_() for x in inputs] for inputs in sets]
    y = function(*leaves[0]).detach()
    grads = [torch.randn_like(y) for _ in sets]
    del y

    def both(number: int, mark: Callable[[], None]) -> None:
        inputs, grad_y = leaves[number % len(sets)], grads[number % len(sets)]
        mark()
        y = function(*inputs)
        mark()
        gradients = torch.autograd.grad(y, [*inputs, *parameters], grad_y)
        mark()
        del y, gradients

    samples = clock.sample(both, case.device, effort.budget, effort.least, effort.most)
    return {
        "saving": [parts[0] for parts in samples.parts],
        "backward": [parts[1] for parts in samples.parts],
        "both": [sum(parts) for parts in samples.parts],
    }


def _parameters(function: Function) -> list[Tensor]:
    return list(function.parameters()) if isinstance(function, nn.Module) else []


def _input_sets(candidate: Candidate, case: Case) -> list[tuple[Tensor, ...]]:
    first = candidate.inputs(case, 0)
    cache = _CPU_CACHE_BYTES
    if case.device != "cpu":
        cache = torch.cuda.get_device_properties(case.device).L2_cache_size
    each = sum(x.nbytes for x in first)
    count = max(1, min(_MOST_INPUT_SETS, -(-3 * cache // max(each, 1))))
    return [first, *(candidate.inputs(case, seed) for seed in range(1, count))]
