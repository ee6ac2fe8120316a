"""The nearest fitted row of a new one, from the search trees that parts have left in their files."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from penstock._types import FloatArray, IndexArray
from penstock.graph.points import Frame
from penstock.graph.search import PointTree, RowSearch, search_over
from penstock.scale._tree_tasks import open_part
from penstock.scale.workspace import open_array

_SLACK = 1 + 1e-9  # boxes and distances are computed in float64: far more than their rounding


@dataclass(frozen=True)
class PartsSearch:
    """What `RowSearch` finds, without ever having all rows in memory: of a part's files only what is near is read.

    Answers count fitted rows; `numbers` is the file of their numbers in the table, `file` that of the rows themselves.
    Rows with holes are compared with all rows, for which these are read into memory.
    """

    frame: Frame
    folders: tuple[Path, ...]
    numbers: Path
    file: Path

    def __reduce__(self) -> tuple[type[PartsSearch], tuple[Frame, tuple[Path, ...], Path, Path]]:
        return PartsSearch, (self.frame, self.folders, self.numbers, self.file)  # not what is cached

    def _tree(self, part: int) -> PointTree:
        """Opened anew each time: thousands of parts would be tens of thousands of open files."""
        return open_part(self.folders[part], self.frame).tree

    @cached_property
    def _boxes(self) -> tuple[FloatArray, FloatArray]:
        return (
            np.array([np.load(folder / "low.npy") for folder in self.folders]),
            np.array([np.load(folder / "high.npy") for folder in self.folders]),
        )

    @cached_property
    def _with_holes(self) -> RowSearch:
        return search_over(self.rows())

    def rows(self) -> FloatArray:
        """The rows that are searched."""
        rows: FloatArray = open_array(self.file)
        return rows

    def nearest_or_equal(self, X: FloatArray) -> tuple[IndexArray, FloatArray, NDArray[np.bool_]]:
        """For each row of X the nearest fitted row, its distance, and whether it is equal, holes and all."""
        holes = np.isnan(X).any(axis=1)
        near, distances = np.empty(len(X), dtype=np.intp), np.empty(len(X))
        equal = np.empty(len(X), dtype=np.bool_)
        if holes.any():
            near[holes], distances[holes], equal[holes] = self._with_holes.nearest_or_equal(X[holes])
        if not holes.all():
            near[~holes], distances[~holes] = self._nearest(X[~holes])
            equal[~holes] = distances[~holes] == 0
        return near, distances, equal

    def _nearest(self, X: FloatArray) -> tuple[IndexArray, FloatArray]:
        """The nearest fitted rows of rows without holes.

        Parts are asked in the order of their boxes' distances, each only for rows that it may be nearest to; ties go to
        the row that comes first in the table.
        """
        bounds = self._box_squares(self.frame.scale(X))
        best, found = np.full(len(X), np.inf), np.full(len(X), np.iinfo(np.int64).max, dtype=np.int64)
        for turn in np.argsort(bounds, axis=1, kind="stable").T:
            open_ = bounds[np.arange(len(X)), turn] <= best * _SLACK
            if not open_.any():
                break
            for part in np.unique(turn[open_]):
                asking = np.flatnonzero(open_ & (turn == part))
                names, squares = self._tree(part).nearest_squares(X[asking], 1)
                _keep_first(best, found, asking, squares[:, 0], names[:, 0])
        return np.searchsorted(open_array(self.numbers), found), self._tree(0).lengths_of(best)

    def _box_squares(self, exact: FloatArray) -> FloatArray:
        """Squared distances of rows to the boxes of all parts, in the frame's units: no row of a part is nearer."""
        low, high = self._boxes
        squares = np.empty((len(exact), len(low)))
        for part in range(len(low)):
            gap = np.maximum(np.maximum(low[part] - exact, exact - high[part]), 0.0)
            squares[:, part] = np.einsum("ij,ij->i", gap, gap) / _SLACK
        return squares


def _keep_first(
    best: FloatArray, found: IndexArray, asking: IndexArray, squares: FloatArray, names: IndexArray
) -> None:
    """Take over what comes before what is held: the nearer, and among those as near the first of the table."""
    first = (squares < best[asking]) | ((squares == best[asking]) & (names < found[asking]))
    best[asking[first]], found[asking[first]] = squares[first], names[first]
