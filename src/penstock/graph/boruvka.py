"""Exact spanning tree by Borůvka's algorithm with certified neighbour lists (strategy "kdtree")."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock._threads import for_each_range
from penstock._types import FloatArray, IndexArray
from penstock.graph import _boruvka_kernels as kernels
from penstock.graph import _kdtree_kernels as kdtree
from penstock.graph._kernels import TILE
from penstock.graph.points import Points

N_LISTED = 6  # neighbours listed per point: longer lists cost more than the searches they save


@dataclass(frozen=True)
class PointTree:
    """A kd-tree over points: everything is in the tree's order, `names` leads back to the rows of the data."""

    exact: FloatArray
    names: NDArray[np.int64]
    tiles: NDArray[np.float32]
    boxes: NDArray[np.float32]
    centers: NDArray[np.float32]  # of the leaves
    radius: float  # no point is farther from the origin
    shift: float
    stretch: float

    @property
    def n_leaves(self) -> int:
        return len(self.tiles)


def build_tree(points: Points) -> PointTree:
    n, width = points.search.shape
    order = np.arange(n)
    kdtree.order_points(points.search, order)
    n_leaves = -(-n // TILE)
    tiles = np.empty((n_leaves, width, TILE), dtype=np.float32)
    kdtree.fill_tiles(points.search, order, tiles)
    boxes = np.empty((2 * n_leaves - 1, 2, width), dtype=np.float32)
    kdtree.bound_nodes(tiles, boxes, 0, 0, n_leaves)
    centers = np.empty((n_leaves, width), dtype=np.float32)
    kdtree.center_tiles(tiles, centers)
    return PointTree(points.exact[order], order, tiles, boxes, centers, points.radius, points.shift, points.stretch)


def sample_search_cost(tree: PointTree, n_sampled: int) -> float:
    """How many leaves a neighbour search scans per point, from evenly spaced leaves."""
    step = max(1, tree.n_leaves // n_sampled)
    near = np.empty((len(tree.names), N_LISTED), dtype=np.int64)
    scanned = kernels.list_neighbors(
        tree.exact, tree.names, tree.tiles, tree.boxes, tree.shift, tree.stretch, 0, tree.n_leaves, step,
        near, np.empty(near.shape),
    )  # fmt: skip
    return float(scanned) / (TILE * len(range(0, tree.n_leaves, step)))


def spanning_edges(tree: PointTree) -> tuple[IndexArray, FloatArray]:
    """The edges of the minimum spanning tree, by rows of the data, and their squared lengths."""
    n = len(tree.names)
    near = np.empty((n, min(N_LISTED, n - 1)), dtype=np.int64)
    squares = np.empty(near.shape)

    def list_range(start: int, stop: int) -> None:
        kernels.list_neighbors(
            tree.exact, tree.names, tree.tiles, tree.boxes, tree.shift, tree.stretch, start, stop, 1, near, squares
        )

    for_each_range(list_range, tree.n_leaves, smallest=16)
    return _Rounds(tree, near, squares).run()


class _Rounds:
    """The state that Borůvka's rounds carry along."""

    def __init__(self, tree: PointTree, near: NDArray[np.int64], squares: FloatArray) -> None:
        n = len(tree.names)
        self.tree, self.near, self.squares = tree, near, squares
        self.component = np.arange(n)
        self.n_components = n
        self.cursor = np.zeros(n, dtype=np.int64)
        self.lower = squares[:, -1].copy()  # nothing that is not on the list is nearer than its last entry
        self.found = np.full(n, -1, dtype=np.int64)
        self.found_square = np.full(n, np.inf)
        self.needed = np.zeros(n, dtype=np.bool_)
        self.labels = np.empty(len(tree.boxes), dtype=np.int64)
        self.edges: list[NDArray[np.int64]] = []
        self.edge_squares: list[FloatArray] = []

    def run(self) -> tuple[IndexArray, FloatArray]:
        while self.n_components > 1:
            self._join(*self._best_edges())
        return np.concatenate(self.edges), np.concatenate(self.edge_squares)

    def _best_edges(self) -> tuple[FloatArray, NDArray[np.int64], NDArray[np.int64]]:
        """The first edge that leaves each component; none for the largest one if that would need a search."""
        m = self.n_components
        best, leave, enter = np.full(m, np.inf), np.full(m, -1, dtype=np.int64), np.full(m, -1, dtype=np.int64)
        names = self.tree.names
        kernels.propose_from_lists(
            names, self.component, self.near, self.squares, self.cursor, self.found, self.found_square,
            best, leave, enter,
        )  # fmt: skip
        largest = int(np.bincount(self.component, minlength=m).argmax())
        certified = kernels.mark_searches(
            self.component, self.near, self.cursor, self.lower, best, largest, self.needed
        )
        if self.needed.any():
            self._search(best.copy())
            kernels.propose_from_searches(
                names, self.component, self.needed, self.found, self.found_square, best, leave, enter
            )
        if not certified:
            leave[largest] = -1
        return best, leave, enter

    def _search(self, bound: FloatArray) -> None:
        tree = self.tree
        kernels.label_nodes(self.component, self.labels, 0, 0, tree.n_leaves)

        def search_range(start: int, stop: int) -> None:
            kernels.search_foreign(
                tree.exact, tree.names, tree.tiles, tree.boxes, tree.centers, tree.radius, tree.shift, tree.stretch,
                self.component, self.labels,
                self.needed, bound, self.lower, self.found, self.found_square, start, stop,
            )  # fmt: skip

        for_each_range(search_range, tree.n_leaves, smallest=16)

    def _join(self, best: FloatArray, leave: NDArray[np.int64], enter: NDArray[np.int64]) -> None:
        m = self.n_components
        taken = np.empty(m, dtype=np.int64)
        label = np.arange(m)
        n_taken, self.n_components = kernels.join_components(self.component, leave, enter, label, taken)
        taken = taken[:n_taken]
        self.edges.append(np.column_stack([self.tree.names[leave[taken]], self.tree.names[enter[taken]]]))
        self.edge_squares.append(best[taken])
        self.component = label[self.component]
