"""A kd-tree over the rows of a table, for exact searches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock._threads import for_each_range
from penstock._types import FloatArray, IndexArray
from penstock.graph import _kdtree_kernels as kernels
from penstock.graph._kernels import TILE
from penstock.graph._search_kernels import list_neighbors, nearest_rows
from penstock.graph.points import Frame, Points, SearchArray, prepare_points


@dataclass(frozen=True)
class PointTree:
    """Points in the order of the tree's leaves; `names` leads back to the rows of the data.

    Distances are exact in float64, but for differences below 1e-150 of the range of the data: those count as none.
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
    def shift(self) -> float:
        return 2 * self.error

    @property
    def n_leaves(self) -> int:
        return len(self.tiles)

    def rows(self) -> FloatArray:
        """The rows that the tree was built over; those of a tree over these are placed alike, to the last bit.

        >>> import numpy as np
        >>> build_tree(np.array([[0.0, 7.0], [1.5, 7.0], [-5.0, 7.0]])).rows().tolist()
        [[0.0, 7.0], [1.5, 7.0], [-5.0, 7.0]]
        """
        rows = np.empty_like(self.exact)
        rows[self.names] = np.ldexp(self.exact, self.frame.exponent)
        constant = self.frame.origin != 0
        rows[:, constant] = self.frame.origin[constant]
        return rows

    def nearest(self, X: FloatArray, k: int) -> tuple[IndexArray, FloatArray]:
        """For each row of X the k nearest rows of the data, ties in order of index, and their distances, both (m, k).

        Each row by itself, to the last bit; exact.

        >>> import numpy as np
        >>> near, distances = build_tree(np.array([[0.0], [1.0], [5.0]])).nearest(np.array([[4.0], [0.5]]), 2)
        >>> near.tolist(), distances.tolist()
        ([[2, 1], [0, 1]], [[1.0, 3.0], [0.5, 0.5]])
        """
        found, squares = self.nearest_squares(X, k)
        return found, self.lengths_of(squares)

    def nearest_squares(self, X: FloatArray, k: int) -> tuple[IndexArray, FloatArray]:
        """`nearest` with squared distances in the tree's units, which tell apart what roots may round to one."""
        if not 1 <= k <= len(self.names):
            raise ValueError(f"Asked for {k} nearest rows, but there are {len(self.names)}.")
        guests = self.frame.enter(np.ascontiguousarray(X, dtype=np.float64))
        found = np.empty((len(X), k), dtype=np.int64)
        squares = np.empty((len(X), k))
        shifts = self.error + guests.errors

        def search_range(start: int, stop: int) -> None:
            nearest_rows(
                self.exact, self.names, self.tiles, self.boxes, shifts, self.stretch,
                guests.exact, guests.search, start, stop, found, squares,
            )  # fmt: skip

        for_each_range(search_range, len(X), smallest=256)
        return found, squares

    def neighbors(self, k: int) -> tuple[IndexArray, FloatArray]:
        """For each row of the data its k nearest other rows, ties in order of index, and their distances, both (n, k).

        >>> import numpy as np
        >>> near, distances = build_tree(np.array([[0.0], [1.0], [5.0]])).neighbors(1)
        >>> near.tolist(), distances.tolist()
        ([[1], [0], [1]], [[1.0], [1.0], [4.0]])
        """
        if not 1 <= k <= len(self.names) - 1:
            raise ValueError(f"k must be between 1 and n − 1 = {len(self.names) - 1}, but is {k}.")
        near, squares = self.list_neighbors(k)
        result = np.empty_like(near), np.empty_like(squares)
        result[0][self.names] = self.names[near]
        result[1][self.names] = self.lengths_of(squares)
        return result

    def lengths_of(self, squares: FloatArray) -> FloatArray:
        """Lengths in the units of the data, at most the largest float."""
        with np.errstate(over="ignore"):
            return np.minimum(np.ldexp(np.sqrt(squares), self.frame.exponent), np.finfo(np.float64).max)

    def list_neighbors(self, k: int) -> tuple[NDArray[np.int64], FloatArray]:
        """The same by position in the tree, with squared distances in the tree's units."""
        near = np.empty((len(self.names), k), dtype=np.int64)
        squares = np.empty(near.shape)

        def list_range(start: int, stop: int) -> None:
            list_neighbors(
                self.exact, self.names, self.tiles, self.boxes, self.shift, self.stretch, start, stop, 1, near, squares
            )

        for_each_range(list_range, self.n_leaves, smallest=16)
        return near, squares

    def sample_search_cost(self, k: int, n_leaves: int) -> float:
        """How many leaves a search for k neighbours scans per point, from about `n_leaves` evenly spaced leaves."""
        step = max(1, self.n_leaves // n_leaves)
        near = np.empty((len(self.names), k), dtype=np.int64)
        scanned = list_neighbors(
            self.exact, self.names, self.tiles, self.boxes, self.shift, self.stretch, 0, self.n_leaves, step,
            near, np.empty(near.shape),
        )  # fmt: skip
        return float(scanned) / (TILE * len(range(0, self.n_leaves, step)))


def build_tree(X: FloatArray) -> PointTree:
    """A kd-tree over the rows of X."""
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
    centers = np.empty((n_leaves, width), dtype=points.search.dtype)
    kernels.center_tiles(tiles, centers)
    return PointTree(
        points.frame, points.exact[order], order, tiles, boxes, centers, points.radius, points.error, points.stretch
    )
