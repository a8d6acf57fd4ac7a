"""Sets are whole or not there: killed makers, full disks, two at once, files that were altered."""

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from shiftsort import tasks
from shiftsort.tasks import store

# A task that takes its time, run by other processes.
SLOW = """
import sys, time
from dataclasses import dataclass
import numpy as np
from shiftsort import tasks
from shiftsort.tasks.task import Facts, Task

@dataclass(frozen=True)
class Slow(Task):
    name = "slow"
    def facts(self):
        return Facts(kind="tokens", classes=2, length=1000)
    def write(self, out, source, workers):
        out.begin({"train": 800, "validation": 100, "test": 100}, inputs=((1000,), np.uint8),
                  lengths=((), np.int32), labels=((), np.uint8))
        random = np.random.RandomState(0)
        for block in range(10):
            print(block, flush=True)
            out.add(inputs=random.randint(0, 256, (100, 1000)).astype(np.uint8),
                    lengths=np.full(100, 1000), labels=np.zeros(100))
            time.sleep(PAUSE)
        print("written", flush=True)

PAUSE = float(sys.argv[2])
"""
MAKE = SLOW + "print('made' if Slow().make(sys.argv[1]) else 'found')\n"


def start(folder, pause=0.0, code=MAKE):
    return subprocess.Popen(
        [sys.executable, "-c", code, str(folder), str(pause)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def finish(process):
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    return output.split()[-1]


def hashes(folder):
    manifest = json.loads((folder / "slow" / "manifest.json").read_text())
    return {name: facts["sha256"] for name, facts in manifest["arrays"].items()}


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_maker_that_is_stopped_leaves_nothing_that_looks_whole(tmp_path, how):
    process = start(tmp_path, pause=0.2)
    while process.stdout.readline() != "5\n":
        pass
    process.send_signal(how)
    process.communicate(timeout=30)
    assert process.returncode != 0
    assert not (tmp_path / "slow").exists()
    assert (tmp_path / "slow.making").exists() == (how == signal.SIGKILL)

    assert finish(start(tmp_path)) == "made"
    finish(start(tmp_path / "other"))
    assert hashes(tmp_path) == hashes(tmp_path / "other")
    assert not (tmp_path / "slow.making").exists()


def test_two_makers_at_once_end_with_one_good_set(tmp_path):
    both = [start(tmp_path, pause=0.05) for _ in range(2)]
    assert sorted(finish(process) for process in both) == ["found", "made"]
    store.check(tmp_path / "slow", "make")


@pytest.mark.skipif(sys.platform == "win32", reason="limits of file size are a thing of Unix")
def test_a_full_disk_is_one_clear_line(tmp_path):
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))\n"
    code = SLOW + limit + (
        "try: Slow().make(sys.argv[1])\n"
        "except tasks.DataError as error: print(error, file=sys.stderr); sys.exit(7)\n"
    )  # fmt: skip
    process = start(tmp_path, code=code)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 7
    assert len(errors.strip().splitlines()) == 1
    assert "could not write" in errors
    assert "--data DIR" in errors
    assert [path.name for path in tmp_path.iterdir()] in ([".slow.lock"], [])


def write_some(out):
    out.begin(
        {"train": 80, "validation": 10, "test": 10},
        inputs=((3,), np.uint8),
        labels=((), np.uint8),
    )
    out.add(inputs=np.arange(300).reshape(100, 3) % 256, labels=np.arange(100) % 2)


@pytest.fixture
def folder(tmp_path):
    store.make(tmp_path / "some", {"name": "some"}, write_some)
    return tmp_path / "some"


def test_space_is_looked_at_before_anything_is_written(tmp_path):
    def write(out):
        out.begin({"train": 10**12, "validation": 0, "test": 0}, inputs=((10**6,), np.uint8))

    with pytest.raises(tasks.DataError, match=r"has .* free, the set needs 1e\+09 GB.*--data DIR"):
        store.make(tmp_path / "some", {}, write)
    assert not list(tmp_path.glob("some*"))


def test_what_is_written_is_read_back(folder):
    stored = store.read(folder, "make")
    assert (stored.arrays["inputs"] == np.arange(300).reshape(100, 3) % 256).all()
    assert stored.manifest["splits"] == {
        "train": [0, 80],
        "validation": [80, 90],
        "test": [90, 100],
    }
    assert store.check(folder, "make") == stored.manifest
    assert store.make(folder, {}, pytest.fail) is False


def test_served_memory_can_be_written_and_the_file_does_not_change(folder):
    array = torch.from_numpy(store.read(folder, "make").arrays["inputs"])
    array += 1
    store.check(folder, "make")


def test_a_truncated_file_is_seen_at_once(folder):
    os.truncate(folder / "inputs.npy", 200)
    with pytest.raises(
        tasks.DataError, match=r"inputs\.npy is truncated.*\(100, 3\).*make --force"
    ):
        store.read(folder, "make")


def test_a_missing_file_is_seen_at_once(folder):
    (folder / "labels.npy").unlink()
    with pytest.raises(tasks.DataError, match=r"labels\.npy is missing; .*make --force"):
        store.read(folder, "make")


def test_an_altered_byte_is_found_by_check(folder):
    path = folder / "inputs.npy"
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    store.read(folder, "make")
    with pytest.raises(tasks.DataError, match=r"inputs\.npy was altered.*SHA-256.*make --force"):
        store.check(folder, "make")


