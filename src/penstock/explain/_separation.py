"""How well each column alone tells two sets of rows apart: a cheap look before a tree is grown."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock._types import FloatArray, IndexArray
from penstock.explain._cart import BoolArray, sample_rows

LOOK = 1_000  # normal rows, and rows of the event, on which the columns are chosen


@dataclass(frozen=True, eq=False)
class NormalSample:
    """Some normal rows, sorted once for all events: `columns[j, : seen[j]]` are the readings of a column, ascending."""

    columns: FloatArray
    seen: IndexArray

    @classmethod
    def of(cls, rows: FloatArray) -> NormalSample:
        """All these rows; what is not finite is missing."""
        known = np.isfinite(rows)
        return cls(np.sort(np.where(known, rows, np.nan).T, axis=1), known.sum(axis=0))

    @classmethod
    def drawn_from(cls, values: FloatArray, is_normal: BoolArray, random_state: int = 0) -> NormalSample:
        """At most 1,000 of the normal rows of a table."""
        rows = sample_rows(np.flatnonzero(is_normal), LOOK, np.random.default_rng(random_state))
        return cls.of(values[rows])


def best_separating(event: FloatArray, normal: NormalSample, n: int, weights: FloatArray | None = None) -> IndexArray:
    """The `n` columns that separate the rows best, in the order of the columns; constant and empty ones never.

    u is the share of normal readings below a reading of the event (half of those equal to it). |mean(u) − ½| is the
    distance of the area under the ROC curve from chance: the event is high or low. |mean(|2u − 1|) − ½| is the same for
    the distance from the middle: the event is outside on both sides, or between two modes. The larger of the two
    counts, times the weight of the column, if there are weights; without any weight a column is never chosen. A missing
    reading counts as chance. Ties in the order of the columns.

    >>> normal = NormalSample.of(np.array([[0.0, 0.0, 5.0], [1.0, 1.0, 5.0], [2.0, 2.0, 5.0], [3.0, 3.0, 5.0]]))
    >>> best_separating(np.array([[1.5, 9.0, 5.0], [0.5, 8.0, 5.0]]), normal, 2).tolist()
    [0, 1]
    """
    power = _separation(event, normal)
    if weights is not None:
        power = np.where(weights > 0, power * weights, -1.0)
    chosen = np.argsort(-power, kind="stable")[:n]
    result: IndexArray = np.sort(chosen[power[chosen] >= 0]).astype(np.intp)
    return result


def _separation(event: FloatArray, normal: NormalSample) -> FloatArray:
    """Of each column between 0 (chance) and ½; −1 if there is nothing to separate."""
    known = np.isfinite(event)
    u = np.where(known, _shares_below(event, normal), 0.5)  # chance
    count, rows = known.sum(axis=0), max(len(event), 1)
    high = np.abs(u.sum(axis=0) / rows - 0.5)  # a missing reading adds nothing
    outside = np.abs(np.where(known, np.abs(2 * u - 1) - 0.5, 0.0).sum(axis=0)) / rows
    power = np.where((count > 0) & (normal.seen > 0), np.maximum(high, outside), 0.0)
    return np.where(_varies(event, known, normal), power, -1.0)


def _shares_below(event: FloatArray, normal: NormalSample) -> FloatArray:
    """The share of normal readings below each reading, and half of those equal to it."""
    below = np.zeros(event.shape[::-1])
    for j, (readings, column, seen) in enumerate(zip(event.T, normal.columns, normal.seen, strict=True)):
        if seen:
            here = column[:seen]
            below[j] = (here.searchsorted(readings, "left") + here.searchsorted(readings, "right")) / (2 * seen)
    return below.T


def _varies(event: FloatArray, known: BoolArray, normal: NormalSample) -> BoolArray:
    """Which columns have two different readings."""
    low = np.where(known, event, np.inf).min(axis=0, initial=np.inf)
    high = np.where(known, event, -np.inf).max(axis=0, initial=-np.inf)
    if normal.columns.shape[1]:
        last = np.maximum(normal.seen - 1, 0)
        low = np.fmin(low, normal.columns[:, 0])
        high = np.fmax(high, normal.columns[np.arange(len(last)), last])
    varies: BoolArray = low < high
    return varies
