"""The local view: how a row joins the spanning tree of the others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock._types import FloatArray, IndexArray, Tree
from penstock.graph.edges import nearest_by_tree, shortest_edges
from penstock.graph.rows import first_copies
from penstock.graph.search import FittedSearch, LazySearch

_LARGEST = float(np.finfo(np.float64).max)  # what overflows ends here


@dataclass(frozen=True, eq=False)
class Places:
    """Where new rows are among the fitted ones.

    near : the nearest fitted row; −1 if none shares a column with the new one.
    distance : to it.
    apart : 0 if the new row *is* that row, 1 if it is at least as far from it as its nearest neighbour. In between a
        view mixes what it says of the fitted row and what it says of a stranger, so that nothing jumps.
    """

    near: IndexArray
    distance: FloatArray
    apart: FloatArray


@dataclass(frozen=True, eq=False)
class Joining:
    """The edge that joins a row to the tree of the others, plus the mean length of the edges at the row it joins.

    By the cut property the first is the distance to the nearest row. A fitted row is looked at as if it came last: its
    own edge counts once, and not among those of the row that it joins. So new rows are measured as fitted ones are.

    search : the fitted rows, all different.
    reach : of each, the distance to its nearest neighbour that is apart from it.
    around : the mean length of its edges.
    own : what this view says of it.
    joins : its nearest other row.
    """

    search: FittedSearch
    reach: FloatArray
    around: FloatArray
    own: FloatArray
    joins: IndexArray

    def places(self, Q: FloatArray, likely: IndexArray | None = None) -> Places:
        """Where rows are. A row that equals fitted ones is that in `likely`, if it is one of them, else the first."""
        near, distance, equal = self.search.nearest_or_equal(Q)
        self._tell_equal(Q, near, equal)
        if likely is not None:
            near = np.where(equal & _same(self.search.rows()[likely], Q), likely, near)
        with np.errstate(over="ignore"):
            apart = np.minimum(1.0, distance / self.reach[near])
        return Places(near, distance, np.where(near < 0, 1.0, np.where(equal, 0.0, apart)))

    def _tell_equal(self, Q: FloatArray, near: IndexArray, equal: NDArray[np.bool_]) -> None:
        """Correct both where a row is nearer than the search can tell from equal: 1e-150 of the largest range."""
        rows, claimed = self.search.rows(), np.flatnonzero(equal)
        unclear = claimed[~_same(rows[near[claimed]], Q[claimed])]
        if len(unclear):
            original = first_copies(np.concatenate([rows, Q[unclear]]))[len(rows) :]
            equal[unclear] = original < len(rows)
            near[unclear] = np.where(equal[unclear], original, near[unclear])

    def own_places(self) -> Places:
        """The fitted rows, each at home."""
        m = len(self.own)
        return Places(np.arange(m), np.zeros(m), np.zeros(m))

    def values(self, places: Places) -> FloatArray:
        """NaN for rows that share no column with any fitted one."""
        own = self.own[places.near]
        with np.errstate(invalid="ignore", over="ignore"):
            joined = np.minimum(places.distance + self.around[places.near], _LARGEST)
            mixed = np.where(places.apart == 1, joined, (1 - places.apart) * own + places.apart * joined)
        return np.where(places.near < 0, np.nan, np.where(places.apart == 0, own, mixed))

    def gaps(self, Q: FloatArray, places: Places) -> FloatArray:
        """What each variable adds to the squared length of the edge, up to a factor; 0 where one of the two is missing.

        Of a row that equals a fitted one, the edge that joins that one.
        """
        neighbors = self.search.rows()[np.where(places.apart == 0, self.joins[places.near], places.near)]
        gaps = np.abs(np.nan_to_num(Q / 2 - neighbors / 2))
        largest = gaps.max(axis=1, keepdims=True)
        squares: FloatArray = (gaps / np.where(largest > 0, largest, 1.0)) ** 2  # none of which overflows, nor vanishes
        return np.where((places.near < 0)[:, None], 0.0, squares)


def join_rows(rows: FloatArray, tree: Tree) -> Joining:
    """The view of rows that are all different, given their spanning tree."""
    m = len(rows)
    if m == 1:
        return Joining(LazySearch(rows), np.ones(1), np.zeros(1), np.zeros(1), np.zeros(1, dtype=np.intp))
    near, edge, total, degree = nearest_by_tree(tree)
    alone = degree[near] == 1  # the row it joins has no other edge
    total = np.minimum(total, _LARGEST)
    others = np.where(alone, edge, (total[near] - edge) / np.maximum(degree[near] - 1, 1))
    with np.errstate(over="ignore"):
        own = np.minimum(edge + others, _LARGEST)
    return Joining(LazySearch(rows), shortest_edges(tree), total / degree, own, near)


def _same(rows: FloatArray, others: FloatArray) -> NDArray[np.bool_]:
    """Whether each row equals the other, holes and all."""
    same: NDArray[np.bool_] = ((rows == others) | (np.isnan(rows) & np.isnan(others))).all(axis=1)
    return same
