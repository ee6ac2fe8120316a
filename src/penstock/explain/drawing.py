"""Lay out a spanning tree in two dimensions; a large tree is contracted first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock._types import FloatArray, IndexArray, Tree
from penstock.explain.neighbors import Rooted, rooted


@dataclass(frozen=True, eq=False)
class Contraction:
    """A tree over some of the `nodes` of another: `edges` are pairs of places in `nodes`, `drawn_as` a place per row.

    The rows drawn as one node hang together and include it; `lengths` are those of the edges that join two such sets.
    """

    nodes: IndexArray
    edges: IndexArray
    lengths: FloatArray
    drawn_as: IndexArray


def contract(tree: Tree, most: int, keep: Iterable[int] = ()) -> Contraction:
    """At most `most` nodes, among them the first `most` of `keep`; the tree itself if it is small enough.

    >>> path = Tree(np.array([[0, 1], [1, 2], [2, 3], [3, 4]]), np.array([1.0, 2.0, 3.0, 4.0]))
    >>> small = contract(path, 3, keep=[4])
    >>> small.nodes.tolist(), small.edges.tolist(), small.lengths.tolist(), small.drawn_as.tolist()
    ([2, 4], [[0, 1]], [4.0], [0, 0, 0, 0, 1])
    """
    n = tree.n_nodes
    if n <= most:
        every = np.arange(n, dtype=np.intp)
        return Contraction(every, tree.edges, tree.lengths, every)
    kept = list(dict.fromkeys(int(node) for node in keep))[:most]
    hung = rooted(tree, middle(tree))
    if len(kept) == most and int(hung.order[0]) not in kept:  # no room for the middle: the one of `keep` nearest to it
        alone = set(kept)
        hung = rooted(tree, next(int(node) for node in hung.order if int(node) in alone))
    stays = np.zeros(n, dtype=bool)
    stays[[int(hung.order[0]), *kept]] = True
    _mark_backbone(hung, stays, most - int(stays.sum()))
    return _contracted(tree, hung, stays)


def middle(tree: Tree) -> int:
    """The node without which the largest part that is left is smallest; the smallest number of equals.

    >>> middle(Tree(np.array([[0, 1], [1, 2], [2, 3], [3, 4]]), np.ones(4)))
    2
    """
    hung = rooted(tree, 0)
    size = np.array(subtree_sums(hung, np.ones(tree.n_nodes, dtype=np.int64)))
    largest = tree.n_nodes - size
    np.maximum.at(largest, hung.parent[1:], size[1:])
    return int(largest.argmin())


def subtree_sums(hung: Rooted, values: IndexArray) -> list[int]:
    """For each node the sum of the values of it and of all nodes that hang on it."""
    sums: list[int] = values.tolist()
    parent = hung.parent.tolist()
    for node in reversed(hung.order[1:].tolist()):
        sums[parent[node]] += sums[node]
    return sums


def _mark_backbone(hung: Rooted, stays: NDArray[np.bool_], room: int) -> None:
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


def _contracted(tree: Tree, hung: Rooted, stays: NDArray[np.bool_]) -> Contraction:
    """Each row is drawn as the nearest node that stays on its way to the root."""
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
    return Contraction(nodes, edges[order], lengths[order], drawn_as)


@dataclass(frozen=True, eq=False)
class TreeDrawing:
    """Where to draw what.

    nodes : the rows that are drawn, in ascending order.
    positions : (m, 2) where, in the unit square.
    edges : (m−1, 2) pairs of places in `nodes`, the smaller first; `lengths` are the true lengths of these edges.
    weights : how many rows each drawn node stands for; `drawn_as` is the place in `nodes` of each row's node.
    simplified : whether there are fewer nodes than rows.
    """

    nodes: IndexArray
    positions: FloatArray
    edges: IndexArray
    lengths: FloatArray
    weights: IndexArray
    drawn_as: IndexArray
    simplified: bool


def tree_layout(tree: Tree, *, most: int = 2000, keep: Iterable[int] = ()) -> TreeDrawing:
    """A drawing of the tree in which rows at the end of long edges stand out at the rim; the same each time.

    Parameters
    ----------
    tree : Tree
    most : int
        The most nodes that are drawn. Of a larger tree, neighbouring rows are drawn as one: each drawn node stands for
        itself and rows that hang together with it, about equally many each.
    keep : rows
        Drawn by themselves whatever happens, the first `most` of them.

    Notes
    -----
    Radial layout from the middle of the tree: every subtree has a sector as wide as it has ends, its node lies in the
    middle of that, and as far outside as the path to it is long. Of an edge ½ + 8·asinh(length / 8 medians) is drawn:
    in proportion to its length up to several times the usual, then with its logarithm, so that one outlier at the rim
    leaves room for the others. It takes O(n log n).

    Examples
    --------
    >>> star = Tree(np.array([[0, 1], [0, 2], [0, 3]]), np.array([1.0, 1.0, 1.0]))
    >>> drawing = tree_layout(star)
    >>> drawing.nodes.tolist(), drawing.edges.tolist(), drawing.simplified
    ([0, 1, 2, 3], [[0, 1], [0, 2], [0, 3]], False)
    >>> tree_layout(star, most=2, keep=[3]).weights.tolist()
    [3, 1]
    """
    if most < 1:
        raise ValueError(f"most must be at least 1; got {most}.")
    drawn = contract(tree, most, keep)
    small = Tree(drawn.edges, drawn.lengths)
    return TreeDrawing(
        drawn.nodes,
        _positions(small),
        drawn.edges,
        drawn.lengths,
        np.bincount(drawn.drawn_as, minlength=len(drawn.nodes)).astype(np.intp),
        drawn.drawn_as,
        len(drawn.nodes) < tree.n_nodes,
    )


def _positions(tree: Tree) -> FloatArray:
    """Radial layout, fitted into the unit square."""
    hung = rooted(tree, middle(tree))
    angle = _angles(hung)
    outer = hung.order[1:].tolist()
    radius = np.zeros(tree.n_nodes)
    radius[hung.order[1:]] = _lengths_on_paper(tree.lengths)[hung.edge[hung.order[1:]]]
    from_middle, parent = radius.tolist(), hung.parent.tolist()
    for node in outer:
        from_middle[node] += from_middle[parent[node]]
    radius = np.array(from_middle)
    return _in_unit_square(np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]))


def _angles(hung: Rooted) -> FloatArray:
    """The direction of each node: the middle of a sector as wide as the ends of the tree beyond it."""
    is_end = np.ones(len(hung.order), dtype=np.int64)
    is_end[hung.parent[hung.parent >= 0]] = 0
    ends = np.array(subtree_sums(hung, is_end))
    begin, parent = _widths_before(hung, ends).tolist(), hung.parent.tolist()
    for node in hung.order[1:].tolist():
        begin[node] += begin[parent[node]]
    result: FloatArray = 2 * np.pi * (np.array(begin) + ends / 2) / ends[hung.order[0]]
    return result


def _widths_before(hung: Rooted, ends: IndexArray) -> IndexArray:
    """The ends of the siblings before each node; the largest sibling is in the middle, the smallest are outside."""
    nodes = np.flatnonzero(hung.parent >= 0)
    nodes = nodes[np.lexsort((nodes, ends[nodes], hung.parent[nodes]))]
    first, size = _families(hung.parent[nodes])
    rank = np.arange(len(nodes)) - first
    place = np.where(rank % 2 == 0, rank, 2 * size - rank)  # every second one from the other side
    nodes = nodes[np.lexsort((place, hung.parent[nodes]))]
    total = np.cumsum(ends[nodes]) - ends[nodes]
    before = np.zeros(len(ends), dtype=np.int64)
    before[nodes] = total - total[first]
    return before


def _families(parents: IndexArray) -> tuple[IndexArray, IndexArray]:
    """For each entry of a sorted array, where its equals begin and how many they are."""
    _, first, family, size = np.unique(parents, return_index=True, return_inverse=True, return_counts=True)
    return first[family], size[family]


def _lengths_on_paper(lengths: FloatArray) -> FloatArray:
    positive = lengths[lengths > 0]
    usual = float(np.median(positive)) if len(positive) else 1.0
    with np.errstate(over="ignore"):
        relative = np.minimum(lengths / usual, 1e300)
    result: FloatArray = 0.5 + 8 * np.arcsinh(relative / 8)
    return result


def _in_unit_square(positions: FloatArray) -> FloatArray:
    """Moved and scaled, without distortion; a single point goes to the middle."""
    low, high = positions.min(axis=0), positions.max(axis=0)
    size = float((high - low).max())
    if size == 0:
        return np.full(positions.shape, 0.5)
    result: FloatArray = np.clip((positions - (low + high) / 2) / size + 0.5, 0.0, 1.0)
    return result
