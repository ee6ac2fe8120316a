"""Find the normal rows nearest to an event along the spanning tree."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from heapq import heapify, heappop, heappush
from typing import NamedTuple

import numpy as np
from scipy import sparse

from penstock._types import BoolArray, FloatArray, IndexArray, Tree


class NormalNeighbors(NamedTuple):
    """The nearest normal nodes, the nearest first.

    `lengths` are the lengths of the paths to them from the nearest row of the event, `steps` the edges on these paths.
    """

    nodes: IndexArray
    lengths: FloatArray
    steps: IndexArray


class TreeWalker:
    """Find nodes near to others along one tree; what all searches need is computed at the first.

    >>> path = Tree(np.array([[0, 1], [1, 2], [2, 3]]), np.array([1.0, 2.0, 4.0]))
    >>> walker = TreeWalker(path)
    >>> found = walker.nearest_normal([1], np.array([True, False, True, True]), n=2)
    >>> found.nodes.tolist(), found.lengths.tolist(), found.steps.tolist()
    ([0, 2], [1.0, 2.0], [1, 1])
    """

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
