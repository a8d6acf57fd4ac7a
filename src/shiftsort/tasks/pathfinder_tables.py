"""Pathfinder's geometry as tables: every paddle, mask, turn and step that can occur.

In the published generator each paddle is drawn enlarged, blurred down by Lanczos and pasted at an
integer place, and each direction comes from a finite set: whole degrees for the first paddle of a
snake, the pixels of a small circle for the next ones. So all of it is drawn here once, with the
same calls to Pillow, and the generator only pastes. Angles are in radians, y points down.
"""

import functools
import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

_ANTIALIAS = 2
_DEGREES = 360


@dataclass(frozen=True)
class Geometry:
    """The parameters of the published sets that differ between sizes."""

    size: int
    border: int
    paddle_length: int
    thickness: float
    margins: tuple[int, ...]
    marker_radius: float
    seed_distance: int
    continuity: float
    #: Divided by the length of a distractor this gives their number.
    distractor_paddles: int
    #: Of a distractor; the two target snakes have this times `target_contrast`.
    contrast: float
    target_contrast: float


GEOMETRIES = {
    32: Geometry(32, 1, 2, 0.5, (1,), 1.5, 7, 1.0, 20, 2.0, 0.75),
    64: Geometry(64, 1, 5, 1.0, (1,), 2.5, 12, 1.8, 22, 0.8, 1.0),
    128: Geometry(128, 1, 5, 1.5, (2, 3), 3.0, 20, 1.8, 35, 0.9, 1.0),
    256: Geometry(256, 22, 5, 2.0, (3,), 5.0, 27, 1.8, 30, 1.0, 1.0),
}
CONTOUR_LENGTHS = {"easy": 6, "mid": 9, "hard": 14}


class Tables(NamedTuple):
    """Directions 0 to 359 are the degrees from -180; the others are the turns' candidates."""

    #: (stencils, side, side), values 0 to 255; a stencil is pasted centred on a paddle's start.
    paddles: np.ndarray
    #: The masks' pixels as (y, x, value), the strongest first, how many there are in each, and how
    #: many are strong enough to collide with anything.
    mask_pixels: np.ndarray
    mask_counts: np.ndarray
    hard_counts: np.ndarray
    markers: np.ndarray
    #: For each degree: which stencil, and the moves from the tail to the head and on to the pivot.
    seed_stencil: np.ndarray
    seed_head: np.ndarray
    seed_pivot: np.ndarray
    #: Whether a snake may start in this degree at all.
    seed_allowed: np.ndarray
    #: For each degree the pixels (relative to the tail) that must be free; NOWHERE fills up.
    seed_room: np.ndarray
    #: For each degree the places where the first snake may start, and how many they are.
    first_places: np.ndarray
    first_counts: np.ndarray
    #: For each direction: the move from the last pivot to the next.
    pivot_move: np.ndarray
    #: For each candidate: where the next head lies from the pivot, and its stencil.
    turn_head: np.ndarray
    turn_stencil: np.ndarray
    #: (directions, candidates): how well a candidate goes on in a direction.
    turn_weight: np.ndarray
    #: The pixels of a disc as large as the margin.
    disc: np.ndarray


#: Two masks, 255 at most each, collide where they add up to 1.8 of 2.
COLLIDING = 459
NOWHERE = np.iinfo(np.int16).max


