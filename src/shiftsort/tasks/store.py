"""Arrays on disk: written whole or not at all, by one process at a time, and checked.

A set is a folder with `inputs.npy`, `lengths.npy`, `labels.npy` and `manifest.json`. It is
written under another name and renamed when it is complete, so a folder with a manifest is a
whole set even after Ctrl-C, kill -9 or a full disk; and a folder without one is not ours, and is
never touched.
"""

import contextlib
import dataclasses
import hashlib
import json
import math
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

from .errors import DataError

MANIFEST = "manifest.json"
_FORMAT = 1
#: Called with how much is done, and of how much.
Progress = Callable[[int, int], None]
_MAKING = ".making"
_OLD = ".old"


def unseen(done: int, total: int) -> None:
    """Progress that nobody looks at."""


class ArrayFile:
    """A .npy file written from front to back, hashed on the way.

    Plain writes, not a memory map: on a full disk a map kills the process with a bus error,
    a write says what happened.
    """

    def __init__(self, path: Path, shape: tuple[int, ...], dtype: np.dtype) -> None:
        self.path, self.shape, self.dtype = path, shape, np.dtype(dtype)
        self._rows = 0
        self._hash = hashlib.sha256()
        self._file: IO[bytes] = path.open("wb")
        np.lib.format.write_array_header_1_0(
            self._file,
            {
                "descr": np.lib.format.dtype_to_descr(self.dtype),
                "fortran_order": False,
                "shape": shape,
            },
        )

    def append(self, rows: np.ndarray) -> None:
        """Add rows, as many as still fit."""
        if rows.shape[1:] != self.shape[1:] or self._rows + len(rows) > self.shape[0]:
            raise ValueError(
                f"{self.path.name}: rows of shape {rows.shape} after {self._rows} rows "
                f"do not fit an array of shape {self.shape}"
            )
        block = np.ascontiguousarray(rows, self.dtype).data.cast("B") if rows.size else b""
        self._hash.update(block)
        self._file.write(block)
        self._rows += len(rows)

    def close(self) -> dict[str, Any]:
        """Finish the file, and tell what the manifest says of it."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        if self._rows != self.shape[0]:
            raise ValueError(f"{self.path.name}: {self._rows} rows were written of {self.shape[0]}")
        return {
            "shape": list(self.shape),
            "dtype": str(self.dtype),
            "sha256": self._hash.hexdigest(),
        }

    def abandon(self) -> None:
        """Close without a word, when something else went wrong."""
        with contextlib.suppress(OSError):
            self._file.close()


class Writer:
    """What a task writes its set with: `begin` once, then `add` until every row is there."""

    def __init__(self, folder: Path, progress: Progress) -> None:
        self.folder = folder
        self.notes: dict[str, Any] = {}
        self.progress = progress
        self._arrays: dict[str, ArrayFile] = {}
        self._splits: dict[str, list[int]] = {}
        self._rows = self._done = 0

    @property
    def missing(self) -> int:
        """How many rows are still to come."""
        return self._rows - self._done

    def begin(
        self, splits: dict[str, int], **arrays: tuple[tuple[int, ...], np.dtype | type]
    ) -> None:
        """Name the splits with their counts, and give each array's shape of a row and its dtype."""
        expect_samples(splits)
        start = 0
        for name, count in splits.items():
            self._splits[name] = [start, start + count]
            start += count
        self._rows = start
        needed = sum(
            start * math.prod(row) * np.dtype(dtype).itemsize for row, dtype in arrays.values()
        )
        free = shutil.disk_usage(self.folder).free
        if needed > free:
            raise DataError(
                f"{self.folder.parent} has {_size(free)} free, the set needs {_size(needed)}: "
                "free some space or name another folder with --data DIR"
            )
        for name, (row, dtype) in arrays.items():
            path = self.folder / f"{name}.npy"
            self._arrays[name] = ArrayFile(path, (start, *row), np.dtype(dtype))
        self.progress(0, start)

    def add(self, **rows: np.ndarray) -> None:
        """Append rows to every array."""
        if rows.keys() != self._arrays.keys():
            raise ValueError(f"rows for {sorted(rows)} were given, not for {sorted(self._arrays)}")
        for name, block in rows.items():
            self._arrays[name].append(block)
        self._done += len(block)
        self.progress(self._done, self._rows)

    def finish(self) -> dict[str, Any]:
        """Close the arrays; the part of the manifest that they make."""
        return {
            "splits": self._splits,
            "arrays": {name: array.close() for name, array in self._arrays.items()},
            "notes": self.notes,
        }

    def abandon(self) -> None:
        """Close what is open."""
        for array in self._arrays.values():
            array.abandon()


