"""What training asks of any task: facts, splits, batches, and augmentation on the device."""

import re
import shlex
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from shiftsort import tasks
from shiftsort.tasks.task import Split
from shiftsort.tasks.vision import crop_and_flip


@pytest.mark.parametrize("name", tasks.names())
def test_every_task_tells_a_model_what_it_must_know(name):
    facts = tasks.get(name).facts()
    assert facts.classes >= 2
    assert facts.towers in (1, 2)
    assert (facts.kind == "tokens") == (facts.vocabulary is not None)
    if facts.image is not None:
        channels, height, width = facts.image
        assert height * width == facts.length
        assert len(facts.mean) == len(facts.std) == channels
    assert len(facts.class_names) in (0, facts.classes)


def test_unknown_names_and_settings_list_the_known_ones():
    with pytest.raises(ValueError, match="task is 'listop', expected one of listops, text"):
        tasks.get("listop")
    with pytest.raises(
        ValueError, match=r"listops has no setting 'size', expected one of \['seed'"
    ):
        tasks.get("listops", size=3)


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("listops", {"train": -1}, "train=-1 was given, expected int of 0 or more"),
        ("digits", {"seed": 1.5}, r"seed=1\.5 was given, expected int"),
        ("pathfinder", {"crossings": 1}, "crossings=1 was given, expected bool"),
        ("pathfinder", {"difficulty": 3}, "difficulty=3 was given, expected str"),
        ("mqar", {"power": float("nan")}, "power=nan was given; expected more than 0"),
        ("mqar", {"pairs": 0}, "expected an even length >= 4 [*] pairs >= 4"),
        ("retrieval-synthetic", {"sources": 50_000}, "at most half of the 40320 codes"),
    ],
)
def test_settings_of_the_wrong_kind_are_refused_at_once(name, settings, message):
    with pytest.raises(ValueError, match=message):
        tasks.get(name, **settings)


def test_whole_numbers_are_numbers():
    assert tasks.get("mqar", power=1).power == 1


@pytest.mark.parametrize("left", [-1, 1798])
def test_splits_that_leave_nothing_to_train_are_refused(tmp_path, left):
    pytest.importorskip("sklearn")
    with pytest.raises(ValueError, match=r"expected int of 0 or more|train -251, validation 1798"):
        tasks.get("digits", validation=left).make(tmp_path)
    assert not list(tmp_path.glob("digits*"))


def test_generated_sets_need_no_download_and_no_platform(tmp_path, monkeypatch):
    pytest.importorskip("numba")
    for missing in ("pooch", "platformdirs", "torchvision", "sklearn", "PIL"):
        monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.delenv("SHIFTSORT_DATA", raising=False)
    task = tasks.get("mqar", train=20, validation=5, test=5)
    task.make(tmp_path)
    assert task.open(tmp_path).sizes["train"] == 20
    with pytest.raises(tasks.DataError, match=r"platformdirs.*--data DIR or SHIFTSORT_DATA"):
        task.make()
    with pytest.raises(tasks.DataError, match=r"pooch is not installed.*--source DIR"):
        tasks.get("cifar100").make(tmp_path)


