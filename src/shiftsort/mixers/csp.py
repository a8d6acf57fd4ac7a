"""The channel-wise sample permutation, and the two halves of it that the paper ablates."""

from torch import Tensor, nn

from ..nn import CSP
from .mixer import About, Mixer, valid_samples, wipe_padding


class CSPMixer(Mixer):
    """y = CSP(x W) W_out: values shifted and sorted, and no queries, keys or attention map.

    Args:
        dim, layer, depth: as in every mixer.
        samples: the longest sequence that will come; the shifts are made for it, and taken modulo
            each sequence's own length. None makes them for each input, padding included.
        heads: used by `shift="heads"` alone.
        channels: width of the values (default `dim`); 2 * dim costs what queries and keys would.
        dropout: unused, a permutation has no weights to drop.
        bias, out_bias: whether the projection to the values, and the one back, have a bias.
        group_size, shift, order: see `shiftsort.CSP`.
    """

    about = About(
        complexity="C N log G, C N for groups of G = 2",
        source="Yuan and Xu, channel-wise sample permutation",
        row="LRA: Transformer using CSP; ViT: CSP",
    )

    def __init__(
        self,
        dim: int,
        *,
        samples: int | None,
        layer: int = 0,
        depth: int = 1,
        heads: int = 8,
        channels: int | None = None,
        dropout: float = 0.0,
        bias: bool = False,
        out_bias: bool = True,
        group_size: int | None = 2,
        shift: str = "linear",
        order: str = "reference",
    ) -> None:
        super().__init__()
        self.csp = CSP(
            dim,
            channels=channels,
            group_size=group_size,
            shift=shift,
            heads=heads,
            order=order,
            layer=layer,
            depth=depth,
            samples=samples,
            bias=bias,
        )
        self.out = nn.Linear(self.csp.channels, dim, bias=out_bias)

    def forward(self, x_bnc: Tensor, lengths_b: Tensor | None = None) -> Tensor:
        """Permute the values and project back."""
        if lengths_b is not None:
            x_bnc = wipe_padding(x_bnc, valid_samples(x_bnc.shape[1], lengths_b))
        y_bnc = self.csp(x_bnc, lengths_b)
        # As a matrix: of three dimensions that do not lie in their order, the bias would be added
        # in a pass of its own.
        return self.out(y_bnc.flatten(0, 1)).unflatten(0, y_bnc.shape[:2])
