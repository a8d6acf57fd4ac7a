"""How many directions the tokens of a layer's output take: its singular values.

Shapes in names: n samples, c channels.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter
from torch import Tensor

from . import style
from .subject import Subject, watch

MIXERS = ("mha", "shift", "sort", "csp")


@dataclass(frozen=True)
class Spectra:
    """Of one model: for each layer the singular values, largest 1, mean over the samples."""

    mixer: str
    trained: bool
    values: list[list[float]]

    @property
    def evenness(self) -> float:
        """The mean of the last layer's singular values: 1 where all are equal."""
        return sum(self.values[-1]) / len(self.values[-1])


@dataclass(frozen=True)
class Spectrum:
    """The models' spectra."""

    recipe: str
    models: list[Spectra]

    def findings(self) -> list[str]:
        """What the numbers say."""
        return [
            f"{model.mixer}, {'trained' if model.trained else 'fresh'}: the singular values of "
            f"the last layer are on average {model.evenness:.2f} of the largest."
            for model in self.models
        ]


def measure(subjects: Sequence[Subject]) -> Spectrum:
    """The output of each layer of each model."""
    return Spectrum(
        ", ".join(dict.fromkeys(subject.recipe for subject in subjects)),
        [
            Spectra(
                subject.mixer,
                subject.trained,
                [
                    torch.stack([spectrum(y_nc) for _, y_nc in seen]).mean(0).tolist()
                    for seen in watch(subject, list(subject.model.layers))
                ],
            )
            for subject in subjects
        ],
    )


def spectrum(x_nc: Tensor) -> Tensor:
    """Singular values as shares of the largest."""
    values = torch.linalg.svdvals(x_nc.double())
    return values / values[0]


@style.drawn
def draw(data: Spectrum) -> Figure:
    """The last layer's spectra, at the start and trained."""
    stages = sorted({model.trained for model in data.models})
    order = sorted(data.models, key=lambda model: -model.evenness)
    last = [_word(model) for model in order if model.trained == stages[-1]]
    figure = style.figure(
        f"The spectrum of {last[-1]} falls fastest, that of {last[0]} slowest"
        if len(last) > 1
        else f"The singular values of {last[0]}",
        4.4,
    )
    panels = figure.subplots(1, len(stages), sharey=True, squeeze=False)[0]
    for axes, trained in zip(panels, stages, strict=True):
        for model in order:
            if model.trained == trained:
                colour = style.OF_MIXER.get(model.mixer, style.GRAY)
                ranks = range(1, len(model.values[-1]) + 1)
                axes.plot(ranks, model.values[-1], color=colour, label=_word(model))
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.set_xlim(1)
        axes.set_xlabel("singular value, from the largest")
        axes.set_title(f"{data.recipe}, {'trained' if trained else 'fresh models'}")
        style.legend(axes, loc="upper right")
    panels[0].set_ylabel("last layer's output, largest = 1")
    return figure


def _word(model: Spectra) -> str:
    return style.WORDS.get(model.mixer, model.mixer)
