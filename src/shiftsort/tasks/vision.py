"""Vision: small images as arrays, and their augmentation on the device.

Shape suffixes: b images, c channels, h height, w width.
"""

import gzip
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from . import cifar, download
from .distinct import apart, digest
from .errors import DataError
from .store import Progress, Writer, expect_samples
from .task import Batch, Facts, Task, shade

CIFAR10_CLASSES = (
    *("airplane", "automobile", "bird", "cat", "deer"),
    *("dog", "frog", "horse", "ship", "truck"),
)
#: Images in each part, by the names of the published files.
FASHION_MNIST_PARTS = {"train": 60_000, "t10k": 10_000}
_FASHION_CLASSES = (
    *("t-shirt", "trouser", "pullover", "dress", "coat"),
    *("sandal", "shirt", "sneaker", "bag", "ankle boot"),
)
_BLOCK = 5_000


def crop_and_flip(
    images_bchw: Tensor, generator: torch.Generator, padding: int = 4, *, flip: bool = True
) -> Tensor:
    """Each image shifted by up to `padding` pixels over black, and half of them mirrored.

    The usual augmentation of CIFAR (crop at random from the padded image, flip), for a whole batch
    in one gather on its device. The generator decides alone; it may live on another device.
    """
    b, c, h, w = images_bchw.shape
    device = images_bchw.device
    draw = torch.randint(
        2 * padding + 1, (2, b, 1), generator=generator, device=generator.device
    ).to(device)
    rows_bh = torch.arange(h, device=device) + draw[0] - padding
    columns_bw = torch.arange(w, device=device) + draw[1] - padding
    if flip:
        mirrored = torch.rand(b, 1, generator=generator, device=generator.device).to(device) < 0.5
        columns_bw = torch.where(mirrored, columns_bw.flip(1), columns_bw)
    inside_bhw = ((rows_bh >= 0) & (rows_bh < h))[:, :, None] & (
        (columns_bw >= 0) & (columns_bw < w)
    )[:, None, :]
    place_bhw = rows_bh.clamp(0, h - 1)[:, :, None] * w + columns_bw.clamp(0, w - 1)[:, None, :]
    cropped = images_bchw.flatten(2).gather(2, place_bhw.view(b, 1, h * w).expand(b, c, h * w))
    return cropped.view(b, c, h, w) * inside_bhw[:, None]


