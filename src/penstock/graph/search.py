"""Searches for the nearest of the rows of a table, exact, with or without missing values."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from penstock._threads import for_each_range
from penstock._types import BoolArray, FloatArray, IndexArray
from penstock.graph import _kdtree_kernels as kernels
from penstock.graph._search_kernels import list_neighbors, nearest_rows, nearest_sharing
from penstock.graph.distance_kernels import TILE
from penstock.graph.points import (
    Frame,
    Points,
    SearchArray,
    enter_incomplete,
    prepare_incomplete,
    prepare_points,
    tiles_of,
)
from penstock.graph.rows import first_copies, patterns_seen


@dataclass(frozen=True)
class PointTree:
    """A kd-tree: points in the order of its leaves; `names` are their rows in the data.

    Distances are exact in float64, but differences below 1e-150 of the range of the data count as 0.
    """

    frame: Frame
    exact: FloatArray
    names: NDArray[np.int64]
    tiles: SearchArray
    boxes: SearchArray
    centers: SearchArray  # of the leaves
    radius: float
    error: float
    stretch: float

    @property
    def arrays(self) -> kernels.TreeArrays:
        """The tree as kernels take it."""
        return kernels.TreeArrays(
            self.exact, self.names, self.tiles, self.boxes, self.centers, self.radius, self.error, self.stretch
        )

    @property
    def n_leaves(self) -> int:
        return len(self.tiles)

    def nearest(self, X: FloatArray, k: int) -> tuple[IndexArray, FloatArray]:
        """Find the k nearest rows of the data for each row of X, ties by index, and their distances, both (m, k).

        The result for a row does not depend on the others, to the last bit; exact.
        """
        found, squares = self.nearest_squares(X, k)
        return found, self.frame.lengths_of(squares)

    def nearest_squares(self, X: FloatArray, k: int) -> tuple[IndexArray, FloatArray]:
        """Like `nearest`, with squared distances in the tree's units, of which roots may round alike."""
        if not 1 <= k <= len(self.names):
            raise ValueError(f"Asked for {k} nearest rows, but there are {len(self.names)}.")
        guests = self.frame.enter(np.ascontiguousarray(X, dtype=np.float64))
        found = np.empty((len(X), k), dtype=np.int64)
        squares = np.empty((len(X), k))
        tree = self.arrays

        def search_range(start: int, stop: int) -> None:
            nearest_rows(tree, guests.exact, guests.search, guests.errors, start, stop, found, squares)

        for_each_range(search_range, len(X), smallest=256)
        return self.names[found], squares

    def neighbors(self, k: int) -> tuple[IndexArray, FloatArray]:
        """Find for each row its k nearest other rows, ties in order of index, and their distances, both (n, k)."""
        if not 1 <= k <= len(self.names) - 1:
            raise ValueError(f"k must be between 1 and n − 1 = {len(self.names) - 1}, but is {k}.")
        near, squares = self.list_neighbors(k)
        result = np.empty_like(near), np.empty_like(squares)
        result[0][self.names] = self.names[near]
        result[1][self.names] = self.frame.lengths_of(squares)
        return result

    def list_neighbors(self, k: int) -> tuple[NDArray[np.int64], FloatArray]:
        """Like `neighbors`, by position in the tree, with squared distances in the tree's units."""
        near = np.empty((len(self.names), k), dtype=np.int64)
        squares = np.empty(near.shape)

        tree = self.arrays

        def list_range(start: int, stop: int) -> None:
            list_neighbors(tree, start, stop, 1, near, squares)

        for_each_range(list_range, self.n_leaves, smallest=16)
        return near, squares

    def sample_search_cost(self, k: int, n_leaves: int) -> float:
        """Measure how many leaves a search for k neighbours scans per point, on about `n_leaves` leaves."""
        step = max(1, self.n_leaves // n_leaves)
        near = np.empty((len(self.names), k), dtype=np.int64)
        scanned = list_neighbors(self.arrays, 0, self.n_leaves, step, near, np.empty(near.shape))
        return float(scanned) / (TILE * len(range(0, self.n_leaves, step)))


def build_tree(X: FloatArray) -> PointTree:
    """Build a kd-tree over the rows of X."""
    return tree_over(prepare_points(X, rotate=True))


def tree_over(points: Points) -> PointTree:
    n, width = points.search.shape
    order = np.arange(n)
    kernels.order_points(points.search, order)
    n_leaves = -(-n // TILE)
    tiles = np.empty((n_leaves, width, TILE), dtype=points.search.dtype)
    kernels.fill_tiles(points.search, order, tiles)
    boxes = np.empty((2 * n_leaves - 1, 2, width), dtype=points.search.dtype)
    kernels.bound_nodes(tiles, boxes, 0, 0, n_leaves)
    centers = tiles.mean(axis=2)
    return PointTree(
        points.frame,
        points.exact[order],
        order,
        tiles,
        boxes,
        centers,
        points.radius,
        float(points.errors.max()),
        points.stretch,
    )


@dataclass(frozen=True)
class RowSearch:
    """Search rows: by a kd-tree where neither they nor the new row have missing values, else every row in turn.

    Exact either way, under the distance over shared columns, in memory O(n·p). Rows may lie in a file: the search is
    prepared when the first row is searched for.
    """

    rows: FloatArray

    @cached_property
    def tree(self) -> PointTree | None:
        """The tree; None if values are missing."""
        rows = np.ascontiguousarray(self.rows, dtype=np.float64)
        return None if np.isnan(rows).any() else build_tree(rows)

    @cached_property
    def _points(self) -> Points:
        """The rows for searches in turn."""
        return prepare_incomplete(np.ascontiguousarray(self.rows, dtype=np.float64))

    @cached_property
    def _tiles_and_patterns(self) -> tuple[SearchArray, NDArray[np.uint64]]:
        return tiles_of(self._points.search), patterns_seen(self._points.exact)

    def neighbors(self, k: int) -> tuple[IndexArray, FloatArray]:
        """Find for each row its k nearest other rows, ties in order of index, and their distances, both (n, k)."""
        if self.tree is not None:
            return self.tree.neighbors(k)
        return self._search_in_turn(self._points, np.arange(len(self._points.exact)), k)

    def nearest(self, X: FloatArray, k: int) -> tuple[IndexArray, FloatArray]:
        """Find for each row of X the k nearest rows, ties in order of index, and their distances, both (m, k).

        The result for a row does not depend on the others, to the last bit. Where fewer than k rows share a column with
        a row of X, −1 and an infinite distance fill the list.
        """
        holes = np.isnan(X).any(axis=1) | (self.tree is None)
        if self.tree is not None and not holes.any():
            return self.tree.nearest(X, k)
        near, distances = np.empty((len(X), k), dtype=np.intp), np.empty((len(X), k))
        guests = enter_incomplete(self._points.frame, X[holes])
        near[holes], distances[holes] = self._search_in_turn(guests, np.full(int(holes.sum()), -1, dtype=np.int64), k)
        if self.tree is not None and not holes.all():
            near[~holes], distances[~holes] = self.tree.nearest(X[~holes], k)
        return near, distances

    def _search_in_turn(self, guests: Points, left_out: NDArray[np.int64], k: int) -> tuple[IndexArray, FloatArray]:
        points, (tiles, patterns) = self._points, self._tiles_and_patterns
        m, most = len(guests.exact), len(points.exact) - int((left_out >= 0).any())
        if not 1 <= k <= most:
            raise ValueError(f"Asked for the {k} nearest rows, but there are {most}.")
        found, squares = np.empty((m, k), dtype=np.int64), np.empty((m, k))
        shifts, names = points.errors.max() + guests.errors, np.arange(len(points.exact))
        guest_patterns = patterns_seen(guests.exact)

        def search_range(start: int, stop: int) -> None:
            nearest_sharing(
                points.exact, tiles, patterns, shifts, points.stretch, guests.exact, guests.search, guest_patterns,
                left_out, names, start, stop, found, squares,
            )  # fmt: skip

        for_each_range(search_range, m, smallest=32)
        return found, np.where(found < 0, np.inf, points.frame.lengths_of(squares))

    def nearest_or_equal(self, X: FloatArray) -> tuple[IndexArray, FloatArray, BoolArray]:
        """Find for each row of X the nearest row, its distance, and whether it is equal, missing values included.

        Among rows at distance 0, which agree wherever both have a value, an equal one comes first.
        """
        found, lengths = self.nearest(X, 1)
        near, distances = found[:, 0], lengths[:, 0]
        equal = distances == 0
        unclear = np.flatnonzero(equal & (np.isnan(X).any(axis=1) | (self.tree is None)))
        if len(unclear):
            original = first_copies(np.concatenate([self.rows, X[unclear]]))[len(self.rows) :]
            equal[unclear] = original < len(self.rows)
            near[unclear] = np.where(equal[unclear], original, near[unclear])
        return near, distances, equal


def nearest_neighbors(X: FloatArray, k: int) -> tuple[IndexArray, FloatArray]:
    """Find for each row its k nearest other rows: indices and distances, both (n, k), nearest first, ties by index.

    Exact, in memory O(n·(p + k)). A row is not its own neighbour, but an equal row is, at distance 0. Where values are
    missing (NaN), distances are over shared columns, as in `minimum_spanning_tree`; where fewer than k rows share one
    with a row, −1 and an infinite distance fill its list.

    >>> import numpy as np
    >>> near, distances = nearest_neighbors(np.array([[0.0], [3.0], [0.0], [1.0]]), 2)
    >>> near.tolist()
    [[2, 3], [3, 0], [0, 3], [0, 2]]
    >>> distances.tolist()
    [[0.0, 1.0], [2.0, 3.0], [0.0, 1.0], [1.0, 1.0]]
    """
    return RowSearch(X).neighbors(k)
