"""Lines over steps, and disks, as inline SVG. No script, and no file beside it.

The drawing is as wide as what it stands in; its letters are sized to be read on a phone.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from .runs import Point

#: Told apart by most colour-blind readers (Okabe and Ito); the yellow, too pale here, is left out.
COLOURS = ("#d55e00", "#0072b2", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#555555")

_WIDTH, _HEIGHT = 480, 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 468, 14, 272
_LARGEST_DISK = 34.0
_UNKNOWN_DISK = 6.0
_MOST_POINTS = 160
_LETTER = 8.2  # width of a bold letter, about
_LINE = 15.0


@dataclass(frozen=True)
class Line:
    """A curve; pale ones stand back behind the others."""

    name: str
    colour: str
    points: Sequence[Point]
    pale: bool = False


@dataclass(frozen=True)
class Disk:
    """A place and an area; a ring where the area is not known."""

    name: str
    colour: str
    x: float
    y: float
    area: float | None
    #: What a pointer that rests on it is told.
    told: str


@dataclass(frozen=True)
class _Axis:
    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self, count: int = 6) -> list[float]:
        """Round numbers within the axis."""
        rough = (self.high - self.low) / count
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(power * f for f in (1, 2, 5, 10) if power * f >= rough * 0.999)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [n * step for n in range(first, last + 1)]


def lines(title: str, x_label: str, y_label: str, some: Sequence[Line]) -> str:
    """Curves on common axes."""
    points = [point for line in some for point in line.points]
    x = _Axis(0, max(max(x for x, _ in points), 1e-9), _LEFT, _RIGHT)
    y = _fitted([y for _, y in points], _BOTTOM, _TOP)
    drawn = []
    for line in sorted(some, key=lambda line: not line.pale):
        path = " ".join(f"{x.at(a):.1f},{y.at(b):.1f}" for a, b in _thinned(line.points))
        look = 'stroke-width="1.6" stroke-opacity="0.4"' if line.pale else 'stroke-width="2.4"'
        drawn.append(
            f'<polyline points="{path}" fill="none" stroke="{line.colour}" {look} '
            f'stroke-linejoin="round"><title>{escape(line.name)}</title></polyline>'
        )
    return _drawing(title, [*_grid(x, y, x_label, y_label), *drawn])


def disks(title: str, x_label: str, y_label: str, some: Sequence[Disk]) -> str:
    """Disks with their names beside them, largest behind."""
    most = max((disk.area or 0 for disk in some), default=0)
    x = _Axis(0, 1.18 * max(max(disk.x for disk in some), 1e-9), _LEFT, _RIGHT)
    y = _fitted([disk.y for disk in some], _BOTTOM, _TOP, margin=0.35)
    placed = [
        (disk, x.at(disk.x), y.at(disk.y), _radius(disk.area, most))
        for disk in sorted(some, key=lambda disk: -(disk.area or 0))
    ]
    drawn = []
    for disk, cx, cy, r in placed:
        look = 'fill="none" stroke-dasharray="3 2"' if disk.area is None else 'fill-opacity="0.55"'
        fill = "" if disk.area is None else f' fill="{disk.colour}"'
        drawn.append(
            f'<circle cx="{cx:.1f}" cy="{cy:.1f}" r="{r:.1f}"{fill} {look} '
            f'stroke="{disk.colour}" stroke-width="1.5"><title>{escape(disk.told)}</title></circle>'
        )
    for (disk, *_), (left, base) in zip(placed, _label_places(placed), strict=True):
        drawn.append(_text(left, base, disk.name, weight="600"))
    return _drawing(title, [*_grid(x, y, x_label, y_label), *drawn])


def _radius(area: float | None, most: float) -> float:
    return _UNKNOWN_DISK if area is None else _LARGEST_DISK * math.sqrt(area / most)


def _label_places(placed: Sequence[tuple[Disk, float, float, float]]) -> list[Point]:
    """Beside, above or below each disk: where it covers the least of what is there already."""
    taken = [(cx - r, cy - r, cx + r, cy + r) for _, cx, cy, r in placed]
    places = []
    for disk, cx, cy, r in placed:
        wide, gap = _LETTER * len(disk.name), r + 5
        boxes = [
            (left, top, left + wide, top + _LINE)
            for left, top in (
                (cx + gap, cy - _LINE / 2), (cx - gap - wide, cy - _LINE / 2),
                (cx - wide / 2, cy - gap - _LINE), (cx - wide / 2, cy + gap),
                (cx + 0.7 * gap, cy + 0.7 * gap), (cx + 0.7 * gap, cy - 0.7 * gap - _LINE),
                (cx - 0.7 * gap - wide, cy + 0.7 * gap),
            )
        ]  # fmt: skip
        inside = [box for box in boxes if box[0] >= _LEFT and box[2] <= _WIDTH and box[1] >= 0]
        box = min(inside or boxes, key=lambda box: sum(_overlap(box, other) for other in taken))
        taken.append(box)
        places.append((box[0], box[3] - 4))
    return places


def _overlap(a: tuple[float, ...], b: tuple[float, ...]) -> float:
    wide, high = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    return max(wide, 0) * max(high, 0)


def _fitted(values: Sequence[float], start: float, end: float, margin: float = 0.05) -> _Axis:
    low, high = min(values), max(values)
    # Where all values are one there is no distance to take a margin of.
    room = margin * (high - low) or max(0.05 * abs(high), 0.5)
    return _Axis(low - room, high + room, start, end)


def _thinned(points: Sequence[Point]) -> list[Point]:
    """Means of neighbours where there are more points than a screen shows."""
    each = max(1, math.ceil(len(points) / _MOST_POINTS))
    parts = [points[i : i + each] for i in range(0, len(points), each)]
    return [(sum(x for x, _ in p) / len(p), sum(y for _, y in p) / len(p)) for p in parts]


def _grid(x: _Axis, y: _Axis, x_label: str, y_label: str) -> list[str]:
    drawn = []
    x_ticks, y_ticks = x.ticks(), y.ticks()
    for tick, label in zip(y_ticks, _labels(y_ticks), strict=True):
        at = y.at(tick)
        drawn.append(f'<path d="M{_LEFT} {at:.1f}H{_RIGHT}" stroke="#e3e6e9"/>')
        drawn.append(_text(_LEFT - 7, at + 4.5, label, anchor="end"))
    for tick, label in zip(x_ticks, _labels(x_ticks), strict=True):
        drawn.append(f'<path d="M{x.at(tick):.1f} {_BOTTOM}v5" stroke="#868e96"/>')
        drawn.append(_text(x.at(tick), _BOTTOM + 20, label, anchor="middle"))
    drawn.append(f'<path d="M{_LEFT} {_BOTTOM}H{_RIGHT}" stroke="#868e96"/>')
    drawn.append(_text((_LEFT + _RIGHT) / 2, _HEIGHT - 8, x_label, anchor="middle"))
    middle = (_TOP + _BOTTOM) / 2
    drawn.append(
        f'<text transform="translate(13 {middle}) rotate(-90)" text-anchor="middle">'
        f"{escape(y_label)}</text>"
    )
    return drawn


def _labels(ticks: Sequence[float]) -> list[str]:
    """With as many digits as it takes to tell neighbours apart."""
    step = min((b - a for a, b in pairwise(ticks)), default=1.0)
    if step >= 1000:
        return [f"{tick / 1000:g}k" if tick else "0" for tick in ticks]
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    return [f"{tick:.{digits}f}" for tick in ticks]


def _text(x: float, y: float, what: str, anchor: str = "start", weight: str = "400") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}">'
        f"{escape(what)}</text>"
    )


def _drawing(title: str, parts: Sequence[str]) -> str:
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(title)}" '
        'xmlns="http://www.w3.org/2000/svg">' + "\n".join(parts) + "</svg>"
    )
