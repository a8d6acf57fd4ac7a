"""Group sorting alone."""

from typing import Any

from .csp import CSPMixer
from .mixer import About


class Sort(CSPMixer):
    """CSP without the shift. `group_size=None` sorts the whole sequence."""

    about = About(
        complexity="C N log G, C N for groups of G = 2",
        source="Yuan and Xu, channel-wise sample permutation",
        row="ViT: Group Sorting",
    )
    withheld = ("shift",)

    def __init__(self, dim: int, **options: Any) -> None:
        super().__init__(dim, shift="none", **options)
