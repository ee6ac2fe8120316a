"""Exact Euclidean minimum spanning tree, and the choice of how to find it."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from penstock._types import FloatArray, IndexArray, Tree
from penstock.graph._prim_kernels import prim
from penstock.graph.boruvka import N_LISTED, boruvka_edges
from penstock.graph.distance_kernels import TILE
from penstock.graph.edges import edge_lengths, sorted_tree
from penstock.graph.points import Points, prepare_incomplete, prepare_points, tiles_of
from penstock.graph.rows import check_comparable, check_connected, first_copies, patterns_seen, shares_seen
from penstock.graph.search import PointTree, tree_over

Strategy = Literal["auto", "prim", "kdtree"]

# Where a kd-tree begins to pay, measured by benchmarks/mst.py. Below the first, Prim's simple loops win at any number
# of columns; above it a sample of searches decides.
_SMALLEST_FOR_KDTREE = 4_000
_SAMPLED_LEAVES = 24
# Scanning a leaf in a tree search costs about as much as this many leaves in Prim's stream through memory, later
# rounds included.
_SEARCH_OVERHEAD = 4.0


def minimum_spanning_tree(X: ArrayLike, *, strategy: Strategy = "auto") -> Tree:
    """The minimum spanning tree of the rows of X under Euclidean distance; exact, in memory O(n·p).

    Edges are ordered by (length, smaller index, larger index), which makes the tree unique even where lengths tie:
    every strategy returns the same edges, on any number of threads. Two lengths below 1e-150 of the largest range of a
    column, whose squares vanish beside it, count as equal.

    Parameters
    ----------
    X : array of shape (n, p)
        Finite numbers, n ≥ 1, p ≥ 1; NaN where a value is missing.
    strategy : {"auto", "prim", "kdtree"}
        "prim" is best for few rows and for data that fill all their dimensions, "kdtree" for many rows near
        something of low dimension. "auto" tries a few tree searches and decides by what they cost.

    Notes
    -----
    Where values are missing, the squared distance of two rows is p/|shared| · Σ (x_ik − x_jk)² over the columns that
    both have. That is no metric (there is no triangle inequality), so "prim" is the only strategy; two rows that share
    no column are an error, though detectors cope with them.

    Examples
    --------
    >>> from penstock import minimum_spanning_tree
    >>> tree = minimum_spanning_tree([[0.0], [10.0], [1.0], [4.0]])
    >>> tree.edges.tolist(), tree.lengths.tolist()
    ([[0, 2], [2, 3], [1, 3]], [1.0, 3.0, 6.0])
    """
    if strategy not in get_args(Strategy):
        raise ValueError(f"strategy must be one of {', '.join(get_args(Strategy))}; got {strategy!r}.")
    data = check_rows(X)
    if len(data) == 1:
        return Tree(np.empty((0, 2), dtype=np.intp), np.empty(0))
    if np.isnan(data).any():
        return _incomplete_tree(data, strategy)
    original = first_copies(data)
    copies = np.flatnonzero(original != np.arange(len(data)))
    if len(copies) == 0:
        edges = _distinct_edges(data, strategy)
    else:
        # Among equal rows the order of edges makes a star around the first copy, and only first copies reach others.
        kept = np.flatnonzero(original == np.arange(len(data)))
        joined = kept[_distinct_edges(data[kept], strategy)] if len(kept) > 1 else np.empty((0, 2), dtype=np.intp)
        edges = np.concatenate([np.column_stack([original[copies], copies]), joined])
    return _sorted_tree(data, np.sort(edges, axis=1))


def spanning_tree_of_comparable(X: FloatArray) -> Tree:
    """The minimum spanning tree over those pairs of rows that share a column: all others are infinitely far apart.

    Where any two rows share one, it is `minimum_spanning_tree`. If the rows fall apart into groups that share none, no
    such tree exists, and two rows of different groups are named.

    >>> tree = spanning_tree_of_comparable(np.array([[0.0, np.nan], [3.0, 1.0], [np.nan, 2.0]]))
    >>> tree.edges.tolist(), (tree.lengths**2).round(9).tolist()
    ([[1, 2], [0, 1]], [2.0, 18.0])
    """
    data = check_rows(X)
    if not np.isnan(data).any():
        return minimum_spanning_tree(data)
    check_connected(data)
    return _shared_tree(data)


def check_rows(X: ArrayLike) -> FloatArray:
    """The table as float64, contiguous, refused where no tree can be made of it; NaN may be in it."""
    if hasattr(X, "toarray"):
        raise TypeError("A spanning tree needs a dense table; got a sparse one. Call X.toarray() first.")
    data = np.ascontiguousarray(X, dtype=np.float64)
    if data.ndim != 2 or 0 in data.shape:
        raise ValueError(f"A spanning tree needs a table with at least one row and one column; got shape {data.shape}.")
    if np.isinf(data).any():
        row, column = np.argwhere(np.isinf(data))[0]
        raise ValueError(f"A spanning tree needs finite numbers; row {row}, column {column} is {data[row, column]}.")
    return data


def _incomplete_tree(X: FloatArray, strategy: Strategy) -> Tree:
    if strategy == "kdtree":
        raise ValueError("A kd-tree needs all values, but some are missing (NaN). Use strategy 'auto' or 'prim'.")
    check_comparable(X)
    return _shared_tree(X)


def _shared_tree(X: FloatArray) -> Tree:
    """Under the shared distance, where rows that are not equal may be at distance 0: nothing is known beforehand."""
    return _sorted_tree(X, np.sort(prim_edges(prepare_incomplete(X)), axis=1))


def _distinct_edges(X: FloatArray, strategy: Strategy) -> IndexArray:
    if strategy == "prim" or (strategy == "auto" and len(X) < _SMALLEST_FOR_KDTREE):
        return prim_edges(prepare_points(X, rotate=False))
    points = prepare_points(X, rotate=True)
    return edges_in_frame(points, tree_over(points), strategy)


def edges_in_frame(points: Points, tree: PointTree, strategy: Strategy = "auto") -> IndexArray:
    """The edges of the minimum spanning tree of distinct points, by row, whatever frame they are in.

    `tree` is the one over these points, which callers have anyway or need anyway.
    """
    few = len(points.search) < _SMALLEST_FOR_KDTREE
    if strategy == "auto" and (few or not _searches_pay(tree)):
        return prim_edges(points)
    return boruvka_edges(tree)


def _searches_pay(tree: PointTree) -> bool:
    """Whether searching is cheaper than Prim, which on average scans half of all leaves for each point."""
    return _SEARCH_OVERHEAD * tree.sample_search_cost(N_LISTED, _SAMPLED_LEAVES) < tree.n_leaves / 2


def _sorted_tree(X: FloatArray, edges: IndexArray) -> Tree:
    return sorted_tree(edges, edge_lengths(X, edges))


def prim_edges(points: Points) -> IndexArray:
    """The edges of the minimum spanning tree; where coordinates are missing (NaN), under the shared distance.

    Points that share no coordinate are infinitely far apart; there is a tree without such edges (`find_unconnected`).
    """
    n = len(points.search)
    tiles = tiles_of(points.search)
    members = np.arange(len(tiles) * TILE).reshape(-1, TILE)
    seen = shares_seen(points.exact)
    patterns = patterns_seen(points.exact) if (seen < 1).any() else np.empty((n, 0), dtype=np.uint64)
    edges = np.empty((n - 1, 2), dtype=np.int64)
    prim(points.exact, tiles, members, seen, patterns, points.shift, points.stretch, edges)
    return edges
