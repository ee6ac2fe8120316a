"""The shortest edges that join a few clumps of points to one: each clump in its own axes, pair by pair; exact."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock._blas import one_blas_thread
from penstock._threads import for_each_range
from penstock._types import FloatArray
from penstock.graph import _clump_kernels as kernels
from penstock.graph import _forest_kernels
from penstock.graph._kernels import TILE, search_limit
from penstock.graph.forest import order_edges, squares_of
from penstock.graph.kdtree import PointTree, tree_over
from penstock.graph.points import Frame, centered_frame

_GROWTH = 8  # leaves are searched in batches, the nearest one first: each may shorten what the next has to look at


def join_clumps(
    tree: PointTree, component: NDArray[np.int64], nearest: FloatArray, known: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The edges, by position in the tree, that join components (numbered from 0, none empty) to one.

    They are the minimum spanning tree of the components, taken as points at the distance of their first edge.

    `nearest` has for each point a square that no edge to another component falls below; 0 is always right. `known`
    lists some edges between components, the shorter the better: they spare searches, and nothing depends on them.
    """
    clumps = _make_clumps(tree, component)
    joining = _Joining(tree, clumps, nearest)
    for (a, b), square in zip(component[known].tolist(), squares_of(tree.exact, known).tolist(), strict=True):
        joining.connect(a, b, square)
    with one_blas_thread():
        joining.search_pairs()
    return joining.take_edges()


def _make_clumps(tree: PointTree, component: NDArray[np.int64]) -> list[Clump]:
    stops = np.cumsum(np.bincount(component))
    members = np.split(np.argsort(component, kind="stable"), stops[:-1])
    clumps: dict[int, Clump] = {}

    def make_range(start: int, stop: int) -> None:
        for c in range(start, stop):
            clumps[c] = Clump(tree, members[c])

    with one_blas_thread():
        for_each_range(make_range, len(members), smallest=1)
    return [clumps[c] for c in range(len(members))]


class Clump:
    """Some points of a tree, with a tree of their own along their own principal axes.

    A flat sheet that is tilted against the axes of all the data makes fat boxes along those; along its own, thin ones.
    Fewer rows than columns, and very many columns, stay as they are: their axes would cost more than they save.
    """

    def __init__(self, tree: PointTree, members: NDArray[np.int64]) -> None:
        rows = tree.exact[members]
        n, p = rows.shape
        plain = Frame(np.zeros(p), 0, np.zeros(p), None, tree.frame.precise)  # they are at the tree's scale already
        points = centered_frame(plain, rows, rotate=n >= p).enter(rows)
        # no second copy of the rows: searches read them in the tree of all
        self.tree = tree_over(replace(points, exact=np.empty((n, 0))))
        self.points = members[self.tree.names]
        self.center = points.frame.center
        self.axes = points.frame.axes
        low, high = (side(self.tree.tiles, axis=2)[:, :p].astype(np.float64) for side in (np.min, np.max))
        self.middles, self.halves = (low + high) / 2, (high - low) / 2  # of the boxes of the leaves
        self.low, self.high = low.min(axis=0), high.max(axis=0)

    def leaf_gaps(self, guest: Clump) -> FloatArray:
        """Squared distances from the boxes of another clump's leaves to the box around this one, from below.

        Along the axes of this clump a box of the other is tilted. Two ways to bound its distance, the better one of
        which counts: by the box around it along these axes, and by its extent along the way from its middle to here.
        """
        turn = _turn_between(guest.axes, self.axes)
        middles = _turned(guest.middles, turn) + _turned(guest.center - self.center, self.axes)
        inside = np.clip(middles, self.low, self.high)
        way = middles - inside
        length = np.sqrt(np.einsum("ij,ij->i", way, way))
        extent = np.einsum("ij,ij->i", np.abs(_turned(way, None if turn is None else turn.T)), guest.halves)
        along = length - np.divide(extent, length, out=np.zeros_like(length), where=length > 0)
        boxed = np.maximum(np.abs(way) - _turned(guest.halves, None if turn is None else np.abs(turn)), 0.0)
        gaps: FloatArray = np.maximum(np.maximum(along, 0.0) ** 2, np.einsum("ij,ij->i", boxed, boxed))
        return gaps

    def slack(self, guest: Clump) -> tuple[float, float]:
        """`shift` and `stretch` for which no gap of a leaf exceeds the `search_limit` of the lengths in reach of it.

        The last term covers that axes are orthogonal, and products are exact, only up to rounding: `stretch` is
        farther above one than either.
        """
        stretch = max(self.tree.stretch, guest.tree.stretch)
        across = float(np.linalg.norm(guest.center - self.center)) + self.tree.radius + guest.tree.radius
        return self.tree.error + stretch * guest.tree.error + 4 * (stretch - 1) * across, stretch


def _turn_between(guest: FloatArray | None, host: FloatArray | None) -> FloatArray | None:
    """What takes coordinates along some axes to those along others; None stands for the columns of the table."""
    if guest is None:
        return host
    return guest.T if host is None else guest.T @ host


