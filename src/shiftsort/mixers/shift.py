"""Circular shifts alone."""

from typing import Any

from .csp import CSPMixer
from .mixer import About


class Shift(CSPMixer):
    """CSP without the sort. `shift="linear"` shifts by channel, `shift="heads"` by head."""

    about = About(
        complexity="C N",
        source="Yuan and Xu, channel-wise sample permutation",
        row="ViT: Circular Shifting; analysis: second row (heads), third row (linear)",
    )
    withheld = ("group_size", "order")

    def __init__(self, dim: int, **options: Any) -> None:
        super().__init__(dim, group_size=1, **options)
