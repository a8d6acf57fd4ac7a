"""ListOps: reproducible, without duplicates, and evaluated as an evaluator of its own does."""

import hashlib
import statistics

import numpy as np
import pytest

from shiftsort import tasks

pytest.importorskip("numba")

SMALL = {"train": 900, "validation": 60, "test": 40}


def evaluate(text):
    """Rewrite the innermost list until a digit is left; the generator keeps stacks instead."""
    words = text.split()
    while len(words) > 1:
        close = words.index("]")
        start = max(place for place in range(close) if words[place].startswith("["))
        digits = [int(word) for word in words[start + 1 : close]]
        value = {
            "[MIN": min,
            "[MAX": max,
            "[MED": lambda some: int(statistics.median(some)),
            "[SM": lambda some: sum(some) % 10,
        }[words[start]](digits)
        words[start : close + 1] = [str(value)]
    return int(words[0])


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    folder = tmp_path_factory.mktemp("listops")
    task = tasks.get("listops", **SMALL)
    task.make(folder, workers=1)
    return task, task.open(folder)


def samples_of(data):
    return [sample for split in data.splits.values() for sample in split]


def test_labels_are_what_an_independent_evaluator_finds(small):
    task, data = small
    samples = samples_of(data)
    assert len(samples) == 1000
    for sample in samples:
        assert evaluate(task.describe(sample)) == sample.labels


def test_the_evaluator_of_this_file_knows_the_rules():
    assert evaluate("[MED 1 2 4 9 ]") == 3
    assert evaluate("[MED 1 2 ]") == 1
    assert evaluate("[SM 9 [MAX 1 8 ] [MIN 4 5 ] ]") == 1


def test_lengths_and_structure_are_the_published_ones(small):
    task, data = small
    for sample in samples_of(data):
        assert 500 < sample.lengths < 2000
        assert (sample.inputs[sample.lengths :] == 0).all()
        depth = deepest = 0
        arguments = [0]
        for word in task.describe(sample).split():
            if word == "]":
                assert 2 <= arguments.pop() <= 10
                depth -= 1
                continue
            arguments[-1] += 1
            if word.startswith("["):
                arguments.append(0)
                depth += 1
                deepest = max(deepest, depth)
        assert deepest <= 9  # operations at depth 1 to 9 of 10, digits below


def test_all_four_operations_and_ten_digits_come_as_often_as_published(small):
    _, data = small
    tokens = np.concatenate([split.inputs.numpy().ravel() for split in data.splits.values()])
    counts = np.bincount(tokens, minlength=16)
    assert counts[1:11] / counts[1:11].sum() == pytest.approx(0.1, abs=0.005)
    assert counts[11:15] / counts[11:15].sum() == pytest.approx(0.25, abs=0.01)
    assert counts[15] == counts[11:15].sum()
    labels = np.concatenate([split.labels.numpy() for split in data.splits.values()])
    shares = np.bincount(labels, minlength=10) / len(labels)
    assert shares[[0, 9]] == pytest.approx(0.17, abs=0.04)


def test_the_same_bytes_for_any_number_of_workers(small, tmp_path):
    task, data = small
    task.make(tmp_path, workers=4)
    assert task.open(tmp_path).manifest == data.manifest


def test_a_seed_is_a_promise(small):
    """Raise ListOps.version together with these."""
    _, data = small
    inputs = np.concatenate([split.inputs.numpy() for split in data.splits.values()])
    digest = hashlib.sha256(inputs.tobytes()).hexdigest()
    assert digest == data.manifest["arrays"]["inputs"]["sha256"]
    assert digest[:16] == "d12ce6bcfe8008ee"


def test_another_seed_gives_other_samples(small, tmp_path):
    _, data = small
    other = tasks.get("listops", seed=1, **SMALL)
    other.make(tmp_path)
    texts = {bytes(sample.inputs.tolist()) for sample in samples_of(data)}
    assert not any(
        bytes(sample.inputs.tolist()) in texts for sample in samples_of(other.open(tmp_path))
    )


def test_no_sample_comes_twice_where_they_are_scarce(tmp_path):
    task = tasks.get(
        "listops", train=1500, validation=200, test=200,
        min_length=3, max_length=8, max_depth=3, max_args=3,
    )  # fmt: skip
    task.make(tmp_path)
    texts = [task.describe(sample) for sample in samples_of(task.open(tmp_path))]
    assert len(set(texts)) == len(texts) == 1900


def test_a_request_that_cannot_be_met_says_so(tmp_path):
    few = tasks.get("listops", train=1000, min_length=0, max_length=3, max_depth=1)
    with pytest.raises(tasks.DataError, match=r"only 10 different.*wanted"):
        few.make(tmp_path)
    never = tasks.get("listops", train=1, min_length=100, max_length=200, max_depth=2)
    with pytest.raises(tasks.DataError, match="raise max_depth"):
        never.make(tmp_path)
    assert not list(tmp_path.glob("listops*"))


def test_longer_sequences_are_a_setting(tmp_path):
    task = tasks.get(
        "listops", train=20, validation=5, test=5, min_length=4000, max_length=8000, max_depth=14
    )
    task.make(tmp_path)
    data = task.open(tmp_path)
    assert data.facts.length == 8000
    assert all(sample.lengths > 4000 for sample in data.split("train"))
