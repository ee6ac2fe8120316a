"""Rows that are equal to the last bit, found in O(np + n log n)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock._types import FloatArray, IndexArray


def first_copies(X: FloatArray) -> IndexArray:
    """For each row, the index of the first row that equals it (its own index where it is the first).

    Rows with holes (NaN) are equal if they have the same holes and are equal elsewhere.

    >>> import numpy as np
    >>> first_copies(np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0], [1.0, 2.0]]))
    array([0, 1, 0, 0])
    """
    n = len(X)
    hashes = hash_rows(X)
    order = np.argsort(hashes, kind="stable")
    original = np.arange(n)
    starts = np.flatnonzero(np.r_[True, np.diff(hashes[order]) != 0])
    stops = np.r_[starts[1:], n]
    several = stops - starts > 1
    for start, stop in zip(starts[several], stops[several], strict=True):
        _match_group(X, order[start:stop], original)
    return original


def different_rows(original: IndexArray) -> tuple[IndexArray, IndexArray]:
    """The rows that equal none before them, and for each row which of these it is or equals, given `first_copies`.

    >>> [part.tolist() for part in different_rows(np.array([0, 1, 0, 3]))]
    [[0, 1, 3], [0, 1, 0, 2]]
    """
    kept = np.flatnonzero(original == np.arange(len(original)))
    return kept, np.searchsorted(kept, original)


def hash_rows(X: FloatArray) -> NDArray[np.uint64]:
    """One 64-bit number per row, equal for equal rows (FNV-1a over the words, mixed); −0.0 counts as 0.0.

    NaN has many bit patterns; all count as one.
    """
    hashes = np.full(len(X), 14695981039346656037, dtype=np.uint64)
    for column in X.T:
        fresh = column + 0.0  # −0.0 + 0.0 is 0.0; the sum is a fresh, contiguous column
        fresh[np.isnan(fresh)] = np.nan
        hashes ^= fresh.view(np.uint64)
        hashes *= np.uint64(1099511628211)
        hashes ^= hashes >> np.uint64(29)
    return hashes


def _match_group(X: FloatArray, group: IndexArray, original: IndexArray) -> None:
    """Rows of one hash value, in ascending order: almost always copies of one row, but hashes may collide."""
    while len(group) > 1:
        rows, first = X[group], X[group[0]]
        same = ((rows == first) | (np.isnan(rows) & np.isnan(first))).all(axis=1)
        original[group[same]] = group[0]
        group = group[~same]
