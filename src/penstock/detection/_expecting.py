"""What a row is compared with: the model rebuilds it, or where that rebuilds nothing, the mean of similar good rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock._types import FloatArray, IndexArray
from penstock.detection._parts import Part, rebuilds
from penstock.detection._telling import Told
from penstock.graph.search import search_over

SIMILAR = 3  # rows whose mean is expected; an explanation shows them


def rebuild(part: Part, values: FloatArray, new: IndexArray, learnt: IndexArray | None, expected: FloatArray) -> None:
    """Fill in what the latent groups make of the part's rows; nothing for a detector without groups."""
    detector = part.detector
    if not rebuilds(detector):
        return
    if learnt is not None:
        expected[learnt] = detector.inverse_transform(detector.embedding_)
    if len(new):
        expected[new] = detector.inverse_transform(detector.transform(values[new]))


class SimilarRows:
    """Normal rows of a part, ready to be searched for those nearest to another row.

    What a normal row lacks counts as the median of the others when near ones are looked for: else those would seem
    nearest that lack the very reading that stands out.
    """

    def __init__(self, part: Part, rows: FloatArray) -> None:
        self.rows, self.medians = rows, _medians(rows)
        self._part = part
        self._search = search_over(part.scaled(np.where(np.isnan(rows), self.medians, rows)))

    def nearest(self, values: FloatArray, k: int) -> tuple[IndexArray, FloatArray]:
        """For each row of values, which k normal rows are nearest (−1 where it shares no reading), and how far."""
        return self._search.nearest(self._part.scaled(values), min(k, len(self.rows)))


def to_compare(rows: IndexArray, values: FloatArray, told: Told | None) -> FloatArray:
    """Readings by which rows of a table are similar to others, NaN for the rest.

    Where it is known what makes up a score, those that make up half of it do not count, unless nothing else is left:
    else what is wrong in some would be expected of all.
    """
    if told is None:
        return values[rows]
    others = np.where(told.of(rows).standing_out, np.nan, values[rows])
    return np.where(np.isnan(others).all(axis=1, keepdims=True), values[rows], others)


def mean_of_similar(part: Part, compared: FloatArray, normal: FloatArray) -> FloatArray:
    """For each row of `to_compare` the mean of the nearest normal rows."""
    similar = SimilarRows(part, normal)
    near, _ = similar.nearest(compared, SIMILAR)
    expected = np.empty(compared.shape)
    for position, found in enumerate(near):
        rows = similar.rows[found[found >= 0]]
        known = ~np.isnan(rows)
        total = np.where(known, rows, 0.0).sum(axis=0)
        expected[position] = np.where(known.any(axis=0), total / np.maximum(known.sum(axis=0), 1), similar.medians)
    return expected


def _medians(values: FloatArray) -> FloatArray:
    """Of the readings of each column; NaN for a column without any."""
    return np.array([np.median(known) if len(known := column[~np.isnan(column)]) else np.nan for column in values.T])


def are_usual(rows: IndexArray, scores: FloatArray, flags: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which rows to compare with: no findings and no shoulders of one, so those with a score of the lower half."""
    if not np.isfinite(scores[rows]).any():
        return np.zeros(len(rows), dtype=np.bool_)
    return ~flags[rows] & (scores[rows] <= np.nanmedian(scores[rows]))
