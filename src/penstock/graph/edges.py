"""Order and measure the edges of spanning trees, select them by Kruskal's algorithm, and find those of each row."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from penstock._types import BoolArray, FloatArray, IndexArray, Tree
from penstock.graph import _boruvka_kernels as kernels
from penstock.graph.points import times_powers_of_two
from penstock.graph.rows import different_rows, first_copies

_VALUES_AT_ONCE = 1 << 17  # of rows that edges join, so that their copies stay in the cache


def order_edges(ends: IndexArray, squares: FloatArray) -> IndexArray:
    """Return the places of edges in the order (square, smaller end, larger end).

    Ends are only compared where squares tie, which is rare but on lattices: no second and third sort of everything.
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
    """Return the edges of the minimum spanning forest over n points, in order, and the component of each point."""
    parent = np.arange(n)
    taken = np.empty(min(len(ends), max(n - 1, 0)), dtype=np.int64)
    count = kernels.take_edges(np.ascontiguousarray(ends, dtype=np.int64), order_edges(ends, squares), parent, taken)
    component = np.empty(n, dtype=np.int64)
    kernels.number_sets(parent, component)
    return taken[:count], component


def squares_of(X: FloatArray, edges: IndexArray) -> FloatArray:
    """Return the squared lengths of edges between the rows of X, summed as all strategies sum them."""
    squares = np.empty(len(edges))
    kernels.measure_edges(X, np.ascontiguousarray(edges, dtype=np.int64), squares)
    return squares


def tree_among(tree: Tree, kept: IndexArray) -> Tree:
    """Return the tree of the rows `kept`, renumbered; the others are copies of rows, which are leaves."""
    if len(kept) == tree.n_nodes:
        return tree
    place = np.full(tree.n_nodes, -1, dtype=np.intp)
    place[kept] = np.arange(len(kept))
    edges = place[tree.edges]
    inside = (edges >= 0).all(axis=1)
    return Tree(edges[inside], tree.lengths[inside])


def shortest_edges(tree: Tree) -> FloatArray:
    """Return the length of the shortest edge above 0 of each row; the median length for rows that have none."""
    positive = tree.lengths > 0
    edges, lengths = tree.edges[positive], tree.lengths[positive]
    shortest = np.full(tree.n_nodes, np.inf)
    np.minimum.at(shortest, edges[:, 0], lengths)
    np.minimum.at(shortest, edges[:, 1], lengths)
    return np.where(np.isfinite(shortest), shortest, np.median(lengths) if len(lengths) else 1.0)


def nearest_by_tree(tree: Tree) -> tuple[IndexArray, FloatArray, FloatArray, IndexArray]:
    """Return for each row its nearest other row, the distance to it, the total length and the number of its edges.

    By the cut property the shortest edge of a row leads to its nearest row; of equally near ones, to one of them.

    >>> nearest_by_tree(Tree(np.array([[0, 1], [1, 2]]), np.array([1.0, 3.0])))[0].tolist()
    [1, 0, 1]
    """
    n = tree.n_nodes
    rows, others = tree.edges.T.ravel(), tree.edges[:, ::-1].T.ravel()
    lengths = np.concatenate([tree.lengths, tree.lengths])
    order = np.lexsort((others, lengths, rows))
    first = order[np.searchsorted(rows[order], np.arange(n))]
    total = np.bincount(rows, weights=lengths, minlength=n).astype(np.float64, copy=False)
    return others[first], lengths[first], total, np.bincount(rows, minlength=n)


def tree_of_distinct(
    X: FloatArray, edges_of: Callable[[FloatArray], IndexArray], original: IndexArray | None = None
) -> Tree:
    """Return the tree with the edges that `edges_of` finds between different rows, and copies attached to the first.

    Among equal rows the order of edges makes a star around the first copy, and only first copies reach others.
    """
    original = first_copies(X) if original is None else original
    kept, _ = different_rows(original)
    copies = np.flatnonzero(original != np.arange(len(X)))
    found = kept[edges_of(X if len(copies) == 0 else X[kept])] if len(kept) > 1 else np.empty((0, 2), dtype=np.intp)
    edges = np.sort(np.concatenate([np.column_stack([original[copies], copies]), found]), axis=1)
    return sorted_tree(edges, edge_lengths(X, edges))


def sorted_tree(edges: IndexArray, lengths: FloatArray) -> Tree:
    """Return a tree from edges with the smaller index first, sorted by (length, smaller index, larger index)."""
    order = np.lexsort((edges[:, 1], edges[:, 0], lengths))
    return Tree(edges[order].astype(np.intp), lengths[order])


def edge_lengths(X: FloatArray, edges: IndexArray) -> FloatArray:
    """Return the Euclidean lengths of edges; over shared columns where values are missing; safe at any scale."""
    lengths = pair_distances(X, edges)
    if not np.isfinite(lengths).all():
        raise ValueError("Some distances exceed the range of float64 (about 1.8e308). Divide the data by a constant.")
    return lengths


def pair_distances(X: FloatArray, pairs: IndexArray) -> FloatArray:
    """Return the distances of pairs of rows: infinite above the largest float, NaN where they share no column."""
    lengths = np.empty(len(pairs))
    step = max(1, _VALUES_AT_ONCE // X.shape[1])
    for start in range(0, len(pairs), step):
        part = pairs[start : start + step]
        lengths[start : start + step] = _measure_rows(X[part[:, 0]], X[part[:, 1]])
    return lengths


def _measure_rows(X: FloatArray, Y: FloatArray) -> FloatArray:
    with np.errstate(over="ignore"):
        difference = X - Y
    n, p = difference.shape
    halved: BoolArray = np.zeros(n, dtype=np.bool_)
    shared = np.full(n, p)
    if not np.isfinite(difference).all():
        # Where that overflows, half of it; then a power of two per edge, so that no square overflows or vanishes.
        halved = np.asarray(np.isinf(difference).any(axis=1))
        difference[halved] = 0.5 * X[halved] - 0.5 * Y[halved]
        holes = np.isnan(difference)
        difference[holes] = 0.0
        shared = p - holes.sum(axis=1)
    exponent = np.frexp(np.abs(difference).max(axis=1))[1]
    difference = times_powers_of_two(difference, -exponent[:, None])
    squares = np.einsum("ij,ij->i", difference, difference)
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.where(shared == p, squares, squares * p / shared)
        return np.asarray(np.ldexp(np.sqrt(squares), exponent + halved))