def test_generators_compile_where_nothing_can_be_kept(monkeypatch):
    numba = pytest.importorskip("numba")
    from shiftsort.tasks.compiled import compiled

    def njit(cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return original(**options)

    original = numba.njit
    monkeypatch.setattr(numba, "njit", njit)
    assert compiled(lambda number: number + 1)(2) == 3


def test_a_folder_with_a_space_is_quoted_in_the_command(tmp_path):
    command = tasks.get("listops").command(tmp_path / "my data")
    assert shlex.split(command)[-1] == str(tmp_path / "my data")


def test_a_set_that_is_not_there_names_the_command(tmp_path):
    with pytest.raises(tasks.DataError) as failure:
        tasks.load("pathfinder", tmp_path, seed=3)
    assert f"shiftsort data make pathfinder --set seed=3 --data {tmp_path}" in str(failure.value)


def test_the_data_folder_is_named_by_argument_variable_or_platform(tmp_path, monkeypatch):
    monkeypatch.setenv("SHIFTSORT_DATA", str(tmp_path / "variable"))
    assert tasks.data_folder("here").name == "here"
    assert tasks.data_folder() == tmp_path / "variable"
    monkeypatch.delenv("SHIFTSORT_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert tasks.data_folder().name == "shiftsort"


def test_sets_with_other_settings_lie_apart():
    assert tasks.get("listops").folder("d").name == "listops"
    assert (
        tasks.get("listops", seed=1, max_depth=5).folder("d").name == "listops,seed=1,max_depth=5"
    )
    assert tasks.get("text", max_length=1000).folder("d").name == "text"


def test_a_set_of_an_older_version_is_refused(tmp_path, monkeypatch):
    pytest.importorskip("sklearn")
    task = tasks.get("digits")
    task.make(tmp_path)
    monkeypatch.setattr(type(task), "version", 2)
    for use in (task.open, task.check, task.make):
        with pytest.raises(tasks.DataError, match=r"version 1 of digits.*version 2.*--force"):
            use(tmp_path)
    task.make(tmp_path, force=True)
    assert task.open(tmp_path).manifest["version"] == 2


@pytest.fixture
def split():
    tokens = torch.arange(600, dtype=torch.int16).view(100, 6)
    return Split(tokens, torch.full((100,), 6, dtype=torch.int32), torch.arange(100).byte())


@pytest.mark.parametrize("kind", [list, np.array, torch.tensor])
def test_a_batch_holds_the_samples_of_an_index_in_its_order(split, kind):
    inputs, lengths, labels = split.batch(kind([7, 3, 7]))
    assert inputs[:, 0].tolist() == [42, 18, 42]
    assert inputs.dtype == torch.int16
    assert (labels.tolist(), lengths.tolist()) == ([7, 3, 7], [6, 6, 6])
    assert labels.dtype == lengths.dtype == torch.int64


def test_one_pass_meets_every_sample_once_in_an_order_that_the_seed_names(split):
    def order(seed):
        batches = split.batches(32, torch.Generator().manual_seed(seed))
        return torch.cat([batch.labels for batch in batches]).tolist()

    assert sorted(order(0)) == list(range(100))
    assert order(0) == order(0) != order(1)
    assert [len(batch.labels) for batch in split.batches(32, drop_last=True)] == [32, 32, 32]
    assert [len(batch.labels) for batch in split.batches(32)] == [32, 32, 32, 4]
    assert next(iter(split.batches(32))).labels.tolist() == list(range(32))


def test_a_loader_of_torch_takes_a_split(split):
    inputs, lengths, labels = next(iter(torch.utils.data.DataLoader(split, batch_size=10)))
    assert inputs.dtype == torch.int64
    assert inputs[:, 0].tolist() == list(range(0, 60, 6))
    assert (labels.tolist(), lengths.tolist()) == (list(range(10)), [6] * 10)
    for one, other in zip(split[4], split.__getitems__([4])[0], strict=True):
        assert torch.equal(one, other)
        assert one.dtype == other.dtype


def one_by_one(image, dy, dx, mirrored, padding):
    """The same crop, as it is usually written."""
    padded = torch.nn.functional.pad(image, (padding,) * 4)
    crop = padded[:, dy : dy + image.shape[1], dx : dx + image.shape[2]]
    return crop.flip(2) if mirrored else crop


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_augmented_images_are_crops_of_the_padded_ones(dtype):
    images = torch.randint(1, 256, (64, 3, 9, 7)).to(dtype)
    cropped = crop_and_flip(images, torch.Generator().manual_seed(0), padding=2)
    assert (cropped.shape, cropped.dtype) == (images.shape, dtype)
    found = set()
    for image, result in zip(images, cropped, strict=True):
        ways = [
            (dy, dx, mirrored)
            for dy in range(5)
            for dx in range(5)
            for mirrored in (False, True)
            if torch.equal(result, one_by_one(image, dy, dx, mirrored, 2))
        ]
        assert len(ways) == 1
        found.add(ways[0])
    assert {way[0] for way in found} == {way[1] for way in found} == set(range(5))
    assert {way[2] for way in found} == {False, True}


def test_augmentation_depends_on_the_generator_alone():
    images = torch.randint(256, (16, 1, 8, 8))

    def augmented(seed):
        torch.rand(1)
        return crop_and_flip(images, torch.Generator().manual_seed(seed))

    assert torch.equal(augmented(0), augmented(0))
    assert not torch.equal(augmented(0), augmented(1))


def test_augmentation_without_shift_and_flip_changes_nothing():
    images = torch.rand(4, 3, 8, 8)
    same = crop_and_flip(images, torch.Generator(), padding=0, flip=False)
    assert torch.equal(same, images)


@pytest.mark.gpu
def test_augmentation_on_the_device_with_a_generator_of_the_host_is_the_same():
    images = torch.randint(256, (16, 3, 32, 32), dtype=torch.uint8)
    here = crop_and_flip(images, torch.Generator().manual_seed(0))
    there = crop_and_flip(images.cuda(), torch.Generator().manual_seed(0))
    assert torch.equal(there.cpu(), here)


def test_the_pages_example_of_a_new_task_is_one(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "data.md").read_text(encoding="utf-8")
    (code,) = (c for c in re.findall(r"```python\n(.*?)```", page, re.S) if "Parity" in c)
    names = {}
    exec(code, names)
    task = names["Parity"](length=10)
    task.make(tmp_path)
    task.check(tmp_path)
    data = task.open(tmp_path)
    assert data.sizes == {"train": 1000, "validation": 100, "test": 100}
    sample = data.split("test")[7]
    assert task.describe(sample).count("1") % 2 == sample.labels
