"""Tables with missing values (NaN) as slow loops: what is not there is left out. Imports nothing of ours."""

from __future__ import annotations

import math


def shared_distance(a, b):
    """√(p/|shared| · Σ (a_k − b_k)²) over the columns that both rows have; None where they share none."""
    shared = [float(x) - float(y) for x, y in zip(a, b, strict=True) if not (math.isnan(x) or math.isnan(y))]
    if not shared:
        return None
    exponent = math.frexp(max(abs(gap) for gap in shared))[1]  # in units of a power of two no square vanishes
    total = sum(math.ldexp(gap, -exponent) ** 2 for gap in shared)
    return math.ldexp(math.sqrt(total if len(shared) == len(a) else total * len(a) / len(shared)), exponent)


def pair_distances(X):
    """(distance, i, j) of all pairs i < j in ascending order, infinite for rows that share no column."""
    rows = [[float(value) for value in row] for row in X]
    pairs = []
    for i in range(len(rows)):
        for j in range(i + 1, len(rows)):
            distance = shared_distance(rows[i], rows[j])
            pairs.append((math.inf if distance is None else distance, i, j))
    return sorted(pairs)


def kruskal(X):
    """Edges (i, j), i < j, and lengths of the minimum spanning tree, ties by (length, i, j).

    An infinite length among them says that the rows fall apart.
    """
    pairs = pair_distances(X)
    group = list(range(len(X)))
    edges, lengths = [], []
    for length, i, j in pairs:
        if group[i] != group[j]:
            old = group[j]
            group = [group[i] if g == old else g for g in group]
            edges.append((i, j))
            lengths.append(length)
    return edges, lengths


def incomparable_pair(X):
    """The first pair of rows that share no column, or None."""
    for i in range(len(X)):
        for j in range(i + 1, len(X)):
            if all(math.isnan(x) or math.isnan(y) for x, y in zip(X[i], X[j], strict=True)):
                return i, j
    return None


def groups(X):
    """For each row the first row that a chain of rows leads to, each of which shares a column with the next."""
    group = list(range(len(X)))
    for distance, i, j in pair_distances(X):
        if distance < math.inf:
            low, high = sorted((group[i], group[j]))
            group = [low if g == high else g for g in group]
    return group


def nearest(X, query, k, left_out=None):
    """The k nearest rows of a query as (distance, index), ties by index."""
    found = [(shared_distance(row, query), j) for j, row in enumerate(X) if j != left_out]
    return sorted(pair for pair in found if pair[0] is not None)[:k]


def attribute_loss(A, W, H):
    """Σ (a_ij − w_i·h_j)² over the entries of A that are there."""
    total = 0.0
    for i, row in enumerate(A):
        for j, value in enumerate(row):
            if not math.isnan(value):
                total += (value - sum(W[i][k] * H[k][j] for k in range(len(H)))) ** 2
    return total


def residual_scores(A, W, H):
    """√(p/|seen| · Σ over the entries seen of residual²)."""
    scores = []
    for a, w in zip(A, W, strict=True):
        seen = [j for j, value in enumerate(a) if not math.isnan(value)]
        total = sum((a[j] - sum(w[k] * H[k][j] for k in range(len(H)))) ** 2 for j in seen)
        scores.append(math.sqrt(total * len(a) / len(seen)))
    return scores


def first_copies(X):
    """For each row the first row that is equal and misses the same values."""
    rows = [tuple(None if math.isnan(value) else float(value) for value in row) for row in X]
    return [rows.index(row) for row in rows]
