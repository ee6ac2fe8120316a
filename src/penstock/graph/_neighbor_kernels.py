"""Nearest rows, compiled: the distance that decides, a full scan, and the ranking of candidates."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock._jit import kernel

Array = Any


@kernel
def distance(X: Array, i: int, Y: Array, j: int) -> float:
    """‖x_i − y_j‖, symmetric to the last bit, 0 only for equal rows, finite where the differences are."""
    p = X.shape[1]
    s0 = 0.0
    s1 = 0.0
    s2 = 0.0
    s3 = 0.0
    whole = p - p % 4
    for d in range(0, whole, 4):
        e0 = X[i, d] - Y[j, d]
        e1 = X[i, d + 1] - Y[j, d + 1]
        e2 = X[i, d + 2] - Y[j, d + 2]
        e3 = X[i, d + 3] - Y[j, d + 3]
        s0 += e0 * e0
        s1 += e1 * e1
        s2 += e2 * e2
        s3 += e3 * e3
    for d in range(whole, p):
        e0 = X[i, d] - Y[j, d]
        s0 += e0 * e0
    total = (s0 + s1) + (s2 + s3)
    if 1e-280 < total < 1e300:
        return float(np.sqrt(total))
    # Squares have overflowed or vanished: measure in units of the largest difference.
    largest = 0.0
    for d in range(p):
        largest = max(largest, abs(X[i, d] - Y[j, d]))
    if largest == 0.0:
        return 0.0
    total = 0.0
    for d in range(p):
        e0 = (X[i, d] - Y[j, d]) / largest
        total += e0 * e0
    return float(largest * np.sqrt(total))


@kernel
def insert_neighbor(near: Array, lengths: Array, filled: int, name: int, length: float) -> None:
    """Put one more into a list in ascending order of (length, index) of which `filled` places are taken."""
    last = near.shape[0] - 1
    place = min(filled, last)
    while place > 0 and (lengths[place - 1] > length or (lengths[place - 1] == length and near[place - 1] > name)):
        lengths[place] = lengths[place - 1]
        near[place] = near[place - 1]
        place -= 1
    lengths[place] = length
    near[place] = name


@kernel
def scan_all(X: Array, Q: Array, rows: Array, start: int, stop: int, near: Array, lengths: Array) -> None:
    """The nearest rows of X for Q[rows[start:stop]], by looking at all of them."""
    m = near.shape[1]
    for t in range(start, stop):
        i = rows[t]
        for j in range(X.shape[0]):
            length = distance(Q, i, X, j)
            # Rows come in ascending order, so that a tie with the last of a full list never enters.
            if j < m or length < lengths[i, m - 1]:
                insert_neighbor(near[i], lengths[i], j, j, length)


@kernel
def rank_candidates(
    X: Array, Q: Array, rows: Array, candidates: Array, start: int, stop: int, near: Array, lengths: Array
) -> None:
    """The nearest among the candidates of each row, measured again; ties by index."""
    m = near.shape[1]
    for t in range(start, stop):
        i = rows[t]
        for c in range(candidates.shape[1]):
            j = candidates[t, c]
            length = distance(Q, i, X, j)
            full = c >= m
            if not full or length < lengths[i, m - 1] or (length == lengths[i, m - 1] and j < near[i, m - 1]):
                insert_neighbor(near[i], lengths[i], c, j, length)
