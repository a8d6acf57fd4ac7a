"""Time against N, and time against G. Imports matplotlib, so it is imported where it is needed."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from .record import Row

_MARKS = "osD^vP*Xhd<>"


def plot(rows: list[Row], path: Path, title: str) -> None:
    """Two panels on logarithmic axes, microseconds for each thousand tokens, forward."""
    measured = [row for row in rows if row["failed"] is None]
    figure, (by_length, by_group) = plt.subplots(
        1, 2, figsize=(14, 5.6), sharey=True, layout="constrained"
    )
    _draw_by_length(by_length, measured)
    _draw_by_group(by_group, measured)
    by_length.set_ylabel("forward: microseconds for 1000 tokens")
    figure.suptitle(title)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=140)
    plt.close(figure)


def _draw_by_length(axes: Axes, rows: list[Row]) -> None:
    lines: dict[str, list[tuple[int, float]]] = {}
    for row in rows:
        if row["group_size"] in ("any", 2, "all"):
            group = {"any": "", 2: ", pairs", "all": ", complete"}[row["group_size"]]
            lines.setdefault(_name(row) + group, []).append((row["shape"][1], _cost(row)))
    _draw(axes, lines)
    axes.set_xlabel("N, samples in a sequence")
    axes.set_title("against the length")


def _draw_by_group(axes: Axes, rows: list[Row]) -> None:
    longest = max((row["shape"][1] for row in rows), default=0)
    lines: dict[str, list[tuple[int, float]]] = {}
    for row in rows:
        if row["shape"][1] == longest and row["group_size"] != "any":
            size = longest if row["group_size"] == "all" else row["group_size"]
            lines.setdefault(_name(row), []).append((size, _cost(row)))
    _draw(axes, lines)
    for row in rows:
        if row["shape"][1] == longest and row["candidate"] == "copy":
            axes.axhline(_cost(row), color="black", linestyle=":", label="copy")
    axes.set_xlabel("G, samples in a group")
    axes.set_title(f"against the group size, N = {longest}")
    axes.legend(fontsize="x-small")


def _draw(axes: Axes, lines: dict[str, list[tuple[int, float]]]) -> None:
    for number, (name, points) in enumerate(lines.items()):
        sizes, costs = zip(*sorted(points), strict=True)
        mark = _MARKS[number % len(_MARKS)]
        axes.plot(sizes, costs, marker=mark, markersize=5, linewidth=1, label=name)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.grid(alpha=0.3)
    axes.legend(fontsize="x-small")


def _name(row: Row) -> str:
    return f"{row['candidate']} ({row['layout']})" if row["layout"] else row["candidate"]


def _cost(row: Row) -> float:
    batch, samples, _ = row["shape"]
    return 1e6 * row["ms"]["forward"]["median"] / (batch * samples)