def expect_samples(splits: dict[str, int]) -> None:
    """Refuse settings that leave a split with less than nothing, or all of them with nothing."""
    if min(splits.values()) < 0 or not any(splits.values()):
        counts = ", ".join(f"{name} {count}" for name, count in splits.items())
        raise ValueError(
            f"these settings make splits of {counts} samples; expected none below 0, and not all 0"
        )


@dataclasses.dataclass(frozen=True)
class Stored:
    """A whole set: its manifest and its arrays, mapped from the disk."""

    folder: Path
    manifest: dict[str, Any]
    arrays: dict[str, np.ndarray]


def make(
    folder: Path,
    header: dict[str, Any],
    write: Callable[[Writer], None],
    progress: Progress = unseen,
    *,
    force: bool = False,
) -> bool:
    """Write a set unless it is there already; True where this call wrote it.

    `header` (name, version, settings, ...) opens the manifest. Where two processes ask for the
    same set, one writes and the other waits and finds it. With `force` an old set stays until the
    new one is whole.
    """
    try:
        # Without the lock, which a folder that can only be read has no place for.
        if _has_manifest(folder) and not force:
            return False
        folder.parent.mkdir(parents=True, exist_ok=True)
        with locked(folder):
            if _has_manifest(folder):
                if not force:
                    return False
            elif folder.exists():
                raise DataError(
                    f"{folder} is there and is no set, as it has no {MANIFEST}: move it away, or "
                    "name another folder with --data DIR"
                )
            # Only the holder of the lock comes here, so these are of processes that died.
            for suffix in (_MAKING, _OLD):
                _remove(_beside(folder, suffix))
            _write(folder, header, write, progress)
            return True
    except OSError as failure:
        raise DataError(_reason(folder, failure)) from failure


def _has_manifest(folder: Path) -> bool:
    return (folder / MANIFEST).exists()


def _write(
    folder: Path,
    header: dict[str, Any],
    write: Callable[[Writer], None],
    progress: Progress,
) -> None:
    making = _beside(folder, _MAKING)
    making.mkdir()
    writer = Writer(making, progress)
    try:
        write(writer)
        manifest = {"format": _FORMAT, **header, **writer.finish()}
        with (making / MANIFEST).open("w", encoding="utf-8") as file:
            json.dump(manifest, file, indent=2)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        if folder.exists():
            folder.rename(_beside(folder, _OLD))
        making.rename(folder)
    except BaseException:
        writer.abandon()
        shutil.rmtree(making, ignore_errors=True)
        raise
    _remove(_beside(folder, _OLD))


def _beside(folder: Path, suffix: str) -> Path:
    return folder.with_name(folder.name + suffix)


def _remove(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)


