"""Time against N, and time against G. Imports matplotlib, so it is imported where it is needed."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from .record import Row

_LINE_OF_GROUP = {"any": "-", 2: "-", "all": "--"}
_OURS = "csp"
#: What is measured to lie on our own line.
_SAME_AS_OURS = ("csp, ascending", "csp with lengths")
_MOST_TICKS = 8
_PASSES = {"forward": "forward", "both": "forward + backward"}


def plot(rows: list[Row], path: Path, title: str, passes: str = "forward") -> None:
    """Two panels on logarithmic axes: microseconds for a thousand tokens, in those passes."""
    measured = [
        row
        for row in rows
        if row["failed"] is None and passes in row["ms"] and row["candidate"] not in _SAME_AS_OURS
    ]
    names = list(dict.fromkeys(map(_name, measured)))
    palette = plt.get_cmap("tab20").colors
    colours = {name: palette[2 * i % 20 + (i >= 10)] for i, name in enumerate(names)}
    figure, (by_length, by_group) = plt.subplots(
        1, 2, figsize=(13, 6.4), sharey=True, layout="constrained"
    )
    _draw_by_length(by_length, measured, colours, passes)
    _draw_by_group(by_group, measured, colours, passes)
    by_length.set_ylabel(f"microseconds for 1000 tokens, {_PASSES[passes]}")
    figure.suptitle(title)
    figure.legend(
        [Line2D([], [], color=c, marker="o", linewidth=_width(n)) for n, c in colours.items()],
        names,
        loc="outside lower center",
        ncols=4,
        fontsize="small",
        frameon=False,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=140)
    plt.close(figure)


def _draw_by_length(axes: Axes, rows: list[Row], colours: dict[str, object], passes: str) -> None:
    lines: dict[tuple[str, object], list[tuple[int, float]]] = {}
    for row in rows:
        if row["group_size"] in _LINE_OF_GROUP:
            key = (_name(row), row["group_size"])
            lines.setdefault(key, []).append((row["shape"][1], _cost(row, passes)))
    for (name, group), points in lines.items():
        _line(axes, points, name, colours[name], _LINE_OF_GROUP[group])
    axes.set_title("solid: pairs, and what has no groups; dashed: complete sort")
    _scale(axes, "N, samples in a sequence", [n for points in lines.values() for n, _ in points])


def _draw_by_group(axes: Axes, rows: list[Row], colours: dict[str, object], passes: str) -> None:
    longest = max((row["shape"][1] for row in rows), default=1)
    lines: dict[str, list[tuple[int, float]]] = {}
    for row in rows:
        if row["shape"][1] != longest:
            continue
        if row["group_size"] == "any":
            axes.axhline(_cost(row, passes), color=colours[_name(row)], linestyle=":")
        else:
            size = longest if row["group_size"] == "all" else row["group_size"]
            lines.setdefault(_name(row), []).append((size, _cost(row, passes)))
    for name, points in lines.items():
        _line(axes, points, name, colours[name], "-")
    axes.set_title(f"N = {longest}; dotted: what has no groups")
    _scale(axes, "G, samples in a group", [g for points in lines.values() for g, _ in points])


def _line(
    axes: Axes, points: list[tuple[int, float]], name: str, colour: object, style: str
) -> None:
    sizes, costs = zip(*sorted(points), strict=True)
    axes.plot(sizes, costs, style, color=colour, marker="o", markersize=4, linewidth=_width(name))


def _scale(axes: Axes, label: str, sizes: list[int]) -> None:
    axes.set_xlabel(label)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.grid(alpha=0.3)
    ticks = sorted(set(sizes))
    if len(ticks) <= _MOST_TICKS:
        axes.set_xticks(ticks, [str(n) for n in ticks])


def _width(name: str) -> float:
    return 2.4 if _OURS in name else 1.2


def _name(row: Row) -> str:
    return f"{row['candidate']} ({row['layout']})" if row["layout"] else row["candidate"]


def _cost(row: Row, passes: str) -> float:
    batch, samples, _ = row["shape"]
    return 1e6 * row["ms"][passes]["median"] / (batch * samples)
