"""A spanning tree seen from its nodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import breadth_first_order

from penstock._types import IndexArray, Tree


@dataclass(frozen=True, eq=False)
class Adjacency:
    """Node v has the neighbours `neighbors[start[v]:start[v + 1]]`, in ascending order, by the edges `edges[...]`."""

    start: IndexArray
    neighbors: IndexArray
    edges: IndexArray


@dataclass(frozen=True, eq=False)
class Rooted:
    """The nodes in breadth-first `order` from the root, the `parent` of each and the `edge` to it (−1 at the root)."""

    order: IndexArray
    parent: IndexArray
    edge: IndexArray


def adjacency(tree: Tree) -> Adjacency:
    """Each node's neighbours, in time proportional to the number of nodes.

    >>> path = adjacency(Tree(np.array([[1, 2], [0, 1]]), np.array([0.0, 1.0])))
    >>> path.start.tolist(), path.neighbors.tolist(), path.edges.tolist()
    ([0, 1, 3, 4], [1, 0, 2, 1], [1, 1, 0, 0])
    """
    matrix = _numbered(tree)
    return Adjacency(matrix.indptr.astype(np.intp), matrix.indices.astype(np.intp), (matrix.data - 1).astype(np.intp))


def rooted(tree: Tree, root: int) -> Rooted:
    """The tree hung up at `root`.

    >>> path = rooted(Tree(np.array([[1, 2], [0, 1]]), np.array([0.0, 1.0])), 2)
    >>> path.order.tolist(), path.parent.tolist(), path.edge.tolist()
    ([2, 1, 0], [1, 2, -1], [1, 0, -1])
    """
    order, parent = breadth_first_order(_numbered(tree), root, directed=True)
    order, parent = order.astype(np.intp), np.where(parent < 0, -1, parent).astype(np.intp)
    a, b = tree.edges[:, 0], tree.edges[:, 1]
    child = np.where(parent[a] == b, a, b)
    edge = np.full(tree.n_nodes, -1, dtype=np.intp)
    edge[child] = np.arange(len(child))
    return Rooted(order, parent, edge)


def _numbered(tree: Tree) -> sparse.csr_array:
    """The symmetric matrix of the edges' numbers, from 1, so that an edge of length 0 is an entry too."""
    n = tree.n_nodes
    a, b = tree.edges[:, 0].astype(np.int32), tree.edges[:, 1].astype(np.int32)
    number = np.arange(1, n, dtype=np.float64)
    matrix = sparse.csr_array(
        (np.concatenate([number, number]), (np.concatenate([a, b]), np.concatenate([b, a]))), shape=(n, n)
    )
    matrix.sort_indices()
    return matrix
