"""Published files, read: small ones in their layouts, and the real ones where they are."""

import gzip
import os
from pathlib import Path

import numpy as np
import pytest
import torch

from shiftsort import tasks
from shiftsort.tasks import cifar, image, retrieval, text, vision

REVIEWS = 20


def reviews(folder, split):
    """Two of each kind are the same review; one of train is in test."""
    for kind in ("neg", "pos"):
        place = folder / "aclImdb" / split / kind
        place.mkdir(parents=True)
        for number in range(REVIEWS):
            words = f"{split} {kind} {max(number, 1)} caf\u00e9 " + "x" * (number * 40)
            (place / f"{number}_7.txt").write_text(words + "\n", encoding="utf-8")


@pytest.fixture
def imdb(tmp_path, monkeypatch):
    monkeypatch.setattr(text, "_COUNT", REVIEWS)
    reviews(tmp_path, "train")
    reviews(tmp_path, "test")
    shared = tmp_path / "aclImdb" / "test" / "pos" / "5_7.txt"
    (tmp_path / "aclImdb" / "train" / "pos" / "5_7.txt").write_bytes(shared.read_bytes())
    return tmp_path


def lines(split):
    return [bytes(sample.inputs[: sample.lengths].tolist()) for sample in split]


def test_text_splits_are_apart_and_nothing_is_lost(imdb):
    task = tasks.get("text", validation=10, stored_length=500, max_length=500)
    task.make(imdb)
    data = task.open(imdb)
    assert data.sizes == {"train": 29, "validation": 10, "test": 40}
    assert data.split("validation").labels.sum() == 5
    train, held, test = (lines(data.split(name)) for name in ("train", "validation", "test"))
    assert not {*train} & {*held}
    assert not {*train, *held} & {*test}
    assert data.manifest["notes"] == {"train reviews left out because they are in test": 1}
    expected = (imdb / "aclImdb" / "test" / "neg" / "3_7.txt").read_bytes().strip()[:500]
    assert test[3] == expected
    assert task.describe(data.split("test")[3]) == expected.decode()
    assert data.split("test").labels.tolist() == [0] * 20 + [1] * 20


def test_text_can_be_cut_when_it_is_opened(imdb):
    tasks.get("text", validation=10, stored_length=500, max_length=500).make(imdb)
    data = tasks.get("text", validation=10, stored_length=500, max_length=100).open(imdb)
    assert data.facts.length == 100
    inputs, lengths, _ = data.split("train").batch(range(29))
    assert inputs.shape == (29, 100)
    assert (lengths == (inputs != 0).sum(1)).all()


def test_choosing_on_the_test_set_is_explicit_and_recorded(imdb):
    task = tasks.get("text", validation=10, stored_length=500, max_length=500)
    task.make(imdb)
    as_published = task.open(imdb, choose_on="test")
    assert as_published.choose_on == "test"
    assert as_published.sizes == {"train": 39, "validation": 40, "test": 40}
    assert lines(as_published.split("validation")) == lines(as_published.split("test"))
    everything = task.open(imdb, choose_on="nothing")
    assert everything.sizes == {"train": 39, "test": 40}
    with pytest.raises(ValueError, match="split is 'validation', expected one of 'train', 'test'"):
        everything.split("validation")
    with pytest.raises(ValueError, match=r"expected one of \('validation', 'test', 'nothing'\)"):
        task.open(imdb, choose_on="tset")


def test_reviews_that_agree_as_far_as_they_are_cut_count_as_one(imdb):
    for name, end in (("train/pos/8_7.txt", "one end"), ("test/neg/8_7.txt", "another end")):
        (imdb / "aclImdb" / name).write_text("same " * 200 + end)
    task = tasks.get("text", validation=10, max_length=1000)
    task.make(imdb)
    data = task.open(imdb)
    assert data.sizes == {"train": 28, "validation": 10, "test": 40}
    train, held, test = (lines(data.split(name)) for name in ("train", "validation", "test"))
    assert not ({*train} | {*held}) & {*test}


@pytest.mark.parametrize("validation", [11, 50])
def test_a_validation_part_that_cannot_be_chosen_is_refused(imdb, validation):
    with pytest.raises(ValueError, match=f"validation={validation} was given, expected an even"):
        tasks.get("text", validation=validation).make(imdb)


