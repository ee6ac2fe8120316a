"""Nearest rows under the shared distance, compiled: every row is looked at, for there is no triangle inequality."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock._jit import kernel
from penstock.graph._kernels import (
    CHUNK,
    TILE,
    add_shared_distances,
    count_below,
    count_shared,
    search_limit,
    shared_squared_distance,
)

Array = Any


@kernel
def nearest_sharing(
    X: Array, tiles: Array, patterns: Array, shifts: Array, stretch: float, guests: Array, guest_points: Array,
    guest_patterns: Array, left_out: Array, start: int, stop: int, found: Array, squares: Array,
) -> None:  # fmt: skip
    """For guests start..stop the nearest rows of X in the order of (distance, index), row `left_out` apart.

    Rows that share no coordinate with a guest are not found: −1 and an infinite distance stand where there are too few.
    """
    n = X.shape[0]
    p = X.shape[1]
    k = found.shape[1]
    width = tiles.shape[1]
    total = np.empty(TILE, tiles.dtype)
    limits = np.empty(TILE, tiles.dtype)
    for guest in range(start, stop):
        query = guest_points[guest]
        seen = count_shared(guest_patterns, guest, guest_patterns, guest) / p
        limits[:] = np.inf
        for slot in range(k):
            found[guest, slot] = -1
            squares[guest, slot] = np.inf
        for tile in range(tiles.shape[0]):
            for t in range(TILE):
                total[t] = 0.0
            below = 0
            for first in range(0, width, CHUNK):
                add_shared_distances(tiles[tile], query, first, min(first + CHUNK, width), total)
                below = count_below(total, limits)
                if below == 0:
                    break
            if below == 0:
                continue
            for t in range(min(TILE, n - tile * TILE)):
                i = tile * TILE + t
                if total[t] > limits[t] or i == left_out[guest]:
                    continue
                shared = count_shared(patterns, i, guest_patterns, guest)
                if shared == 0 or total[t] > search_limit(squares[guest, k - 1] * shared / p, shifts[guest], stretch):
                    continue
                d2 = shared_squared_distance(X, i, guests, guest)
                if d2 < squares[guest, k - 1]:  # rows come in the order of their index: of equals the first stays
                    insert_sorted(found[guest], squares[guest], i, d2)
                    limits[:] = search_limit(squares[guest, k - 1] * seen, shifts[guest], stretch)


@kernel
def insert_sorted(found: Array, squares: Array, i: int, d2: float) -> None:
    """Put row i behind those that are no farther; the last one falls out."""
    slot = found.shape[0] - 1
    while slot > 0 and d2 < squares[slot - 1]:
        found[slot] = found[slot - 1]
        squares[slot] = squares[slot - 1]
        slot -= 1
    found[slot] = i
    squares[slot] = d2


@kernel
def shared_squared_distances(X: Array, start: int, stop: int, squares: Array) -> None:
    """Squared distances of rows start..stop to all rows: squares[i − start, j]."""
    for i in range(start, stop):
        for j in range(X.shape[0]):
            squares[i - start, j] = shared_squared_distance(X, i, X, j)
