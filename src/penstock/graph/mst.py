"""Exact Euclidean minimum spanning tree, and the choice of how to find it."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from penstock._progress import set_stage
from penstock._types import FloatArray, IndexArray, Tree
from penstock.graph._prim_kernels import prim
from penstock.graph.boruvka import N_LISTED, boruvka_edges
from penstock.graph.distance_kernels import TILE
from penstock.graph.edges import edge_lengths, sorted_tree, spanning_forest, tree_of_distinct
from penstock.graph.points import Points, prepare_incomplete, prepare_points, tiles_of
from penstock.graph.rows import check_comparable, check_connected, patterns_seen, shares_seen
from penstock.graph.search import PointTree, tree_over

Strategy = Literal["auto", "prim", "kdtree"]

# Where a kd-tree begins to pay, measured by benchmarks/mst.py. Below the first, Prim's simple loops win at any number
# of columns; above it a sample of searches decides.
_SMALLEST_FOR_KDTREE = 4_000
_SAMPLED_LEAVES = 24
# Scanning a leaf in a tree search costs about as much as this many leaves in Prim's stream through memory, later
# rounds included.
_SEARCH_OVERHEAD = 4.0
# A table of so many columns is large, and searching it seldom pays: every eighth row is tried before all are copied.
_WIDE, _WIDE_STEP, _NEARLY_ALL = 128, 8, 0.95


def minimum_spanning_tree(
    X: ArrayLike, *, strategy: Strategy = "auto", metric: Literal["euclidean", "precomputed"] = "euclidean"
) -> Tree:
    """Return the minimum spanning tree of the rows of X under Euclidean distance; exact, in memory O(n·p).

    Edges are ordered by (length, smaller index, larger index), which makes the tree unique even where lengths tie:
    every strategy returns the same edges, on any number of threads. Two lengths below 1e-150 of the largest range of a
    column, whose squares vanish relative to it, count as equal.

    Parameters
    ----------
    X : array-like of shape (n, p)
        Finite numbers, n ≥ 1, p ≥ 1; NaN where a value is missing.
    strategy : {"auto", "prim", "kdtree"}, default "auto"
        "prim" is best for few rows and for data that fill all their dimensions, "kdtree" for many rows near
        something of low dimension. "auto" tries a few tree searches and decides by what they cost.
    metric : {"euclidean", "precomputed"}, default "euclidean"
        "precomputed": X is a symmetric n×n matrix of distances ≥ 0, infinite where two nodes have no edge; there is no
        strategy to choose. For a list of edges see `spanning_tree_of_edges`.

    Returns
    -------
    Tree
        Edges and their lengths, in their order.

    Notes
    -----
    Where values are missing, the squared distance of two rows is p/q · Σ (x_ik − x_jk)² over the q columns
    that both have. That is no metric (there is no triangle inequality), so "prim" is the only strategy; two rows that
    share no column are an error here; detectors accept them.

    Examples
    --------
    >>> from penstock import minimum_spanning_tree
    >>> tree = minimum_spanning_tree([[0.0], [10.0], [1.0], [4.0]])
    >>> tree.edges.tolist(), tree.lengths.tolist()
    ([[0, 2], [2, 3], [1, 3]], [1.0, 3.0, 6.0])
    >>> minimum_spanning_tree([[0, 5, 2], [5, 0, 1], [2, 1, 0]], metric="precomputed").edges.tolist()
    [[1, 2], [0, 2]]
    """
    if metric == "precomputed":
        return _tree_of_distances(X)
    if metric != "euclidean":
        raise ValueError(f"metric must be 'euclidean' or 'precomputed'; got {metric!r}.")
    if strategy not in get_args(Strategy):
        raise ValueError(f"strategy must be one of {', '.join(get_args(Strategy))}; got {strategy!r}.")
    data = check_rows(X)
    if len(data) > 1 and np.isnan(data).any():
        if strategy == "kdtree":
            raise ValueError("A kd-tree needs all values, but some are missing (NaN). Use strategy 'auto' or 'prim'.")
        check_comparable(data)
        return _shared_tree(data)
    return tree_of_distinct(data, lambda rows: _distinct_edges(rows, strategy))


def spanning_tree_of_edges(edges: ArrayLike, lengths: ArrayLike, n_nodes: int | None = None) -> Tree:
    """Return the minimum spanning tree of a graph that is given by its edges.

    Edges are ordered by (length, smaller node, larger node), as `minimum_spanning_tree` orders them, so that the tree
    is unique. Of several edges between two nodes the shortest counts, and none from a node to itself.

    Parameters
    ----------
    edges : array-like of shape (m, 2)
        The two nodes that each edge joins, whole numbers from 0.
    lengths : array-like of shape (m,)
        Lengths of the edges, finite and ≥ 0.
    n_nodes : int or None, default None
        Number of nodes; None: the largest number in `edges`, and one more.

    Returns
    -------
    Tree

    Examples
    --------
    >>> tree = spanning_tree_of_edges([[0, 1], [1, 2], [2, 0], [2, 3]], [4.0, 1.0, 2.0, 7.0])
    >>> tree.edges.tolist(), tree.lengths.tolist()
    ([[1, 2], [0, 2], [2, 3]], [1.0, 2.0, 7.0])
    """
    ends, sizes = np.asarray(edges), np.asarray(lengths, dtype=np.float64)
    if ends.size == 0:
        ends = np.empty((0, 2), dtype=np.intp)
    if ends.ndim != 2 or ends.shape[1] != 2 or sizes.shape != (len(ends),):
        raise ValueError(f"Edges must have shape (m, 2) and lengths (m,); got shapes {ends.shape} and {sizes.shape}.")
    if not np.issubdtype(ends.dtype, np.integer):
        raise ValueError(f"Edges must name nodes by whole numbers from 0; got values of type {ends.dtype}.")
    n = int(ends.max(initial=0)) + 1 if n_nodes is None else int(n_nodes)
    outside = np.flatnonzero((ends < 0).any(axis=1) | (ends >= n).any(axis=1))
    if len(outside):
        raise ValueError(f"Nodes must lie between 0 and {n - 1}; edge {outside[0]} is {ends[outside[0]].tolist()}.")
    wrong = np.flatnonzero(~(np.isfinite(sizes) & (sizes >= 0)))
    if len(wrong):
        at = int(wrong[0])
        raise ValueError(f"Lengths must be finite and ≥ 0; that of edge {at}, {ends[at].tolist()}, is {sizes[at]}.")
    ends = np.sort(ends, axis=1).astype(np.int64)
    taken, component = spanning_forest(n, ends, sizes)
    if len(taken) < n - 1:
        apart = int(np.flatnonzero(component != component[0])[0])
        raise ValueError(
            f"The graph falls into {int(component.max()) + 1} parts, so that it has no spanning tree: no path leads "
            f"from node 0 to node {apart}, and {int((component != component[0]).sum()):,} of {n:,} nodes are out of "
            "reach of node 0. Add edges between the parts, or make a tree of each."
        )
    return sorted_tree(ends[taken], sizes[taken])


def _tree_of_distances(X: ArrayLike) -> Tree:
    """Return the minimum spanning tree of a matrix of distances."""
    D = np.asarray(X, dtype=np.float64)
    if D.ndim != 2 or D.shape[0] != D.shape[1] or not len(D):
        raise ValueError(f"A matrix of distances must be square, n×n with n ≥ 1; got shape {D.shape}.")
    wrong = np.argwhere(np.isnan(D) | (D < 0))
    if len(wrong):
        i, j = wrong[0]
        raise ValueError(f"Distances must be ≥ 0, or infinite where there is no edge; ({i}, {j}) is {D[i, j]}.")
    if np.diagonal(D).any():
        i = int(np.flatnonzero(np.diagonal(D))[0])
        raise ValueError(f"The distance of a node to itself must be 0; ({i}, {i}) is {D[i, i]}.")
    with np.errstate(invalid="ignore"):
        gaps = np.where(D == D.T, 0.0, np.abs(D - D.T))
    if gaps.any():
        i, j = (int(place) for place in np.unravel_index(np.argmax(gaps), gaps.shape))
        raise ValueError(
            f"A matrix of distances must be symmetric; ({i}, {j}) is {D[i, j]} and ({j}, {i}) is {D[j, i]}, a "
            f"difference of {gaps[i, j]:.3g}, the largest. Use (D + D.T)/2 if that is rounding."
        )
    ends = np.argwhere(np.triu(np.isfinite(D), 1))
    return spanning_tree_of_edges(ends, D[ends[:, 0], ends[:, 1]], len(D))


def spanning_tree_of_comparable(X: FloatArray, original: IndexArray | None = None) -> Tree:
    """Return the minimum spanning tree over those pairs of rows that share a column; for rows that have been checked.

    Where any two rows share one, it is `minimum_spanning_tree`. If the rows fall into groups that share none, no such
    tree exists, and the error names two rows of different groups. `original` is what `first_copies` finds, if known.

    >>> tree = spanning_tree_of_comparable(np.array([[0.0, np.nan], [3.0, 1.0], [np.nan, 2.0]]))
    >>> tree.edges.tolist(), (tree.lengths**2).round(9).tolist()
    ([[1, 2], [0, 1]], [2.0, 18.0])
    """
    data = np.ascontiguousarray(X, dtype=np.float64)
    set_stage(f"spanning tree of {len(data):,} rows")
    if not np.isnan(data).any():
        return tree_of_distinct(data, _distinct_edges, original)
    check_connected(data)
    return _shared_tree(data)


def check_rows(X: ArrayLike) -> FloatArray:
    """Return a table as contiguous float64; raise if no tree can be made of it. NaN is allowed, infinity is not."""
    if hasattr(X, "toarray"):
        raise TypeError("A spanning tree needs a dense table; got a sparse one. Call X.toarray() first.")
    data = np.ascontiguousarray(X, dtype=np.float64)
    if data.ndim != 2 or 0 in data.shape:
        raise ValueError(f"A spanning tree needs a table with at least one row and one column; got shape {data.shape}.")
    if np.isinf(data).any():
        row, column = np.argwhere(np.isinf(data))[0]
        raise ValueError(f"A spanning tree needs finite numbers; row {row}, column {column} is {data[row, column]}.")
    return data


def _shared_tree(X: FloatArray) -> Tree:
    """Return the tree under the distance over shared columns; rows that are not equal may be at distance 0."""
    edges = np.sort(prim_edges(prepare_incomplete(X)), axis=1)
    return sorted_tree(edges, edge_lengths(X, edges))


def _distinct_edges(X: FloatArray, strategy: Strategy = "auto") -> IndexArray:
    if strategy == "prim" or (strategy == "auto" and len(X) < _SMALLEST_FOR_KDTREE):
        return prim_edges(prepare_points(X, rotate=False))
    points = prepare_points(X, rotate=True)
    if strategy == "auto" and _searches_scan_nearly_all(points):
        return prim_edges(points)
    tree = tree_over(points)
    if strategy == "auto" and _prim_is_faster(tree):
        del tree  # each of the two holds the rows
        return prim_edges(points)
    del points
    return boruvka_edges(tree)


def edges_in_frame(points: Points, tree: PointTree) -> IndexArray:
    """Return the edges of the minimum spanning tree of different points in any frame, by row; `tree` is over them."""
    return prim_edges(points) if _prim_is_faster(tree) else boruvka_edges(tree)


def _searches_scan_nearly_all(points: Points) -> bool:
    """Tell whether searches in some rows of a wide table scan nearly all of them."""
    if points.exact.shape[1] < _WIDE or len(points.exact) < _WIDE_STEP * TILE:
        return False
    some = slice(None, None, _WIDE_STEP)
    tree = tree_over(
        replace(points, exact=points.exact[some], search=points.search[some].copy(), errors=points.errors[some])
    )
    return tree.sample_search_cost(N_LISTED, _SAMPLED_LEAVES) >= _NEARLY_ALL * tree.n_leaves


def _prim_is_faster(tree: PointTree) -> bool:
    """Tell whether scanning half of all leaves for each point, as Prim does on average, costs less than searching."""
    return (
        len(tree.names) < _SMALLEST_FOR_KDTREE
        or _SEARCH_OVERHEAD * tree.sample_search_cost(N_LISTED, _SAMPLED_LEAVES) >= tree.n_leaves / 2
    )


def prim_edges(points: Points) -> IndexArray:
    """Return the edges of the minimum spanning tree; over shared columns where values are missing (NaN).

    O(n²p) time, O(np) memory, no assumption on the data. Points that share no column are infinitely far apart; there
    is a tree without such edges (`check_connected`).
    """
    n = len(points.search)
    seen, patterns = np.ones(n), np.empty((n, 0), dtype=np.uint64)
    if np.isnan(points.exact).any():
        seen, patterns = shares_seen(points.exact), patterns_seen(points.exact)
    tiles = tiles_of(points.search)
    members = np.arange(len(tiles) * TILE).reshape(-1, TILE)
    edges = np.empty((n - 1, 2), dtype=np.int64)
    prim(points.exact, tiles, members, seen, patterns, 2 * points.errors.max(), points.stretch, edges)
    return edges