def test_a_missing_review_is_one_line(imdb):
    (imdb / "aclImdb" / "test" / "neg" / "3_7.txt").unlink()
    with pytest.raises(tasks.DataError, match=r"test/neg has 19 reviews, expected 20"):
        tasks.get("text", validation=10).make(imdb)


def write_cifar(folder, files, label_bytes, classes):
    folder.mkdir()
    random = np.random.RandomState(0)
    written = []
    for name, count in files.items():
        records = random.randint(0, 256, (count, label_bytes + 3072)).astype(np.uint8)
        records[:, label_bytes - 1] = random.randint(0, classes, count)
        (folder / name).write_bytes(records.tobytes())
        written.append(records)
    return np.concatenate(written)


@pytest.fixture
def small_cifar(tmp_path, monkeypatch):
    for name, count in (
        ("CIFAR10_FILES", 8), ("CIFAR10_TEST_FILES", 6), ("CIFAR100_FILES", 30),
        ("CIFAR100_TEST_FILES", 7),
    ):  # fmt: skip
        monkeypatch.setattr(cifar, name, dict.fromkeys(getattr(cifar, name), count))
    return tmp_path


@pytest.mark.parametrize("name", ["cifar10", "cifar100"])
def test_cifar_is_read_as_published(small_cifar, name):
    hundred = name == "cifar100"
    files = (
        {**cifar.CIFAR100_FILES, **cifar.CIFAR100_TEST_FILES}
        if hundred
        else {**cifar.CIFAR10_FILES, **cifar.CIFAR10_TEST_FILES}
    )
    folder = small_cifar / ("cifar-100-binary" if hundred else "cifar-10-batches-bin")
    records = write_cifar(folder, files, 2 if hundred else 1, 100 if hundred else 10)
    task = tasks.get(name, validation=5)
    task.make(small_cifar)
    data = task.open(small_cifar)
    assert data.sizes == ({"train": 25, "validation": 5, "test": 7} if hundred else
                          {"train": 35, "validation": 5, "test": 6})  # fmt: skip
    sample = data.split("train")[3]
    assert (sample.inputs.numpy().ravel() == records[3, -3072:]).all()
    assert sample.labels == records[3, 1 if hundred else 0]
    assert data.split("test")[0].labels == records[30 if hundred else 40, 1 if hundred else 0]


def test_a_truncated_batch_of_cifar_is_one_line(small_cifar):
    folder = small_cifar / "cifar-10-batches-bin"
    write_cifar(folder, {**cifar.CIFAR10_FILES, **cifar.CIFAR10_TEST_FILES}, 1, 10)
    os.truncate(folder / "data_batch_3.bin", 3073 * 7)
    with pytest.raises(tasks.DataError, match=r"data_batch_3\.bin has 21511 bytes, expected 24584"):
        tasks.get("cifar10", validation=5).make(small_cifar)
    (folder / "data_batch_3.bin").unlink()
    with pytest.raises(tasks.DataError, match=r"data_batch_3\.bin is missing"):
        tasks.get("image", validation=5).make(small_cifar)
    assert not list(small_cifar.glob("*.making"))


def test_image_is_cifar_in_gray(small_cifar):
    files = {**cifar.CIFAR10_FILES, **cifar.CIFAR10_TEST_FILES}
    records = write_cifar(small_cifar / "cifar-10-batches-bin", files, 1, 10)
    task = tasks.get("image", validation=5)
    task.make(small_cifar)
    data = task.open(small_cifar)
    sample = data.split("train")[2]
    red, green, blue = records[2, 1:].reshape(3, 1024) / 255
    gray = np.floor((0.2989 * red + 0.5870 * green + 0.1140 * blue) * 255.5)
    assert (sample.inputs.numpy() == gray).all()
    assert (sample.lengths, sample.inputs.dtype) == (1024, torch.int64)


def test_gray_keeps_black_and_white():
    extremes = np.array([0, 255], np.uint8)[:, None, None, None].repeat(3, axis=1)
    assert image.to_gray(extremes).ravel().tolist() == [0, 255]


