"""Attention by shifting and sorting: the channel-wise sample permutation for PyTorch."""

from .nn import CSP
from .operator.csp import attention_maps, csp, permutation
from .operator.schedule import shift_steps

__version__ = "0.1.0"

__all__ = ["CSP", "__version__", "attention_maps", "csp", "permutation", "shift_steps"]
