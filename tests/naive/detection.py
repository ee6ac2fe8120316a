"""Detection straight from the equations, as slow loops. Imports nothing of ours."""

from __future__ import annotations

import math
from itertools import permutations


def distance(a, b):
    return math.dist(a, b)


def similarity(n, edges, lengths):
    """Ahmed et al. (2021), the formula after eq:frob: S_ij = 1/M_ij where M_ij > 0, else 0."""
    S = [[0.0] * n for _ in range(n)]
    for (i, j), length in zip(edges, lengths, strict=True):
        if length > 0:
            S[i][j] = S[j][i] = 1.0 / length
    return S


def residual_scores(A, W, H):
    """Ahmed et al. (2021), eq:anomaly."""
    scores = []
    for a, w in zip(A, W, strict=True):
        rebuilt = [sum(w[k] * H[k][d] for k in range(len(H))) for d in range(len(a))]
        scores.append(distance(a, rebuilt))
    return scores


def structural_scores(A, W, H, S):
    """A row rebuilt from the similarity-weighted mean of its neighbours' weights."""
    means = []
    for i in range(len(A)):
        total = sum(S[i])
        if total == 0:
            means.append(list(W[i]))
        else:
            means.append([sum(S[i][j] * W[j][k] for j in range(len(A))) / total for k in range(len(H))])
    return residual_scores(A, means, H)


def nearest(X, i, k):
    """The k nearest other rows of row i, ties by index."""
    others = sorted((distance(X[i], X[j]), j) for j in range(len(X)) if j != i)
    return others[:k]


def knn_distance(X, k):
    """Distance to the k-th nearest other row."""
    return [nearest(X, i, k)[-1][0] for i in range(len(X))]


def tree_length(points):
    """Kruskal's algorithm over all pairs."""
    pairs = sorted((distance(points[i], points[j]), i, j) for i in range(len(points)) for j in range(i))
    group = list(range(len(points)))
    total = 0.0
    for length, i, j in pairs:
        if group[i] != group[j]:
            total += length
            old = group[i]
            group = [group[j] if g == old else g for g in group]
    return total


def lomst_contrasts(X, k):
    """Ahmed et al. (2019): c_i = T_i − mean of T_j over the k nearest rows, T the length of the local tree."""
    near = [[j for _, j in nearest(X, i, k)] for i in range(len(X))]
    T = [tree_length([X[i]] + [X[j] for j in near[i]]) for i in range(len(X))]
    return [T[i] - sum(T[j] for j in near[i]) / k for i in range(len(X))]


def min_max(values):
    low, high = min(values), max(values)
    return [(value - low) / (high - low) if high > low else 0.0 for value in values]


def practical_k(X, smallest, largest, scaled=True):
    """Ahmed et al. (2019): the k of the largest standard deviation of the scores, scaled or not."""
    spread = {}
    for k in range(smallest, largest + 1):
        scores = min_max(lomst_contrasts(X, k)) if scaled else lomst_contrasts(X, k)
        mean = sum(scores) / len(scores)
        spread[k] = sum((s - mean) ** 2 for s in scores)
    return max(spread, key=lambda k: (spread[k], -k))


def precision_at_n(y, scores, n=None):
    """Ahmed et al. (2021), eq:evaluation, averaged over all orders of the rows (the sort is stable)."""
    count = sum(y) if n is None else n
    hits = []
    for order in permutations(range(len(y))):
        ranked = sorted(order, key=lambda i: -scores[i])
        hits.append(sum(y[i] for i in ranked[:count]) / count)
    return sum(hits) / len(hits)
