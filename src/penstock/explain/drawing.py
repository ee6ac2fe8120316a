"""Lay out a spanning tree in two dimensions; a large tree is contracted first.

The tree is hung up at its middle (`_hang`): nodes in breadth-first order, each with its parent. Contraction and layout
are passes over that order.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import breadth_first_order

from penstock._types import BoolArray, FloatArray, IndexArray, Tree
from penstock.explain.neighbors import edge_matrix


class TreeDrawing(NamedTuple):
    """Where to draw what.

    nodes : (m,) the rows that are drawn, in ascending order.
    positions : (m, 2) where, in the unit square.
    edges, lengths : (m−1, 2) and (m−1,) pairs of places in `nodes`, the smaller first, and the true lengths of these
        edges.
    weights : (m,) how many rows each drawn node stands for.
    drawn_as : (n,) the place in `nodes` of each row's node.
    simplified : whether there are fewer nodes than rows.
    """

    nodes: IndexArray
    positions: FloatArray
    edges: IndexArray
    lengths: FloatArray
    weights: IndexArray
    drawn_as: IndexArray
    simplified: bool


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

    >>> star = Tree(np.array([[0, 1], [0, 2], [0, 3]]), np.array([1.0, 1.0, 1.0]))
    >>> drawing = tree_layout(star)
    >>> drawing.nodes.tolist(), drawing.edges.tolist(), drawing.simplified
    ([0, 1, 2, 3], [[0, 1], [0, 2], [0, 3]], False)
    >>> tree_layout(star, most=2, keep=[3]).weights.tolist()
    [3, 1]
    """
    if most < 1:
        raise ValueError(f"most must be at least 1; got {most}.")
    n = tree.n_nodes
    nodes = drawn_as = np.arange(n, dtype=np.intp)
    small = tree
    if n > most:
        nodes, small, drawn_as = _contract(tree, most, list(dict.fromkeys(int(node) for node in keep))[:most])
    weights = np.bincount(drawn_as, minlength=len(nodes)).astype(np.intp)
    return TreeDrawing(nodes, _positions(small), small.edges, small.lengths, weights, drawn_as, len(nodes) < n)


def middle(tree: Tree) -> int:
    """Return the node without which the largest part that is left is smallest; the smallest number of equals.

    >>> middle(Tree(np.array([[0, 1], [1, 2], [2, 3], [3, 4]]), np.ones(4)))
    2
    """
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
