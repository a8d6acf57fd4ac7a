"""Somebody's own file as samples of a task: what the task itself would have stored."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from shiftsort import tasks


def _read(name: str, path: Path, **settings: object) -> tuple[torch.Tensor, torch.Tensor]:
    return tasks.read(tasks.get(name, **settings), path)


def test_an_expression_a_line_is_read_as_its_tokens(tmp_path: Path) -> None:
    task = tasks.get("listops", train=8, validation=2, test=2)
    task.make(tmp_path)
    stored = task.open(tmp_path).split("train")
    sample = stored[3]
    file = tmp_path / "some.txt"
    file.write_text(f"{task.describe(sample)}\n\n( ( [MAX 2 ) 9 ] )\n")
    inputs, lengths = tasks.read(task, file)
    assert torch.equal(inputs[0].long(), sample.inputs)
    assert lengths.tolist() == [sample.lengths.item(), 4]
    assert task.describe(tasks.Batch(inputs[1], lengths[1], lengths[1])) == "[MAX 2 9 ]"


def test_a_text_is_cut_and_padded(tmp_path: Path) -> None:
    file = tmp_path / "review.txt"
    file.write_bytes(b"  good\0 film " + b"x" * 100)
    inputs, lengths = _read("text", file, max_length=16)
    assert bytes(inputs[0].tolist()) == b"good film " + b"x" * 6
    assert lengths.tolist() == [16]
    file.write_text("ab")
    assert _read("text", file, max_length=16)[0][0].tolist() == [97, 98, *[0] * 14]


def test_two_documents_a_line(tmp_path: Path) -> None:
    file = tmp_path / "pairs.tsv"
    file.write_bytes(b"first\tsecond one\nab\tc\n")
    inputs, lengths = _read("retrieval", file)
    assert inputs.shape == (2, 2, 4000)
    assert lengths.tolist() == [[5, 10], [2, 1]]
    assert bytes(inputs[0, 1, :10].tolist()) == b"second one"
    file.write_bytes(b"only one\n")
    with pytest.raises(tasks.DataError, match="line 1 has 0 tabs"):
        _read("retrieval", file)


def test_an_image_is_scaled_and_made_gray_where_the_task_is(tmp_path: Path) -> None:
    file = tmp_path / "red.png"
    Image.new("RGB", (64, 40), (255, 0, 0)).save(file)
    inputs, lengths = _read("cifar10", file)
    assert inputs.shape == (1, 3, 32, 32)
    assert inputs[0, :, 5, 5].tolist() == [255, 0, 0]
    inputs, lengths = _read("image", file)
    assert inputs.shape == (1, 1024)
    assert set(inputs[0].tolist()) == {76}  # .2989 of 255
    assert lengths.tolist() == [1024]


def test_arrays_are_read_as_they_are(tmp_path: Path) -> None:
    file = tmp_path / "some.npy"
    np.save(file, np.arange(2 * 3 * 32 * 32).reshape(2, 3, 32, 32) % 256)
    inputs, _ = _read("cifar10", file)
    assert inputs.dtype == torch.uint8
    assert inputs[1, 2, 31, 31] == (2 * 3 * 32 * 32 - 1) % 256
    np.save(file, np.array([3, 1, 2], np.int16))
    inputs, lengths = _read("listops", file)
    assert inputs[0, :4].tolist() == [3, 1, 2, 0]
    assert lengths.tolist() == [3]


@pytest.mark.parametrize(
    ("name", "array", "words"),
    [
        ("listops", np.array([0.5]), "expected integers"),
        ("listops", np.array([16]), "expected 0 to 15"),
        ("listops", np.ones((1, 2001), int), "1 to 2000 tokens"),
        ("image", np.ones((1, 7), int), "1024 tokens"),
        ("cifar10", np.ones((1, 32, 32), int), "expected images of"),
        ("listops", np.array([{}], object), "cannot be read as listops"),
    ],
)
def test_what_does_not_fit_is_said_in_one_line(
    name: str, array: np.ndarray, words: str, tmp_path: Path
) -> None:
    file = tmp_path / "some.npy"
    np.save(file, array, allow_pickle=True)
    with pytest.raises(tasks.DataError, match=words) as raised:
        _read(name, file)
    assert str(file) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_an_empty_file_is_said_in_one_line(tmp_path: Path) -> None:
    for name in ("empty.npy", "empty.txt"):
        file = tmp_path / name
        file.touch()
        with pytest.raises(tasks.DataError, match=rf"{name} cannot be read as listops: "):
            _read("listops", file)


def test_other_files_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "words.txt"
    with pytest.raises(tasks.DataError, match="is not a file"):
        _read("listops", file)
    file.write_text("[MAX 1 two ]")
    with pytest.raises(tasks.DataError, match=r"line 1 has 'two', expected symbols of: 0 1 2"):
        _read("listops", file)
    file.write_text("\n")
    with pytest.raises(tasks.DataError, match="no sample in it"):
        _read("listops", file)
    with pytest.raises(tasks.DataError, match="cannot be read as cifar10"):
        _read("cifar10", file)
    with pytest.raises(tasks.DataError, match="reads no text"):
        _read("mqar", file)
