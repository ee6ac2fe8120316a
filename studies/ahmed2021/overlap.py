"""Find data sets that share rows: tests take each as one independent observation, so near-duplicates count twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from penstock._types import FloatArray
from penstock.bench.datasets import Dataset
from penstock.prepare import learn_scaling

_DECIMALS = 6
_APART = 0.9  # of the distinct rows are to be told apart by the columns that are compared


@dataclass(frozen=True)
class Overlap:
    """Two data sets with `shared_rows` distinct rows in common, a `share` of those of the smaller one."""

    first: str
    second: str
    shared_rows: int
    share: float


def find_overlaps(datasets: Sequence[Dataset], least: float = 0.05) -> list[Overlap]:
    """Find the pairs that share at least this part of the smaller set's distinct rows, the largest share first.

    Rows are the same if their values agree to six decimals: all of them as they are, or all of them when each set is
    scaled to [0, 1] by its own columns, or those of the columns that still have the same values then. The last finds
    two draws from one set, of which one has lost the extremes of some columns; it is used if at least half of the
    columns are left and tell nearly all rows apart. Labels do not count, and neither do repeated rows, nor,
    among scaled rows, those of 0 and 1 only. Sets whose columns were reordered, or mostly scaled to another range, are
    not found.

    >>> rows = np.arange(20.0).reshape(10, 2) ** 2
    >>> one = Dataset("one", rows, np.zeros(10, dtype=np.int64))
    >>> half = Dataset("half", rows[:5], one.y[:5])
    >>> find_overlaps([one, half, Dataset("other", (rows + 1.5) ** 3, one.y)])
    [Overlap(first='one', second='half', shared_rows=5, share=1.0)]
    """
    if not 0 < least <= 1:
        raise ValueError(f"least must be a share above 0 and at most 1; got {least!r}.")
    by_width: dict[int, list[Dataset]] = {}
    for dataset in datasets:
        by_width.setdefault(dataset.p, []).append(dataset)
    found = []
    for alike in by_width.values():
        if len(alike) > 1:
            found += [_compare(first, second) for first, second in combinations([_Rows.of(each) for each in alike], 2)]
    return sorted((overlap for overlap in found if overlap.share >= least), key=lambda overlap: -overlap.share)


@dataclass(frozen=True, eq=False)
class _Rows:
    """A set prepared for comparing: its distinct rows as they are and scaled, and the distinct values of columns."""

    name: str
    plain: set[bytes]
    scaled: set[bytes]
    X: FloatArray
    levels: list[FloatArray]

    @classmethod
    def of(cls, dataset: Dataset) -> _Rows:
        X = _rounded(learn_scaling(dataset.X).apply(dataset.X) if dataset.n else dataset.X)
        return cls(dataset.name, _distinct(_rounded(dataset.X)), _distinct_inside(X), X, [np.unique(x) for x in X.T])


def _compare(first: _Rows, second: _Rows) -> Overlap:
    """Compare two sets by the way of comparing that finds the largest share."""
    ways = [(first.plain, second.plain), (first.scaled, second.scaled)]
    same = [_agree(ours, theirs) for ours, theirs in zip(first.levels, second.levels, strict=True)]
    if len(same) / 2 <= sum(same) < len(same):
        ours, theirs = _distinct_inside(first.X[:, same]), _distinct_inside(second.X[:, same])
        if len(ours) >= _APART * len(first.scaled) and len(theirs) >= _APART * len(second.scaled):
            ways.append((ours, theirs))
    counts = [(len(ours & theirs), max(min(len(ours), len(theirs)), 1)) for ours, theirs in ways]
    shared, smaller = max(counts, key=lambda count: count[0] / count[1])
    return Overlap(first.name, second.name, shared, shared / smaller)


def _agree(ours: FloatArray, theirs: FloatArray) -> bool:
    """Tell whether two columns have at least half of their values in common."""
    common = np.intersect1d(ours, theirs, assume_unique=True)
    return bool(2 * len(common) >= min(len(ours), len(theirs)))


def _distinct_inside(X: FloatArray) -> set[bytes]:
    """Return the distinct rows of a scaled set without those of 0 and 1 only, which scaling makes in any set."""
    return _distinct(X[((X != 0) & (X != 1)).any(axis=1)])


def _distinct(X: FloatArray) -> set[bytes]:
    """Return the distinct rows, each as its bytes."""
    content = np.ascontiguousarray(X).tobytes()
    width = X.shape[1] * X.itemsize
    return {content[start : start + width] for start in range(0, len(content), width)}


def _rounded(X: FloatArray) -> FloatArray:
    rounded: FloatArray = np.round(X, _DECIMALS) + 0.0  # -0.0 is 0.0
    return rounded
