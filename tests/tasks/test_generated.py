"""Associative recall and the stand-in for retrieval."""

import numpy as np
import pytest

from shiftsort import tasks
from shiftsort.tasks import NO_LABEL
from shiftsort.tasks.retrieval import source_codes

pytest.importorskip("numba")

FEW = {"train": 1200, "validation": 100, "test": 100}


def made(name, folder, **settings):
    task = tasks.get(name, **FEW, **settings)
    task.make(folder)
    return task, task.open(folder)


def all_rows(data, field):
    return np.concatenate([getattr(split, field).numpy() for split in data.splits.values()])


def test_recall_asks_each_key_once_and_wants_its_value(tmp_path):
    _, data = made("mqar", tmp_path, length=64, pairs=6, vocabulary=512)
    for tokens, labels in zip(all_rows(data, "inputs"), all_rows(data, "labels"), strict=True):
        keys, values = tokens[:12:2], tokens[1:12:2]
        assert len(set(keys)) == len(set(values)) == 6
        assert (keys >= 1).all()
        assert (keys < 256).all()
        assert (values >= 256).all()
        answers = dict(zip(keys, values, strict=True))
        asked = np.flatnonzero(labels != NO_LABEL)
        assert (asked >= 12).all()
        assert (asked % 2 == 0).all()
        assert sorted(tokens[asked]) == sorted(keys)
        assert all(answers[tokens[place]] == labels[place] for place in asked)


def test_gaps_follow_the_power_law(tmp_path):
    _, data = made("mqar", tmp_path, length=64, pairs=1, vocabulary=512)
    places = np.nonzero(all_rows(data, "labels") != NO_LABEL)[1]
    gaps = np.bincount((places - 2) // 2, minlength=31)
    expected = np.arange(1, 32) ** -0.99
    expected *= gaps.sum() / expected.sum()
    assert ((gaps - expected) ** 2 / expected).sum() < 60  # chi-squared, 30 degrees: p = .001


def test_the_stand_in_is_labelled_by_its_codes(tmp_path):
    _, data = made("retrieval-synthetic", tmp_path, length=400)
    codes = {bytes(code) for code in source_codes(32)}
    assert len(codes) == 32
    for sample in data.split("train"):
        cited = []
        for document, length in zip(sample.inputs, sample.lengths.tolist(), strict=True):
            text = bytes(document.tolist())
            assert set(text[length:]) <= {0}
            assert 0 not in text[:length]
            cited.append({part.split(b"]")[0] for part in text[:length].split(b"[")[1:]})
            assert len(cited[-1]) == 4
            assert cited[-1] <= codes
        assert len(cited[0] & cited[1]) == sample.labels
    assert data.split("train").labels.float().mean() == pytest.approx(0.5, abs=0.02)


def test_the_stand_in_is_not_solved_by_counting_bytes(tmp_path):
    linear_model = pytest.importorskip("sklearn.linear_model")
    _, data = made("retrieval-synthetic", tmp_path, length=400)
    inputs, lengths = all_rows(data, "inputs"), all_rows(data, "lengths")
    labels = all_rows(data, "labels")
    counts = np.stack([(inputs == byte).sum(-1) for byte in range(32, 123)], -1).astype(float)
    features = np.concatenate(
        [counts[:, 0], counts[:, 1], counts[:, 0] * counts[:, 1], lengths], axis=1
    )
    features = (features - features.mean(0)) / (features.std(0) + 1e-9)
    model = linear_model.LogisticRegression(C=0.01, max_iter=1000).fit(
        features[:1000], labels[:1000]
    )
    assert model.score(features[1000:], labels[1000:]) < 0.58  # 400 pairs: 3 deviations above .5


@pytest.mark.parametrize("name", ["mqar", "retrieval-synthetic"])
def test_the_same_bytes_for_any_number_of_workers_and_no_sample_twice(tmp_path, name):
    task = tasks.get(name, **FEW)
    task.make(tmp_path / "one", workers=1)
    task.make(tmp_path / "four", workers=4)
    data = task.open(tmp_path / "one")
    assert data.manifest == task.open(tmp_path / "four").manifest
    assert len({row.tobytes() for row in all_rows(data, "inputs")}) == 1400


def test_no_sample_comes_twice_where_they_are_scarce(tmp_path):
    scarce = {"length": 4, "pairs": 1, "vocabulary": 8}  # 3 keys, 4 values, 8 tokens that ask not
    task = tasks.get("mqar", train=60, validation=10, test=10, **scarce)
    task.make(tmp_path / "one", workers=1)
    task.make(tmp_path / "four", workers=4)
    data = task.open(tmp_path / "one")
    assert data.manifest == task.open(tmp_path / "four").manifest
    assert len({row.tobytes() for row in all_rows(data, "inputs")}) == 80
    many = tasks.get("mqar", train=90, validation=10, test=10, **scarce)
    with pytest.raises(tasks.DataError, match="only 96 different samples came"):
        many.make(tmp_path)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("mqar", {"length": 63}),
        ("mqar", {"pairs": 70}),
        ("mqar", {"vocabulary": 40_000}),
        ("retrieval-synthetic", {"length": 100}),
        ("retrieval-synthetic", {"sources": 7}),
    ],
)
def test_wrong_settings_are_refused(name, wrong):
    with pytest.raises(ValueError, match="given; expected"):
        tasks.get(name, **wrong)