def _turned(rows: FloatArray, turn: FloatArray | None) -> FloatArray:
    return rows if turn is None else rows @ turn


class _Found(NamedTuple):
    """An edge: compares in the order of edges."""

    square: float
    smaller: int
    larger: int
    leave: int
    enter: int


class _Pair(NamedTuple):
    """Two clumps: compares by how near they may be."""

    nearest: float
    host: int
    guest: int


class _Joining:
    """The first edges between pairs of clumps, as far as the spanning tree may need them.

    `widest[a, b]` is the longest step (squared) of the best way from a to b along edges known so far. An edge between
    the two that is longer is in no minimum spanning tree, so none need be looked for beyond it.
    """

    def __init__(self, tree: PointTree, clumps: list[Clump], nearest: FloatArray) -> None:
        self.tree, self.clumps, self.nearest = tree, clumps, nearest
        self.widest = np.full((len(clumps), len(clumps)), np.inf)
        np.fill_diagonal(self.widest, 0.0)
        self.ends: list[tuple[int, int]] = []
        self.found: list[_Found] = []

    def connect(self, a: int, b: int, square: float) -> None:
        """Take note of an edge between two clumps: ways may now lead along it."""
        if square < self.widest[a, b]:
            way = np.maximum(np.maximum(self.widest[:, a], square)[:, None], self.widest[b])
            np.minimum(self.widest, way, out=self.widest)
            np.minimum(self.widest, way.T, out=self.widest)

    def search_pairs(self) -> None:
        """Search all pairs, those first that may be near each other: what they find spares the others work."""
        by_size = sorted(range(len(self.clumps)), key=lambda c: len(self.clumps[c].points))
        pairs = []
        for place, host in enumerate(by_size):
            for guest in by_size[:place]:  # the smaller one asks
                gaps = self.clumps[host].leaf_gaps(self.clumps[guest])
                pairs.append(_Pair(float(gaps.min()), host, guest))  # all pairs' gaps at once would be too many to keep
        for pair in sorted(pairs):
            found = self._search_pair(pair)
            if found is not None:
                self.connect(pair.host, pair.guest, found.square)
                self.ends.append((pair.host, pair.guest))
                self.found.append(found)

    def _search_pair(self, pair: _Pair) -> _Found | None:
        """The first edge between two clumps, or none if there is none worth knowing."""
        host, guest = self.clumps[pair.host], self.clumps[pair.guest]
        shift, stretch = host.slack(guest)
        bound = self.widest[pair.host, [pair.guest]]
        if pair.nearest > search_limit(bound[0], shift, stretch):
            return None
        gaps = host.leaf_gaps(guest)
        leaves = np.flatnonzero(gaps <= search_limit(bound[0], shift, stretch))
        leaves = leaves[np.argsort(gaps[leaves], kind="stable")]
        found: list[_Found] = []
        size = 1
        while len(leaves):
            rows = self._rows_of(guest, leaves[:size], bound[0])
            if len(rows):
                found += self._search_rows(host, rows, bound)
            leaves, size = leaves[size:], size * _GROWTH
            leaves = leaves[gaps[leaves] <= search_limit(bound[0], shift, stretch)]
        return min(found, default=None)

    def _rows_of(self, guest: Clump, leaves: NDArray[np.int64], bound: float) -> NDArray[np.int64]:
        places = (leaves[:, None] * TILE + np.arange(TILE)).ravel()
        rows = guest.points[places[places < len(guest.points)]]
        asking: NDArray[np.int64] = rows[self.nearest[rows] <= bound]
        return asking

    def _search_rows(self, host: Clump, rows: NDArray[np.int64], bound: FloatArray) -> list[_Found]:
        """The first edges from some rows to a clump, one for each range of them, within `bound`, which they shorten."""
        tree, far = self.tree, host.tree
        guests = far.frame.enter(tree.exact[rows])
        found: list[_Found] = []

        def search_range(start: int, stop: int) -> None:
            square, i, j = kernels.first_edge(
                tree.exact, tree.names, host.points, far.tiles, far.boxes, far.error, far.stretch,
                rows, guests.search, guests.errors, start, stop, bound,
            )  # fmt: skip
            if i >= 0:
                x, y = int(tree.names[i]), int(tree.names[j])
                found.append(_Found(square, min(x, y), max(x, y), i, j))

        for_each_range(search_range, len(rows), smallest=1024)
        return found

    def take_edges(self) -> NDArray[np.int64]:
        """Kruskal over what was found, by position in the tree of all."""
        pairs = np.array([(edge.leave, edge.enter) for edge in self.found], dtype=np.int64)
        order = order_edges(self.tree.names[pairs], np.array([edge.square for edge in self.found]))
        m = len(self.clumps)
        taken = np.empty(m - 1, dtype=np.int64)
        count = _forest_kernels.take_edges(np.array(self.ends, dtype=np.int64), order, np.arange(m), taken)
        if count < m - 1:
            raise AssertionError("Some clumps of points were left unjoined. Please report this as a bug.")
        return pairs[taken]