@pytest.mark.parametrize("packed", [True, False])
def test_fashion_mnist_is_read_from_idx_files(tmp_path, monkeypatch, packed):
    monkeypatch.setattr(vision, "FASHION_MNIST_PARTS", {"train": 12, "t10k": 5})
    folder = tmp_path / "fashion-mnist-idx"
    folder.mkdir()
    images = np.random.RandomState(0).randint(0, 256, (12, 28, 28)).astype(np.uint8)

    def idx(name, array):
        sizes = b"".join(size.to_bytes(4, "big") for size in array.shape)
        content = bytes([0, 0, 8, array.ndim]) + sizes + array.tobytes()
        path = folder / (name + ".gz" if packed else name)
        path.write_bytes(gzip.compress(content) if packed else content)
        return path

    idx("train-images-idx3-ubyte", images)
    idx("t10k-images-idx3-ubyte", np.concatenate([255 - images[:4], images[:1]]))
    idx("train-labels-idx1-ubyte", np.arange(12, dtype=np.uint8) % 10)
    short = idx("t10k-labels-idx1-ubyte", np.arange(4, dtype=np.uint8))
    task = tasks.get("fashion-mnist", validation=2)
    with pytest.raises(tasks.DataError, match=r"t10k-labels.* is not an idx file .*\(5,\)"):
        task.make(tmp_path)
    if packed:
        short.write_bytes(short.read_bytes()[:-9])
        with pytest.raises(tasks.DataError, match=r"t10k-labels.*gz is truncated or altered"):
            task.make(tmp_path)
    idx("t10k-labels-idx1-ubyte", np.arange(5, dtype=np.uint8))
    task.make(tmp_path)
    data = task.open(tmp_path)
    assert data.sizes == {"train": 9, "validation": 2, "test": 5}  # one of train is in test
    assert data.manifest["notes"] == {"images left out because a later split has them": 1}
    assert (data.split("train")[0].inputs[0].numpy() == images[1]).all()
    assert (data.split("validation")[1].inputs[0].numpy() == images[11]).all()
    assert data.split("validation")[1].labels == 1


def test_digits_need_no_file(tmp_path):
    pytest.importorskip("sklearn")
    task = tasks.get("digits")
    task.make(tmp_path)
    data = task.open(tmp_path)
    assert sum(data.sizes.values()) == 1797
    train = data.split("train")
    assert train.inputs.shape == (1297, 1, 8, 8)
    assert set(train.labels.tolist()) == set(range(10))
    seen = {image.numpy().tobytes() for image in train.inputs}
    held = [*data.split("validation").inputs, *data.split("test").inputs]
    assert not any(image.numpy().tobytes() in seen for image in held)
    pixels = torch.cat([split.inputs for split in data.splits.values()]).double() / 255
    assert pixels.mean() == pytest.approx(data.facts.mean[0], abs=2e-3)
    assert pixels.std() == pytest.approx(data.facts.std[0], abs=2e-3)


def test_imagenet_is_read_from_its_folders(tmp_path):
    pytest.importorskip("torchvision")
    pillow = pytest.importorskip("PIL.Image")
    for part, count in (("train", 13), ("val", 2)):
        for label, kind in enumerate(("n01", "n02")):
            folder = tmp_path / "imagenet" / part / kind
            folder.mkdir(parents=True)
            for number in range(count):
                shade = (number * 10, label * 255, 0)
                pillow.new("RGB", (50, 40), shade).save(folder / f"{number:02}.JPEG", quality=100)
    with pytest.raises(tasks.DataError, match="train has 2 classes, expected 1000"):
        tasks.get("imagenet").make(tmp_path)
    task = tasks.get("imagenet", size=32, classes=2)
    task.make(tmp_path)
    data = task.open(tmp_path)
    assert data.sizes == {"train": 6, "validation": 20, "test": 4}
    assert task.open(tmp_path, choose_on="nothing").sizes == {"train": 26, "test": 4}
    (tmp_path / "imagenet" / "val" / "n02").rename(tmp_path / "imagenet" / "val" / "n03")
    with pytest.raises(tasks.DataError, match="has the class n02 in one of train and val only"):
        task.open(tmp_path)
    (tmp_path / "imagenet" / "val" / "n03").rename(tmp_path / "imagenet" / "val" / "n02")
    held = data.split("validation")[19]
    assert (held.inputs.shape, held.labels) == ((3, 32, 32), 1)
    assert held.inputs[:, 16, 16] * 255 == pytest.approx(torch.tensor([120.0, 255.0, 0.0]), abs=4)
    assert data.split("train")[0].inputs.shape == (3, 32, 32)
    for path in (tmp_path / "imagenet" / "val" / "n02").iterdir():
        path.unlink()
    with pytest.raises(tasks.DataError, match="has a class without images"):
        task.open(tmp_path)


