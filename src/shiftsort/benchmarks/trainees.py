"""What is trained: the encoder of Long Range Arena with each mixer, and the papers' ViT and MEGA.

Shapes in names: b batch, n samples.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from shiftsort import mixers
from shiftsort.models import Encoder, Mega, ViT
from shiftsort.models.catalog import BODIES, Size, sizes

#: Long Range Arena's encoder for text, on which its own table of speeds was measured.
_ENCODER: dict[str, Any] = {
    "vocabulary": 256, "classes": 2, "dim": 256, "depth": 4, "heads": 4, "mlp_dim": 1024,
}  # fmt: skip
#: Where the paper uses CSP on this benchmark, it sorts the whole sequence.
_COMPLETE_SORT = "csp, complete sort"


@dataclass(frozen=True)
class Trainee:
    """A model, and the inputs that it reads."""

    name: str
    batch: int
    samples: int
    build: Callable[[], nn.Module]
    #: From a model and a batch size: inputs that mean nothing, of the right kind.
    inputs: Callable[[nn.Module, int], Tensor]


def encoders(lengths: list[int], batch: int) -> list[Trainee]:
    """Every mixer at every length."""
    variants = [(name, name, {}) for name in mixers.names()]
    variants.append((_COMPLETE_SORT, "csp", {"group_size": None}))
    return [
        Trainee(
            label,
            batch,
            n,
            partial(Encoder, **_ENCODER, samples=n, mixer=mixer, mixer_options=options),
            partial(_tokens, n),
        )
        for n in lengths
        for label, mixer, options in variants
    ]


def vits_and_megas(batch: int) -> list[Trainee]:
    """Each size of the catalog, with attention and with CSP."""
    return [_from_catalog(size, batch) for size in sizes() if size.body in ("vit", "mega")]


def _from_catalog(size: Size, batch: int) -> Trainee:
    with torch.device("meta"):
        model = size.build()
    name = f"{BODIES[size.body].title} {size.task}, {size.attention}"
    if isinstance(model, ViT):
        return Trainee(name, batch, len(model.positions), size.build, _images)
    return Trainee(name, batch, model.samples, size.build, partial(_tokens, model.samples))


def _images(model: nn.Module, batch: int) -> Tensor:
    assert isinstance(model, ViT)
    return torch.randn(batch, *model.shape)


def _tokens(n: int, model: nn.Module, batch: int) -> Tensor:
    """Sequences of full length; for two towers pairs of them."""
    assert isinstance(model, Encoder | Mega)
    pair = (2,) if model.towers == 2 else ()
    table = model.tokens if isinstance(model, Encoder) else model.embedding
    values = table.num_embeddings if isinstance(table, nn.Embedding) else 256  # gray values
    # 0 is what padding is filled with.
    return torch.randint(1, values, (batch, *pair, n))
