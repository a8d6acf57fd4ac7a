"""The vision transformer of the paper's image tables, with any mixer.

Shapes in names: b batch, n patches, c channels.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from .. import mixers


class ViT(nn.Module):
    """Patches, learned positions, pre-norm layers, mean pooling, one linear head.

    Args:
        image_size: side of the square image.
        patch_size: side of a patch; it must divide the image's.
        classes: how many there are.
        dim, depth, heads, mlp_dim: width, layers, heads of each, inner width of the MLP.
        mixer, mixer_options: which one, and what it takes (see `shiftsort.mixers`).
        bias: whether queries, keys and values (or CSP's values) have a bias.
        colours: channels of the image.
        dropout: after the mixer and in the MLP, and in attention maps.
        embedding_dropout: after the positions.
    """

    def __init__(
        self,
        *,
        image_size: int,
        patch_size: int,
        classes: int,
        dim: int,
        depth: int,
        heads: int,
        mlp_dim: int,
        mixer: str = "mha",
        mixer_options: Mapping[str, Any] | None = None,
        bias: bool = False,
        colours: int = 3,
        dropout: float = 0.1,
        embedding_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if image_size % patch_size:
            raise ValueError(f"patch_size must divide image_size={image_size}, got {patch_size}")
        self.patch_size = patch_size
        self.shape = (colours, image_size, image_size)
        patches = (image_size // patch_size) ** 2
        self.patches = nn.Linear(colours * patch_size**2, dim)
        self.positions = nn.Parameter(torch.randn(patches, dim))
        # The published model has a class token with a position of its own, and with mean pooling
        # reads neither. They stay, so that parameters count as printed, and are never trained.
        self.unread = nn.Parameter(torch.zeros(2, dim), requires_grad=False)
        self.dropout = nn.Dropout(embedding_dropout)
        self.layers = nn.ModuleList(
            _Layer(
                dim,
                mlp_dim,
                mixers.build(
                    mixer,
                    dim=dim,
                    samples=patches,
                    layer=layer,
                    depth=depth,
                    **{"heads": heads, "dropout": dropout, "bias": bias, **(mixer_options or {})},
                ),
                dropout,
            )
            for layer in range(depth)
        )
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, classes)

    def forward(self, image_bchw: Tensor) -> Tensor:
        """Logits, (B, classes)."""
        if tuple(image_bchw.shape[1:]) != self.shape:
            raise ValueError(
                f"images must be (batch, {', '.join(map(str, self.shape))}), "
                f"got shape {tuple(image_bchw.shape)}"
            )
        p = self.patch_size
        cut = image_bchw.unflatten(3, (-1, p)).unflatten(2, (-1, p))  # b, colour, y, p, x, p
        patches_bnc = cut.permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(1, 2)
        x_bnc = self.dropout(self.patches(patches_bnc) + self.positions)
        for layer in self.layers:
            x_bnc = layer(x_bnc)
        return self.head(self.norm(x_bnc.mean(dim=1)))


class _Layer(nn.Module):
    def __init__(self, dim: int, mlp_dim: int, mixer: mixers.Mixer, dropout: float) -> None:
        super().__init__()
        self.mixer_norm = nn.LayerNorm(dim)
        self.mixer = mixer
        self.mixer_dropout = nn.Dropout(dropout)
        self.mlp = nn.Sequential(
            nn.LayerNorm(dim),
            nn.Linear(dim, mlp_dim),
            nn.GELU(),
            nn.Dropout(dropout),
            nn.Linear(mlp_dim, dim),
            nn.Dropout(dropout),
        )

    def forward(self, x_bnc: Tensor) -> Tensor:
        x_bnc = x_bnc + self.mixer_dropout(self.mixer(self.mixer_norm(x_bnc)))
        return x_bnc + self.mlp(x_bnc)


def vit_cifar10(mixer: str = "mha", **options: Any) -> ViT:
    """The paper's ViT for CIFAR-10: 64 patches."""
    return _vit_cifar(mixer, classes=10, patch_size=4, **options)


def vit_cifar100(mixer: str = "mha", **options: Any) -> ViT:
    """The paper's ViT for CIFAR-100: 256 patches, as its 128 groups of two tell."""
    return _vit_cifar(mixer, classes=100, patch_size=2, **options)


def _vit_cifar(mixer: str, **options: Any) -> ViT:
    body = {"image_size": 32, "dim": 512, "depth": 6, "heads": 8, "mlp_dim": 512}
    return ViT(mixer=mixer, **{**body, **options})


def vit_s16(mixer: str = "mha", **options: Any) -> ViT:
    """ViT-S/16 for ImageNet-1k. Width 384; the 386 of the paper's appendix is a misprint."""
    body = {"image_size": 224, "patch_size": 16, "classes": 1000, "bias": True}
    size = {"dim": 384, "depth": 12, "heads": 6, "mlp_dim": 1536}
    return ViT(mixer=mixer, **{**body, **size, **options})
