"""Sinkformer: attention maps made doubly stochastic."""

from typing import Any

from torch import Tensor
from torch.nn.functional import dropout

from .balance import balance
from .mixer import About, HeadMixer, check_size


class Sinkformer(HeadMixer):
    """exp(Q K^T / sqrt(D)) with rows and columns normalised in turn, times V.

    Args:
        iterations: normalisations, rows first; 3 is published, 1 is softmax attention.
    """

    about = About(
        complexity="C N^2",
        source="Sander et al. 2022, Sinkformers: transformers with doubly stochastic attention",
        row="LRA: Sinkformer",
    )

    def __init__(self, dim: int, *, iterations: int = 3, **options: Any) -> None:
        super().__init__(dim, **options)
        self.iterations = check_size("iterations", iterations)

    def attend(self, x_bnc: Tensor, valid_bn: Tensor | None) -> Tensor:
        """Weigh the values by the balanced map."""
        q_bhnd, k_bhnd, v_bhnd = self.project(x_bnc)
        scores_bhnn = q_bhnd @ k_bhnd.transpose(-1, -2) * q_bhnd.shape[-1] ** -0.5
        valid_b1n = None if valid_bn is None else valid_bn[:, None]
        map_bhnn = balance(scores_bhnn, self.iterations, valid_b1n).to(v_bhnd.dtype)
        return dropout(map_bhnn, self.attention_dropout) @ v_bhnd
