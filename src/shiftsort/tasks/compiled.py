"""What the compiled generators share: the compiler, and random numbers whose bits never change.

NumPy keeps the right to change the stream of its generators between versions; a seed here must
name the same bytes for years, so the few lines of SplitMix64 stand here (Steele, Lea, Flood 2014).
Everything is uint64 on purpose: numba turns uint64 with int64 into float64.
"""

import numpy as np

from .errors import DataError

try:
    import numba
except ModuleNotFoundError as missing:
    raise DataError(
        "generating this set needs numba; install it with: pip install 'shiftsort[train]'"
    ) from missing


def compiled(function):
    """Compile a function; the result is kept on the disk where there is a place for it."""
    try:
        return numba.njit(nogil=True, cache=True)(function)
    except RuntimeError:
        return numba.njit(nogil=True)(function)


_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_27, _30, _31, _32, _11 = (np.uint64(shift) for shift in (27, 30, 31, 32, 11))


def random_state(seed: np.uint64) -> np.ndarray:
    """The state that `uniform` and `below` advance."""
    return np.array([seed], np.uint64)


@compiled
def _next(state):
    state[0] += _STEP
    mixed = state[0]
    mixed = (mixed ^ (mixed >> _30)) * _MIX_1
    mixed = (mixed ^ (mixed >> _27)) * _MIX_2
    return mixed ^ (mixed >> _31)


@compiled
def uniform(state):
    """A float in [0, 1)."""
    return np.float64(_next(state) >> _11) * (1.0 / 9007199254740992.0)


@compiled
def below(state, count):
    """An integer in [0, count), for counts far below 2**32."""
    return np.int64(((_next(state) >> _32) * np.uint64(count)) >> _32)


@compiled
def shuffle(state, values):
    """Shuffle an array in place."""
    for last in range(len(values) - 1, 0, -1):
        other = below(state, last + 1)
        values[last], values[other] = values[other], values[last]
