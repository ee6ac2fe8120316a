"""The minimum spanning forest of given edges (Kruskal), in the one order of edges that all strategies share."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock._types import FloatArray, IndexArray
from penstock.graph import _forest_kernels as kernels


def order_edges(ends: IndexArray, squares: FloatArray) -> IndexArray:
    """Places of the edges in the order (square, smaller end, larger end).

    Ends are only compared where squares tie, which is rare but on lattices: no second and third sort of everything.

    >>> import numpy as np
    >>> order_edges(np.array([[1, 2], [0, 2], [0, 1]]), np.array([4.0, 4.0, 9.0])).tolist()
    [1, 0, 2]
    """
    order = np.argsort(squares, kind="stable")
    same = np.equal(squares[order[1:]], squares[order[:-1]])
    if same.any():
        places = np.flatnonzero(np.r_[same, False] | np.r_[False, same])
        tied = order[places]
        small, large = ends[tied].min(axis=1), ends[tied].max(axis=1)
        order[places] = tied[np.lexsort((large, small, squares[tied]))]
    return order


def spanning_forest(n: int, ends: IndexArray, squares: FloatArray) -> tuple[IndexArray, NDArray[np.int64]]:
    """Which edges are in the minimum spanning forest over n points, in their order, and the component of each point.

    >>> import numpy as np
    >>> taken, component = spanning_forest(4, np.array([[0, 1], [1, 2], [0, 2]]), np.array([1.0, 3.0, 2.0]))
    >>> taken.tolist(), component.tolist()
    ([0, 2], [0, 0, 0, 1])
    """
    parent = np.arange(n)
    taken = np.empty(min(len(ends), max(n - 1, 0)), dtype=np.int64)
    count = kernels.take_edges(np.ascontiguousarray(ends, dtype=np.int64), order_edges(ends, squares), parent, taken)
    component = np.empty(n, dtype=np.int64)
    kernels.number_sets(parent, component)
    return taken[:count], component


def squares_of(X: FloatArray, edges: IndexArray) -> FloatArray:
    """The squared lengths of edges between the rows of X, summed as all strategies sum them."""
    squares = np.empty(len(edges))
    kernels.measure_edges(X, np.ascontiguousarray(edges, dtype=np.int64), squares)
    return squares
