"""Walk along a spanning tree to the nearest normal rows, and lay the tree out in two dimensions.

For a drawing the tree is hung up at its middle (`_hang`): nodes in breadth-first order, each with its parent. A large
tree is contracted first. Contraction and layout are passes over that order.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from heapq import heapify, heappop, heappush
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import breadth_first_order

from penstock._types import BoolArray, FloatArray, IndexArray, Tree


class NormalNeighbors(NamedTuple):
    """The nearest normal nodes, the nearest first."""

    nodes: IndexArray
    lengths: FloatArray  # of the paths to them from the nearest row of the event
    steps: IndexArray  # the edges on these paths


class TreeWalker:
    """Find nodes near to others along one tree; what all searches need is computed at the first."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree

    def nearest_normal(self, rows: Iterable[int], is_normal: BoolArray, n: int = 3) -> NormalNeighbors:
        """Return the `n` normal nodes with the shortest path from any of `rows`; fewer if there are fewer.

        Rows of the event are never their own neighbours, whatever `is_normal` says of them. Ties go to the smaller
        number; of paths of equal length the one with fewer edges counts. The walk goes no farther than it has to.
        """
        sources = {int(row) for row in rows}
        waiting = [(0.0, 0, row) for row in sources]
        heapify(waiting)
        done: set[int] = set()
        found: list[tuple[float, int, int]] = []
        farthest = np.inf
        start, neighbors, numbers = self._edges.indptr, self._edges.indices, self._edges.data
        # Nodes as far as the last one found are waited for: over an edge of length 0 a smaller number may follow.
        while waiting and waiting[0][0] <= farthest and n > 0:
            length, steps, node = heappop(waiting)
            if node in done:
                continue
            done.add(node)
            if is_normal[node] and node not in sources:
                found.append((length, node, steps))
                farthest = length if len(found) == n else farthest
            for place in range(start[node], start[node + 1]):
                neighbor = int(neighbors[place])
                if neighbor not in done:
                    step = float(self.tree.lengths[int(numbers[place]) - 1])
                    heappush(waiting, (length + step, steps + 1, neighbor))
        lengths, nodes, edges = zip(*sorted(found)[:n], strict=True) if found else ((), (), ())
        return NormalNeighbors(np.array(nodes, np.intp), np.array(lengths, np.float64), np.array(edges, np.intp))

    @cached_property
    def _edges(self) -> sparse.csr_array:
        return edge_matrix(self.tree)


def edge_matrix(tree: Tree) -> sparse.csr_array:
    """Return the symmetric matrix of the edges' numbers, from 1, so that an edge of length 0 is an entry too."""
    n = tree.n_nodes
    a, b = tree.edges[:, 0].astype(np.int32), tree.edges[:, 1].astype(np.int32)
    number = np.arange(1, n, dtype=np.float64)
    both = np.concatenate([a, b]), np.concatenate([b, a])
    matrix = sparse.csr_array((np.concatenate([number, number]), both), shape=(n, n))
    matrix.sort_indices()
    return matrix


class TreeDrawing(NamedTuple):
    """Where to draw what."""

    nodes: IndexArray  # (m,) the rows that are drawn, in ascending order
    positions: FloatArray  # (m, 2) where, in the unit square
    edges: IndexArray  # (m−1, 2) pairs of places in `nodes`, the smaller first
    lengths: FloatArray  # (m−1,) the true lengths of these edges
    weights: IndexArray  # (m,) how many rows each drawn node stands for
    drawn_as: IndexArray  # (n,) the place in `nodes` of each row's node
    simplified: bool  # whether there are fewer nodes than rows


class _Hung(NamedTuple):
    """The nodes in breadth-first `order` from the root, the `parent` of each and the `edge` to it (−1 at the root)."""

    order: IndexArray
    parent: IndexArray
    edge: IndexArray


def tree_layout(tree: Tree, *, most: int = 2000, keep: Iterable[int] = ()) -> TreeDrawing:
    """Draw a tree such that rows at the end of long edges stand out at the rim; the same each time.

    most : the most nodes that are drawn. Of a larger tree, neighbouring rows are drawn as one: each drawn node stands
        for itself and rows connected with it, about equally many each.
    keep : drawn by themselves whatever happens, the first `most` of them.

    Radial layout from the middle of the tree: every subtree has a sector as wide as it has ends, its node lies in the
    middle of that, and as far outside as the path to it is long. Of an edge ½ + 8·asinh(length / 8 medians) is drawn:
    in proportion to its length up to several times the usual, then with its logarithm, so that one outlier at the rim
    leaves room for the others. It takes O(n log n).
    """
    n = tree.n_nodes
    nodes = drawn_as = np.arange(n, dtype=np.intp)
    small = tree
    if n > most:
        nodes, small, drawn_as = _contract(tree, most, list(dict.fromkeys(int(node) for node in keep))[:most])
    weights = np.bincount(drawn_as, minlength=len(nodes)).astype(np.intp)
    return TreeDrawing(nodes, _positions(small), small.edges, small.lengths, weights, drawn_as, len(nodes) < n)


def middle(tree: Tree) -> int:
    """Return the node without which the largest part that is left is smallest; the smallest number of equals."""
    hung = _hang(tree, 0)
    size = np.array(_subtree_sums(hung, np.ones(tree.n_nodes, dtype=np.int64)))
    largest = tree.n_nodes - size
    np.maximum.at(largest, hung.parent[1:], size[1:])
    return int(largest.argmin())


