"""Exact spanning tree by Borůvka's algorithm with certified neighbour lists (strategy "kdtree")."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock._threads import for_each_range
from penstock._types import FloatArray, IndexArray
from penstock.graph import _boruvka_kernels as kernels
from penstock.graph._kernels import TILE
from penstock.graph.clumps import join_clumps
from penstock.graph.kdtree import PointTree

N_LISTED = 6  # neighbours listed per point: longer lists cost more than the searches they save
# A round that would visit more leaves than this, for each leaf and for each pair of components, costs more than trees
# of their own for all components: what is left is then joined pair by pair, if there are few enough of them for what
# is known of all pairs to be small. From so many leaves it is told.
_VISITS_PER_LEAF = 100
_VISITS_PER_PAIR = 100
_MOST_CLUMPS = 512
_SAMPLED_LEAVES = 64


def spanning_edges(tree: PointTree) -> IndexArray:
    """The edges of the minimum spanning tree, by rows of the data."""
    near, squares = tree.list_neighbors(min(N_LISTED, len(tree.names) - 1))
    # nothing that is not on the list is nearer than its last entry
    return tree.names[_Rounds(tree, near, squares, squares[:, -1].copy(), np.arange(len(near))).run()]


def joining_edges(tree: PointTree, component: IndexArray) -> IndexArray:
    """The shortest edges that join components (numbered from 0, none empty) to one, by position in the tree; exact.

    They complete any forest to a spanning tree: each is the first that leaves some union of its components.
    """
    n = len(tree.names)
    if component.max() == 0:
        return np.empty((0, 2), dtype=np.intp)
    unlisted = np.empty((n, 0), dtype=np.int64), np.empty((n, 0))
    return _Rounds(tree, *unlisted, np.zeros(n), component.astype(np.int64)).run()


class _Rounds:
    """The state that Borůvka's rounds carry along.

    `near` and `squares` list the nearest points of each; no point that is not listed is nearer than `lower`.
    """

    def __init__(
        self,
        tree: PointTree,
        near: NDArray[np.int64],
        squares: FloatArray,
        lower: FloatArray,
        component: NDArray[np.int64],
    ) -> None:
        n = len(tree.names)
        self.tree, self.near, self.squares = tree, near, squares
        self.component = component
        self.n_components = int(component.max()) + 1
        self.cursor = np.zeros(n, dtype=np.int64)
        self.lower = lower
        self.found = np.full(n, -1, dtype=np.int64)
        self.found_square = np.full(n, np.inf)
        self.needed = np.zeros(n, dtype=np.bool_)
        self.labels = np.empty(len(tree.boxes), dtype=np.int64)
        self.edges: list[NDArray[np.int64]] = []

    def run(self) -> IndexArray:
        """The edges taken, by position in the tree."""
        while self.n_components > 1:
            edges = self._best_edges()
            if edges is None:
                self.edges.append(self._join_clumps())
                break
            self._join(*edges)
        return np.concatenate(self.edges)

    def _best_edges(self) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
        """The first edge that leaves each component; none for the largest one if that would need a search.

        Nothing at all if the searches of this round would cost more than to join what is left pair by pair.
        """
        best, leave, enter = self._propose()
        largest = int(np.bincount(self.component, minlength=self.n_components).argmax())
        certified = kernels.mark_searches(
            self.component, self.cursor, self.near.shape[1], self.lower, best, largest, self.needed
        )
        if self.needed.any():
            if not self._search(best.copy()):
                return None
            kernels.propose_from_searches(
                self.tree.names, self.component, self.needed, self.found, self.found_square, best, leave, enter
            )
        if not certified:
            leave[largest] = -1
        return leave, enter

    def _propose(self) -> tuple[FloatArray, NDArray[np.int64], NDArray[np.int64]]:
        """The first edge known to leave each component, as (square, from, to); −1 where none is known."""
        m = self.n_components
        best, leave, enter = np.full(m, np.inf), np.full(m, -1, dtype=np.int64), np.full(m, -1, dtype=np.int64)
        kernels.propose_from_lists(
            self.tree.names, self.component, self.near, self.squares, self.cursor, self.found, self.found_square,
            best, leave, enter,
        )  # fmt: skip
        return best, leave, enter

    def _search(self, bound: FloatArray) -> bool:
        """Search for all marked points, or only for some if these show that it would cost too much."""
        kernels.label_nodes(self.component, self.labels, 0, 0, self.tree.n_leaves)
        leaves = np.flatnonzero(np.logical_or.reduceat(self.needed, np.arange(0, len(self.needed), TILE)))
        sampled = np.zeros(len(leaves), dtype=np.bool_)
        sampled[:: max(1, len(leaves) // _SAMPLED_LEAVES)] = True
        visits = self._search_leaves(leaves[sampled], bound)
        m, left = self.n_components, leaves[~sampled]
        affordable = _VISITS_PER_LEAF * self.tree.n_leaves + _VISITS_PER_PAIR * m * (m - 1) // 2
        if m <= _MOST_CLUMPS and visits * len(left) > affordable * sampled.sum():
            return False
        if len(left):
            self._search_leaves(left, bound)
        return True

    def _search_leaves(self, leaves: IndexArray, bound: FloatArray) -> int:
        """Search for the marked points of some leaves; how many leaves that visited."""
        tree = self.tree
        visits: list[int] = []

        def search_range(start: int, stop: int) -> None:
            visits.append(
                kernels.search_foreign(
                    tree.exact, tree.names, tree.tiles, tree.boxes, tree.centers, tree.radius, tree.shift, tree.stretch,
                    self.component, self.labels,
                    self.needed, bound, self.lower, self.found, self.found_square, leaves, start, stop,
                )
            )  # fmt: skip

        for_each_range(search_range, len(leaves), smallest=16)
        return sum(visits)

    def _join_clumps(self) -> NDArray[np.int64]:
        """The edges that join all that is left, given what lists and searches have shown so far."""
        _, leave, enter = self._propose()
        known = np.column_stack([leave, enter])[leave >= 0]
        # a list that is not used up has points of other components on it, nearer than the bound on all others
        nearest = np.where(self.cursor >= self.near.shape[1], self.lower, 0.0)
        return join_clumps(self.tree, self.component, nearest, known)

    def _join(self, leave: NDArray[np.int64], enter: NDArray[np.int64]) -> None:
        m = self.n_components
        taken = np.empty(m, dtype=np.int64)
        label = np.arange(m)
        n_taken, self.n_components = kernels.join_components(self.component, leave, enter, label, taken)
        if n_taken == 0:
            raise AssertionError("A round of Borůvka's algorithm joined nothing. Please report this as a bug.")
        taken = taken[:n_taken]
        self.edges.append(np.column_stack([leave[taken], enter[taken]]))
        self.component = label[self.component]
