"""Rows ready to be searched for the nearest of others, whether or not they have holes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from penstock._threads import for_each_range
from penstock._types import FloatArray, IndexArray
from penstock.graph._shared_kernels import nearest_sharing
from penstock.graph.duplicates import first_copies
from penstock.graph.kdtree import PointTree, build_tree
from penstock.graph.points import Frame, Points, SearchArray, enter_incomplete, prepare_incomplete
from penstock.graph.prim import tiles_of
from penstock.graph.shared import patterns_seen


class Search(Protocol):
    """What a `PointTree` and a `RowSearch` have in common."""

    @property
    def frame(self) -> Frame: ...

    def rows(self) -> FloatArray: ...

    def nearest(self, X: FloatArray, k: int) -> tuple[IndexArray, FloatArray]: ...

    def neighbors(self, k: int) -> tuple[IndexArray, FloatArray]: ...


class FittedSearch(Protocol):
    """What a detector asks of its fitted rows: which is nearest to a new one, and whether it is equal."""

    def rows(self) -> FloatArray: ...

    def nearest_or_equal(self, X: FloatArray) -> tuple[IndexArray, FloatArray, NDArray[np.bool_]]: ...


@dataclass(frozen=True)
class SharedSearch:
    """A search of every row in turn, under the distance over shared coordinates; exact, in memory O(n·p)."""

    points: Points

    @property
    def frame(self) -> Frame:
        return self.points.frame

    @cached_property
    def _tiles(self) -> SearchArray:
        return tiles_of(self.points.search)

    @cached_property
    def _patterns(self) -> NDArray[np.uint64]:
        return patterns_seen(self.points.exact)

    def rows(self) -> FloatArray:
        """The rows that are searched; a search over these finds the same, to the last bit."""
        rows = np.ldexp(self.points.exact, self.frame.exponent)
        constant = self.frame.origin != 0
        rows[:, constant] = np.where(np.isnan(rows[:, constant]), np.nan, self.frame.origin[constant])
        return rows

    def nearest(self, X: FloatArray, k: int) -> tuple[IndexArray, FloatArray]:
        """For each row of X the k nearest rows, ties in order of index, and their distances, both (m, k)."""
        return self._look(enter_incomplete(self.frame, X), np.full(len(X), -1, dtype=np.int64), k)

    def neighbors(self, k: int) -> tuple[IndexArray, FloatArray]:
        """For each row its k nearest other rows, ties in order of index, and their distances, both (n, k).

        >>> X = np.array([[0.0, 0.0], [1.0, np.nan], [3.0, 4.0]])
        >>> near, distances = SharedSearch(prepare_incomplete(X)).neighbors(1)
        >>> near.tolist(), (distances**2).round(9).tolist()
        ([[1], [0], [1]], [[2.0], [2.0], [8.0]])
        """
        return self._look(self.points, np.arange(len(self.points.exact)), k)

    def _look(self, guests: Points, left_out: NDArray[np.int64], k: int) -> tuple[IndexArray, FloatArray]:
        m, most = len(guests.exact), len(self.points.exact) - int((left_out >= 0).any())
        if not 1 <= k <= most:
            raise ValueError(f"Asked for the {k} nearest rows, but there are {most}.")
        found, squares = np.empty((m, k), dtype=np.int64), np.empty((m, k))
        shifts = self.points.error + guests.errors
        patterns, tiles, guest_patterns = self._patterns, self._tiles, patterns_seen(guests.exact)

        def search_range(start: int, stop: int) -> None:
            nearest_sharing(
                self.points.exact, tiles, patterns, shifts, self.points.stretch, guests.exact, guests.search,
                guest_patterns, left_out, start, stop, found, squares,
            )  # fmt: skip

        for_each_range(search_range, m, smallest=32)
        with np.errstate(over="ignore"):
            distances = np.minimum(np.ldexp(np.sqrt(squares), self.frame.exponent), np.finfo(np.float64).max)
        return found, np.where(found < 0, np.inf, distances)


@dataclass(frozen=True)
class RowSearch:
    """A kd-tree for rows without holes among rows without holes; for all others every row is looked at."""

    tree: PointTree | None
    incomplete: Points | None  # the rows, if some have holes: then there is no tree

    @property
    def frame(self) -> Frame:
        return self._other.frame if self.tree is None else self.tree.frame

    @cached_property
    def _other(self) -> SharedSearch:
        """The search that copes with holes; grown over complete rows only when it is needed."""
        return SharedSearch(prepare_incomplete(self.rows()) if self.incomplete is None else self.incomplete)

    def rows(self) -> FloatArray:
        """The rows that are searched."""
        return self._other.rows() if self.tree is None else self.tree.rows()

    def neighbors(self, k: int) -> tuple[IndexArray, FloatArray]:
        """For each row its k nearest other rows, ties in order of index, and their distances, both (n, k)."""
        return self._other.neighbors(k) if self.tree is None else self.tree.neighbors(k)

    def nearest(self, X: FloatArray, k: int) -> tuple[IndexArray, FloatArray]:
        """For each row of X the k nearest rows, ties in order of index, and their distances, both (m, k).

        Each row by itself, to the last bit; exact. Where fewer than k rows share a coordinate with a row of X, −1 and
        an infinite distance fill the list.

        >>> search = search_over(np.array([[0.0, 0.0], [1.0, 9.0], [5.0, 0.0]]))
        >>> near, distances = search.nearest(np.array([[4.0, np.nan], [1.0, 1.0]]), 1)
        >>> near.tolist(), (distances**2).round(9).tolist()
        ([[2], [0]], [[2.0], [2.0]])
        """
        if self.tree is None:
            return self._other.nearest(X, k)
        holes = np.isnan(X).any(axis=1)
        if not holes.any():
            return self.tree.nearest(X, k)
        near, distances = np.empty((len(X), k), dtype=np.intp), np.empty((len(X), k))
        near[holes], distances[holes] = self._other.nearest(X[holes], k)
        if not holes.all():
            near[~holes], distances[~holes] = self.tree.nearest(X[~holes], k)
        return near, distances

    def nearest_or_equal(self, X: FloatArray) -> tuple[IndexArray, FloatArray, NDArray[np.bool_]]:
        """For each row of X the nearest row, its distance, and whether it is equal, holes and all.

        Among rows at distance 0, which agree wherever both are there, an equal one comes first.
        """
        found, lengths = self.nearest(X, 1)
        near, distances = found[:, 0], lengths[:, 0]
        equal = distances == 0
        unclear = np.flatnonzero(equal & (np.isnan(X).any(axis=1) | (self.tree is None)))
        if len(unclear):
            rows = self.rows()
            original = first_copies(np.concatenate([rows, X[unclear]]))[len(rows) :]
            equal[unclear] = original < len(rows)
            near[unclear] = np.where(equal[unclear], original, near[unclear])
        return near, distances, equal


@dataclass(frozen=True)
class SearchWhenAsked:
    """A `RowSearch` over rows that may lie in a file: grown when the first new row asks, and not before.

    >>> SearchWhenAsked(np.array([[0.0], [5.0]])).nearest_or_equal(np.array([[4.0]]))[0].tolist()
    [1]
    """

    data: FloatArray

    @cached_property
    def _search(self) -> RowSearch:
        return search_over(self.data)

    def rows(self) -> FloatArray:
        return self.data

    def nearest_or_equal(self, X: FloatArray) -> tuple[IndexArray, FloatArray, NDArray[np.bool_]]:
        return self._search.nearest_or_equal(X)


def search_over(X: FloatArray) -> RowSearch:
    """Make rows ready to be searched."""
    rows = np.ascontiguousarray(X, dtype=np.float64)
    if np.isnan(rows).any():
        return RowSearch(None, prepare_incomplete(rows))
    return RowSearch(build_tree(rows), None)