def _hang(tree: Tree, root: int) -> _Hung:
    order, parent = breadth_first_order(edge_matrix(tree), root, directed=True)
    order, parent = order.astype(np.intp), np.where(parent < 0, -1, parent).astype(np.intp)
    a, b = tree.edges[:, 0], tree.edges[:, 1]
    edge = np.full(tree.n_nodes, -1, dtype=np.intp)
    edge[np.where(parent[a] == b, a, b)] = np.arange(len(a))
    return _Hung(order, parent, edge)


def _subtree_sums(hung: _Hung, values: IndexArray) -> list[int]:
    """Return for each node the sum of the values of it and of all nodes that hang on it."""
    sums: list[int] = values.tolist()
    parent = hung.parent.tolist()
    for node in reversed(hung.order[1:].tolist()):
        sums[parent[node]] += sums[node]
    return sums


def _contract(tree: Tree, most: int, kept: list[int]) -> tuple[IndexArray, Tree, IndexArray]:
    """Return at most `most` nodes that stay, with those to keep; the tree over these; and which each row is drawn as.

    A row is drawn as the nearest node that stays on its way to the root.
    """
    hung = _hang(tree, middle(tree))
    alone = set(kept)
    if len(kept) == most and int(hung.order[0]) not in alone:  # no room for the middle: the nearest to it of `kept`
        hung = _hang(tree, next(int(node) for node in hung.order if int(node) in alone))
    stays = np.zeros(tree.n_nodes, dtype=bool)
    stays[[int(hung.order[0]), *kept]] = True
    _mark_backbone(hung, stays, most - int(stays.sum()))
    nodes = np.flatnonzero(stays)
    stands, marked, parent = list(range(len(stays))), stays.tolist(), hung.parent.tolist()
    for node in hung.order.tolist():
        if not marked[node]:
            stands[node] = stands[parent[node]]
    drawn_as = np.searchsorted(nodes, stands).astype(np.intp)
    outer = nodes[nodes != hung.order[0]]
    edges = np.sort(np.column_stack([drawn_as[outer], drawn_as[hung.parent[outer]]]), axis=1)
    lengths = tree.lengths[hung.edge[outer]]
    order = np.lexsort((edges[:, 1], edges[:, 0], lengths))
    return nodes, Tree(edges[order], lengths[order]), drawn_as


def _mark_backbone(hung: _Hung, stays: BoolArray, room: int) -> None:
    """Mark up to `room` more nodes that stay: going inwards, each where enough rows have come together."""
    if room < 1:
        return
    enough = -(-len(stays) // room)
    gathered, marked, parent = [1] * len(stays), stays.tolist(), hung.parent.tolist()
    for node in reversed(hung.order[1:].tolist()):
        if marked[node]:
            continue
        if gathered[node] >= enough:
            marked[node] = True
        else:
            gathered[parent[node]] += gathered[node]
    stays[:] = marked


def _positions(tree: Tree) -> FloatArray:
    """Return a radial layout, fitted into the unit square without distortion; a single point goes to the middle."""
    hung = _hang(tree, middle(tree))
    positive = tree.lengths[tree.lengths > 0]
    with np.errstate(over="ignore"):
        relative = np.minimum(tree.lengths / (float(np.median(positive)) if len(positive) else 1.0), 1e300)
    drawn = 0.5 + 8 * np.arcsinh(relative / 8)
    steps = np.zeros(tree.n_nodes)
    steps[hung.order[1:]] = drawn[hung.edge[hung.order[1:]]]
    radius, angle = _sums_along_paths(hung, steps), _angles(hung)
    positions = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    low, high = positions.min(axis=0), positions.max(axis=0)
    size = float((high - low).max())
    if size == 0:
        return np.full(positions.shape, 0.5)
    result: FloatArray = np.clip((positions - (low + high) / 2) / size + 0.5, 0.0, 1.0)
    return result


def _sums_along_paths(hung: _Hung, values: NDArray[np.float64] | IndexArray) -> NDArray[np.float64]:
    """Return for each node the sum of the values on its path from the root."""
    sums, parent = values.tolist(), hung.parent.tolist()
    for node in hung.order[1:].tolist():
        sums[node] += sums[parent[node]]
    return np.array(sums)


def _angles(hung: _Hung) -> FloatArray:
    """Return the direction of each node: the middle of a sector as wide as the ends of the tree beyond it.

    Of siblings the largest is in the middle, the smallest are outside.
    """
    is_end = np.ones(len(hung.order), dtype=np.int64)
    is_end[hung.parent[hung.parent >= 0]] = 0
    ends = np.array(_subtree_sums(hung, is_end))
    nodes = np.flatnonzero(hung.parent >= 0)
    nodes = nodes[np.lexsort((nodes, ends[nodes], hung.parent[nodes]))]
    _, first, family, size = np.unique(hung.parent[nodes], return_index=True, return_inverse=True, return_counts=True)
    first, size = first[family], size[family]  # of each node, where its siblings begin and how many they are
    rank = np.arange(len(nodes)) - first
    place = np.where(rank % 2 == 0, rank, 2 * size - rank)  # every second one from the other side
    nodes = nodes[np.lexsort((place, hung.parent[nodes]))]
    total = np.cumsum(ends[nodes]) - ends[nodes]
    before = np.zeros(len(ends), dtype=np.int64)
    before[nodes] = total - total[first]
    result: FloatArray = 2 * np.pi * (_sums_along_paths(hung, before) + ends / 2) / ends[hung.order[0]]
    return result
