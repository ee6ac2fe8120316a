"""Exact spanning tree by the algorithm of Borůvka with certified neighbour lists (strategy "kdtree")."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock._threads import for_each_range, one_blas_thread
from penstock._types import BoolArray, FloatArray, IndexArray
from penstock.graph import _boruvka_kernels as kernels
from penstock.graph.distance_kernels import TILE, search_limit
from penstock.graph.edges import order_edges, squares_of
from penstock.graph.points import Frame, centered_frame
from penstock.graph.search import PointTree, tree_over

N_LISTED = 6  # neighbours listed per point: longer lists cost more than the searches they save
# A round that would visit more leaves than this, for each leaf and for each pair of components, costs more than a tree
# for each component: the components are then joined pair by pair, if there are few enough of them for a matrix of all
# pairs. The visits are estimated from a sample of leaves.
_VISITS_PER_LEAF = 100
_VISITS_PER_PAIR = 100
_MOST_CLUMPS = 512
_SAMPLED_LEAVES = 64
_GROWTH = 8  # leaves are searched in batches, the nearest one first: each may shorten what the next has to look at


def boruvka_edges(tree: PointTree) -> IndexArray:
    """Return the edges of the minimum spanning tree, by rows of the data, (n − 1) × 2."""
    near, squares = tree.list_neighbors(min(N_LISTED, len(tree.names) - 1))
    # no point that is not on a list is nearer than the last entry
    rounds = _TreeRounds(tree, near, squares, squares[:, -1].copy(), np.arange(len(near)))
    return tree.names[rounds.run()]


class Rounds(ABC):
    """Rounds of Borůvka's algorithm; subclasses offer known edges (`offer_known`) and search for others (`search`).

    `points.lower` is a lower bound on the squares of all edges to other components that are not known.
    """

    n_listed = 0  # neighbours that each point lists

    def __init__(self, names: NDArray[np.int64], component: NDArray[np.int64], lower: FloatArray) -> None:
        n = len(names)
        self.points = kernels.PointStates(
            names, component, lower, np.zeros(n, dtype=np.bool_), np.full(n, -1, dtype=np.int64), np.full(n, np.inf)
        )
        self.n_components = int(component.max()) + 1
        self.cursor = np.zeros(n, dtype=np.int64)  # how many entries of each list lead to the own component
        self.edges: list[NDArray[np.int64]] = []
        self.squares: list[FloatArray] = []

    @abstractmethod
    def offer_known(self, first: kernels.FirstEdges) -> None:
        """Offer the known edges, of which the first that leaves each component is kept."""

    @abstractmethod
    def search(self, bound: FloatArray) -> bool:
        """Search for all marked points; return False if that would cost too much."""

    def known_edges(self) -> kernels.FirstEdges:
        """Return the first edge known to leave each component."""
        m = self.n_components
        first = kernels.FirstEdges(np.full(m, np.inf), np.full(m, -1, dtype=np.int64), np.full(m, -1, dtype=np.int64))
        self.offer_known(first)
        kernels.offer_found(self.points, first)
        return first

    def join_once(self) -> bool:
        """Join each component with the one its first edge leads to; return False if the searches cost too much.

        The largest component takes no part if its first edge would need a search.
        """
        first, m = self.known_edges(), self.n_components
        largest = int(np.bincount(self.points.component, minlength=m).argmax())
        certified = kernels.mark_searches(self.points, self.cursor, self.n_listed, first, largest)
        if self.points.needed.any():
            if not self.search(first.square.copy()):
                return False
            kernels.offer_found(self.points, first)
        if not certified:
            first.leave[largest] = -1
        label, taken = np.empty(m, dtype=np.int64), np.empty(m, dtype=np.int64)
        n_taken, self.n_components = kernels.join_components(self.points.component, first, label, taken)
        if n_taken == 0:
            raise AssertionError("A round of Borůvka's algorithm joined nothing. Please report this as a bug.")
        taken = taken[:n_taken]
        self.edges.append(np.column_stack([first.leave[taken], first.enter[taken]]))
        self.squares.append(first.square[taken])
        self.points.component[:] = label[self.points.component]
        return True


class _TreeRounds(Rounds):
    """Rounds over one tree; `near` and `squares` list the nearest points of each, in order."""

    def __init__(
        self, tree: PointTree, near: IndexArray, squares: FloatArray, lower: FloatArray, component: IndexArray
    ) -> None:
        super().__init__(tree.names, component, lower)
        self.tree, self.near, self.near_squares = tree, near, squares
        self.n_listed = near.shape[1]
        self.labels = np.empty(len(tree.boxes), dtype=np.int64)

    def run(self) -> IndexArray:
        """Return the edges taken, by position in the tree."""
        while self.n_components > 1:
            if not self.join_once():  # join all components, given what lists and searches have shown so far
                first = self.known_edges()
                known = np.column_stack([first.leave, first.enter])[first.leave >= 0]
                # a list that is not used up has points of other components on it, nearer than the bound on all others
                nearest = np.where(self.cursor >= self.n_listed, self.points.lower, 0.0)
                self.edges.append(join_clumps(self.tree, self.points.component, nearest, known))
                break
        return np.concatenate(self.edges)

    def offer_known(self, first: kernels.FirstEdges) -> None:
        kernels.offer_listed(self.points, self.near, self.near_squares, self.cursor, first)

    def search(self, bound: FloatArray) -> bool:
        """Search for all marked points, or only for a sample if it shows that the search would cost too much."""
        kernels.label_nodes(self.points.component, self.labels, 0, 0, self.tree.n_leaves)
        leaves = leaves_with(self.points.needed)
        sampled = np.zeros(len(leaves), dtype=np.bool_)
        sampled[:: max(1, len(leaves) // _SAMPLED_LEAVES)] = True
        visits = self._search_leaves(leaves[sampled], bound)
        m, left = self.n_components, leaves[~sampled]
        affordable = _VISITS_PER_LEAF * self.tree.n_leaves + _VISITS_PER_PAIR * m * (m - 1) // 2
        if m <= _MOST_CLUMPS and visits * len(left) > affordable * sampled.sum():
            return False
        self._search_leaves(left, bound)
        return True

    def _search_leaves(self, leaves: IndexArray, bound: FloatArray) -> int:
        """Search for the marked points of some leaves; return how many leaves that visited."""
        tree = self.tree.arrays
        visits: list[int] = []

        def search_range(start: int, stop: int) -> None:
            visits.append(
                kernels.search_foreign(tree, 0, tree, 0, self.labels, self.points, bound, leaves, start, stop)
            )

        for_each_range(search_range, len(leaves), smallest=16)
        return sum(visits)


def leaves_with(needed: BoolArray) -> IndexArray:
    """Return the leaves that hold a marked point."""
    return np.flatnonzero(np.logical_or.reduceat(needed, np.arange(0, len(needed), TILE)))


def join_clumps(
    tree: PointTree, component: NDArray[np.int64], nearest: FloatArray, known: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the edges, by position in the tree, that join components (numbered from 0, none empty) to one.

    They are the minimum spanning tree of the components, taken as points at the distance of their first edge. `nearest`
    is for each point a lower bound on the squares of its edges to other components; 0 is always valid. `known` lists
    some edges between components; short ones save searches, the result does not depend on them.
    """
    stops = np.cumsum(np.bincount(component))
    members = np.split(np.argsort(component, kind="stable"), stops[:-1])
    clumps: dict[int, Clump] = {}

    def make_range(start: int, stop: int) -> None:
        for c in range(start, stop):
            clumps[c] = Clump(tree, members[c])

    with one_blas_thread():
        for_each_range(make_range, len(members), smallest=1)
    joining = _Joining(tree, [clumps[c] for c in range(len(members))], nearest)
    for (a, b), square in zip(component[known].tolist(), squares_of(tree.exact, known).tolist(), strict=True):
        joining.connect(a, b, square)
    with one_blas_thread():
        joining.search_pairs()
    return joining.take_edges()


