"""Compute a spanning tree from the trees of parts of the rows and the edges between pairs of parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from penstock._threads import for_each_range, one_blas_thread
from penstock._types import BoolArray, FloatArray, IndexArray
from penstock.graph import _boruvka_kernels as kernels
from penstock.graph.boruvka import Rounds, leaves_with
from penstock.graph.distance_kernels import TILE
from penstock.graph.edges import edge_lengths, order_edges, spanning_forest, squares_of
from penstock.graph.mst import edges_in_frame
from penstock.graph.points import Frame, frame_between, searching_frame
from penstock.graph.search import PointTree, tree_over

_ROWS_AT_ONCE = 1 << 15  # rows handled at once, so that no second copy of the data is needed
_MOST_BOXES = 512  # looked at to bound how near a leaf is to the other part
# Distances of boxes are trusted to this share of themselves, and not at all where their squares might vanish.
_ROUNDING = 1e-9
_SMALLEST = 1e-140


@dataclass(frozen=True)
class Edges:
    """Edges between rows by their number in the whole table, the smaller first.

    `squares` are their squared lengths in the units of the common frame, by which edges are ordered first; `lengths`
    are in the units of the data.
    """

    ends: IndexArray
    squares: FloatArray
    lengths: FloatArray


@dataclass(frozen=True)
class Part:
    """One part of the rows: a search tree over its distinct rows in the common frame, and its own spanning tree.

    `tree.names` are the numbers of the rows in the whole table; `edges` are positions in the tree, in the order of
    (square, smaller number, larger number). `rounded` are the rows themselves by position, kept only where the scale of
    the frame rounds them: where some values are tiny relative to the range of the data.
    """

    tree: PointTree
    edges: NDArray[np.int64]
    squares: FloatArray
    lengths: FloatArray
    rounded: FloatArray | None = None

    @property
    def longest(self) -> float:
        """Length of the longest edge in the units of the frame; 0 for a single row."""
        return float(np.sqrt(self.squares[-1])) if len(self.squares) else 0.0

    def rows_at(self, positions: IndexArray) -> FloatArray:
        """Return the rows of the data at these positions of the tree, to the last bit."""
        if self.rounded is not None:
            return self.rounded[positions]
        return self.tree.frame.leave(self.tree.exact[positions])

    def tree_edges(self) -> Edges:
        """Return the edges of the part's own tree by numbers of rows."""
        return Edges(np.sort(self.tree.names[self.edges], axis=1), self.squares, self.lengths)


def common_frame(minimum: FloatArray, maximum: FloatArray, sample: FloatArray, n: int | None = None) -> Frame:
    """Make the frame of all parts: its scale from the extremes of all rows, its centre and axes from a sample of them.

    The scale is the one that `minimum_spanning_tree` gives all rows, so that lengths compare alike to the last bit.
    Centre, axes and precision affect only the speed of searches. `n` is the number of all rows, if the sample is not
    all.
    """
    return searching_frame(minimum, maximum, sample, n or len(sample), rotate=True)


def grow_part(rows: FloatArray, numbers: IndexArray, frame: Frame) -> Part:
    """Build the search tree and the spanning tree of one part.

    rows : (m, p) distinct rows, m ≥ 1, without missing values.
    numbers : (m,) their numbers in the whole table, ascending.
    frame : from `common_frame`.
    """
    if len(numbers) != len(rows) or (np.diff(numbers) <= 0).any():
        raise ValueError("The rows of a part need one number each, in ascending order.")
    with one_blas_thread():
        points = frame.enter(rows)
    tree = tree_over(points)
    edges = edges_in_frame(points, tree)
    squares = squares_of(points.exact, edges)
    order = order_edges(edges, squares)
    edges = edges[order]
    position = np.empty(len(rows), dtype=np.int64)
    position[tree.names] = np.arange(len(rows))
    runs = (slice(start, start + _ROWS_AT_ONCE) for start in range(0, len(rows), _ROWS_AT_ONCE))
    exact_at_scale = all(np.array_equal(frame.leave(points.exact[run]), rows[run]) for run in runs)
    return Part(
        tree=replace(tree, names=numbers[tree.names].astype(np.int64)),
        edges=position[edges],
        squares=squares[order],
        lengths=edge_lengths(rows, edges),
        rounded=None if exact_at_scale else rows[tree.names],
    )


