"""How large a model is."""

from torch import nn


def count_parameters(model: nn.Module) -> int:
    """Every number the model keeps as a parameter, trained or not; shared ones once."""
    return sum(parameter.numel() for parameter in model.parameters())
