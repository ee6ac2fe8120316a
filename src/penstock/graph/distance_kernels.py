"""Distances between rows, the order of edges and sums over tiles of points, compiled."""

from __future__ import annotations

import numpy as np

from penstock._jit import Array, kernel, relaxed_kernel
from penstock._row_kernels import norm

# S² is summed in the objective, over as many as 1e9 edges: 1e140 keeps that sum finite. Lengths below 1e-140 are met
# only in data of such a scale, never after min-max scaling of float64 data of ordinary size.
LARGEST_SIMILARITY = 1e140
TILE = 64  # points per tile: four cache lines of float32, so that an accumulator row stays in the registers
CHUNK = 16  # dimensions added between two looks at whether a whole tile is ruled out already


@kernel
def squared_distance(X: Array, i: int, Y: Array, j: int) -> float:
    """‖x_i − y_j‖², symmetric to the last bit; four sums keep the units busy, in a fixed order."""
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
    return (s0 + s1) + (s2 + s3)


@kernel
def shared_squared_distance(X: Array, i: int, Y: Array, j: int) -> float:
    """p/|shared| · Σ (x_id − y_jd)² over the coordinates that both rows have; infinite where they share none.

    NaN is a hole. Symmetric to the last bit, and for two rows without a hole the same as `squared_distance`.
    """
    p = X.shape[1]
    s0 = 0.0
    s1 = 0.0
    s2 = 0.0
    s3 = 0.0
    holes = 0
    whole = p - p % 4
    for d in range(0, whole, 4):
        e0 = X[i, d] - Y[j, d]
        e1 = X[i, d + 1] - Y[j, d + 1]
        e2 = X[i, d + 2] - Y[j, d + 2]
        e3 = X[i, d + 3] - Y[j, d + 3]
        # max(0, NaN) is 0 in this order of the two: a branch on NaN instead would be guessed wrong again and again
        s0 += max(0.0, e0 * e0)
        s1 += max(0.0, e1 * e1)
        s2 += max(0.0, e2 * e2)
        s3 += max(0.0, e3 * e3)
        holes += (int(np.isnan(e0)) + int(np.isnan(e1))) + (int(np.isnan(e2)) + int(np.isnan(e3)))
    for d in range(whole, p):
        e0 = X[i, d] - Y[j, d]
        s0 += max(0.0, e0 * e0)
        holes += int(np.isnan(e0))
    total = (s0 + s1) + (s2 + s3)
    if holes == 0:
        return total
    return total * p / (p - holes) if holes < p else np.inf


@kernel
def count_shared(patterns: Array, i: int, others: Array, j: int) -> int:
    """How many coordinates two rows share, from their patterns: a bit for each, set where it is there."""
    shared = np.uint64(0)
    for word in range(patterns.shape[1]):
        x = patterns[i, word] & others[j, word]  # its bits are added in pairs, in fours, in bytes and so on
        x = (x & np.uint64(0x5555555555555555)) + ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
        x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
        x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
        x = x + (x >> np.uint64(8))
        x = x + (x >> np.uint64(16))
        shared += (x + (x >> np.uint64(32))) & np.uint64(0x7F)
    return int(shared)


@kernel
def distance(X: Array, i: int, Y: Array, j: int) -> float:
    """‖x_i − y_j‖, symmetric to the last bit, 0 only for equal rows."""
    square = squared_distance(X, i, Y, j)
    if square > 1e-280:
        return float(np.sqrt(square))
    difference = np.empty(X.shape[1])  # squares may have vanished
    for d in range(X.shape[1]):
        difference[d] = X[i, d] - Y[j, d]
    return float(norm(difference))


@kernel
def precedes(d: float, i: int, j: int, d2: float, i2: int, j2: int) -> bool:
    """Whether edge (d; i, j) comes before (d2; i2, j2) in the order (length, smaller index, larger index)."""
    if d != d2:
        return d < d2
    low = min(i, j)
    low2 = min(i2, j2)
    if low != low2:
        return low < low2
    return max(i, j) < max(i2, j2)


@relaxed_kernel
def add_tile_distances(tile: Array, query: Array, start: int, stop: int, total: Array) -> None:
    """Add to `total[t]` the squared distance of point t of a (dimension × point) tile over dimensions start..stop.

    `stop − start` is a multiple of 4 (`Points` pads with zeros).
    """
    for d in range(start, stop, 4):
        q0 = query[d]
        q1 = query[d + 1]
        q2 = query[d + 2]
        q3 = query[d + 3]
        for t in range(TILE):
            e0 = tile[d, t] - q0
            e1 = tile[d + 1, t] - q1
            e2 = tile[d + 2, t] - q2
            e3 = tile[d + 3, t] - q3
            total[t] += (e0 * e0 + e1 * e1) + (e2 * e2 + e3 * e3)


@relaxed_kernel
def add_shared_distances(tile: Array, query: Array, start: int, stop: int, total: Array) -> None:
    """The same over the coordinates that both the point and the query have; NaN is a hole."""
    zero = total.dtype.type(0.0)
    for d in range(start, stop, 4):
        q0 = query[d]
        q1 = query[d + 1]
        q2 = query[d + 2]
        q3 = query[d + 3]
        for t in range(TILE):
            e0 = tile[d, t] - q0
            e1 = tile[d + 1, t] - q1
            e2 = tile[d + 2, t] - q2
            e3 = tile[d + 3, t] - q3
            f0 = max(zero, e0 * e0)  # 0 for NaN
            f1 = max(zero, e1 * e1)
            f2 = max(zero, e2 * e2)
            f3 = max(zero, e3 * e3)
            total[t] += (f0 + f1) + (f2 + f3)


@kernel
def count_below(total: Array, limit: Array) -> int:
    """How many of the tile's points are not ruled out."""
    found = np.int32(0)
    for t in range(TILE):
        found += np.int32(total[t] <= limit[t])
    return int(found)


@kernel
def search_limit(best: float, shift: float, stretch: float) -> float:
    """The largest squared distance of search points of a pair no longer than sqrt(best). Proof: docs/decisions."""
    reach = np.sqrt(best) + shift
    return min(reach * reach * stretch, 3e38)  # no sum of search points comes near the cap