def cross_edges(one: Part, other: Part) -> Edges:
    """Find the edges of the spanning tree of both parts' rows that join the two.

    Only rows near the other part are searched; for the others the parts' own trees are proof enough.
    """
    pairs, squares = Crossing(Side(one, 0), Side(other, len(one.tree.names))).run()
    ends = np.column_stack([one.tree.names[pairs[:, 0]], other.tree.names[pairs[:, 1]]])
    ends.sort(axis=1)
    order = order_edges(ends, squares)
    rows = np.concatenate([one.rows_at(pairs[order, 0]), other.rows_at(pairs[order, 1])])
    lengths = edge_lengths(rows, np.arange(len(rows)).reshape(2, -1).T)
    return Edges(ends[order], squares[order], lengths)


class Side:
    """One of two parts in the rounds of `Crossing`: its points are numbered from `offset`."""

    def __init__(self, part: Part, offset: int) -> None:
        self.part, self.tree, self.offset = part, part.tree, offset
        self.points = slice(offset, offset + len(part.tree.names))
        self.leaf_lower = np.zeros(part.tree.n_leaves)  # the square of no edge from the leaf to the other part is less
        self.labels = np.empty(len(part.tree.boxes), dtype=np.int64)

    def bound_leaves(self, other: Side) -> None:
        """Bound how near each leaf is to the other part; beyond the longest edge it need not be exact."""
        tree, far, squares = self.tree.arrays, other.tree.arrays, self.part.squares
        longest = float(squares[-1]) if len(squares) else 0.0

        def bound_range(start: int, stop: int) -> None:
            kernels.bound_leaves(tree, far, longest, _MOST_BOXES, start, stop, self.leaf_lower)

        for_each_range(bound_range, self.tree.n_leaves, smallest=64)

    def contract(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the component of each point along sure edges, and the places of the other edges."""
        n, squares = len(self.tree.names), self.part.squares
        component = np.zeros(n, dtype=np.int64)
        if len(squares) == 0 or self.leaf_lower.min() > squares[-1]:
            return component, np.empty(0, dtype=np.int64)
        parent, left = np.arange(n), np.empty(n, dtype=np.int64)
        n_left = kernels.contract_sure(self.part.edges, squares, self.leaf_lower, parent, left)
        kernels.number_sets(parent, component)
        return component, left[:n_left]


class Crossing(Rounds):
    """Rounds over two parts: the graph has the edges of both trees and all pairs across, and no others are needed."""

    def __init__(self, one: Side, other: Side) -> None:
        self.sides = one, other
        one.bound_leaves(other)
        other.bound_leaves(one)
        (mine, left), (theirs, other_left) = one.contract(), other.contract()
        super().__init__(
            np.concatenate([one.tree.names, other.tree.names]),
            np.concatenate([mine, theirs + (mine.max() + 1)]),
            np.concatenate([np.repeat(side.leaf_lower, TILE)[: len(side.tree.names)] for side in self.sides]),
        )
        self.ends = np.concatenate([one.part.edges[left], other.part.edges[other_left] + other.offset])
        self.end_squares = np.concatenate([one.part.squares[left], other.part.squares[other_left]])

    def run(self) -> tuple[NDArray[np.int64], FloatArray]:
        """Return pairs across, the point of the first part first, by position in their trees, and their squares."""
        while self.n_components > 1:
            self.join_once()
        pairs = np.sort(np.concatenate(self.edges), axis=1)
        squares = np.concatenate(self.squares)
        pairs[:, 1] -= self.sides[1].offset
        across = (pairs[:, 0] < self.sides[1].offset) & (pairs[:, 1] >= 0)
        return pairs[across], squares[across]

    def offer_known(self, first: kernels.FirstEdges) -> None:
        kernels.offer_edges(self.points, self.ends, self.end_squares, first)

    def search(self, bound: FloatArray) -> bool:
        for side, other in (self.sides, self.sides[::-1]):
            leaves = leaves_with(self.points.needed[side.points])
            if len(leaves):
                # the nearest to the other part first: what these find saves searches from the others
                self._search_leaves(side, other, leaves[np.argsort(side.leaf_lower[leaves], kind="stable")], bound)
        return True

    def _search_leaves(self, side: Side, other: Side, leaves: IndexArray, bound: FloatArray) -> None:
        kernels.label_nodes(self.points.component[other.points], other.labels, 0, 0, other.tree.n_leaves)
        tree, far = side.tree.arrays, other.tree.arrays

        def search_range(start: int, stop: int) -> None:
            kernels.search_foreign(
                tree, side.offset, far, other.offset, other.labels, self.points, bound, leaves, start, stop
            )

        search_range(0, 1)  # the nearest leaf by itself: what it finds bounds the searches of all threads
        for_each_range(lambda start, stop: search_range(start + 1, stop + 1), len(leaves) - 1, smallest=16)


def join_edges(n: int, edges: Sequence[Edges]) -> Edges:
    """Return those of the given edges between n rows that are in their minimum spanning tree (or forest), in order.

    It may be done step by step: what is not in the tree of some of the edges is not in the tree of all.
    """
    ends = np.concatenate([np.empty((0, 2), dtype=np.intp), *(part.ends for part in edges)])
    squares = np.concatenate([np.empty(0), *(part.squares for part in edges)])
    taken, _ = spanning_forest(n, ends, squares)
    ends, squares = ends[taken], squares[taken]
    return Edges(ends, squares, np.concatenate([np.empty(0), *(part.lengths for part in edges)])[taken])


def box_distances(low: FloatArray, high: FloatArray) -> FloatArray:
    """Compute lower bounds on the distances between the rows of P boxes (P × p lower and upper corners), P × P."""
    frame = frame_between(low.min(axis=0), high.max(axis=0))
    low, high = frame.scale(low), frame.scale(high)
    found = np.empty((len(low), len(low)))
    for a in range(len(low)):
        gaps = np.maximum(np.maximum(low[a] - high, low - high[a]), 0.0)
        found[a] = np.sqrt(np.einsum("ij,ij->i", gaps, gaps))
    found = np.where(found > _SMALLEST, found * (1 - _ROUNDING), 0.0)
    with np.errstate(over="ignore"):
        return np.minimum(np.ldexp(found, frame.exponent), np.finfo(np.float64).max)


def skippable_pairs(low: FloatArray, high: FloatArray, longest: FloatArray, joined: FloatArray) -> BoolArray:
    """Find the pairs of parts (P × P) that no edge of the tree of all rows joins.

    Two rows are not joined if a chain of shorter edges leads from one to the other. There is such a chain for all rows
    of two parts if their boxes are farther apart than the longest step of a way through parts: the longest edges of the
    trees of the parts on it, the two included, and the shortest distances from one to the next.

    low, high : (P, p) the smallest and the largest value of each column in each part.
    longest : (P,) the longest edge of a spanning tree of each part.
    joined : (P, P) for each pair the distance of two of their rows, the shorter the better; infinite where none is
        known. All in the same units, those of the data or of the frame.
    """
    step = np.maximum(np.minimum(joined, joined.T), np.maximum(longest[:, None], longest[None, :]))
    np.fill_diagonal(step, longest)
    for between in range(len(step)):
        np.minimum(step, np.maximum(step[:, between, None], step[None, between, :]), out=step)
    return box_distances(low, high) > step
