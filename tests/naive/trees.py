"""Spanning trees by the book."""

from __future__ import annotations

import math


def kruskal(X):
    """Edges (i, j), i < j, and lengths of the minimum spanning tree, ties by (length, i, j).

    Ahmed et al. (2021), section 2.2.
    """
    n = len(X)
    rows = [[float(value) for value in row] for row in X]
    candidates = sorted((math.dist(rows[i], rows[j]), i, j) for i in range(n) for j in range(i + 1, n))
    leader = list(range(n))

    def find(i):
        while leader[i] != i:
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
