"""Steps a second, with memory as the disk's area. Imports matplotlib, so it is imported late."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from .record import Row

_LARGEST_DISK = 900.0  # square points
_UNKNOWN_DISK = 30.0
_OURS, _OTHERS = "#d55e00", "#8a94a0"


def plot(rows: list[Row], path: Path, title: str, together: bool) -> None:
    """A line for each model, the fastest on top; a panel for each length, or all `together`."""
    measured = [row for row in rows if row["failed"] is None]
    panels: dict[int | None, list[Row]] = {}
    for row in measured:
        panels.setdefault(None if together else row["shape"][1], []).append(row)
    tallest = max(map(len, panels.values()), default=1)
    figure, axes = plt.subplots(
        1,
        max(len(panels), 1),
        figsize=(2 + 6 * max(len(panels), 1), 1.8 + 0.42 * tallest),
        squeeze=False,
        layout="constrained",
    )
    most = max((_memory(row) or 0 for row in measured), default=0)
    for panel, (length, some) in zip(axes[0], panels.items(), strict=False):
        _draw(panel, some, most)
        if length is not None:
            panel.set_title(f"{length:,} samples", loc="left")
    figure.suptitle(f"{title}\nA disk's area is the peak memory of training.")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=140)
    plt.close(figure)


def _draw(axes: Axes, rows: list[Row], most: float) -> None:
    ordered = sorted(rows, key=lambda row: row["steps_per_s"])
    for height, row in enumerate(ordered):
        colour = _OURS if "csp" in row["candidate"] else _OTHERS
        speed, memory = row["steps_per_s"], _memory(row)
        axes.plot([0, speed], [height, height], color=colour, linewidth=1, alpha=0.5)
        area = _UNKNOWN_DISK if memory is None else max(_LARGEST_DISK * memory / most, 4.0)
        axes.scatter([speed], [height], s=area, color=colour, alpha=0.75, clip_on=False, zorder=3)
        beside = (area**0.5 / 2 + 6, 0)  # the disk's radius in points, and a gap
        axes.annotate(
            f"{speed:.3g} / s{_megabytes(memory)}",
            (speed, height),
            beside,
            textcoords="offset points",
            va="center",
            fontsize=9,
        )
    axes.set_yticks(range(len(ordered)), [row["candidate"] for row in ordered])
    axes.set_ylim(-0.8, len(ordered) - 0.2)
    axes.set_xlim(0, 1.35 * max(row["steps_per_s"] for row in ordered))
    axes.set_xlabel("training steps a second")
    axes.spines[["top", "right"]].set_visible(False)


def _memory(row: Row) -> int | None:
    return row["peak_bytes"]["step"]


def _megabytes(memory: int | None) -> str:
    if memory is None:
        return ""
    return f", {memory / 1e9:.1f} GB" if memory >= 1e9 else f", {memory / 1e6:.0f} MB"
