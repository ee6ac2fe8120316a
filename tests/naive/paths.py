"""Paths of a tree by the book: lengths of all of them, and the similarity they give."""

from __future__ import annotations

import numpy as np


def path_lengths(n, edges, lengths):
    """M of all pairs: the length of the path between any two nodes, by walking from each. Algorithm 1: "pairwise"."""
    beside = {i: [] for i in range(n)}
    for (i, j), length in zip(edges, lengths, strict=True):
        beside[int(i)].append((int(j), float(length)))
        beside[int(j)].append((int(i), float(length)))
    M = np.zeros((n, n))
    for start in range(n):
        waiting, seen = [(start, 0.0)], {start}
        while waiting:
            node, far = waiting.pop()
            M[start, node] = far
            for other, length in beside[node]:
                if other not in seen:
                    seen.add(other)
                    waiting.append((other, far + length))
    return M


def path_similarity(n, edges, lengths):
    """S_ij = 1/M_ij where M_ij > 0, else 0, over the lengths of all paths."""
    M = path_lengths(n, edges, lengths)
    return np.array([[1 / M[i, j] if M[i, j] > 0 else 0.0 for j in range(n)] for i in range(n)])


def leaf_similarity(M, i, gap, capped):
    """Similarities of a new row that hangs on row i at the distance `gap`: `capped` to row i (and its equals)."""
    return np.array([1 / (gap + M[i, j]) if M[i, j] > 0 else capped for j in range(len(M))])