def test_another_array_in_its_place_is_seen(folder):
    np.save(folder / "labels.npy", np.zeros(100, np.float32))
    with pytest.raises(tasks.DataError, match=r"holds float32 of shape \(100,\).*expects uint8"):
        store.read(folder, "make")


def test_no_pickle_is_ever_loaded(folder):
    class Trap:
        def __reduce__(self):
            return (open, (str(folder / "sprung"), "w"))

    np.save(folder / "labels.npy", np.array([Trap()] * 100, object), allow_pickle=True)
    with pytest.raises(tasks.DataError, match=r"labels\.npy"):
        store.read(folder, "make")
    assert not (folder / "sprung").exists()


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"format": 99}'])
def test_a_broken_manifest_is_one_line(folder, content):
    (folder / "manifest.json").write_text(content)
    with pytest.raises(tasks.DataError, match=r"manifest\.json .*make --force") as failure:
        store.read(folder, "make")
    assert "\n" not in str(failure.value)


@pytest.mark.parametrize(
    ("there", "instead"),
    [
        ('"arrays"', '"arrows"'),
        ('"splits"', '"slits"'),
        ("80,", "70,"),
        ("100\n    ]\n  },", "99\n    ]\n  },"),
        ('"shape"', '"shade"'),
    ],
)
def test_an_altered_manifest_is_one_line(folder, there, instead):
    # Without this a row of validation could move into train, and no hash would know.
    path = folder / "manifest.json"
    content = path.read_text()
    assert there in content
    path.write_text(content.replace(there, instead, 1))
    for look in (store.read, store.check):
        with pytest.raises(tasks.DataError, match=r"manifest\.json .*make --force") as failure:
            look(folder, "make")
        assert "\n" not in str(failure.value)


def test_an_archive_of_arrays_in_an_arrays_place_is_seen(folder):
    np.savez(folder / "labels", labels=np.zeros(100, np.uint8))
    (folder / "labels.npz").rename(folder / "labels.npy")
    with pytest.raises(tasks.DataError, match=r"labels\.npy is truncated or altered"):
        store.read(folder, "make")


@pytest.mark.parametrize("force", [False, True])
def test_a_folder_of_somebody_else_is_never_touched(tmp_path, force):
    theirs = tmp_path / "some" / "diary.txt"
    theirs.parent.mkdir()
    theirs.write_text("dear diary")
    with pytest.raises(tasks.DataError, match=r"some is there and is no set.*move it away"):
        store.make(tmp_path / "some", {}, write_some, force=force)
    assert theirs.read_text() == "dear diary"


def test_an_old_set_stays_until_the_new_one_is_whole(folder):
    def fail(out):
        write_some(out)
        raise tasks.DataError("no source")

    with pytest.raises(tasks.DataError, match="no source"):
        store.make(folder, {"name": "new"}, fail, force=True)
    assert store.check(folder, "make")["name"] == "some"

    assert store.make(folder, {"name": "new"}, write_some, force=True)
    assert store.check(folder, "make")["name"] == "new"
    assert store.sets_in(folder.parent) == [folder]
    assert sorted(path.name for path in folder.parent.iterdir()) in (
        [".some.lock", "some"],
        ["some"],
    )


def test_force_makes_what_was_not_there(tmp_path):
    assert store.make(tmp_path / "new" / "some", {}, write_some, force=True)


def test_a_set_that_is_there_needs_no_lock(folder, monkeypatch):
    # Data often lies where it can only be read.
    monkeypatch.setattr(store, "locked", pytest.fail)
    assert store.make(folder, {}, pytest.fail) is False


def test_leftovers_are_no_sets(folder):
    (folder.with_name("some.making")).mkdir()
    (folder.with_name("some.making") / "manifest.json").write_text("{")
    assert store.sets_in(folder.parent) == [folder]


def test_a_source_that_cannot_be_read_is_not_called_a_full_disk(tmp_path):
    source = tmp_path / "source.bin"

    def write(out):
        raise PermissionError(errno.EACCES, "Permission denied", str(source))

    with pytest.raises(tasks.DataError, match=r"could not read .*source\.bin: Permission denied"):
        store.make(tmp_path / "some", {}, write)


def test_a_place_that_cannot_be_written_is_not_called_a_source(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def locked(folder):
        # As the lock says it: with the whole path, where a relative one was given.
        raise OSError(errno.EROFS, "Read-only file system", str(tmp_path / ".some.lock"))

    monkeypatch.setattr(store, "locked", locked)
    with pytest.raises(tasks.DataError, match=r"could not write .*Read-only.*--data DIR"):
        store.make(Path("some"), {}, write_some)


@pytest.mark.parametrize("counts", [(5, -1, 5), (0, 0, 0)])
def test_splits_have_samples(tmp_path, counts):
    def write(out):
        out.begin(dict(zip(("train", "validation", "test"), counts, strict=True)))

    with pytest.raises(ValueError, match=f"train {counts[0]}, validation {counts[1]}, test"):
        store.make(tmp_path / "some", {}, write)


def test_a_maker_that_fails_leaves_nothing(tmp_path):
    def write(out):
        write_some(out)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.make(tmp_path / "some", {}, write)
    assert not list(tmp_path.glob("some*"))


def test_too_few_rows_are_no_set(tmp_path):
    def write(out):
        out.begin({"train": 5, "validation": 0, "test": 0}, labels=((), np.uint8))
        out.add(labels=np.zeros(4))

    with pytest.raises(ValueError, match="4 rows were written of 5"):
        store.make(tmp_path / "some", {}, write)
    assert not list(tmp_path.glob("some*"))
