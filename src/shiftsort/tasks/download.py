"""What the publishers distribute: fetched with known hashes, unpacked inside one folder."""

import errno
import shutil
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .errors import DataError
from .store import Progress, locked, unseen


@dataclass(frozen=True)
class Archive:
    """A file of a publisher. `hash` is sha256 or md5, as the publisher's users know it."""

    name: str
    urls: tuple[str, ...]
    hash: str
    #: The folder that unpacking makes, or None for a file that is used as it is.
    folder: str | None = None


CIFAR10 = Archive(
    "cifar-10-binary.tar.gz",
    (
        "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
        "https://storage.googleapis.com/s4tf-hosted-binaries/datasets/CIFAR10/cifar-10-binary.tar.gz",
    ),
    "sha256:c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
    "cifar-10-batches-bin",
)
CIFAR100 = Archive(
    "cifar-100-binary.tar.gz",
    ("https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",),
    "sha256:58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
    "cifar-100-binary",
)
IMDB = Archive(
    "aclImdb_v1.tar.gz",
    ("https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz",),
    "sha256:c40f74a18d3b61f90feba1e17730e0d38e8b97c05fde7008942e91923d1658fe",
    "aclImdb",
)
FASHION_MNIST = {
    name: Archive(
        f"{name}.gz",
        (
            f"http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/{name}.gz",
            "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/"
            f"{name}.gz",
        ),
        md5,
    )
    for name, md5 in {
        "train-images-idx3-ubyte": "md5:8d4fb7e6c68d591d4c3dfef9ec88bf0d",
        "train-labels-idx1-ubyte": "md5:25c81989df183df01b3e8a0aad5dffbe",
        "t10k-images-idx3-ubyte": "md5:bef4ecab320f06d8554ea6380940ec79",
        "t10k-labels-idx1-ubyte": "md5:bb300cfdad3c16e7a12a480ee83cd310",
    }.items()
}


def folder_of(archive: Archive, source: Path, progress: Progress = unseen) -> Path:
    """The unpacked folder of an archive, downloaded and unpacked first where it is missing."""
    folder = source / str(archive.folder)
    if not folder.is_dir():
        source.mkdir(parents=True, exist_ok=True)
        # Two tasks may want the same archive at once.
        with locked(folder):
            if not folder.is_dir():
                unpack(fetch(archive, source, progress), source, folder.name, progress)
    return folder


def fetch(archive: Archive, source: Path, progress: Progress = unseen) -> Path:
    """The archive's file in `source`, from the first mirror that has the right bytes."""
    try:
        reasons = []
        for url in archive.urls:
            try:
                return _retrieve(archive, url, source, progress)
            except (OSError, ValueError) as failure:
                if getattr(failure, "errno", None) == errno.ENOSPC:
                    raise
                reasons.append(f"{url}: {_reason(failure)}")
    except ModuleNotFoundError as missing:
        reasons = [f"{missing.name} is not installed"]
    wanted = f"{archive.folder}/ (or {archive.name})" if archive.folder else archive.name
    raise DataError(
        f"{source} has no {wanted}, and downloading it failed ({'; '.join(reasons)}): "
        "put it there, or name a folder that has it with --source DIR"
    )


def _retrieve(archive: Archive, url: str, source: Path, progress: Progress) -> Path:
    import pooch

    logger = pooch.get_logger()
    level = logger.level
    logger.setLevel("ERROR")
    downloader = pooch.HTTPDownloader(timeout=30, progressbar=_Bar(progress))
    try:
        return Path(
            pooch.retrieve(
                url,
                known_hash=archive.hash,
                fname=archive.name,
                path=source,
                downloader=downloader,
            )
        )
    finally:
        logger.setLevel(level)


class _Bar:
    """What pooch wants of a progress bar."""

    def __init__(self, progress: Progress) -> None:
        self.progress, self.total, self.done = progress, 0, 0

    def update(self, count: int) -> None:
        """So many bytes more."""
        self.done += count
        self.progress(min(self.done, self.total), self.total)

    def reset(self) -> None:
        """Pooch begins at 0 once more when all is there, to show a full bar."""
        self.done = 0

    def close(self) -> None:
        """Nothing is held open."""


def unpack(file: Path, into: Path, folder: str, progress: Progress = unseen) -> None:
    """Unpack a tar archive so that `folder` is there whole or not at all."""
    temporary = into / f"{folder}.unpacking"
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        with file.open("rb") as packed, tarfile.open(fileobj=packed) as archive:

            def members() -> Iterator[tarfile.TarInfo]:
                for member in archive:
                    progress(packed.tell(), file.stat().st_size)
                    yield member

            # The filter refuses absolute paths, `..`, links that lead outside, and devices.
            archive.extractall(temporary, members(), filter="data")
        (temporary / folder).rename(into / folder)
    except (tarfile.TarError, zlib.error, EOFError, OSError) as broken:
        raise DataError(
            f"{file} could not be unpacked into {into} ({broken}); delete it and run again, or "
            "free some space"
        ) from broken
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _reason(failure: Exception) -> str:
    if "known hash" in str(failure):
        return "the file there has another hash"
    status = getattr(getattr(failure, "response", None), "status_code", None)
    return f"it answers {status}" if status else type(failure).__name__