@pytest.fixture
def aan(tmp_path, monkeypatch):
    monkeypatch.setattr(retrieval, "PAIRS", {"train": 4, "eval": 2, "test": 1})
    pair = {
        "train": ["1.0\t7\t8\tone paper\tanother caf\u00e9", "0.0\t7\t9\tone paper\tmore \\n text",
                  "1.0\t2\t1\tas well\theld out", "0.0\t3\t4\ta \"quote\tb"],
        "eval": ["1.0\t1\t2\theld out\tas well", "0.0\t5\t6\tp\tq"],
        "test": ["1.0\t5\t6\tp\tr"],
    }  # fmt: skip
    folder = tmp_path / "tsv_data"
    folder.mkdir()
    for part, rows in pair.items():
        (folder / f"new_aan_pairs.{part}.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return tmp_path


def test_retrieval_reads_the_released_pairs(aan):
    task = tasks.get("retrieval", stored_length=50, max_length=12)
    task.make(aan)
    data = task.open(aan)
    assert data.sizes == {"train": 3, "validation": 2, "test": 1}
    assert data.manifest["notes"] == {"pairs left out because a later split has them": 1}
    sample = data.split("train")[0]
    assert (sample.inputs.shape, data.facts.towers, sample.labels) == ((2, 12), 2, 1)
    assert task.describe(sample).splitlines() == ["  1: one paper", "  2: another caf\ufffd"]
    assert sample.lengths.tolist() == [9, 12]


def test_retrieval_names_the_line_that_is_wrong(aan):
    path = aan / "tsv_data" / "new_aan_pairs.train.tsv"
    path.write_text(path.read_text(encoding="utf-8")[:-8], encoding="utf-8")
    with pytest.raises(tasks.DataError, match=r"train\.tsv, line 4: expected label, id"):
        tasks.get("retrieval").make(aan)
    path.unlink()
    with pytest.raises(tasks.DataError, match=r"train\.tsv is missing.*retrieval-synthetic"):
        tasks.get("retrieval").make(aan)


@pytest.fixture
def real(request):
    """The user's data folder, where it has the published folder that a test asks for."""
    named = os.environ.get("SHIFTSORT_DATA")
    if not named or not (Path(named) / request.param).is_dir():
        pytest.skip(f"needs the real {request.param}/ in the folder that SHIFTSORT_DATA names")
    return Path(named)


@pytest.mark.parametrize("real", ["aclImdb"], indirect=True)
def test_the_real_reviews(real, tmp_path):
    task = tasks.get("text")
    task.make(tmp_path, source=real)
    data = task.open(tmp_path)
    assert data.sizes == {"train": 22_377, "validation": 2_500, "test": 25_000}
    train, held, test = (set(lines(data.split(name))) for name in ("train", "validation", "test"))
    assert not train & held
    assert not (train | held) & test


@pytest.mark.parametrize("real", ["cifar-10-batches-bin"], indirect=True)
def test_the_real_cifar(real, tmp_path):
    for name in ("image", "cifar10"):
        task = tasks.get(name)
        task.make(tmp_path, source=real)
        data = task.open(tmp_path)
        assert data.sizes == {"train": 45_000, "validation": 5_000, "test": 10_000}
        assert data.split("test").labels.bincount().tolist() == [1000] * 10
        train = {row.numpy().tobytes() for row in data.split("train").inputs}
        held = [*data.split("validation").inputs, *data.split("test").inputs]
        assert not any(row.numpy().tobytes() in train for row in held)
    pixels = data.split("train").inputs.double() / 255
    assert pixels.mean((0, 2, 3)).tolist() == pytest.approx(data.facts.mean, abs=1e-3)
    assert pixels.std((0, 2, 3)).tolist() == pytest.approx(data.facts.std, abs=1e-3)
