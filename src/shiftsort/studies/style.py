"""How every figure of the studies looks: to be read at a width of 800 pixels, without a caption."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

BLUE, ORANGE, GREEN, GRAY, VIOLET = "#1864ab", "#d9480f", "#2b8a3e", "#868e96", "#862e9c"
COLOURS = (BLUE, ORANGE, GREEN, GRAY, VIOLET)
#: A mixer has the same colour in every figure.
OF_MIXER = {"mha": ORANGE, "csp": BLUE, "shift": GREEN, "sort": VIOLET}
#: How mixers are called in titles, where it is not by their names.
WORDS = {"mha": "attention", "csp": "CSP"}
INK = "Blues"
WIDTH = 8.0

_SETTINGS = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "figure.titlesize": 13,
    "figure.titleweight": "bold",
    "font.size": 10,
    "grid.alpha": 0.3,
    "lines.linewidth": 2.2,
    "svg.hashsalt": "shiftsort",  # or the same figure would be another file each time
}

P = ParamSpec("P")


def drawn(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """Draw in the house style, whatever is set around it."""

    @functools.wraps(draw)
    def in_style(*args: P.args, **kwargs: P.kwargs) -> Figure:
        with matplotlib.rc_context(_SETTINGS):
            return draw(*args, **kwargs)

    return in_style


def figure(title: str, height: float, dpi: int = 160) -> Figure:
    """An empty figure that says at the top what was found."""
    made = Figure(figsize=(WIDTH, height), dpi=dpi, layout="constrained")
    made.suptitle(title, x=0.01, ha="left")
    return made


def label(axes: Axes, x: float, y: float, text: str, colour: str, **options: Any) -> None:
    """A word beside a line, in its colour: no legend to look up."""
    place = {"xytext": (4, 0), "textcoords": "offset points", "va": "center", **options}
    axes.annotate(text, (x, y), color=colour, weight="bold", annotation_clip=False, **place)


def legend(axes: Axes, **options: Any) -> None:
    """Where lines end side by side: their names in their colours, in the order of the calls."""
    axes.legend(
        frameon=False, labelcolor="linecolor", prop={"weight": "bold"}, handlelength=1.2, **options
    )


def save(made: Figure, folder: Path, name: str) -> list[Path]:
    """As PNG and as SVG."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.{kind}" for kind in ("png", "svg")]
    with matplotlib.rc_context(_SETTINGS):
        made.savefig(paths[0])
        made.savefig(paths[1], metadata={"Date": None})
    return paths
