"""How much attention each token receives: rows of an attention map sum to 1, do the columns?

Shapes in names: b batch, h heads, n samples, d channels of a head.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from matplotlib.figure import Figure
from torch import Tensor

from ..mixers.mha import MHA
from . import style
from .subject import Subject, watch

MIXERS = ("mha",)
#: Shares of the tokens that the figure draws between.
_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class Received:
    """Of one model, layer by layer, over all heads and samples."""

    name: str
    trained: bool
    #: Column sums at the shares in _QUANTILES.
    quantiles: list[list[float]]
    #: Mean of |column sum - 1|: 0 is doubly stochastic, nearly 2 is one token that has it all.
    deviations: list[float]

    @property
    def deviation(self) -> float:
        """Over all layers."""
        return sum(self.deviations) / len(self.deviations)


@dataclass(frozen=True)
class DoublyStochastic:
    """The models' column sums."""

    models: list[Received]

    def findings(self) -> list[str]:
        """What the numbers say."""
        return [
            f"{model.name}: column sums are off 1 by "
            + ", ".join(f"{deviation:.2f}" for deviation in model.deviations)
            + " on average, layer by layer."
            for model in self.models
        ]


def measure(subjects: Sequence[Subject]) -> DoublyStochastic:
    """The softmax attention maps of each model."""
    models = []
    for subject in subjects:
        layers = subject.mixers(MHA)
        columns = [
            torch.cat([attention_map(mixer, x_nc).sum(-2).flatten() for x_nc, _ in seen])
            for mixer, seen in zip(layers, watch(subject, layers), strict=True)
        ]
        models.append(
            Received(
                subject.name,
                subject.trained,
                [column.quantile(torch.tensor(_QUANTILES)).tolist() for column in columns],
                [float((column - 1).abs().mean()) for column in columns],
            )
        )
    return DoublyStochastic(models)


@torch.no_grad()
def attention_map(mixer: MHA, x_nc: Tensor) -> Tensor:
    """softmax(Q K^T / sqrt(D)) of each head, (H, N, N)."""
    q_bhnd, k_bhnd, _ = mixer.project(x_nc[None])
    scores_hnn = (q_bhnd @ k_bhnd.mT)[0] / q_bhnd.shape[-1] ** 0.5
    return scores_hnn.softmax(-1)


@style.drawn
def draw(data: DoublyStochastic) -> Figure:
    """Column sums of each layer, at the start and trained."""
    figure = style.figure(_title(data.models), 4.4)
    panels = figure.subplots(1, len(data.models), sharey=True, squeeze=False)[0]
    for axes, model in zip(panels, data.models, strict=True):
        layers = range(1, len(model.quantiles) + 1)
        low, quarter, middle, most, high = zip(*model.quantiles, strict=True)
        axes.axhline(1, color=style.BLUE, label="a permutation: 1, always")
        axes.vlines(layers, low, high, color=style.ORANGE, linewidth=2)
        axes.vlines(layers, quarter, most, color=style.ORANGE, linewidth=10)
        axes.plot(layers, middle, "o", color="white", markeredgecolor=style.ORANGE)
        axes.set_xticks(layers)
        axes.set_xlim(0.4, len(layers) + 0.6)
        axes.grid(False, axis="x")
        axes.set_xlabel("layer (bar: half of the tokens; line: 9 in 10)")
        axes.set_title(f"{model.name}: off 1 by {model.deviation:.2f}")
    panels[0].set_ylabel("attention that a token receives")
    panels[0].set_ylim(0, 1.15 * panels[0].get_ylim()[1])
    style.legend(panels[0], loc="upper left")
    return figure


def _title(models: list[Received]) -> str:
    first, last = models[0].deviation, models[-1].deviation
    if len(models) == 1:
        return f"Attention maps are off doubly stochastic by {last:.2f} a token"
    moved = "towards" if last < first else "away from"
    return f"Training moved attention {moved} doubly stochastic maps"
