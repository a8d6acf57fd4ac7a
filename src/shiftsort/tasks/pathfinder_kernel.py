"""Grow the snakes of Pathfinder images by pasting from tables.

The steps, their order, the numbers of trials and the thresholds are those of the published
generator. A mask holds 0 to 255 where paddles lie with their margin around them. A paddle is kept
as (stencil, y, x).
"""

import numpy as np

from .compiled import below, compiled, uniform
from .pathfinder_tables import COLLIDING, NOWHERE

_DEGREES = 360
_PADDLE_TRIALS = 3
_SNAKE_TRIALS = 5
#: A pixel counts as free up to .3, and new snakes need 1 % of free room.
_FREE = 76
_CROWDED = 0.01
#: Random places that are tried before all free places are listed.
_GUESSES = 50
#: Contours are compared enlarged, so that they meet only where they cross.
PLAIN_SIZE = 256


@compiled
def draw_many(
    state, tables, images, labels, tips, border, seed_distance, paddles, distractors, length_of_one,
    contrast, target_contrast, crossings, plains,
):  # fmt: skip
    """Draw an image for each label; returns how many pairs of snakes were grown for them.

    `tips` gets the places of the two markers. `plains`, unless it is empty, gets what the labels
    mean: each of the two contours alone, enlarged to PLAIN_SIZE, gaps closed, one pixel wide.
    """
    size = images.shape[1]
    mask = np.empty((size, size), np.uint8)
    saved = np.empty((size, size), np.uint8)
    canvas = np.empty((size, size), np.float64)
    targets = np.empty((2, paddles, 3), np.int64)
    pivots = np.empty((2, paddles + 1, 2), np.int64)
    distractor = np.empty((length_of_one, 3), np.int64)
    plain = np.empty((PLAIN_SIZE, PLAIN_SIZE), np.uint8)
    points = np.empty((paddles * PLAIN_SIZE, 2), np.int64)
    pairs = 0
    for row in range(len(labels)):
        pairs += 1
        while not _grow_targets(
            state, tables, mask, targets, pivots, border, seed_distance, crossings, points, plain
        ):
            pairs += 1
        origin = below(state, 2)
        terminal = origin if labels[row] == 1 else 1 - origin
        tips[row, 0] = targets[origin, 0, 1:]
        tips[row, 1] = targets[terminal, paddles - 1, 1:]
        canvas[:] = 0
        if len(plains) > 0:
            for snake in range(2):
                count = _trace(points, targets[snake], pivots[snake], PLAIN_SIZE // size)
                _light_up(plains[row, snake], points, count)
        for snake in range(2):
            for paddle in range(paddles):
                _paste_light(canvas, tables, targets[snake, paddle], contrast * target_contrast)
        for _ in range(distractors):
            for _ in range(_SNAKE_TRIALS):
                saved[:] = mask
                if _grow_distractor(state, tables, mask, distractor):
                    for paddle in range(length_of_one):
                        _paste_light(canvas, tables, distractor[paddle], contrast)
                    break
                mask[:] = saved
        for tip in range(2):
            _paste_marker(canvas, tables, tips[row, tip, 0], tips[row, tip, 1])
        # The published images were saved stretched to the full range.
        images[row] = (canvas * (255.0 / canvas.max()) + 0.5).astype(np.uint8)
    return pairs


@compiled
def _grow_targets(
    state, tables, mask, targets, pivots, border, seed_distance, crossings, points, plain
):
    size = mask.shape[0]
    paddles = targets.shape[1]
    direction = np.empty(2, np.int64)

    degree = below(state, _DEGREES)
    if tables.first_counts[degree] == 0:
        return False
    place = tables.first_places[degree, below(state, tables.first_counts[degree])]
    targets[0, 0] = tables.seed_stencil[degree], place[0], place[1]
    pivots[0, 0] = _seed_pivot(tables, degree, place[0], place[1])
    direction[0] = degree

    for _ in range(_PADDLE_TRIALS):
        degree = below(state, _DEGREES)
        around = below(state, _DEGREES) * np.pi / 180
        y = np.int64(np.rint(place[0] + seed_distance * np.sin(around)))
        x = np.int64(np.rint(place[1] + seed_distance * np.cos(around)))
        if _seed_inside(tables, degree, y, x, size):
            break
    else:
        return False
    targets[1, 0] = tables.seed_stencil[degree], y, x
    pivots[1, 0] = _seed_pivot(tables, degree, y, x)
    direction[1] = degree

    mask[:] = 255
    mask[border : size - border, border : size - border] = 0
    for paddle in range(1, paddles):
        for snake in range(2):
            turn = _extend(
                state, tables, mask, targets[snake], pivots[snake], direction, snake, paddle
            )
            if turn < 0:
                return False
            direction[snake] = _DEGREES + turn
    # The other snake's last paddle stays out of the mask, as published.
    _cover(mask, tables, targets[1, paddles - 1])
    for snake in range(2):
        pivots[snake, paddles] = targets[snake, paddles - 1, 1:]
    return crossings or not _meet(targets, pivots, size, points, plain)


@compiled
def _grow_distractor(state, tables, mask, snake):
    size = mask.shape[0]
    pivots = np.empty((len(snake) + 1, 2), np.int64)
    direction = np.empty(1, np.int64)
    if (mask <= _FREE).sum() < _CROWDED * size * size:
        return False
    for _ in range(_PADDLE_TRIALS):
        degree = below(state, _DEGREES)
        y, x = _free_place(state, tables, mask, degree)
        if y < 0:
            return False
        if _seed_inside(tables, degree, y, x, size):
            break
    else:
        return False
    snake[0] = tables.seed_stencil[degree], y, x
    pivots[0] = _seed_pivot(tables, degree, y, x)
    direction[0] = degree
    for paddle in range(1, len(snake)):
        turn = _extend(state, tables, mask, snake, pivots, direction, 0, paddle)
        if turn < 0:
            return False
        direction[0] = _DEGREES + turn
    _cover(mask, tables, snake[len(snake) - 1])
    return True


@compiled
def _extend(state, tables, mask, snake, pivots, direction, which, paddle):
    """Add a paddle to a snake and the one before it to the mask; returns the turn, -1 if stuck."""
    size = mask.shape[0]
    y, x = pivots[paddle - 1]
    y, x = _moved(y, x, tables.pivot_move[direction[which]])
    turns = len(tables.turn_head)
    upto = np.empty(turns, np.float64)
    total = 0.0
    for turn in range(turns):
        weight = tables.turn_weight[direction[which], turn]
        head_y, head_x = y + tables.turn_head[turn, 0], x + tables.turn_head[turn, 1]
        if weight > 0 and 0 <= head_y < size and 0 <= head_x < size:
            total += weight * (255 - _most_around(tables, mask, head_y, head_x)) / 255.0
        upto[turn] = total
    if total < 1e-4:
        return -1
    for _ in range(_PADDLE_TRIALS):
        chosen = uniform(state) * total
        turn = 0
        while turn < turns - 1 and upto[turn] <= chosen:
            turn += 1
        snake[paddle] = (
            tables.turn_stencil[turn],
            y + tables.turn_head[turn, 0],
            x + tables.turn_head[turn, 1],
        )
        if _fits(mask, tables, snake[paddle]):
            _cover(mask, tables, snake[paddle - 1])
            pivots[paddle] = y, x
            return turn
    return -1


@compiled
def _moved(y, x, move):
    return np.int64(np.ceil(y + move[0])), np.int64(np.ceil(x + move[1]))


@compiled
def _seed_pivot(tables, degree, y, x):
    head_y, head_x = _moved(y, x, tables.seed_head[degree])
    return _moved(head_y, head_x, tables.seed_pivot[degree])


@compiled
def _seed_inside(tables, degree, y, x, size):
    head_y, head_x = _moved(y, x, tables.seed_head[degree])
    y, x = _seed_pivot(tables, degree, y, x)
    return 0 <= head_y < size and 0 <= head_x < size and 0 <= y < size and 0 <= x < size


@compiled
def _free_place(state, tables, mask, degree):
    """A place where a first paddle fits, each with the same chance; (-1, -1) where none does."""
    size = mask.shape[0]
    if not tables.seed_allowed[degree]:
        return -1, -1
    for _ in range(_GUESSES):
        y, x = below(state, size), below(state, size)
        if _is_free(tables, mask, degree, y, x):
            return y, x
    places = np.empty((size * size, 2), np.int64)
    count = 0
    for y in range(size):
        for x in range(size):
            if _is_free(tables, mask, degree, y, x):
                places[count] = y, x
                count += 1
    if count == 0:
        return -1, -1
    chosen = places[below(state, count)]
    return chosen[0], chosen[1]


@compiled
def _is_free(tables, mask, degree, y, x):
    last = mask.shape[0] - 1
    for pixel in range(tables.seed_room.shape[1]):
        if tables.seed_room[degree, pixel, 0] == NOWHERE:
            break
        near_y = y + tables.seed_room[degree, pixel, 0]
        near_x = x + tables.seed_room[degree, pixel, 1]
        if 0 <= near_y <= last and 0 <= near_x <= last:
            at_edge = near_y == 0 or near_x == 0 or near_y == last or near_x == last
            if at_edge or mask[near_y, near_x] > _FREE:
                return False
    return True


@compiled
def _most_around(tables, mask, y, x):
    size = mask.shape[0]
    most = 0
    for pixel in range(len(tables.disc)):
        near_y, near_x = y + tables.disc[pixel, 0], x + tables.disc[pixel, 1]
        if 0 <= near_y < size and 0 <= near_x < size:
            most = max(most, np.int64(mask[near_y, near_x]))
    return most


@compiled
def _window(place, half, size):
    """Rows (or columns) of an image that a stencil covers, and where they begin in the stencil."""
    low = max(place - half, 0)
    return low, min(place + half + 1, size), low - (place - half)


@compiled
def _fits(mask, tables, paddle):
    size = mask.shape[0]
    for pixel in range(tables.hard_counts[paddle[0]]):
        step_y, step_x, value = tables.mask_pixels[paddle[0], pixel]
        y, x = paddle[1] + step_y, paddle[2] + step_x
        if 0 <= y < size and 0 <= x < size and mask[y, x] + value >= COLLIDING:
            return False
    return True


@compiled
def _cover(mask, tables, paddle):
    size = mask.shape[0]
    for pixel in range(tables.mask_counts[paddle[0]]):
        step_y, step_x, value = tables.mask_pixels[paddle[0], pixel]
        y, x = paddle[1] + step_y, paddle[2] + step_x
        if 0 <= y < size and 0 <= x < size and mask[y, x] < value:
            mask[y, x] = value


@compiled
def _paste_light(canvas, tables, paddle, contrast):
    _paste(canvas, tables.paddles[paddle[0]], paddle[1], paddle[2], contrast)


@compiled
def _paste_marker(canvas, tables, y, x):
    half = tables.markers.shape[0] // 2
    last = canvas.shape[0] - 1
    near_y = y if y < half else max(half, 2 * half - (last - y))
    near_x = x if x < half else max(half, 2 * half - (last - x))
    _paste(canvas, tables.markers[near_y, near_x], y, x, 1.0)


@compiled
def _paste(canvas, stencil, at_y, at_x, contrast):
    half = stencil.shape[0] // 2
    top, bottom, from_y = _window(at_y, half, canvas.shape[0])
    left, right, from_x = _window(at_x, half, canvas.shape[0])
    for y in range(top, bottom):
        for x in range(left, right):
            light = stencil[y - top + from_y, x - left + from_x] * contrast
            canvas[y, x] = max(canvas[y, x], light)


@compiled
def _meet(targets, pivots, size, points, plain):
    """Whether the contours of the two snakes meet.

    They may: the published generator looks for collisions with all paddles but the newest ones.
    """
    plain[:] = 0
    _light_up(plain, points, _trace(points, targets[0], pivots[0], plain.shape[0] // size))
    for point in range(_trace(points, targets[1], pivots[1], plain.shape[0] // size)):
        y, x = points[point]
        if plain[max(y - 1, 0) : y + 2, max(x - 1, 0) : x + 2].any():
            return True
    return False


@compiled
def _trace(points, snake, pivots, scale):
    """The pixels of a contour from tip to tip through its pivots, enlarged; returns how many."""
    count = 0
    y, x = snake[0, 1] * scale, snake[0, 2] * scale
    for pivot in range(1, len(pivots)):
        to_y, to_x = pivots[pivot, 0] * scale, pivots[pivot, 1] * scale
        steps = max(abs(to_y - y), abs(to_x - x), 1)
        for step in range(steps + 1):
            points[count, 0] = y + np.int64(np.floor((to_y - y) * step / steps + 0.5))
            points[count, 1] = x + np.int64(np.floor((to_x - x) * step / steps + 0.5))
            count += 1
        y, x = to_y, to_x
    return count


@compiled
def _light_up(plain, points, count):
    for point in range(count):
        y, x = points[point]
        if 0 <= y < plain.shape[0] and 0 <= x < plain.shape[1]:
            plain[y, x] = 255
