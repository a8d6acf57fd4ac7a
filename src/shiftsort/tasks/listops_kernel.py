"""Draw ListOps expressions and their values, in one pass from left to right."""

import numpy as np

from .compiled import below, compiled, uniform

# Token 0 is padding, 1 to 10 are the digits; MIN, MAX, MED, SM open an operation.
DIGIT_0 = 1
MIN, MAX, MED, SM, CLOSE = 11, 12, 13, 14, 15
_DIGIT_PROBABILITY = 0.75
#: A chunk gives up after so many expressions in a row of an unwanted length.
GIVE_UP_AFTER = 2_000_000


@compiled
def draw_many(state, tokens, lengths, labels, min_length, max_length, max_depth, max_args):
    """Fill the rows; returns how many were filled before it gave up."""
    # For each open operation: which, arguments still to come, and how often each digit came.
    operation = np.zeros(max_depth + 1, np.int64)
    remaining = np.zeros(max_depth + 1, np.int64)
    digits = np.zeros((max_depth + 1, 10), np.int64)
    for row in range(len(lengths)):
        tries = 0
        while True:
            length, value = _draw(
                state, tokens[row], max_length, max_depth, max_args, operation, remaining, digits
            )
            if min_length < length < max_length:
                break
            tries += 1
            if tries == GIVE_UP_AFTER:
                return row
        tokens[row, length:] = 0
        lengths[row] = length
        labels[row] = value
    return len(lengths)


@compiled
def _draw(state, tokens, max_length, max_depth, max_args, operation, remaining, digits):
    """One expression; returns its length and value, or max_length as soon as it is too long."""
    depth = 0
    length = 0
    while True:
        if length >= max_length - 1:
            return max_length, 0
        # The root is at depth 1 of max_depth, and at max_depth there are digits alone.
        if depth + 1 < max_depth and uniform(state) >= _DIGIT_PROBABILITY:
            operation[depth] = MIN + below(state, 4)
            remaining[depth] = 2 + below(state, max_args - 1)
            digits[depth, :] = 0
            tokens[length] = operation[depth]
            length += 1
            depth += 1
            continue
        value = below(state, 10)
        tokens[length] = DIGIT_0 + value
        length += 1
        while depth > 0:
            digits[depth - 1, value] += 1
            remaining[depth - 1] -= 1
            if remaining[depth - 1] > 0:
                break
            if length >= max_length - 1:
                return max_length, 0
            depth -= 1
            tokens[length] = CLOSE
            length += 1
            value = _apply(operation[depth], digits[depth])
        if depth == 0:
            return length, value


@compiled
def _apply(operation, digits):
    if operation == MIN:
        return _ranked(digits, 0)
    count = digits.sum()
    if operation == MAX:
        return _ranked(digits, count - 1)
    if operation == MED:
        return (_ranked(digits, (count - 1) // 2) + _ranked(digits, count // 2)) // 2
    total = 0
    for digit in range(10):
        total += digit * digits[digit]
    return total % 10


@compiled
def _ranked(digits, rank):
    for digit in range(10):
        rank -= digits[digit]
        if rank < 0:
            return digit
    return 9
