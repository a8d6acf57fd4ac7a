"""Write pairs of documents that cite a common source or none."""

import numpy as np

from .compiled import below, compiled, shuffle, uniform

_SPACE, _OPEN, _CLOSE, _FIRST_LETTER, _ALPHABET = 32, 91, 93, 97, 26


@compiled
def draw_many(state, codes, citations, documents, lengths, labels):
    """Fill documents (b, 2, n) and their lengths for the labels."""
    order = np.arange(len(codes))
    for row in range(len(labels)):
        shuffle(state, order)
        # The first document cites the first sources of the order; the second one begins with
        # the last of these where the pair shares one, else right after them.
        second = citations - labels[row]
        for tower, start in ((0, 0), (1, second)):
            cited = order[start : start + citations].copy()
            shuffle(state, cited)
            longest = documents.shape[2]
            length = longest // 2 + below(state, longest - longest // 2 + 1)
            _write(state, codes, cited, documents[row, tower, :length])
            lengths[row, tower] = length


@compiled
def _write(state, codes, cited, document):
    width = codes.shape[1] + 3
    free = len(document) - width * len(cited)
    places = np.empty(len(cited), np.int64)
    for which in range(len(cited)):
        places[which] = below(state, free + 1)
    places.sort()
    at = 0
    for which in range(len(cited)):
        end = places[which] + width * which
        _fill(state, document[at:end])
        document[end] = _SPACE
        document[end + 1] = _OPEN
        document[end + 2 : end + 2 + codes.shape[1]] = codes[cited[which]]
        document[end + 2 + codes.shape[1]] = _CLOSE
        at = end + width
    _fill(state, document[at:])


@compiled
def _fill(state, document):
    """Words of random letters, the first of the alphabet more often."""
    left = 0
    for place in range(len(document)):
        if left == 0:
            document[place] = _SPACE
            left = 2 + below(state, 8)
        else:
            draw = uniform(state)
            document[place] = _FIRST_LETTER + np.int64(draw * draw * _ALPHABET)
            left -= 1
