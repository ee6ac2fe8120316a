"""A large tree made small: rows that hang together drawn as one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock._types import FloatArray, IndexArray, Tree
from penstock.explain._adjacency import Rooted, rooted


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
