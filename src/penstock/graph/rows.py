"""Equal rows, and rows with missing values: which share columns."""

from __future__ import annotations

from collections.abc import Callable

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


_AT_ONCE = 1 << 11  # patterns of holes compared at once: their counts take 16 MB


def shares_seen(X: FloatArray) -> FloatArray:
    """The share of each row's coordinates that are there.

    >>> shares_seen(np.array([[1.0, 2.0], [np.nan, 2.0], [np.nan, np.nan]]))
    array([1. , 0.5, 0. ])
    """
    share: FloatArray = 1.0 - np.isnan(X).sum(axis=1) / X.shape[1]
    return share


def patterns_seen(X: FloatArray) -> NDArray[np.uint64]:
    """Which coordinates each row has, a bit for each in words of 64.

    >>> np.bitwise_count(patterns_seen(np.array([[1.0, 2.0], [np.nan, 2.0]]))).tolist()
    [[2], [1]]
    """
    bits = np.zeros((len(X), -(-X.shape[1] // 64) * 64), dtype=np.bool_)
    bits[:, : X.shape[1]] = ~np.isnan(X)
    return np.packbits(bits, axis=1).view(np.uint64)


def refuse_strangers(X: FloatArray, describe: Callable[[int], str] = "row {}".format) -> None:
    """Raise if a row has no coordinate, or two rows share none, so that no distance joins them; the first is named.

    >>> refuse_strangers(np.array([[1.0, np.nan], [2.0, 3.0], [np.nan, 4.0]]))
    Traceback (most recent call last):
    ValueError: There is no distance between row 0 and row 2: no column has a reading in both. Leave out ...
    """
    seen = ~np.isnan(X)
    _refuse_empty(seen, describe)
    pair = find_strangers(seen)
    if pair is not None:
        one, other = (describe(row) for row in pair)
        raise ValueError(
            f"There is no distance between {one} and {other}: no column has a reading in both. Leave out one of them, "
            f"leave out columns that are seldom read, or fill the gaps first."
        )


def refuse_groups(X: FloatArray, describe: Callable[[int], str] = "row {}".format) -> None:
    """Raise if a row has no coordinate, or the rows fall apart into groups that share none; two of them are named.

    >>> refuse_groups(np.array([[1.0, np.nan], [2.0, 3.0], [np.nan, 4.0]]))
    >>> refuse_groups(np.array([[1.0, np.nan], [2.0, np.nan], [np.nan, 4.0]]))
    Traceback (most recent call last):
    ValueError: There is no distance between row 0 and row 2, not even by way of other rows: the rows fall apart ...
    """
    seen = ~np.isnan(X)
    _refuse_empty(seen, describe)
    pair = find_groups(seen)
    if pair is not None:
        one, other = (describe(row) for row in pair)
        raise ValueError(
            f"There is no distance between {one} and {other}, not even by way of other rows: the rows fall apart into "
            f"groups that have no column in common. Leave out all groups but one, or fit each by itself."
        )


def _refuse_empty(seen: NDArray[np.bool_], describe: Callable[[int], str]) -> None:
    empty = np.flatnonzero(~seen.any(axis=1))
    if len(empty):
        raise ValueError(
            f"No column has a reading in {describe(int(empty[0]))}"
            f"{f', nor in {len(empty) - 1} other rows' if len(empty) > 1 else ''}. Leave out rows without any reading."
        )


def find_groups(seen: NDArray[np.bool_]) -> tuple[int, int] | None:
    """Row 0 and the first row that no chain of rows leads to, each of which shares a coordinate with the next.

    None if chains lead to all rows. Every row has a coordinate.

    >>> find_groups(np.array([[True, False, False], [True, True, False], [False, True, False], [False, False, True]]))
    (0, 3)
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


def find_strangers(seen: NDArray[np.bool_]) -> tuple[int, int] | None:
    """The first two rows (by the first of them, then by the second) without a coordinate in common, if there are any.

    All pairs are settled, most without being looked at: a column that is there in every row is shared by all, and two
    rows that have more than p coordinates between them share one.

    >>> find_strangers(np.array([[True, False, False], [True, True, False], [False, True, True]]))
    (0, 2)
    """
    if seen.all(axis=0).any():
        return None
    counts = seen.sum(axis=1)
    sparse_rows = np.flatnonzero(counts + counts.min() <= seen.shape[1])
    patterns, first_rows = np.unique(seen[sparse_rows], axis=0, return_index=True)
    order = np.argsort(first_rows)  # so that the first pair of patterns holds the first pair of rows
    rows, patterns = sparse_rows[first_rows[order]], patterns[order].astype(np.float32)
    for start in range(0, len(rows), _AT_ONCE):
        for_these = patterns[start : start + _AT_ONCE] @ patterns.T  # counts, exact below 2²⁴
        if (for_these == 0).any():
            one, other = np.argwhere(for_these == 0)[0]
            return int(rows[start + one]), int(rows[other])
    return None
