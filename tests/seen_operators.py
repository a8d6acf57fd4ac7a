"""Which operators a program runs, those of its gradient included, and on what."""

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode


class SeenOperators(TorchDispatchMode):
    """Keeps the name of each operator, and the strides of the first tensor it was given."""

    def __init__(self):
        super().__init__()
        self.names, self.strides = [], {}

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = str(function).rpartition(".")[0]
        self.names.append(name)
        self.strides[name] = next((a.stride() for a in args if isinstance(a, Tensor)), None)
        return function(*args, **(kwargs or {}))
