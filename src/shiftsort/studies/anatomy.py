"""The operator at work on the three channels of a photograph, as a picture and as a film.

Each pixel is a token; red, green and blue are its channels. Sorted all together, green and blue
take on the order of red, and the photograph comes out of the shifted channels again, nearly gray:
what stands where is decided by channel 0 alone.

Shapes in names: h height, w width, n tokens, c channels.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from PIL import Image
from torch import Tensor

import shiftsort

from . import style

#: scikit-learn's photograph "china.jpg", cut and made smaller here.
CREDIT = "Photograph: danielbuechele, CC BY 2.0"
_TOP, _LEFT, _HEIGHT, _WIDTH, _SHRINK = 40, 60, 384, 576, 8
_NAMES = ("channel 0: red", "channel 1: green", "channel 2: blue")
_INKS = ("#e03131", "#2f9e44", "#1971c2")
_SHIFT_FRAMES = 8
_HOLD, _STEP = 2000, 140  # milliseconds
_FILM_COLOURS = 128


@dataclass(frozen=True)
class Anatomy:
    """The photograph and what becomes of it, stage by stage."""

    photo_hwc: Tensor
    steps: list[int]
    #: What is done, the group size (0: nothing yet), and how well green and blue then agree with
    #: red in what is bright and what is dark: 1 is everywhere, 0 is by chance.
    stages: list[str]
    group_sizes: list[int]
    agreements: list[float]

    def findings(self) -> list[str]:
        """What the numbers say."""
        return [
            f"{stage}: green and blue agree with red by {agreement:.2f}."
            for stage, agreement in zip(self.stages, self.agreements, strict=True)
        ]


def measure(photo_hwc: Tensor | None = None) -> Anatomy:
    """The photograph as it is, shifted, and sorted in larger and larger groups."""
    photo_hwc = photograph() if photo_hwc is None else photo_hwc
    height, width, channels = photo_hwc.shape
    steps = shiftsort.shift_steps("linear", height * width, channels)
    stages = {
        "a photograph": 0,
        "shifted by a third": 1,
        "and sorted by lines": width,
        "or all together": height * width,
    }
    return Anatomy(
        photo_hwc,
        steps.tolist(),
        list(stages),
        list(stages.values()),
        [agreement(mixed(photo_hwc, steps, size)) for size in stages.values()],
    )


def photograph() -> Tensor:
    """Values between 0 and 1."""
    from sklearn.datasets import load_sample_image

    whole_hwc = torch.from_numpy(load_sample_image("china.jpg").copy()).float() / 255
    cut_hwc = whole_hwc[_TOP : _TOP + _HEIGHT, _LEFT : _LEFT + _WIDTH]
    return torch.nn.functional.avg_pool2d(cut_hwc.movedim(-1, 0), _SHRINK).movedim(0, -1)


def mixed(photo_hwc: Tensor, steps: Tensor | Sequence[int], group_size: int) -> Tensor:
    """CSP over the pixels in reading order; 0 leaves the photograph as it is."""
    if group_size == 0:
        return photo_hwc
    return shiftsort.csp(photo_hwc.flatten(0, 1), steps, group_size).view_as(photo_hwc)


def agreement(photo_hwc: Tensor) -> float:
    """The mean correlation of the ranks of the other channels with those of channel 0."""
    ranks_nc = photo_hwc.flatten(0, 1).argsort(dim=0, stable=True).argsort(dim=0).double()
    return float(torch.corrcoef(ranks_nc.T)[0, 1:].mean())


@style.drawn
def draw(data: Anatomy) -> Figure:
    """A row for each stage: the picture, and each of its channels."""
    rows = len(data.stages)
    figure = style.figure(
        "Shifted apart, then sorted into the order of channel 0", 1.37 * rows + 0.9
    )
    axes = figure.subplots(rows, 4)
    for row, stage, size in zip(axes, data.stages, data.group_sizes, strict=True):
        _draw_row(row, mixed(data.photo_hwc, data.steps, size))
        row[0].set_ylabel(stage, fontsize=10)
    _name(axes[0])
    figure.supxlabel(CREDIT, x=0.99, ha="right", fontsize=7, color=style.GRAY)
    return figure


def animate(data: Anatomy, path: Path) -> None:
    """The same as a film: the channels slide apart, then groups grow from 1 to all."""
    samples = data.photo_hwc[..., 0].numel()
    frames = [("A photograph: each pixel is a token, each colour a channel", data.steps, 0, _HOLD)]
    for k in range(1, _SHIFT_FRAMES + 1):
        part = [step * k // _SHIFT_FRAMES for step in data.steps]
        frames.append(("Shift: green by a third of all pixels, blue by two", part, 1, _STEP))
    size = 1
    while size < samples:
        size = min(2 * size, samples)
        text = f"Sort: groups of {size:,} pixels, into the order of red"
        frames.append((text, data.steps, size, 4 * _STEP))
    frames.append(
        ("All sorted: the values of each, where red has its own", data.steps, samples, _HOLD)
    )
    figure, show = _screen(data.photo_hwc)
    images = []
    for text, steps, group_size, _ in frames:
        figure.suptitle(text, x=0.01, ha="left", fontsize=11)
        show(mixed(data.photo_hwc, steps, group_size))
        figure.canvas.draw()
        images.append(Image.fromarray(np.asarray(figure.canvas.buffer_rgba())).convert("RGB"))
    # The same colours in all, so that what stands still is seen to, and takes no space.
    together = Image.fromarray(np.concatenate([np.asarray(image) for image in images]))
    palette = together.quantize(_FILM_COLOURS)
    images = [image.quantize(palette=palette, dither=Image.Dither.NONE) for image in images]
    durations = [milliseconds for *_, milliseconds in frames]
    images[0].save(path, save_all=True, append_images=images[1:], duration=durations, loop=0)


@style.drawn
def _screen(photo_hwc: Tensor) -> tuple[Figure, Callable[[Tensor], None]]:
    """A figure that is made once, and what shows another picture on it."""
    figure = Figure(figsize=(6.4, 1.65), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle("-")  # holds its place while the layout is made
    row = figure.subplots(1, 4)
    artists = _draw_row(row, photo_hwc)
    _name(row)
    figure.canvas.draw()
    figure.set_layout_engine("none")

    def show(photo_hwc: Tensor) -> None:
        for artist, values in zip(artists, (photo_hwc, *photo_hwc.unbind(-1)), strict=True):
            artist.set_data(values.numpy())

    return figure, show


def _draw_row(row: Sequence[Axes], photo_hwc: Tensor) -> list[AxesImage]:
    artists = [row[0].imshow(photo_hwc.numpy(), interpolation="nearest")]
    for axes, channel_hw in zip(row[1:], photo_hwc.unbind(-1), strict=True):
        artists.append(
            axes.imshow(channel_hw.numpy(), cmap="gray", vmin=0, vmax=1, interpolation="nearest")
        )
    for axes in row:
        axes.set_xticks([])
        axes.set_yticks([])
        axes.grid(False)
        axes.spines[:].set_visible(False)
    return artists


def _name(row: Sequence[Axes]) -> None:
    row[0].set_title("all channels", fontsize=10)
    for axes, name, ink in zip(row[1:], _NAMES, _INKS, strict=True):
        axes.set_title(name, fontsize=10, color=ink, weight="bold")
