"""Neighbour searches over a kd-tree that end after a few leaves, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock._jit import kernel
from penstock.graph._kdtree_kernels import point_to_box, scan_leaf
from penstock.graph._kernels import TILE, search_limit, squared_distance
from penstock.graph._search_kernels import insert

Array = Any


@kernel
def push(heap: Array, gaps: Array, size: int, item: int, gap: float) -> int:
    """Put an item on a heap whose smallest gap is on top; returns its new size."""
    place = size
    while place > 0 and gaps[(place - 1) // 2] > gap:
        gaps[place] = gaps[(place - 1) // 2]
        heap[place] = heap[(place - 1) // 2]
        place = (place - 1) // 2
    gaps[place] = gap
    heap[place] = item
    return size + 1


@kernel
def drop_top(heap: Array, gaps: Array, size: int) -> int:
    """Take the item with the smallest gap off the heap; returns its new size."""
    size -= 1
    gap = gaps[size]
    item = heap[size]
    place = 0
    while 2 * place + 1 < size:
        child = 2 * place + 1
        if child + 1 < size and gaps[child + 1] < gaps[child]:
            child += 1
        if gaps[child] >= gap:
            break
        gaps[place] = gaps[child]
        heap[place] = heap[child]
        place = child
    gaps[place] = gap
    heap[place] = item
    return size


@kernel
def describe_nodes(firsts: Array, counts: Array, node: int, first: int, count: int) -> None:
    """The first leaf and the number of leaves of each node."""
    firsts[node] = first
    counts[node] = count
    if count > 1:
        half = (count + 1) // 2
        describe_nodes(firsts, counts, node + 1, first, half)
        describe_nodes(firsts, counts, node + 2 * half, first + half, count - half)


@kernel
def list_some_neighbors(
    X: Array, names: Array, tiles: Array, boxes: Array, firsts: Array, counts: Array, shift: float, stretch: float,
    max_leaves: int, start: int, stop: int, near: Array, squares: Array,
) -> None:  # fmt: skip
    """The nearest points among those of the `max_leaves` leaves whose boxes are nearest, for points start..stop.

    Nearest box first: the first leaves find most of what all would.
    """
    n = X.shape[0]
    k = near.shape[1]
    width = tiles.shape[1]
    total = np.empty(TILE, tiles.dtype)
    query = np.empty(width, tiles.dtype)
    heap = np.empty(boxes.shape[0] + 1, np.int64)
    gaps = np.empty(boxes.shape[0] + 1, tiles.dtype)
    for i in range(start, stop):
        for d in range(width):
            query[d] = tiles[i // TILE, d, i % TILE]
        for slot in range(k):
            near[i, slot] = -1
            squares[i, slot] = np.inf
        limit = tiles.dtype.type(np.inf)
        size = push(heap, gaps, 0, 0, tiles.dtype.type(0.0))
        scanned = 0
        while size > 0 and gaps[0] <= limit and scanned < max_leaves:
            node = heap[0]
            size = drop_top(heap, gaps, size)
            if counts[node] > 1:
                half = (counts[node] + 1) // 2
                for child in (node + 1, node + 2 * half):
                    gap = point_to_box(query, boxes[child])
                    if gap <= limit:
                        size = push(heap, gaps, size, child, gap)
                continue
            scanned += 1
            first = firsts[node] * TILE
            if scan_leaf(tiles[firsts[node]], query, limit, total) > 0:
                for t in range(min(TILE, n - first)):
                    if total[t] <= limit and first + t != i:
                        d2 = squared_distance(X, i, X, first + t)
                        if insert(names, i, first + t, d2, near, squares):
                            limit = tiles.dtype.type(search_limit(squares[i, k - 1], shift, stretch))
