"""Image: CIFAR-10 in gray, pixel after pixel."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .task import Batch, Facts, shade
from .vision import CIFAR10_CLASSES, Cifar10

#: Of tf.image.rgb_to_grayscale, which the published pipeline uses: .2989, .5870, .1140.
_LUMA = np.array([2989, 5870, 1140], np.int32)


@dataclass(frozen=True)
class Image(Cifar10):
    """CIFAR-10 as 1,024 gray tokens; the last 5,000 training images, as published, validate."""

    name: ClassVar[str] = "image"
    about: ClassVar[str] = "CIFAR-10 in gray as 1,024 tokens; reads cifar-10-batches-bin/"
    served: ClassVar[frozenset[str]] = frozenset({"black_is_padding"})

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

    def stored(self, images_bchw: np.ndarray) -> np.ndarray:
        return to_gray(images_bchw).reshape(-1, 1024)

    def describe(self, sample: Batch) -> str:
        return shade(sample.inputs.reshape(32, 32))


def to_gray(images_bchw: np.ndarray) -> np.ndarray:
    """Gray values (b, h, w) of 8-bit RGB images, in whole numbers so that no machine rounds."""
    weighed = np.einsum("c,bchw->bhw", _LUMA, images_bchw)
    # TensorFlow divides by 255 before it weighs, and multiplies by 255.5 before it cuts off.
    return (weighed * 511 // (10_000 * 510)).astype(np.uint8)
