"""Spanning trees by the book."""

from __future__ import annotations

import math

import numpy as np


def kruskal(X):
    """Edges (i, j), i < j, and lengths of the minimum spanning tree, ties by (length, i, j).

    Ahmed et al. (2021), section 2.2.
    """
    n = len(X)
    rows = [[float(value) for value in row] for row in X]
    return join(n, sorted((math.dist(rows[i], rows[j]), i, j) for i in range(n) for j in range(i + 1, n)))


def kruskal_in_doubles(X):
    """The same by squared lengths as float64 has them: four sums, each over every fourth column, added in pairs.

    The number of columns is a multiple of four. Edges alone: no root is taken.
    """
    lanes = [sum((X[:, None, d] - X[None, :, d]) ** 2 for d in range(lane, X.shape[1], 4)) for lane in range(4)]
    squares = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3])
    one, other = np.triu_indices(len(X), 1)
    order = np.lexsort((other, one, squares[one, other]))
    return join(len(X), ((squares[i, j], int(i), int(j)) for i, j in zip(one[order], other[order], strict=True)))[0]


def join(n, candidates):
    """Edges (i, j) and lengths of those candidates (length, i, j), in their order, that close no circle."""
    leader = list(range(n))

    def find(i):
        while leader[i] != i:
            leader[i] = leader[leader[i]]
            i = leader[i]
        return i

    edges, lengths = [], []
    for length, i, j in candidates:
        a, b = find(i), find(j)
        if a != b:
            leader[b] = a
            edges.append((i, j))
            lengths.append(length)
    return edges, lengths


def first_copies(X):
    """For each row the first row that equals it."""
    rows = [tuple(float(value) for value in row) for row in X]
    return [rows.index(row) for row in rows]