@functools.cache
def tables(geometry: Geometry, margin: int) -> Tables:
    """All that can occur in images of this geometry and margin."""
    stencils = _Stencils(geometry, margin)
    reach = geometry.paddle_length + margin
    degrees = np.deg2rad(np.arange(-180, 180))
    backwards = np.where(degrees < 0, degrees + np.pi, degrees - np.pi)

    seed_stencil = np.array([stencils.along(angle) for angle in degrees])
    room = [_room(stencils.masks[stencil], reach) for stencil in seed_stencil]
    allowed = np.array([_has_room_at_corners(pixels) for pixels in room])
    places = [
        _first_places(geometry, pixels) if fits else np.empty((0, 2), np.int64)
        for pixels, fits in zip(room, allowed, strict=True)
    ]

    turn_head = _circle(reach)
    turn_angles = np.arctan2(turn_head[:, 0], turn_head[:, 1])
    turned_back = np.where(turn_angles < 0, turn_angles + np.pi, turn_angles - np.pi)
    directions = np.concatenate([degrees, turn_angles])
    turn_stencil = np.array([stencils.along(angle) for angle in turned_back])
    pixels = [_strongest_first(mask) for mask in stencils.masks]
    return Tables(
        seed_stencil=seed_stencil,
        seed_head=_move(degrees, geometry.paddle_length),
        seed_pivot=_move(backwards, reach),
        seed_allowed=allowed,
        seed_room=_padded(room),
        first_places=_padded(places),
        first_counts=np.array([len(some) for some in places]),
        pivot_move=_move(directions, reach + margin),
        turn_head=turn_head,
        turn_stencil=turn_stencil,
        turn_weight=_weights(directions, turn_angles, geometry.continuity),
        disc=np.argwhere(_disc(margin)) - margin,
        paddles=np.stack(stencils.paddles),
        mask_pixels=_padded(pixels),
        mask_counts=np.array([len(some) for some in pixels]),
        hard_counts=np.array([(some[:, 2] >= COLLIDING - 255).sum() for some in pixels]),
        markers=_markers(geometry.marker_radius),
    )


class _Stencils:
    """Paddles and their masks, each different one drawn once."""

    def __init__(self, geometry: Geometry, margin: int) -> None:
        self.paddles: list[np.ndarray] = []
        self.masks: list[np.ndarray] = []
        self._known: dict[tuple[int, int], int] = {}
        self._half = geometry.paddle_length + math.ceil(geometry.thickness) + margin
        self._length = geometry.paddle_length * _ANTIALIAS
        self._width = round(geometry.thickness * _ANTIALIAS)
        self._disc = _disc(margin * _ANTIALIAS)

    def along(self, angle: float) -> int:
        """The stencil of a paddle from the centre in a direction."""
        centre = self._half * _ANTIALIAS
        end = np.ceil(centre + _move(np.array([angle]), self._length)[0])
        rise, run = (end.astype(int) - centre).tolist()
        if (rise, run) not in self._known:
            self._known[rise, run] = len(self.paddles)
            self._draw(rise, run)
        return self._known[rise, run]

    def _draw(self, rise: int, run: int) -> None:
        from PIL import Image, ImageDraw

        centre = self._half * _ANTIALIAS
        canvas = Image.new("L", (2 * centre + 1, 2 * centre + 1))
        ends = [(centre, centre), (centre + run, centre + rise)]
        ImageDraw.Draw(canvas).line(ends, fill=255, width=self._width)
        line = np.asarray(canvas)
        mask = _dilate(line, self._disc)
        self.paddles.append(_shrink(line, 2 * self._half + 1))
        self.masks.append(_shrink(mask, 2 * self._half + 1))


def _move(angles: np.ndarray, distance: float) -> np.ndarray:
    """Moves (y, x); where they lead is rounded up, noise of sin(pi) included, as published."""
    return distance * np.stack([np.sin(angles), np.cos(angles)], axis=-1)


def _circle(radius: int) -> np.ndarray:
    """The pixels of a circle around a pixel, one sample for each pixel of its arc."""
    angles = np.deg2rad(np.arange(0, 360, 360 / (2 * radius * np.pi)))
    return np.unique(np.floor(_move(angles, radius)).astype(np.int64), axis=0)


def _weights(directions: np.ndarray, turns: np.ndarray, continuity: float) -> np.ndarray:
    difference = np.abs(turns - directions[:, None])
    angle = np.minimum(difference, 2 * np.pi - difference) * continuity
    return np.cos(np.minimum(angle, np.pi / 2)) ** 2


