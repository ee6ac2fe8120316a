"""Compute an approximate spanning tree, for data on which exact searches take too long."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from penstock._threads import for_each_range
from penstock._types import FloatArray, IndexArray, Tree
from penstock.graph import _search_kernels as kernels
from penstock.graph.boruvka import joining_edges
from penstock.graph.edges import spanning_forest, tree_of_distinct
from penstock.graph.mst import check_rows, minimum_spanning_tree
from penstock.graph.search import PointTree, build_tree


@dataclass(frozen=True)
class Approximation:
    """Effort of an approximate tree: neighbours listed per row, and leaves (of 64 rows) searched to find them."""

    n_neighbors: int = 10
    max_leaves: int = 32

    def __post_init__(self) -> None:
        if self.n_neighbors < 1 or self.max_leaves < 1:
            raise ValueError(f"n_neighbors and max_leaves must be at least 1; got {self}.")


@dataclass(frozen=True)
class ApproximateTree:
    """A spanning tree, and the share by which such a tree of a sample of rows exceeds the shortest one."""

    tree: Tree
    excess: float
    sample_size: int


def approximate_spanning_tree(
    X: ArrayLike,
    *,
    n_neighbors: int = Approximation.n_neighbors,
    max_leaves: int = Approximation.max_leaves,
    sample_size: int = 10_000,
    random_state: int = 0,
) -> ApproximateTree:
    """Return a spanning tree of the rows of X from lists of near neighbours, with a measurement of its excess length.

    It is the shortest tree of a graph in which each row is joined with the nearest of those rows that a short search
    looks at; where that graph falls apart, its components are joined by the shortest edges there are. Always a spanning
    tree, never shorter than the exact one.

    Parameters
    ----------
    X : array-like of shape (n, p)
        Finite numbers, none missing.
    n_neighbors : int, default 10
        Neighbours listed per row.
    max_leaves : int, default 32
        Leaves of 64 rows searched to find them. More neighbours and leaves are slower and more exact.
    sample_size : int, default 10_000
        The excess is measured on so many rows, drawn by `random_state`; on all if there are fewer. A sample is
        sparser than the data and its searches cover more of it, so the excess on all rows can be larger.
    random_state : int, default 0
        Seed of the sample.

    Returns
    -------
    ApproximateTree
        The tree, its excess, and the number of rows on which the excess was measured.

    Examples
    --------
    >>> found = approximate_spanning_tree([[0.0], [10.0], [1.0], [4.0]])
    >>> found.tree.lengths.tolist(), found.excess, found.sample_size
    ([1.0, 3.0, 6.0], 0.0, 4)
    """
    data = check_rows(X)
    if np.isnan(data).any():
        raise ValueError("An approximate tree needs all values, but some are missing (NaN).")
    if sample_size < 1:
        raise ValueError(f"sample_size must be at least 1; got {sample_size}.")
    settings = Approximation(n_neighbors, max_leaves)

    def approximate(rows: FloatArray) -> Tree:
        return tree_of_distinct(rows, lambda distinct: approximate_edges(build_tree(distinct), settings))

    tree = approximate(data)
    if len(data) <= sample_size:
        return ApproximateTree(tree, _excess(tree, minimum_spanning_tree(data)), len(data))
    drawn = np.random.default_rng(random_state).choice(len(data), sample_size, replace=False)
    sample = data[np.sort(drawn)]
    return ApproximateTree(tree, _excess(approximate(sample), minimum_spanning_tree(sample)), sample_size)


def approximate_edges(tree: PointTree, settings: Approximation) -> IndexArray:
    """Return the edges of an approximate spanning tree, by the names of the tree."""
    n = len(tree.names)
    if n == 1:
        return np.empty((0, 2), dtype=np.intp)
    near, squares = list_some_neighbors(tree, min(settings.n_neighbors, n - 1), settings.max_leaves)
    listed = near.ravel() >= 0
    ends = np.column_stack([np.repeat(np.arange(n), near.shape[1])[listed], near.ravel()[listed]])
    taken, component = spanning_forest(n, ends, squares.ravel()[listed])
    edges: IndexArray = np.concatenate([ends[taken], joining_edges(tree, component)])
    return tree.names[edges]


def list_some_neighbors(tree: PointTree, k: int, max_leaves: int) -> tuple[NDArray[np.int64], FloatArray]:
    """List neighbours from few leaves: not always the nearest, and −1 where too few points were seen."""
    near = np.empty((len(tree.names), k), dtype=np.int64)
    squares = np.empty(near.shape)
    firsts, counts = np.empty(len(tree.boxes), dtype=np.int64), np.empty(len(tree.boxes), dtype=np.int64)
    kernels.describe_nodes(firsts, counts, 0, 0, tree.n_leaves)

    def list_range(start: int, stop: int) -> None:
        kernels.list_some_neighbors(tree.arrays, firsts, counts, max_leaves, start, stop, near, squares)

    for_each_range(list_range, len(tree.names), smallest=1024)
    return near, squares


def _excess(tree: Tree, exact: Tree) -> float:
    """Return the share by which a tree is longer; in units of the longest edge, so that no sum overflows."""
    longest = tree.lengths.max(initial=0.0)
    if longest == 0:
        return 0.0
    total, least = (float((lengths / longest).sum()) for lengths in (tree.lengths, exact.lengths))
    return max(total / least - 1, 0.0)
