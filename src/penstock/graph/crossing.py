"""The edges of a spanning tree that join two parts, from the trees of the parts: Borůvka's rounds over the border."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock._threads import for_each_range
from penstock._types import FloatArray
from penstock.graph import _boruvka_kernels, _forest_kernels
from penstock.graph import _cross_kernels as kernels
from penstock.graph._kernels import TILE
from penstock.graph.kdtree import PointTree

_MOST_BOXES = 512  # looked at to bound how near a leaf is to the other part


class Side:
    """One of two parts as the rounds see it: its points are numbered from `offset`."""

    def __init__(self, tree: PointTree, edges: NDArray[np.int64], squares: FloatArray, offset: int) -> None:
        self.tree, self.edges, self.squares, self.offset = tree, edges, squares, offset
        self.points = slice(offset, offset + len(tree.names))
        self.leaf_lower = np.zeros(tree.n_leaves)
        self.labels = np.empty(len(tree.boxes), dtype=np.int64)

    def bound_leaves(self, other: Side, shift: float, stretch: float) -> None:
        """How near each leaf may be to the other part; exactly how far beyond the longest edge is of no interest."""
        longest = float(self.squares[-1]) if len(self.squares) else 0.0

        def bound_range(start: int, stop: int) -> None:
            kernels.bound_leaves(
                self.tree.boxes, self.tree.n_leaves, other.tree.boxes, other.tree.n_leaves, shift, stretch,
                longest, _MOST_BOXES, start, stop, self.leaf_lower,
            )  # fmt: skip

        for_each_range(bound_range, self.tree.n_leaves, smallest=64)

    def contract(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The component of each point along sure edges, and the places of the edges that are open."""
        n = len(self.tree.names)
        component = np.zeros(n, dtype=np.int64)
        if len(self.squares) == 0 or self.leaf_lower.min() > self.squares[-1]:
            return component, np.empty(0, dtype=np.int64)
        parent, left = np.arange(n), np.empty(n, dtype=np.int64)
        n_left = kernels.contract_sure(self.edges, self.squares, self.leaf_lower, parent, left)
        _forest_kernels.number_sets(parent, component)
        return component, left[:n_left]

    def leaves_with(self, needed: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Leaves with a marked point, the nearest to the other part first: what they find spares the others work."""
        mine = needed[self.points]
        leaves = np.flatnonzero(np.logical_or.reduceat(mine, np.arange(0, len(mine), TILE)))
        return leaves[np.argsort(self.leaf_lower[leaves], kind="stable")]


class Crossing:
    """The state that the rounds over two parts carry along.

    The graph searched has the edges of both parts' trees and all pairs across: the tree of the union has no others.
    """

    def __init__(self, one: Side, other: Side) -> None:
        self.sides = one, other
        self.shift = one.tree.error + other.tree.error
        self.stretch = max(one.tree.stretch, other.tree.stretch)
        self.radius = max(one.tree.radius, other.tree.radius)
        self.names = np.concatenate([one.tree.names, other.tree.names])
        n = len(self.names)
        one.bound_leaves(other, self.shift, self.stretch)
        other.bound_leaves(one, self.shift, self.stretch)
        (mine, left), (theirs, other_left) = one.contract(), other.contract()
        self.component = np.concatenate([mine, theirs + (mine.max() + 1)])
        self.n_components = int(self.component.max()) + 1
        self.ends = np.concatenate([one.edges[left], other.edges[other_left] + other.offset])
        self.squares = np.concatenate([one.squares[left], other.squares[other_left]])
        self.lower = np.concatenate([np.repeat(s.leaf_lower, TILE)[: len(s.tree.names)] for s in self.sides])
        self.found = np.full(n, -1, dtype=np.int64)
        self.found_square = np.full(n, np.inf)
        self.needed = np.zeros(n, dtype=np.bool_)
        self.pairs: list[NDArray[np.int64]] = []
        self.pair_squares: list[FloatArray] = []

    def run(self) -> tuple[NDArray[np.int64], FloatArray]:
        """Pairs across, the point of the first part first, each by position in its own tree, and their squares."""
        while self.n_components > 1:
            self._join(*self._best_edges())
        pairs = np.sort(np.concatenate(self.pairs), axis=1)
        pairs[:, 1] -= self.sides[1].offset
        return pairs, np.concatenate(self.pair_squares)

    def _best_edges(self) -> tuple[FloatArray, NDArray[np.int64], NDArray[np.int64]]:
        """The first edge that leaves each component; none for the largest one if that would need a search."""
        m = self.n_components
        best, leave, enter = np.full(m, np.inf), np.full(m, -1, dtype=np.int64), np.full(m, -1, dtype=np.int64)
        self._propose(best, leave, enter)
        largest = int(np.bincount(self.component, minlength=m).argmax())
        certified = kernels.mark_open(
            self.component, self.lower, self.found, self.found_square, best, largest, self.needed
        )
        if self.needed.any():
            bound = best.copy()
            self._search(*self.sides, bound)
            self._search(*self.sides[::-1], bound)
            _boruvka_kernels.propose_from_searches(
                self.names, self.component, self.needed, self.found, self.found_square, best, leave, enter
            )
        if not certified:
            leave[largest] = -1
        return best, leave, enter

    def _propose(self, best: FloatArray, leave: NDArray[np.int64], enter: NDArray[np.int64]) -> None:
        kernels.propose_known(
            self.names, self.component, self.ends, self.squares, self.found, self.found_square, best, leave, enter
        )

    def _search(self, side: Side, other: Side, bound: FloatArray) -> None:
        leaves = side.leaves_with(self.needed)
        if len(leaves) == 0:
            return
        _boruvka_kernels.label_nodes(self.component[other.points], other.labels, 0, 0, other.tree.n_leaves)
        tree, far = side.tree, other.tree

        def search_range(start: int, stop: int) -> None:
            kernels.search_across(
                tree.exact, tree.tiles, tree.boxes, tree.centers, side.offset,
                far.exact, far.tiles, far.boxes, far.centers, other.offset,
                other.labels, self.radius, self.shift, self.stretch,
                self.names, self.component, self.needed, bound, self.lower, self.found, self.found_square,
                leaves, start, stop,
            )  # fmt: skip

        search_range(0, 1)  # the nearest leaf by itself: what it finds bounds the searches of all threads
        if len(leaves) > 1:
            for_each_range(lambda start, stop: search_range(start + 1, stop + 1), len(leaves) - 1, smallest=16)

    def _join(self, best: FloatArray, leave: NDArray[np.int64], enter: NDArray[np.int64]) -> None:
        m = self.n_components
        taken, label = np.empty(m, dtype=np.int64), np.arange(m)
        n_taken, self.n_components = _boruvka_kernels.join_components(self.component, leave, enter, label, taken)
        if n_taken == 0:
            raise AssertionError("A round of Borůvka's algorithm joined nothing. Please report this as a bug.")
        taken = taken[:n_taken]
        across = taken[(leave[taken] < self.sides[1].offset) != (enter[taken] < self.sides[1].offset)]
        self.pairs.append(np.column_stack([leave[across], enter[across]]))
        self.pair_squares.append(best[across])
        self.component = label[self.component]
