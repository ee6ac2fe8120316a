"""Find equal rows, and rows with missing values (NaN) that share columns."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from penstock._row_kernels import hash_words
from penstock._types import BoolArray, FloatArray, IndexArray

_AT_ONCE = 1 << 11  # patterns of missing values compared at once: their counts take 16 MB


def first_copies(X: FloatArray) -> IndexArray:
    """Return for each row the index of the first row that equals it (its own where it is the first).

    Rows with missing values (NaN) are equal if they lack the same values and are equal elsewhere; −0.0 equals 0.0.
    Takes time O(np + n log n).

    >>> import numpy as np
    >>> first_copies(np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0], [1.0, 2.0]]))
    array([0, 1, 0, 0])
    """
    n = len(X)
    hashes = hash_rows(X)
    order = np.argsort(hashes, kind="stable")
    original = np.arange(n)
    ordered = hashes[order]
    changes = ordered[1:] != ordered[:-1]
    if changes.all():
        return original
    starts = np.r_[0, 1 + np.flatnonzero(changes)]
    first = np.repeat(order[starts], np.diff(starts, append=n))  # of those with the same hash, for each place
    places = np.flatnonzero(first != order)
    same = rows_equal(X[order[places]], X[first[places]])
    original[order[places[same]]] = first[places[same]]
    for hashed in np.unique(ordered[places[~same]]):  # several rows have one hash, which is rare
        group = order[ordered == hashed]
        while len(group) > 1:
            same = rows_equal(X[group], X[group[0]])
            original[group[same]] = group[0]
            group = group[~same]
    return original


def rows_equal(rows: FloatArray, others: FloatArray) -> BoolArray:
    """Return whether each row equals the other, missing readings included."""
    return np.asarray(((rows == others) | (np.isnan(rows) & np.isnan(others))).all(axis=1))


def different_rows(original: IndexArray) -> tuple[IndexArray, IndexArray]:
    """Return the rows that equal none before them, and for each row which of these it equals, given `first_copies`."""
    kept = np.flatnonzero(original == np.arange(len(original)))
    return kept, np.searchsorted(kept, original)


def hash_rows(X: FloatArray) -> NDArray[np.uint64]:
    """Return one 64-bit number per row, equal for equal rows (FNV-1a over the words, mixed)."""
    hashes = np.empty(len(X), dtype=np.uint64)
    rows = np.ascontiguousarray(X, dtype=np.float64)
    with np.errstate(over="ignore"):  # products wrap around, of which NumPy warns where kernels are not compiled
        hash_words(rows, rows.view(np.uint64), hashes)
    return hashes


def shares_seen(X: FloatArray) -> FloatArray:
    """Return the share of values of each row that are not missing."""
    return np.asarray(1.0 - np.isnan(X).sum(axis=1) / X.shape[1])


def patterns_seen(X: FloatArray) -> NDArray[np.uint64]:
    """Return which values each row has, one bit per column in words of 64."""
    bits = np.zeros((len(X), -(-X.shape[1] // 64) * 64), dtype=np.bool_)
    bits[:, : X.shape[1]] = ~np.isnan(X)
    return np.packbits(bits, axis=1).view(np.uint64)


def check_comparable(X: FloatArray, describe: Callable[[int], str] = "row {}".format) -> None:
    """Raise ValueError if a row has no value, or two rows share no column, naming the first such row or pair.

    >>> check_comparable(np.array([[1.0, np.nan], [2.0, 3.0], [np.nan, 4.0]]))
    Traceback (most recent call last):
    ValueError: There is no distance between row 0 and row 2: no column has a reading in both. Leave out ...
    """
    pair = find_incomparable(_check_values(X, describe))
    if pair is not None:
        raise ValueError(
            f"There is no distance between {describe(pair[0])} and {describe(pair[1])}: no column has a reading in "
            f"both. Leave out one of them, leave out columns that are seldom read, or fill the gaps first."
        )


def check_connected(X: FloatArray, describe: Callable[[int], str] = "row {}".format) -> None:
    """Raise ValueError if a row has no value, or the rows fall into groups that share no column, naming two rows."""
    pair = find_unconnected(_check_values(X, describe))
    if pair is not None:
        raise ValueError(
            f"There is no distance between {describe(pair[0])} and {describe(pair[1])}, not even by way of other rows: "
            f"the rows fall apart into groups that have no column in common. Leave out all groups but one, or fit each "
            f"by itself."
        )


def _check_values(X: FloatArray, describe: Callable[[int], str]) -> BoolArray:
    """Return which values are not missing; raise ValueError if a row has none."""
    seen = ~np.isnan(X)
    empty = np.flatnonzero(~seen.any(axis=1))
    if len(empty):
        raise ValueError(
            f"No column has a reading in {describe(int(empty[0]))}"
            f"{f', nor in {len(empty) - 1} other rows' if len(empty) > 1 else ''}. Leave out rows without any reading."
        )
    return seen


def find_unconnected(seen: BoolArray) -> tuple[int, int] | None:
    """Return row 0 and the first row that no chain of rows with shared columns leads to; None if chains lead to all.

    Every row has a value.
    """
    columns = seen[0]
    while True:
        reached = seen[:, columns].any(axis=1)
        grown = seen[reached].any(axis=0)
        if (grown == columns).all():
            break
        columns = grown
    outside = np.flatnonzero(~reached)
    return (0, int(outside[0])) if len(outside) else None


def find_incomparable(seen: BoolArray) -> tuple[int, int] | None:
    """Return the first two rows (by the first of them, then by the second) that share no column, if there are any.

    Most pairs need not be compared: a column without missing values is shared by all rows, and two rows that have more
    than p values between them share one.
    """
    if seen.all(axis=0).any():
        return None
    counts = seen.sum(axis=1)
    sparse_rows = np.flatnonzero(counts + counts.min() <= seen.shape[1])
    patterns, first_rows = np.unique(seen[sparse_rows], axis=0, return_index=True)
    order = np.argsort(first_rows)  # so that the first pair of patterns holds the first pair of rows
    rows, patterns = sparse_rows[first_rows[order]], patterns[order].astype(np.float32)
    for start in range(0, len(rows), _AT_ONCE):
        shared = patterns[start : start + _AT_ONCE] @ patterns.T  # counts, exact below 2²⁴
        if (shared == 0).any():
            one, other = np.argwhere(shared == 0)[0]
            return int(rows[start + one]), int(rows[other])
    return None