class Clump:
    """Some points of a tree, with a tree of their own along their own principal axes.

    A flat sheet that is tilted against the axes of all the data has thick boxes along those, thin ones along its own.
    Fewer rows than columns, and very many columns, are not rotated: axes would cost more than they save.
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
        """Bound from below the squared distances from the boxes of another clump's leaves to the box around this one.

        Along the axes of this clump a box of the other is tilted. The larger of two bounds counts: by the box around it
        along these axes, and by its extent along the way from its middle to this clump.
        """
        turn = self.axes  # the matrix from the guest's coordinates to these; None means the columns of the table
        if guest.axes is not None:
            turn = guest.axes.T if self.axes is None else guest.axes.T @ self.axes
        middles = _turned(guest.middles, turn) + _turned(guest.center - self.center, self.axes)
        inside = np.clip(middles, self.low, self.high)
        way = middles - inside
        length = np.sqrt(np.einsum("ij,ij->i", way, way))
        extent = np.einsum("ij,ij->i", np.abs(_turned(way, None if turn is None else turn.T)), guest.halves)
        along = length - np.divide(extent, length, out=np.zeros_like(length), where=length > 0)
        boxed = np.maximum(np.abs(way) - _turned(guest.halves, None if turn is None else np.abs(turn)), 0.0)
        return np.asarray(np.maximum(np.maximum(along, 0.0) ** 2, np.einsum("ij,ij->i", boxed, boxed)))

    def slack(self, guest: Clump) -> tuple[float, float]:
        """Return `shift` and `stretch` for which no gap of a leaf exceeds the `search_limit` of the lengths to find.

        The last term covers that axes are orthogonal, and products are exact, only up to rounding: `stretch` − 1 is
        larger than either error.
        """
        stretch = max(self.tree.stretch, guest.tree.stretch)
        across = float(np.linalg.norm(guest.center - self.center)) + self.tree.radius + guest.tree.radius
        return self.tree.error + stretch * guest.tree.error + 4 * (stretch - 1) * across, stretch


def _turned(rows: FloatArray, turn: FloatArray | None) -> FloatArray:
    return rows if turn is None else rows @ turn


class _Found(NamedTuple):
    """An edge: compares in the order of edges."""

    square: float
    smaller: int
    larger: int
    leave: int
    enter: int


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
        """Record an edge between two clumps: ways may now lead along it."""
        if square < self.widest[a, b]:
            way = np.maximum(np.maximum(self.widest[:, a], square)[:, None], self.widest[b])
            np.minimum(self.widest, way, out=self.widest)
            np.minimum(self.widest, way.T, out=self.widest)

    def search_pairs(self) -> None:
        """Search all pairs, those first that may be near each other: what they find saves work for the others."""
        by_size = sorted(range(len(self.clumps)), key=lambda c: len(self.clumps[c].points))
        pairs = []
        for place, host in enumerate(by_size):
            for guest in by_size[:place]:  # the smaller one asks
                gaps = self.clumps[host].leaf_gaps(self.clumps[guest])
                pairs.append((float(gaps.min()), host, guest))  # all pairs' gaps at once would be too many to keep
        for nearest, host, guest in sorted(pairs):
            bound = self.widest[host, [guest]]
            found = self._search_pair(self.clumps[host], self.clumps[guest], nearest, bound)
            if found is not None:
                self.connect(host, guest, found.square)
                self.ends.append((host, guest))
                self.found.append(found)

    def _search_pair(self, host: Clump, guest: Clump, nearest: float, bound: FloatArray) -> _Found | None:
        """Find the first edge between two clumps within `bound`, beyond which the spanning tree cannot contain it."""
        shift, stretch = host.slack(guest)
        if nearest > search_limit(bound[0], shift, stretch):
            return None
        gaps = host.leaf_gaps(guest)
        leaves = np.flatnonzero(gaps <= search_limit(bound[0], shift, stretch))
        leaves = leaves[np.argsort(gaps[leaves], kind="stable")]
        found: list[_Found] = []
        size = 1
        while len(leaves):
            places = (leaves[:size, None] * TILE + np.arange(TILE)).ravel()
            rows = guest.points[places[places < len(guest.points)]]
            rows = rows[self.nearest[rows] <= bound[0]]
            if len(rows):
                found += self._search_rows(host, rows, bound)
            leaves, size = leaves[size:], size * _GROWTH
            leaves = leaves[gaps[leaves] <= search_limit(bound[0], shift, stretch)]
        return min(found, default=None)

    def _search_rows(self, host: Clump, rows: NDArray[np.int64], bound: FloatArray) -> list[_Found]:
        """Find the first edge to a clump for each range of some rows, within `bound`, which they lower."""
        tree, far = self.tree, host.tree
        guests = far.frame.enter(tree.exact[rows])
        found: list[_Found] = []

        def search_range(start: int, stop: int) -> None:
            square, i, j = kernels.first_edge(
                tree.arrays, far.arrays, host.points, rows, guests.search, guests.errors, start, stop, bound
            )
            if i >= 0:
                x, y = int(tree.names[i]), int(tree.names[j])
                found.append(_Found(square, min(x, y), max(x, y), i, j))

        for_each_range(search_range, len(rows), smallest=1024)
        return found

    def take_edges(self) -> NDArray[np.int64]:
        """Apply Kruskal's algorithm to what was found; return edges by position in the tree of all."""
        pairs = np.array([(edge.leave, edge.enter) for edge in self.found], dtype=np.int64)
        order = order_edges(self.tree.names[pairs], np.array([edge.square for edge in self.found]))
        m = len(self.clumps)
        taken = np.empty(m - 1, dtype=np.int64)
        count = kernels.take_edges(np.array(self.ends, dtype=np.int64), order, np.arange(m), taken)
        if count < m - 1:
            raise AssertionError("Some clumps of points were left unjoined. Please report this as a bug.")
        return pairs[taken]
