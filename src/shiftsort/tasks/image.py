"""Image: CIFAR-10 in gray, pixel after pixel."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from . import cifar, download
from .store import Writer
from .task import Batch, Facts, Task, shade
from .vision import CIFAR10_CLASSES

#: Of tf.image.rgb_to_grayscale, which the published pipeline uses: .2989, .5870, .1140.
_LUMA = np.array([2989, 5870, 1140])


@dataclass(frozen=True)
class Image(Task):
    """CIFAR-10 as 1,024 gray tokens; the last 5,000 training images, as published, validate."""

    name: ClassVar[str] = "image"
    about: ClassVar[str] = "CIFAR-10 in gray as 1,024 tokens; reads cifar-10-batches-bin/"
    served: ClassVar[frozenset[str]] = frozenset({"black_is_padding"})

    validation: int = 5_000
    #: As the original's input pipeline reads it: black pixels are padding.
    black_is_padding: bool = False

    def facts(self) -> Facts:
        return Facts(
            kind="tokens",
            classes=10,
            length=1024,
            vocabulary=256,
            image=(1, 32, 32),
            padding=0 if self.black_is_padding else None,
            mean=(0.48,),
            std=(0.24,),
            class_names=CIFAR10_CLASSES,
        )

    def write(self, out: Writer, source: Path, workers: int) -> None:
        train = sum(cifar.CIFAR10_FILES.values()) - self.validation
        test = sum(cifar.CIFAR10_TEST_FILES.values())
        out.begin(
            {"train": train, "validation": self.validation, "test": test},
            inputs=((1024,), np.uint8),
            lengths=((), np.int32),
            labels=((), np.uint8),
        )
        files = {**cifar.CIFAR10_FILES, **cifar.CIFAR10_TEST_FILES}
        for images, labels in cifar.read(source, download.CIFAR10, files, label_bytes=1):
            gray = to_gray(images).reshape(len(images), 1024)
            out.add(inputs=gray, lengths=np.full(len(gray), 1024, np.int32), labels=labels)

    def describe(self, sample: Batch) -> str:
        return shade(sample.inputs.reshape(32, 32))


def to_gray(images_bchw: np.ndarray) -> np.ndarray:
    """Gray values (b, h, w) of 8-bit RGB images, in whole numbers so that no machine rounds."""
    weighed = np.einsum("c,bchw->bhw", _LUMA, images_bchw)
    # TensorFlow divides by 255 before it weighs, and multiplies by 255.5 before it cuts off.
    return (weighed * 511 // (10_000 * 510)).astype(np.uint8)
