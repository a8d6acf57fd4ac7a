"""Draw keys, values and queries for associative recall."""

import numpy as np

from .compiled import below, compiled, uniform


@compiled
def draw_many(state, tokens, labels, pairs, vocabulary, chances):
    """Fill the rows. `chances` are the summed chances of the places that a query may take."""
    half = vocabulary // 2
    keys = np.arange(1, half)
    values = np.arange(half, vocabulary)
    taken = np.zeros(len(chances), np.bool_)
    for row in range(len(tokens)):
        for place in range(2 * pairs, tokens.shape[1]):
            tokens[row, place] = below(state, vocabulary)
        taken[:] = False
        for pair in range(pairs):
            _bring_one_forward(state, keys, pair)
            _bring_one_forward(state, values, pair)
            tokens[row, 2 * pair] = keys[pair]
            tokens[row, 2 * pair + 1] = values[pair]
            gap = _free_gap(state, chances, taken)
            taken[gap] = True
            tokens[row, 2 * pairs + 2 * gap] = keys[pair]
            labels[row, 2 * pairs + 2 * gap] = values[pair]


@compiled
def _bring_one_forward(state, values, place):
    """One step of a shuffle: whatever came before, the first places are a random choice."""
    other = place + below(state, len(values) - place)
    values[place], values[other] = values[other], values[place]


@compiled
def _free_gap(state, chances, taken):
    while True:
        gap = np.searchsorted(chances, uniform(state) * chances[-1], side="right")
        if not taken[gap]:
            return gap
