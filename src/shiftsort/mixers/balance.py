"""The Sinkhorn-Knopp algorithm on logarithms: what Sinkformer and sparse Sinkhorn share."""

import torch
from torch import Tensor


def balance(scores: Tensor, iterations: int, valid: Tensor | None = None) -> Tensor:
    """exp(scores) with rows and columns in turn divided by their sums, rows first.

    Args:
        scores: (..., N, N).
        iterations: how many divisions; 1 is the softmax, and an odd number ends with the rows.
        valid: (..., N), which rows and columns take part. The rest becomes zero.
    """
    scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
    row = torch.zeros_like(scores[..., :1])
    column = torch.zeros_like(scores[..., :1, :])
    if valid is not None:
        # A potential of -inf takes a row or a column out of every sum, and out of the result.
        row = row.masked_fill(~valid[..., :, None], -torch.inf)
        column = column.masked_fill(~valid[..., None, :], -torch.inf)
    for iteration in range(iterations):
        if iteration % 2 == 0:
            row = -torch.logsumexp(scores + column, dim=-1, keepdim=True)
            if valid is not None:
                row = row.masked_fill(~valid[..., :, None], -torch.inf)
        else:
            column = -torch.logsumexp(scores + row, dim=-2, keepdim=True)
            if valid is not None:
                column = column.masked_fill(~valid[..., None, :], -torch.inf)
    return (scores + row + column).exp()
