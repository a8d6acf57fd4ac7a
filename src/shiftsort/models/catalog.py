"""The models in the sizes of the papers, for `shiftsort models`."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import nn

from .count import count_parameters
from .encoder import Encoder
from .mega import Mega
from .stack import Stack
from .vit import vit_cifar10, vit_cifar100, vit_s16


@dataclass(frozen=True)
class Body:
    """A model as `shiftsort models` lists it."""

    title: str
    source: str
    left_out: str


@dataclass(frozen=True)
class Size:
    """A body in one size, with one attention."""

    body: str
    task: str
    attention: str
    row: str
    build: Callable[[], nn.Module]

    def parameters(self) -> int:
        """How many there are; nothing is allocated."""
        with torch.device("meta"):
            return count_parameters(self.build())


BODIES = {
    "vit": Body(
        "ViT",
        "Dosovitskiy et al. 2021, An image is worth 16x16 words",
        "pooling by the class token, which is kept and counted, and not read",
    ),
    "encoder": Body(
        "Encoder",
        "Tay et al. 2021, Long Range Arena",
        "black pixels as padding; the products and differences of two towers; sum pooling",
    ),
    "mega": Body(
        "MEGA",
        "Ma et al. 2022, Mega: moving average equipped gated attention",
        "the causal form; the rotary bias; squared ReLU; feature dropout; layer drop",
    ),
    "stack": Body(
        "Stack",
        "Gu et al. 2022, Efficiently modeling long sequences with structured state spaces",
        "pooling by the last sample; a second dropout, between the convolution and its activation",
    ),
}

# dim, depth, heads, channels, MLP, samples, vocabulary, classes, the rest: Long Range Arena's own.
_ENCODERS: dict[str, tuple[int, int, int, int, int, int, int, int, dict[str, Any]]] = {
    "ListOps": (512, 4, 8, 512, 1024, 2000, 16, 10, {}),
    "Text": (256, 4, 4, 256, 1024, 4000, 256, 2, {}),
    "Retrieval": (128, 4, 4, 128, 512, 4000, 256, 2, {"towers": 2}),
    "Image": (128, 1, 8, 64, 128, 1024, 256, 10, {"positions": "learned"}),
    "PathFind": (32, 4, 4, 16, 32, 1024, 256, 2, {"pool": "mean"}),
    "Path-X": (32, 1, 2, 16, 32, 16_384, 256, 2, {"pool": "mean", "positions": "learned"}),
}

# dim, depth, hidden, z, samples, vocabulary, classes, attention, chunk, the rest: MEGA's own.
_MEGAS: dict[str, tuple[int, int, int, int, int, int | None, int, str, int, dict[str, Any]]] = {
    "ListOps": (80, 6, 160, 64, 2000, 16, 10, "softmax", 128, {}),
    "Text": (128, 4, 256, 64, 4000, 256, 2, "softmax", 128, {"norm": "scale"}),
    "Retrieval": (
        128, 6, 256, 64, 4000, 256, 2, "softmax", 128, {"norm": "scale", "towers": 2},
    ),
    "Image": (
        160, 8, 320, 96, 1024, None, 10, "laplace", 128, {"norm": "batch", "prenorm": True},
    ),
    "PathFind": (
        128, 6, 256, 64, 1024, None, 2, "laplace", 128, {"norm": "batch", "prenorm": True},
    ),
    "Path-X": (
        64, 4, 128, 32, 16_384, None, 2, "laplace", 4096,
        {"norm": "syncbatch", "prenorm": True, "truncation": 4096},
    ),
}  # fmt: skip

# dim, samples, vocabulary, classes, what S4 takes, the rest: the newest that S4 was released with.
_STACKS: dict[str, tuple[int, int, int | None, int, dict[str, Any], dict[str, Any]]] = {
    "ListOps": (256, 2000, 16, 10, {"states": 4}, {}),
    "Text": (256, 4000, 256, 2, {"states": 4}, {}),
    "Retrieval": (256, 4000, 256, 2, {"states": 4}, {"towers": 2}),
    "Image": (512, 1024, None, 10, {}, {}),
    "PathFind": (256, 1024, None, 2, {"copies": None}, {}),
    "Path-X": (256, 16_384, None, 2, {"copies": None, "dt_min": 1e-4}, {}),
}


def sizes() -> Iterator[Size]:
    """Every model of the paper's tables, with attention and with CSP."""
    for task, vit, width in (
        ("CIFAR-10", vit_cifar10, 512),
        ("CIFAR-100", vit_cifar100, 512),
        ("ImageNet-1k", vit_s16, 384),
    ):
        wide = partial(vit, "csp", mixer_options={"channels": 2 * width})
        for attention, row, build in (
            ("mha", "MHA", partial(vit, "mha")),
            ("csp", "CSP, the smaller", partial(vit, "csp")),
            ("csp, twice as wide", "CSP, the larger", wide),
        ):
            yield Size("vit", task, attention, f"ViT: {row}", build)

    for task, (*widths, samples, vocabulary, classes, options) in _ENCODERS.items():
        dim, depth, heads, channels, mlp_dim = widths
        for attention, row in (("mha", "Transformer"), ("csp", "Transformer using CSP")):
            build = partial(
                Encoder,
                vocabulary=vocabulary,
                classes=classes,
                samples=samples,
                dim=dim,
                depth=depth,
                heads=heads,
                channels=channels,
                mlp_dim=mlp_dim,
                mixer=attention,
                **options,
            )
            yield Size("encoder", task, attention, f"LRA: {row}", build)

    for task, (dim, depth, hidden, z, samples, *rest) in _MEGAS.items():
        vocabulary, classes, function, chunk, options = rest
        for attention, row, size in (
            (function, "MEGA", None),
            (f"{function}, chunks of {chunk}", "MEGA-chunk", chunk),
            ("csp", "MEGA using CSP", None),
        ):
            build = partial(
                Mega,
                vocabulary=vocabulary,
                classes=classes,
                samples=samples,
                dim=dim,
                depth=depth,
                hidden=hidden,
                z=z,
                attention="csp" if attention == "csp" else function,
                chunk=size,
                **options,
            )
            yield Size("mega", task, attention, f"LRA: {row}", build)

    for task, (dim, samples, vocabulary, classes, states, options) in _STACKS.items():
        build = partial(
            Stack,
            vocabulary=vocabulary,
            classes=classes,
            samples=samples,
            dim=dim,
            depth=6,
            mixer="s4",
            mixer_options=states,
            prenorm=task not in ("ListOps", "Image"),
            **options,
        )
        yield Size("stack", task, "s4", "LRA: S4", build)
