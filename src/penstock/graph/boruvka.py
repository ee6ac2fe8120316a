"""Exact spanning tree by Borůvka's algorithm with certified neighbour lists (strategy "kdtree")."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock._threads import for_each_range
from penstock._types import FloatArray, IndexArray
from penstock.graph import _boruvka_kernels as kernels
from penstock.graph.kdtree import PointTree

N_LISTED = 6  # neighbours listed per point: longer lists cost more than the searches they save


def spanning_edges(tree: PointTree) -> IndexArray:
    """The edges of the minimum spanning tree, by rows of the data."""
    return _Rounds(tree, *tree.list_neighbors(min(N_LISTED, len(tree.names) - 1))).run()


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

    def run(self) -> IndexArray:
        while self.n_components > 1:
            self._join(*self._best_edges())
        return np.concatenate(self.edges)

    def _best_edges(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
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
            self.component, self.cursor, self.near.shape[1], self.lower, best, largest, self.needed
        )
        if self.needed.any():
            self._search(best.copy())
            kernels.propose_from_searches(
                names, self.component, self.needed, self.found, self.found_square, best, leave, enter
            )
        if not certified:
            leave[largest] = -1
        return leave, enter

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

    def _join(self, leave: NDArray[np.int64], enter: NDArray[np.int64]) -> None:
        m = self.n_components
        taken = np.empty(m, dtype=np.int64)
        label = np.arange(m)
        n_taken, self.n_components = kernels.join_components(self.component, leave, enter, label, taken)
        if n_taken == 0:
            raise AssertionError("A round of Borůvka's algorithm joined nothing. Please report this as a bug.")
        taken = taken[:n_taken]
        self.edges.append(np.column_stack([self.tree.names[leave[taken]], self.tree.names[enter[taken]]]))
        self.component = label[self.component]
