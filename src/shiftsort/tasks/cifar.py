"""The publishers' binary layouts of CIFAR-10 and CIFAR-100. Suffixes: b images, c h w."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from . import download
from .errors import DataError
from .store import Progress

_PIXELS = 3 * 32 * 32
#: Images in each file.
CIFAR10_FILES = {f"data_batch_{part}.bin": 10_000 for part in range(1, 6)}
CIFAR10_TEST_FILES = {"test_batch.bin": 10_000}
CIFAR100_FILES = {"train.bin": 50_000}
CIFAR100_TEST_FILES = {"test.bin": 10_000}


def read(
    source: Path,
    archive: download.Archive,
    files: dict[str, int],
    label_bytes: int,
    progress: Progress,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Images (b, 3, 32, 32) and labels of each file; the last label byte is the fine label."""
    folder = download.folder_of(archive, source, progress)
    for name, count in files.items():
        path = folder / name
        try:
            records = np.fromfile(path, np.uint8)
        except FileNotFoundError:
            raise DataError(
                f"{path} is missing; put it there, or delete {folder} to download it anew"
            ) from None
        expected = count * (label_bytes + _PIXELS)
        if len(records) != expected:
            raise DataError(
                f"{path} has {len(records)} bytes, expected {expected} ({count} images); "
                f"put the whole file there, or delete {folder} to download it anew"
            )
        records = records.reshape(count, label_bytes + _PIXELS)
        yield records[:, label_bytes:].reshape(count, 3, 32, 32), records[:, label_bytes - 1]
