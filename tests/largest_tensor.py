"""How large the tensors are that a program makes, without making them."""

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode


class LargestTensor(TorchDispatchMode):
    """Looks at every tensor that any operator, those of the gradient included, returns."""

    def __init__(self):
        super().__init__()
        self.numel, self.where = 0, "nowhere"

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        outputs = function(*args, **(kwargs or {}))
        for output in torch.utils._pytree.tree_leaves(outputs):
            if isinstance(output, torch.Tensor):
                # What is written, not what a view of it pretends to be.
                numel = output.untyped_storage().nbytes() // output.element_size()
                if numel > self.numel:
                    self.numel, self.where = numel, f"{function} {tuple(output.shape)}"
        return outputs

    def __repr__(self):
        return f"{self.numel:,} values, from {self.where}"


def largest_tensor_of_a_step(make):
    """`make()` gives a module and its arguments; the step is forward and backward, unallocated."""
    with FakeTensorMode():
        module, *arguments = make()
        with LargestTensor() as largest:
            module(*arguments).sum().backward()
    return largest
