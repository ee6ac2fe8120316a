"""Columns that never moved in the rows fitted to: that one moves later is news, and says which column it is.

Nothing can be predicted of such a column, or from it, so models of the others are fitted without it. It keeps its place
among the inputs, and each reading is compared with its level. The first time counts most, and a level that stays is
known after a while.
"""

from __future__ import annotations

import numpy as np

from penstock._types import FloatArray

EVIDENCE = 10.0  # of a large move; 1 is the edge of what is usual
_ROUNDING, _LARGE = 1e-3, 0.3  # of the level: less is no move, and more a large one
_ROUNDING_AT_ZERO = 1e-6
_ABOVE_ALL = 3.0  # spreads by which a large move scores above the highest row fitted to
_LONGEST = 180  # rows for which a column may be away and be news


def size_of_moves(X: FloatArray, levels: FloatArray) -> FloatArray:
    """Return how large moves (n, c) away from the level (c,) of their column are, from 0, none, to 1.

    Rounding is no move, nor is a missing reading. In between the logarithm counts, relative to the level: a new level
    near the old one is a new setting more often than a fault. Away from 0 every move is a large one.

    >>> levels = np.array([0.0, 5.0])
    >>> size_of_moves(np.array([[0.0, 5.0], [80.0, 5.0000001], [np.nan, 0.0], [0.0, 5.2]]), levels).round(2).tolist()
    [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.65]]
    """
    at_zero = levels == 0
    with np.errstate(over="ignore", divide="ignore"):
        distance = np.nan_to_num(np.abs(X - levels), nan=0.0) / np.where(at_zero, 1.0, np.abs(levels))
        sizes = np.log(distance / _ROUNDING) / np.log(_LARGE / _ROUNDING)
    return np.where(at_zero, distance > _ROUNDING_AT_ZERO, np.clip(sizes, 0.0, 1.0))


def follow_moves(sizes: FloatArray, state: FloatArray) -> FloatArray:
    """Return how much news moves of these sizes (n, c) are, the k-th excursion a k-th of the first.

    state : (2, c) rows of the excursion that goes on, and excursions so far; changed in place.

    >>> state = np.zeros((2, 1))
    >>> follow_moves(np.array([[0.0], [1.0], [1.0], [0.0], [1.0]]), state).ravel().tolist(), state.ravel().tolist()
    ([0.0, 1.0, 1.0, 0.0, 0.5], [1.0, 2.0])
    """
    if not len(sizes) or not (sizes.any() or state[0].any()):
        return sizes
    moved, rows = sizes > 0, np.arange(len(sizes))[:, None]
    begins = moved & ~np.vstack([state[0] > 0, moved[:-1]])
    excursion = state[1] + np.cumsum(begins, axis=0)
    first = np.maximum.accumulate(np.where(begins, rows, -1), axis=0)
    lasted = np.where(moved, rows + 1 - np.where(first < 0, -state[0], first), 0.0)
    state[0], state[1] = lasted[-1], excursion[-1]
    return np.where(lasted <= _LONGEST, sizes / np.maximum(excursion, 1.0), 0.0)


def score_of_news(out_of_sample: FloatArray) -> float:
    """Return the score of a large move: it never happened in the rows fitted to, so it is above all of these."""
    return max(float(out_of_sample.max(initial=0.0)), 0.0) + _ABOVE_ALL
