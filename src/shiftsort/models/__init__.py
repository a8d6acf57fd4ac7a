"""Bodies that take any mixer, each in one file."""

from .count import count_parameters
from .encoder import Encoder
from .mega import Mega
from .stack import Stack
from .vit import ViT, vit_cifar10, vit_cifar100, vit_s16

__all__ = [
    "Encoder",
    "Mega",
    "Stack",
    "ViT",
    "count_parameters",
    "vit_cifar10",
    "vit_cifar100",
    "vit_s16",
]