def _reason(folder: Path, failure: OSError) -> str:
    what = failure.strerror or failure
    # A failed write names no file; one that is named and is none of ours is a source.
    folder = folder.absolute()
    at = Path(failure.filename or folder).absolute()
    ours = (folder, _beside(folder, _MAKING), _beside(folder, _OLD), _lock_file(folder))
    if at not in folder.parents and not any(at.is_relative_to(place) for place in ours):
        return f"could not read {at}: {what}; nothing was kept. Mend that and run again"
    return (
        f"could not write {at}: {what}; nothing was kept. "
        "Free some space or name another folder with --data DIR"
    )


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One process at a time is at work on a folder; who dies lets go."""
    from filelock import FileLock

    with FileLock(_lock_file(folder)):
        yield


def _lock_file(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.lock")


def read(folder: Path, mend: str) -> Stored:
    """Map a set from the disk, after a look at its sizes. `mend` is the command that makes it."""
    manifest = manifest_of(folder, mend)
    arrays = {name: _map(folder, name, facts, mend) for name, facts in manifest["arrays"].items()}
    return Stored(folder, manifest, arrays)


def check(folder: Path, mend: str, progress: Progress = unseen) -> dict[str, Any]:
    """Read every byte of a set and compare its SHA-256; returns the manifest."""
    stored = read(folder, mend)
    total = sum(array.nbytes for array in stored.arrays.values())
    done = 0
    for name, array in stored.arrays.items():
        digest = hashlib.sha256()
        for block in np.array_split(array.reshape(-1), max(1, array.nbytes >> 24)):
            digest.update(np.ascontiguousarray(block).data)
            done += block.nbytes
            progress(done, total)
        expected = stored.manifest["arrays"][name]["sha256"]
        if digest.hexdigest() != expected:
            raise DataError(
                f"{folder / name}.npy was altered: its SHA-256 is {digest.hexdigest()[:12]}..., "
                f"the manifest expects {expected[:12]}...; make it again with: {mend} --force"
            )
    return stored.manifest


def sets_in(data: Path) -> list[Path]:
    """The folders of a data folder that are sets, not leftovers of one."""
    found = (manifest.parent for manifest in sorted(data.glob(f"*/{MANIFEST}")))
    return [folder for folder in found if not folder.name.endswith((_MAKING, _OLD))]


def sizes_of(folder: Path) -> dict[str, int]:
    """The number of samples of each split of a set, from its manifest."""
    splits = manifest_of(folder, "shiftsort data make")["splits"]
    return {name: stop - start for name, (start, stop) in splits.items()}


def manifest_of(folder: Path, mend: str) -> dict[str, Any]:
    """The manifest of a set. `mend` is the command that makes it."""
    path = folder / MANIFEST
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        if manifest["format"] != _FORMAT:
            raise DataError(
                f"{path} has format {manifest['format']}, this version reads format {_FORMAT}; "
                f"make it again with: {mend} --force"
            )
        _follow_each_other(manifest)
    except FileNotFoundError:
        raise DataError(f"there is no set at {folder}; make it with: {mend}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as broken:
        raise DataError(
            f"{path} is not the manifest of a set ({type(broken).__name__}: {broken}); make the "
            f"set again with: {mend} --force"
        ) from None
    return manifest


def _follow_each_other(manifest: dict[str, Any]) -> None:
    """Splits that leave no row out and share none, as no hash covers the manifest itself."""
    end = 0
    for start, stop in manifest["splits"].values():
        if not end == start <= stop:
            raise ValueError(f"splits are {manifest['splits']}")
        end = stop
    for name, facts in manifest["arrays"].items():
        if facts["shape"][0] != end:
            raise ValueError(f"{name} has {facts['shape'][0]} rows, the splits have {end}")


def _map(folder: Path, name: str, facts: dict[str, Any], mend: str) -> np.ndarray:
    path = folder / f"{name}.npy"
    expected = (tuple(facts["shape"]), facts["dtype"])
    try:
        # Copy-on-write: torch wants writable memory, and the file must never change.
        # Not np.load, which would also open archives; neither of them maps a pickle.
        array = np.lib.format.open_memmap(path, mode="c")
    except FileNotFoundError:
        raise DataError(f"{path} is missing; make the set again with: {mend} --force") from None
    except (ValueError, EOFError, OSError) as broken:
        size = path.stat().st_size
        raise DataError(
            f"{path} is truncated or altered ({_size(size)}; expected shape {expected[0]} of "
            f"{expected[1]}: {str(broken).splitlines()[0]}); make it again with: {mend} --force"
        ) from None
    if (array.shape, str(array.dtype)) != expected:
        raise DataError(
            f"{path} holds {array.dtype} of shape {array.shape}, the manifest expects "
            f"{expected[1]} of shape {expected[0]}; make it again with: {mend} --force"
        )
    return array


def _size(count: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if count < 1000:
            return f"{count:.4g} {unit}"
        count /= 1000
    return f"{count:.4g} GB"