def _room(mask: np.ndarray, reach: int) -> np.ndarray:
    """Pixels, from the tail, that a first paddle needs free.

    One pixel lower and further right than the mask itself: the published generator places the
    paddle beside the centre of the structuring element that it dilates with.
    """
    half = mask.shape[0] // 2
    pixels = np.argwhere(mask == 255) - half
    inside = (np.abs(pixels + 1) <= reach).all(axis=1)
    return pixels[inside] + 1


def _has_room_at_corners(room: np.ndarray) -> bool:
    """Whether some needed pixel lies inside the image for a tail in each of its corners.

    Where none does, the published generator's dilation takes a maximum over nothing, and its
    search then finds no free place anywhere: snakes start in the remaining directions only.
    """
    y, x = room[:, 0], room[:, 1]
    return all(
        ((sign_y * y <= 0) & (sign_x * x <= 0)).any() for sign_y in (1, -1) for sign_x in (1, -1)
    )


def _first_places(geometry: Geometry, room: np.ndarray) -> np.ndarray:
    """Where the first snake may start: far enough from the edges for the second snake."""
    edge = max(2 * geometry.seed_distance, geometry.border)
    free = np.zeros((geometry.size, geometry.size), bool)
    free[edge : geometry.size - edge, edge : geometry.size - edge] = True
    padded = np.pad(free, edge, constant_values=True)
    fits = np.ones_like(free)
    for y, x in room + edge:
        fits &= padded[y : y + geometry.size, x : x + geometry.size]
    return np.argwhere(fits)


def _disc(radius: int) -> np.ndarray:
    y, x = np.ogrid[-radius : radius + 1, -radius : radius + 1]
    return x**2 + y**2 <= radius**2


def _dilate(image: np.ndarray, disc: np.ndarray) -> np.ndarray:
    radius = disc.shape[0] // 2
    padded = np.pad(image, radius)
    h, w = image.shape
    return np.max([padded[y : y + h, x : x + w] for y, x in np.argwhere(disc)], axis=0)


def _markers(radius: float) -> np.ndarray:
    """A disc for each nearness to the edges, where the blur sees less: (2h+1, 2h+1, side, side).

    0 to h - 1 is that far from the upper or left edge, h is well inside, h + 1 to 2h is 2h minus
    the distance from the lower or right edge.
    """
    half = math.ceil(radius) + 3
    size = 4 * half + 1
    centres = np.arange(2 * half + 1)
    centres[half:] += np.array([half, *[2 * half] * half])
    y, x = np.ogrid[: size * _ANTIALIAS, : size * _ANTIALIAS]
    markers = np.zeros((2 * half + 1,) * 4, np.uint8)
    for row, column in np.ndindex(markers.shape[:2]):
        at_y, at_x = centres[row], centres[column]
        far = (y - at_y * _ANTIALIAS) ** 2 + (x - at_x * _ANTIALIAS) ** 2
        disc = (far <= (radius * _ANTIALIAS) ** 2).astype(np.uint8) * 255
        padded = np.pad(_shrink(disc, size), half)
        markers[row, column] = padded[at_y : at_y + 2 * half + 1, at_x : at_x + 2 * half + 1]
    return markers


def _shrink(image: np.ndarray, side: int) -> np.ndarray:
    from PIL import Image

    small = Image.fromarray(image).resize((side, side), Image.Resampling.LANCZOS)
    return np.array(small)


def _strongest_first(mask: np.ndarray) -> np.ndarray:
    y, x = np.nonzero(mask)
    order = np.argsort(-mask[y, x].astype(int), kind="stable")
    half = mask.shape[0] // 2
    return np.stack([y - half, x - half, mask[y, x]], axis=-1)[order]


def _padded(rows: list[np.ndarray]) -> np.ndarray:
    widest = max(len(row) for row in rows)
    table = np.full((len(rows), widest, rows[0].shape[1]), NOWHERE, np.int64)
    for line, row in zip(table, rows, strict=True):
        line[: len(row)] = row
    return table
