"""Find the normal rows nearest to an event along the spanning tree."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from heapq import heapify, heappop, heappush

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import breadth_first_order

from penstock._types import FloatArray, IndexArray, Tree


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


@dataclass(frozen=True, eq=False)
class NormalNeighbors:
    """The nearest normal nodes, the nearest first.

    `lengths` are the lengths of the paths to them from the nearest row of the event, `steps` the edges on these paths.
    """

    nodes: IndexArray
    lengths: FloatArray
    steps: IndexArray


@dataclass(frozen=True, eq=False)
class TreeWalker:
    """Answers many questions about one tree; what it needs for that is built at the first, once.

    >>> path = Tree(np.array([[0, 1], [1, 2], [2, 3]]), np.array([1.0, 2.0, 4.0]))
    >>> walker = TreeWalker(path)
    >>> found = walker.nearest_normal([1], np.array([True, False, True, True]), n=2)
    >>> found.nodes.tolist(), found.lengths.tolist(), found.steps.tolist()
    ([0, 2], [1.0, 2.0], [1, 1])
    """

    tree: Tree

    def nearest_normal(self, rows: Iterable[int], is_normal: NDArray[np.bool_], n: int = 3) -> NormalNeighbors:
        """As the function `nearest_normal`; it walks no farther than it has to."""
        sources = {int(row) for row in rows}
        waiting = [(0.0, 0, row) for row in sources]
        heapify(waiting)
        done: set[int] = set()
        found: list[tuple[float, int, int]] = []
        farthest = np.inf
        start, neighbors, steps_of = self._nodes.start, self._nodes.neighbors, self._nodes.edges
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
                    step = float(self.tree.lengths[steps_of[place]])
                    heappush(waiting, (length + step, steps + 1, neighbor))
        return _neighbors(sorted(found)[:n])

    @cached_property
    def _nodes(self) -> Adjacency:
        return adjacency(self.tree)


def nearest_normal(tree: Tree, rows: Iterable[int], is_normal: NDArray[np.bool_], n: int = 3) -> NormalNeighbors:
    """The `n` normal nodes with the shortest path along the tree from any of `rows`; fewer if there are fewer.

    Rows of the event are never their own neighbours, whatever `is_normal` says of them. Ties go to the smaller number;
    of paths of equal length the one with fewer edges counts. For many events of one tree, ask one `TreeWalker`.

    >>> path = Tree(np.array([[0, 1], [1, 2], [2, 3]]), np.array([1.0, 2.0, 4.0]))
    >>> nearest_normal(path, [0, 1], np.array([False, False, False, True])).lengths.tolist()
    [6.0]
    """
    return TreeWalker(tree).nearest_normal(rows, is_normal, n)


def _neighbors(found: list[tuple[float, int, int]]) -> NormalNeighbors:
    return NormalNeighbors(
        np.array([node for _, node, _ in found], dtype=np.intp),
        np.array([length for length, _, _ in found], dtype=np.float64),
        np.array([steps for _, _, steps in found], dtype=np.intp),
    )
