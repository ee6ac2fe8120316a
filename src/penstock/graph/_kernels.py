"""Distances, compiled. Every strategy measures a pair with `squared_distance`, so that all agree to the last bit."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock._jit import kernel, relaxed_kernel

Array = Any  # inside kernels an array is an array; its type is settled by the caller

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
def distance(X: Array, i: int, Y: Array, j: int) -> float:
    """‖x_i − y_j‖, symmetric to the last bit, 0 only for equal rows."""
    square = squared_distance(X, i, Y, j)
    if square > 1e-280:
        return float(np.sqrt(square))
    # Squares may have vanished: measure in units of the largest difference.
    largest = 0.0
    for d in range(X.shape[1]):
        largest = max(largest, abs(X[i, d] - Y[j, d]))
    if largest == 0.0:
        return 0.0
    square = 0.0
    for d in range(X.shape[1]):
        ratio = (X[i, d] - Y[j, d]) / largest
        square += ratio * ratio
    return float(largest * np.sqrt(square))


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


@kernel
def count_below(total: Array, limit: Array) -> int:
    """How many of the tile's points are not ruled out."""
    found = np.int32(0)
    for t in range(TILE):
        found += np.int32(total[t] <= limit[t])
    return int(found)


@kernel
def search_limit(best: float, shift: float, stretch: float) -> float:
    """The largest float32 squared distance that a pair no longer than sqrt(best) can show. Proof: docs/decisions."""
    reach = np.sqrt(best) + shift
    return min(reach * reach * stretch + 1e-30, 3e38)  # no float32 sum of search points comes near the cap
