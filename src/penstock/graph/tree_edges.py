"""A spanning tree seen from its rows: which edges each has."""

from __future__ import annotations

import numpy as np

from penstock._types import FloatArray, IndexArray, Tree


def tree_among(tree: Tree, kept: IndexArray) -> Tree:
    """The tree without the copies of rows, numbered anew; copies are leaves, so that it stays one."""
    place = np.full(tree.n_nodes, -1, dtype=np.intp)
    place[kept] = np.arange(len(kept))
    edges = place[tree.edges]
    inside = (edges >= 0).all(axis=1)
    return Tree(edges[inside], tree.lengths[inside])


def shortest_edges(tree: Tree) -> FloatArray:
    """The length of each row's shortest edge, zeros apart; the median length for rows that have none."""
    positive = tree.lengths > 0
    edges, lengths = tree.edges[positive], tree.lengths[positive]
    shortest = np.full(tree.n_nodes, np.inf)
    np.minimum.at(shortest, edges[:, 0], lengths)
    np.minimum.at(shortest, edges[:, 1], lengths)
    return np.where(np.isfinite(shortest), shortest, np.median(lengths) if len(lengths) else 1.0)


def nearest_by_tree(tree: Tree) -> tuple[IndexArray, FloatArray, FloatArray, IndexArray]:
    """Of each row its nearest other row and how far it is, the length of all its edges together, and their number.

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
