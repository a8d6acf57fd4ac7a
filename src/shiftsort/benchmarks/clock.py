"""Time, on the CPU or on the GPU.

A trial calls `mark` before its work, between its parts, and after: the clock says how long each
part took. On a GPU a mark is an event of the stream. The stream is held by a spinning kernel until
the host has issued a batch of trials, so that what lies between two events is the GPU's work alone
and not the host's; `issue` is the time the host took to issue a trial.
"""

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import torch

Trial = Callable[[int, Callable[[], None]], None]

#: Trials that are issued together on a GPU: fewer launches than its queue holds.
_BATCH = 8
_SPIN_CYCLES_PER_SECOND = 2e9
_LONGEST_SPIN = 0.3


@dataclass
class Samples:
    """Milliseconds of each part of each trial."""

    parts: list[list[float]] = field(default_factory=list)
    issue: list[float] = field(default_factory=list)


def sample(trial: Trial, device: str, budget: float, least: int, most: int) -> Samples:
    """Trials for about `budget` seconds, at least `least` and at most `most`, after a warm-up."""
    one_trial = _warm_up(trial, device)
    count = _count(one_trial, budget, least, most)
    if device == "cpu":
        return _sample_cpu(trial, count)
    return _sample_cuda(trial, count, one_trial)


def sample_steps(
    step: Callable[[], object], device: str, budget: float, least: int, most: int
) -> list[float]:
    """Milliseconds from one step to the next, each issued as soon as the host can, as in training.

    Unlike `sample` this does not hide the host: a step whose kernels are done before the next ones
    are launched takes as long as launching them does.
    """
    one_step = _warm_up(lambda number, mark: step(), device)
    marks: list[float] = []
    events: list[torch.cuda.Event] = []
    count = _count(one_step, budget, least, most)
    for number in range(count + 1):
        if number:
            step()
        if device == "cpu":
            marks.append(1e3 * time.perf_counter())
        else:
            _record(events)
    if device == "cpu":
        return [b - a for a, b in itertools.pairwise(marks)]
    torch.cuda.synchronize()
    return [a.elapsed_time(b) for a, b in itertools.pairwise(events)]


def _count(one_trial: float, budget: float, least: int, most: int) -> int:
    return max(least, min(most, int(budget / max(one_trial, 1e-6))))


def _warm_up(trial: Trial, device: str) -> float:
    """Seconds that a trial takes once everything is compiled, allocated and in its place."""
    seconds = 0.0
    for number in range(3):
        if device != "cpu":
            torch.cuda.synchronize()
        start = time.perf_counter()
        trial(number, _ignore)
        if device != "cpu":
            torch.cuda.synchronize()
        seconds = time.perf_counter() - start
        if number and seconds > 0.2:
            break
    return seconds


def _ignore() -> None:
    pass


def _sample_cpu(trial: Trial, count: int) -> Samples:
    samples = Samples()
    for number in range(count):
        marks: list[float] = []
        trial(number, lambda marks=marks: marks.append(time.perf_counter()))
        samples.parts.append([1e3 * (b - a) for a, b in itertools.pairwise(marks)])
    return samples


def _sample_cuda(trial: Trial, count: int, one_trial: float) -> Samples:
    samples = Samples()
    issue = one_trial  # no more than this; the first batch tells
    for start in range(0, count, _BATCH):
        numbers = range(start, min(start + _BATCH, count))
        spin = min(_LONGEST_SPIN, 1.5 * issue * len(numbers) + 1e-3)
        torch.cuda._sleep(int(spin * _SPIN_CYCLES_PER_SECOND))
        events: list[list[torch.cuda.Event]] = []
        before = time.perf_counter()
        for number in numbers:
            marks: list[torch.cuda.Event] = []
            trial(number, lambda marks=marks: _record(marks))
            events.append(marks)
        issue = (time.perf_counter() - before) / len(numbers)
        torch.cuda.synchronize()
        samples.issue.append(1e3 * issue)
        samples.parts.extend(
            [a.elapsed_time(b) for a, b in itertools.pairwise(marks)] for marks in events
        )
    return samples


def _record(marks: list[torch.cuda.Event]) -> None:
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    marks.append(event)