@dataclass(frozen=True)
class Images(Task):
    """Labelled images that fit on the disk as one array."""

    def files(self, source: Path, progress: Progress) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Images (b, c, h, w) and labels in the published order, test images last."""
        raise NotImplementedError

    def counts(self) -> dict[str, int]:
        """Samples of each split, before those are left out that a later split has too."""
        raise NotImplementedError

    def stored(self, images_bchw: np.ndarray) -> np.ndarray:
        """Images as they lie on the disk."""
        return images_bchw

    def write(self, out: Writer, source: Path, workers: int) -> None:
        counts = self.counts()
        expect_samples(counts)
        files = zip(*self.files(source, out.progress), strict=True)
        images, labels = (np.concatenate(parts) for parts in files)
        inputs = self.stored(images)

        ends = np.cumsum([*counts.values()])
        digests = np.split(np.array([digest(image) for image in inputs], object), ends[:-1])
        kept = apart(dict(zip(counts, digests, strict=True)))
        rows = np.flatnonzero(np.concatenate([kept[name] for name in counts]))
        out.notes["images left out because a later split has them"] = len(inputs) - len(rows)
        out.begin(
            {name: int(kept[name].sum()) for name in counts},
            inputs=(inputs.shape[1:], np.uint8),
            lengths=((), np.int32),
            labels=((), np.uint8),
        )
        for block in np.array_split(rows, -(-len(rows) // _BLOCK)):
            lengths = np.full(len(block), self.facts().length, np.int32)
            out.add(inputs=inputs[block], lengths=lengths, labels=labels[block])

    def describe(self, sample: Batch) -> str:
        return shade(sample.inputs.float().mean(0))


@dataclass(frozen=True)
class Cifar10(Images):
    """The last 5,000 training images, as published, validate."""

    name: ClassVar[str] = "cifar10"
    about: ClassVar[str] = "32 x 32 color images, 10 classes; reads cifar-10-batches-bin/"

    validation: int = 5_000

    def facts(self) -> Facts:
        return Facts(
            kind="pixels",
            classes=10,
            length=1024,
            image=(3, 32, 32),
            mean=(0.4914, 0.4822, 0.4465),
            std=(0.2470, 0.2435, 0.2616),
            class_names=CIFAR10_CLASSES,
        )

    def counts(self) -> dict[str, int]:
        train = sum(cifar.CIFAR10_FILES.values())
        return {
            "train": train - self.validation,
            "validation": self.validation,
            "test": sum(cifar.CIFAR10_TEST_FILES.values()),
        }

    def files(self, source: Path, progress: Progress) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        files = {**cifar.CIFAR10_FILES, **cifar.CIFAR10_TEST_FILES}
        return cifar.read(source, download.CIFAR10, files, label_bytes=1, progress=progress)


@dataclass(frozen=True)
class Cifar100(Images):
    """The last 5,000 training images, as published, validate; labels are the 100 fine ones."""

    name: ClassVar[str] = "cifar100"
    about: ClassVar[str] = "32 x 32 color images, 100 classes; reads cifar-100-binary/"

    validation: int = 5_000

    def facts(self) -> Facts:
        return Facts(
            kind="pixels",
            classes=100,
            length=1024,
            image=(3, 32, 32),
            mean=(0.5071, 0.4865, 0.4409),
            std=(0.2673, 0.2564, 0.2762),
        )

    def counts(self) -> dict[str, int]:
        train = sum(cifar.CIFAR100_FILES.values())
        return {
            "train": train - self.validation,
            "validation": self.validation,
            "test": sum(cifar.CIFAR100_TEST_FILES.values()),
        }

    def files(self, source: Path, progress: Progress) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        files = {**cifar.CIFAR100_FILES, **cifar.CIFAR100_TEST_FILES}
        return cifar.read(source, download.CIFAR100, files, label_bytes=2, progress=progress)


@dataclass(frozen=True)
class FashionMnist(Images):
    """The last 5,000 training images, as published, validate."""

    name: ClassVar[str] = "fashion-mnist"
    about: ClassVar[str] = "28 x 28 gray images of clothes; reads fashion-mnist-idx/*-ubyte(.gz)"

    validation: int = 5_000

    def facts(self) -> Facts:
        return Facts(
            kind="pixels",
            classes=10,
            length=784,
            image=(1, 28, 28),
            mean=(0.2860,),
            std=(0.3530,),
            class_names=_FASHION_CLASSES,
        )

    def counts(self) -> dict[str, int]:
        train, test = FASHION_MNIST_PARTS.values()
        return {"train": train - self.validation, "validation": self.validation, "test": test}

    def files(self, source: Path, progress: Progress) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        folder = source / "fashion-mnist-idx"
        for part, count in FASHION_MNIST_PARTS.items():
            images = _idx_file(folder, f"{part}-images-idx3-ubyte", progress)
            labels = _idx_file(folder, f"{part}-labels-idx1-ubyte", progress)
            yield read_idx(images, (count, 28, 28))[:, None], read_idx(labels, (count,))


@dataclass(frozen=True)
class Digits(Images):
    """scikit-learn's 1,797 digits, shuffled; they need no download."""

    name: ClassVar[str] = "digits"
    about: ClassVar[str] = "8 x 8 gray digits, 10 classes; ships with scikit-learn"

    seed: int = 0
    validation: int = 250
    test: int = 250

    def facts(self) -> Facts:
        return Facts(
            kind="pixels",
            classes=10,
            length=64,
            image=(1, 8, 8),
            mean=(0.3041,),
            std=(0.3749,),
            class_names=tuple("0123456789"),
        )

    def counts(self) -> dict[str, int]:
        train = 1_797 - self.validation - self.test
        return {"train": train, "validation": self.validation, "test": self.test}

    def files(self, source: Path, progress: Progress) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        from sklearn.datasets import load_digits

        digits = load_digits()
        # RandomState, not the newer Generator: NumPy promises that its stream stays as it is.
        order = np.random.RandomState(self.seed).permutation(len(digits.target))
        images = (digits.images * (255 / 16)).astype(np.uint8)
        yield images[order, None], digits.target[order]


def read_idx(path: Path, shape: tuple[int, ...]) -> np.ndarray:
    """An idx file of bytes, packed with gzip or not."""
    data = path.read_bytes()
    if path.suffix == ".gz":
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError) as broken:
            raise DataError(
                f"{path} is truncated or altered ({broken}); download it again"
            ) from None
    header = b"\x00\x00\x08" + bytes([len(shape)])
    header += b"".join(size.to_bytes(4, "big") for size in shape)
    if not data.startswith(header) or len(data) != len(header) + np.prod(shape):
        raise DataError(
            f"{path} is not an idx file of bytes of shape {shape} ({len(data)} bytes, expected "
            f"{len(header) + np.prod(shape)}); download it again"
        )
    return np.frombuffer(data, np.uint8, offset=len(header)).reshape(shape)


def _idx_file(folder: Path, name: str, progress: Progress) -> Path:
    for path in (folder / name, folder / f"{name}.gz"):
        if path.exists():
            return path
    return download.fetch(download.FASHION_MNIST[name], folder, progress)
