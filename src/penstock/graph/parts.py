"""Spanning trees of parts of the rows, and the edges between two parts: together they hold the tree of all rows.

An edge of the minimum spanning tree of all rows that lies within a part is in that part's tree, and one between two
parts is in the tree of the union of the two. So each part can be grown by itself, each pair be looked at by itself, and
Kruskal's algorithm over what they yield gives the tree: whoever holds two parts never needs the others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from penstock._blas import one_blas_thread
from penstock._types import FloatArray, IndexArray
from penstock.graph.approximate import Approximation, approximate_edges
from penstock.graph.crossing import Crossing, Side
from penstock.graph.forest import order_edges, squares_of
from penstock.graph.kdtree import PointTree, tree_over
from penstock.graph.mst import edge_lengths, edges_in_frame, row_distances
from penstock.graph.points import Frame, searching_frame

_ROWS_AT_ONCE = 1 << 15  # rows handled at once, so that no second copy of the data is needed


@dataclass(frozen=True)
class Edges:
    """Edges between rows by their number in the whole table, the smaller first.

    `squares` are their squared lengths in the units of the common frame, what the order of edges compares first;
    `lengths` are in the units of the data.
    """

    ends: IndexArray
    squares: FloatArray
    lengths: FloatArray


@dataclass(frozen=True)
class Part:
    """One part of the rows: a search tree over its distinct rows in the common frame, and its own spanning tree.

    `tree.names` are the numbers of the rows in the whole table; `edges` are positions in the tree, in the order of
    (square, smaller number, larger number). `rounded` are the rows themselves by position, kept only where the scale
    of the frame has rounded them: where some values all but vanish beside the range of the data.
    """

    tree: PointTree
    edges: NDArray[np.int64]
    squares: FloatArray
    lengths: FloatArray
    rounded: FloatArray | None = None

    @property
    def longest(self) -> float:
        """The length of the longest edge in the units of the frame; 0 for a single row."""
        return float(np.sqrt(self.squares[-1])) if len(self.squares) else 0.0

    def rows_at(self, positions: IndexArray) -> FloatArray:
        """The rows of the data at these positions of the tree, to the last bit."""
        if self.rounded is not None:
            return self.rounded[positions]
        return _leave(self.tree.frame, self.tree.exact[positions])

    def tree_edges(self) -> Edges:
        """The edges of the part's own tree by numbers of rows."""
        return Edges(np.sort(self.tree.names[self.edges], axis=1), self.squares, self.lengths)


def common_frame(minimum: FloatArray, maximum: FloatArray, sample: FloatArray, n: int | None = None) -> Frame:
    """The frame for all parts: its scale from the extremes of all rows, its centre and axes from a sample of them.

    The scale is the one that `minimum_spanning_tree` gives all rows, so that lengths compare alike to the last bit.
    Centre, axes and precision only steer the search: any sample is right, a good one is faster. `n` is the number of
    all rows, if the sample is not all.

    >>> rows = np.array([[0.0, 7.0], [4.0, 7.0], [3.0, 7.0]])
    >>> frame = common_frame(rows.min(axis=0), rows.max(axis=0), rows[:2])
    >>> frame.exponent, frame.origin.tolist()
    (3, [0.0, 7.0])
    """
    return searching_frame(minimum, maximum, sample, n or len(sample), rotate=True)


def grow_part(rows: FloatArray, numbers: IndexArray, frame: Frame, *, approximate: Approximation | None = None) -> Part:
    """The search tree and the spanning tree of one part.

    Parameters
    ----------
    rows : array of shape (m, p)
        Distinct rows, m ≥ 1, without missing values.
    numbers : array of shape (m,)
        Their numbers in the whole table, ascending.
    frame : Frame
        From `common_frame`.
    approximate : Approximation, optional
        Settle for a spanning tree that may be a little longer.

    Examples
    --------
    >>> rows = np.array([[0.0], [4.0], [1.0]])
    >>> part = grow_part(rows, np.array([10, 20, 30]), common_frame(rows.min(axis=0), rows.max(axis=0), rows))
    >>> part.tree_edges().ends.tolist(), part.lengths.tolist()
    ([[10, 30], [20, 30]], [1.0, 3.0])
    """
    if len(numbers) != len(rows) or (np.diff(numbers) <= 0).any():
        raise ValueError("The rows of a part need one number each, in ascending order.")
    with one_blas_thread():
        points = frame.enter(rows)
    tree = tree_over(points)
    edges = edges_in_frame(points, tree) if approximate is None else approximate_edges(tree, approximate)
    squares = squares_of(points.exact, edges)
    order = order_edges(edges, squares)
    edges = edges[order]
    position = np.empty(len(rows), dtype=np.int64)
    position[tree.names] = np.arange(len(rows))
    return Part(
        tree=replace(tree, names=numbers[tree.names].astype(np.int64)),
        edges=position[edges],
        squares=squares[order],
        lengths=edge_lengths(rows, edges),
        rounded=None if _same_at_scale(frame, points.exact, rows) else rows[tree.names],
    )


def cross_edges(one: Part, other: Part) -> Edges:
    """The edges of the spanning tree of both parts' rows that join the two.

    Only rows near the other part are looked at: the parts' own trees vouch for the rest.

    >>> rows = np.array([[0.0], [1.0], [3.0], [5.0]])
    >>> frame = common_frame(rows.min(axis=0), rows.max(axis=0), rows)
    >>> left, right = grow_part(rows[:2], np.array([0, 1]), frame), grow_part(rows[2:], np.array([2, 3]), frame)
    >>> cross_edges(left, right).ends.tolist(), cross_edges(left, right).lengths.tolist()
    ([[1, 2]], [2.0])
    """
    first = Side(one.tree, one.edges, one.squares, 0)
    second = Side(other.tree, other.edges, other.squares, len(one.tree.names))
    pairs, squares = Crossing(first, second).run()
    ends = np.column_stack([one.tree.names[pairs[:, 0]], other.tree.names[pairs[:, 1]]])
    ends.sort(axis=1)
    order = order_edges(ends, squares)
    lengths = row_distances(one.rows_at(pairs[order, 0]), other.rows_at(pairs[order, 1]))
    return Edges(ends[order], squares[order], lengths)


def _same_at_scale(frame: Frame, exact: FloatArray, rows: FloatArray) -> bool:
    """Whether the rows can be had back from their scaled copies."""
    pieces = (slice(start, start + _ROWS_AT_ONCE) for start in range(0, len(rows), _ROWS_AT_ONCE))
    return all(np.array_equal(_leave(frame, exact[piece]), rows[piece]) for piece in pieces)


def _leave(frame: Frame, exact: FloatArray) -> FloatArray:
    """Rows at the frame's scale back in the units of the data."""
    return np.asarray(np.ldexp(exact, frame.exponent) + frame.origin)
