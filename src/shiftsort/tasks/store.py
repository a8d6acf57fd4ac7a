"""Arrays on disk: written whole or not at all, by one process at a time, and checked.

A set is a folder with `inputs.npy`, `lengths.npy`, `labels.npy` and `manifest.json`. It is
written under another name and renamed when it is complete, so a folder with a manifest is a
whole set even after Ctrl-C, kill -9 or a full disk.
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
_MAKING = ".making"


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

    def __init__(self, folder: Path, progress: Callable[[int, int], None]) -> None:
        self.folder = folder
        self.notes: dict[str, Any] = {}
        self._progress = progress
        self._arrays: dict[str, ArrayFile] = {}
        self._splits: dict[str, list[int]] = {}
        self._done = 0

    def begin(
        self, splits: dict[str, int], **arrays: tuple[tuple[int, ...], np.dtype | type]
    ) -> None:
        """Name the splits with their counts, and give each array's shape of a row and its dtype."""
        start = 0
        for name, count in splits.items():
            self._splits[name] = [start, start + count]
            start += count
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
        self._progress(0, start)

    def add(self, **rows: np.ndarray) -> None:
        """Append rows to every array."""
        if rows.keys() != self._arrays.keys():
            raise ValueError(f"rows for {sorted(rows)} were given, not for {sorted(self._arrays)}")
        for name, block in rows.items():
            self._arrays[name].append(block)
        self._done += len(block)
        self._progress(self._done, self._arrays[name].shape[0])

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
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> bool:
    """Write a set unless it is there already; True where this call wrote it.

    `header` (name, version, settings, ...) opens the manifest. Where two processes ask for the
    same set, one writes and the other waits and finds it.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _locked(folder):
            if (folder / MANIFEST).exists():
                return False
            _clear(folder)
            _write(folder, header, write, progress)
            return True
    except OSError as failure:
        at = failure.filename or folder
        raise DataError(
            f"could not write {at}: {failure.strerror or failure}; nothing was kept. "
            "Free some space or name another folder with --data DIR"
        ) from failure


def _write(
    folder: Path,
    header: dict[str, Any],
    write: Callable[[Writer], None],
    progress: Callable[[int, int], None],
) -> None:
    making = folder.with_name(folder.name + _MAKING)
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
        making.rename(folder)
    except BaseException:
        writer.abandon()
        shutil.rmtree(making, ignore_errors=True)
        raise


def _clear(folder: Path) -> None:
    # Only the holder of the lock comes here, so what lies about was left by a process that died.
    for left in (folder, folder.with_name(folder.name + _MAKING)):
        if left.exists():
            shutil.rmtree(left)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    from filelock import FileLock

    with FileLock(folder.with_name(f".{folder.name}.lock")):
        yield


def read(folder: Path, mend: str) -> Stored:
    """Map a set from the disk, after a look at its sizes. `mend` is the command that makes it."""
    manifest = _manifest(folder, mend)
    arrays = {name: _map(folder, name, facts, mend) for name, facts in manifest["arrays"].items()}
    return Stored(folder, manifest, arrays)


def check(
    folder: Path, mend: str, progress: Callable[[int, int], None] = lambda done, total: None
) -> dict[str, Any]:
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


def sizes_of(folder: Path) -> dict[str, int]:
    """The number of samples of each split of a set, from its manifest."""
    splits = _manifest(folder, "shiftsort data make")["splits"]
    return {name: stop - start for name, (start, stop) in splits.items()}


def remove(folder: Path) -> None:
    """Delete a set, whole or not."""
    with _locked(folder):
        _clear(folder)


def _manifest(folder: Path, mend: str) -> dict[str, Any]:
    path = folder / MANIFEST
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        if manifest["format"] != _FORMAT:
            raise DataError(
                f"{path} has format {manifest['format']}, this version reads format {_FORMAT}; "
                f"make it again with: {mend} --force"
            )
    except FileNotFoundError:
        raise DataError(f"there is no set at {folder}; make it with: {mend}") from None
    except (ValueError, KeyError, TypeError) as broken:
        raise DataError(
            f"{path} is not a manifest ({broken}); make the set again with: {mend} --force"
        ) from None
    return manifest


def _map(folder: Path, name: str, facts: dict[str, Any], mend: str) -> np.ndarray:
    path = folder / f"{name}.npy"
    expected = (tuple(facts["shape"]), facts["dtype"])
    try:
        # Copy-on-write: torch wants writable memory, and the file must never change.
        array = np.load(path, mmap_mode="c", allow_pickle=False)
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
