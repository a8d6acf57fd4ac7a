"""Runs -> one line for each experiment: runs that differ in their seed alone, together."""

import json
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from .runs import Run


@dataclass(frozen=True)
class Spread:
    """A figure over several seeds; one seed has no deviation."""

    mean: float
    deviation: float | None

    def text(self, digits: int = 2) -> str:
        """As `84.07 ± 0.21`."""
        if self.deviation is None:
            return f"{self.mean:.{digits}f}"
        return f"{self.mean:.{digits}f} ± {self.deviation:.{digits}f}"


@dataclass(frozen=True)
class Experiment:
    """One recipe as it was run, with all its seeds."""

    runs: tuple[Run, ...]

    @property
    def first(self) -> Run:
        """What all of its runs share, can be read from this one."""
        return self.runs[0]

    @property
    def changed(self) -> str:
        """What was not as in the recipe."""
        return ", ".join(f"{k}={v}" for k, v in sorted(_changes(self.first).items()))

    def test(self, name: str) -> Spread | None:
        """A figure of the test, "top1", "top5" or "loss"; None unless every run has it."""
        return spread(run.test.get(name) for run in self.runs)

    @property
    def speed(self) -> float:
        """Training steps a second."""
        return statistics.mean(run.steps_per_second for run in self.runs)

    @property
    def memory(self) -> int | None:
        """The highest peak of any of its runs, where it was measured."""
        return max((run.peak_memory_bytes or 0 for run in self.runs), default=0) or None


def spread(values: Iterable[float | None]) -> Spread | None:
    """Mean and sample deviation; None where a value is missing."""
    known = list(values)
    if not known or None in known:
        return None
    return Spread(statistics.mean(known), statistics.stdev(known) if len(known) > 1 else None)


def experiments(runs: Iterable[Run]) -> list[Experiment]:
    """In the order of tables, tasks and recipes. Of runs with the same seed the newest counts."""
    together: dict[str, dict[int, Run]] = {}
    for run in sorted(runs, key=lambda run: run.date):
        together.setdefault(_identity(run), {})[run.seed] = run
    found = [
        Experiment(tuple(by_seed[seed] for seed in sorted(by_seed)))
        for by_seed in together.values()
    ]
    return sorted(found, key=lambda e: (e.first.table, e.first.task, e.first.recipe, e.changed))


def superseded(runs: Iterable[Run]) -> list[Run]:
    """Those that do not count, because a newer one of the same experiment has the same seed."""
    runs = list(runs)
    kept = {run.path for experiment in experiments(runs) for run in experiment.runs}
    return [run for run in runs if run.path not in kept]


def names(some: Sequence[Experiment]) -> list[str]:
    """A short name for each that no other of them has: its row, its recipe, or what was changed."""
    for name in (lambda e: e.first.row, lambda e: e.first.recipe, _recipe_and_changes):
        found = [name(experiment) for experiment in some]
        if len(set(found)) == len(found):
            return found
    return [f"{name} ({number})" for number, name in enumerate(found, 1)]


def _recipe_and_changes(experiment: Experiment) -> str:
    return f"{experiment.first.recipe}, {experiment.changed or 'as published'}"


def _identity(run: Run) -> str:
    """Equal for runs whose figures may be averaged."""
    same = (run.table, run.task, run.recipe, run.row, run.steps, run.steps_published,
            run.chosen_on, run.parameters, run.precision, run.device)  # fmt: skip
    return json.dumps([same, _changes(run)], sort_keys=True, default=str)


def _changes(run: Run) -> dict[str, Any]:
    """Without the seed, and without the epochs or steps that the other of the two has put out."""
    out = {name for name in ("epochs", "steps") if run.overrides.get(name) is None} | {"seed"}
    return {key: value for key, value in run.overrides.items() if key not in out}
