"""Attention by shifting and sorting: the channel-wise sample permutation for PyTorch."""

from typing import TYPE_CHECKING, Any

from .nn import CSP
from .operator.csp import attention_maps, csp, permutation
from .operator.schedule import shift_steps

if TYPE_CHECKING:
    from .replace import replace_attention

__version__ = "0.1.0"

__all__ = [
    "CSP",
    "__version__",
    "attention_maps",
    "csp",
    "permutation",
    "replace_attention",
    "shift_steps",
]


def __getattr__(name: str) -> Any:
    # It brings every mixer along, which who wants CSP alone need not wait for.
    if name == "replace_attention":
        from .replace import replace_attention

        return replace_attention
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
