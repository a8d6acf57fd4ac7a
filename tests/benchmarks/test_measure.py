"""Rounds, failures, memory: what the bench does with the candidates that it is given."""

import time

import pytest
import torch

from shiftsort.benchmarks import clock, memory, record
from shiftsort.benchmarks.candidate import Candidate, Unsupported
from shiftsort.benchmarks.case import Case
from shiftsort.benchmarks.measure import Effort, measure

BRIEF = Effort(rounds=2, budget=0.0, least=2, most=2)
CASE = Case(1, 8, 4)


def candidate(name, prepare, **options):
    return Candidate(name, prepare, lambda case, seed: (case.values(seed),), **options)


def _raise(error):
    raise error


def test_a_candidate_that_fails_says_why_and_stops_nobody():
    failing = {
        "refuses": lambda case: _raise(Unsupported("not on a Sunday")),
        "too large": lambda case: lambda v: _raise(torch.OutOfMemoryError("17 lines")),
        "throws": lambda case: lambda v: _raise(RuntimeError("first line\nsecond line")),
        "wrong": lambda case: lambda v: v + 1,
    }
    entries = [
        candidate(name, prepare, expected=lambda case, inputs: inputs[0])
        for name, prepare in failing.items()
    ]
    entries.append(candidate("sound", lambda case: torch.clone))
    rows = {row["candidate"]: row for row in record.rows(measure([CASE], entries, BRIEF))}
    assert {name: row["failed"] for name, row in rows.items()} == {
        "refuses": "not on a Sunday",
        "too large": "out of memory",
        "throws": "RuntimeError: first line",
        "wrong": "its result is wrong",
        "sound": None,
    }
    assert rows["sound"]["ms"]["both"]["repeats"] == 4


def test_what_has_no_groups_is_measured_once_for_each_shape():
    cases = [CASE, CASE.with_group(None), Case(1, 16, 4)]
    entries = [
        candidate("grouped", lambda case: torch.clone),
        candidate("not", lambda case: torch.clone, grouped=False, backward=False),
    ]
    rows = record.rows(measure(cases, entries, BRIEF))
    assert sorted((r["candidate"], r["shape"][1], str(r["group_size"])) for r in rows) == [
        ("grouped", 8, "2"), ("grouped", 8, "all"), ("grouped", 16, "2"),
        ("not", 8, "any"), ("not", 16, "any"),
    ]  # fmt: skip


def test_modules_give_gradients_to_their_parameters_too():
    seen = []

    def prepare(case):
        module = torch.nn.Linear(4, 4)
        module.weight.register_hook(lambda grad: seen.append(grad.shape))
        return module

    (row,) = record.rows(measure([CASE], [candidate("linear", prepare)], BRIEF))
    assert row["failed"] is None
    assert seen


def test_saved_bytes_counts_each_storage_once_and_no_parameter():
    v = torch.randn(64, requires_grad=True)
    weight = torch.randn(64, requires_grad=True)
    assert memory.saved_bytes(lambda: v * v) == 256
    assert memory.saved_bytes(lambda: v * weight) == 512
    assert memory.saved_bytes(lambda: v * weight, [weight]) == 256


def test_the_peak_counts_what_lives_only_during_the_call():
    size = 64 * 2**20
    peak = memory.peak_bytes(lambda: torch.ones(size // 4).sum(), "cpu")
    if peak is None:
        pytest.skip("this system does not tell a process's peak")
    assert 0.9 * size < peak < 1.5 * size


def test_the_clock_measures_each_part():
    def trial(number, mark):
        mark()
        time.sleep(0.002)
        mark()
        time.sleep(0.008)
        mark()

    samples = clock.sample(trial, "cpu", budget=0.0, least=3, most=5)
    assert len(samples.parts) == 3
    for first, second in samples.parts:
        assert first >= 2
        assert second >= 8


def _row(name, seconds, rounds=None, shape=(1, 8, 4), **more):
    times = {"median": seconds, "rounds": rounds or [seconds, seconds]}
    times["drift"] = max(times["rounds"]) / min(times["rounds"]) - 1
    row = {"candidate": name, "layout": "", "shape": list(shape), "group_size": "any"}
    return (
        row
        | {"failed": None, "ms": {"forward": times}, "gb_per_s": {"forward": 1 / seconds}}
        | more
    )


def test_rounds_that_differ_by_more_than_a_twentieth_are_warned_of():
    rows = [_row("steady", 1.0, [1.0, 1.04]), _row("drifting", 1.0, [1.0, 1.06])]
    (warning,) = record.warnings_of(rows)
    assert warning == "drifting, 1 x 8 x 4, forward: two rounds took 1.000 and 1.060 ms"


def test_copies_are_counted_within_a_shape():
    rows = [
        _row("copy", 2.0),
        _row("other", 6.0),
        _row("copy", 5.0, shape=(1, 16, 4)),
        _row("other", 5.0, shape=(1, 16, 4)),
        _row("failing", 1.0, failed="no"),
    ]
    record.compare_with_copy(rows)
    assert [row["copies"]["forward"] for row in rows[:4]] == [1, 3, 1, 1]
    assert rows[1]["of_copy"]["forward"] == pytest.approx(1 / 3)
    assert "copies" not in rows[4]


def test_layers_are_compared_with_the_fastest_attention():
    rows = [_row("attention, a", 8.0), _row("attention, b", 4.0), _row("ours", 1.0)]
    record.compare_with_fastest(rows, "attention", "of_attention")
    assert rows[2]["of_attention"]["forward"] == 0.25
