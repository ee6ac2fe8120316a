"""Exact neighbour searches over a kd-tree, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock._jit import kernel
from penstock.graph._kdtree_kernels import STACK, leaf_node, point_to_box, push_children, scan_leaf
from penstock.graph._kernels import TILE, precedes, search_limit, squared_distance

Array = Any


@kernel
def list_neighbors(
    X: Array, names: Array, tiles: Array, boxes: Array, shift: float, stretch: float,
    start: int, stop: int, step: int, near: Array, squares: Array,
) -> int:  # fmt: skip
    """The nearest neighbours of the points of every `step`-th leaf in start..stop, first by the order of edges.

    Returns how many leaves were scanned in all, the measure of what a search costs on these data.
    """
    n = X.shape[0]
    k = near.shape[1]
    n_leaves = tiles.shape[0]
    width = tiles.shape[1]
    limits = np.empty(TILE, tiles.dtype)
    total = np.empty(TILE, tiles.dtype)
    query = np.empty((TILE, width), tiles.dtype)
    nodes = np.empty(STACK, np.int64)
    firsts = np.empty(STACK, np.int64)
    counts = np.empty(STACK, np.int64)
    gaps = np.empty(STACK, tiles.dtype)
    scanned = 0
    for leaf in range(start, stop, step):
        base = leaf * TILE
        size = min(TILE, n - base)
        for a in range(size):
            limits[a] = np.inf
            for d in range(width):
                query[a, d] = tiles[leaf, d, a]
            for slot in range(k):
                near[base + a, slot] = -1
                squares[base + a, slot] = np.inf
        own = leaf_node(leaf, n_leaves)
        widest = tiles.dtype.type(np.inf)
        nodes[0] = 0
        firsts[0] = 0
        counts[0] = n_leaves
        gaps[0] = 0.0
        depth = 1
        while depth > 0:
            depth -= 1
            if gaps[depth] > widest:
                continue
            node = nodes[depth]
            first = firsts[depth]
            count = counts[depth]
            if count > 1:
                depth = push_children(boxes, own, node, first, count, widest, nodes, firsts, counts, gaps, depth)
                continue
            inside = min(TILE, n - first * TILE)
            widest = tiles.dtype.type(0.0)
            for a in range(size):
                if first == leaf or point_to_box(query[a], boxes[node]) <= limits[a]:
                    scanned += 1
                    if scan_leaf(tiles[first], query[a], limits[a], total) > 0:
                        for t in range(inside):
                            j = first * TILE + t
                            if total[t] <= limits[a] and j != base + a:
                                d2 = squared_distance(X, base + a, X, j)
                                if insert(names, base + a, j, d2, near, squares):
                                    limits[a] = search_limit(squares[base + a, k - 1], shift, stretch)
                widest = max(widest, limits[a])
    return scanned


@kernel
def insert(names: Array, i: int, j: int, d2: float, near: Array, squares: Array) -> bool:
    """Put j into the sorted list of i if it belongs there; say whether it did."""
    slot = near.shape[1] - 1
    if near[i, slot] >= 0 and not precedes(d2, names[i], names[j], squares[i, slot], names[i], names[near[i, slot]]):
        return False
    while slot > 0 and (
        near[i, slot - 1] < 0
        or precedes(d2, names[i], names[j], squares[i, slot - 1], names[i], names[near[i, slot - 1]])
    ):
        near[i, slot] = near[i, slot - 1]
        squares[i, slot] = squares[i, slot - 1]
        slot -= 1
    near[i, slot] = j
    squares[i, slot] = d2
    return True


@kernel
def nearest_rows(
    X: Array, names: Array, tiles: Array, boxes: Array, shifts: Array, stretch: float,
    guests: Array, guest_points: Array, start: int, stop: int, found: Array, squares: Array,
) -> None:  # fmt: skip
    """For guests start..stop the nearest rows of X by name, in the order of (distance, name)."""
    n = X.shape[0]
    k = found.shape[1]
    n_leaves = tiles.shape[0]
    total = np.empty(TILE, tiles.dtype)
    nodes = np.empty(STACK, np.int64)
    firsts = np.empty(STACK, np.int64)
    counts = np.empty(STACK, np.int64)
    for guest in range(start, stop):
        query = guest_points[guest]
        limit = tiles.dtype.type(np.inf)
        for slot in range(k):
            found[guest, slot] = -1
            squares[guest, slot] = np.inf
        nodes[0] = 0
        firsts[0] = 0
        counts[0] = n_leaves
        depth = 1
        while depth > 0:
            depth -= 1
            node = nodes[depth]
            first = firsts[depth]
            count = counts[depth]
            if point_to_box(query, boxes[node]) > limit:
                continue
            if count > 1:
                half = (count + 1) // 2
                near_left = point_to_box(query, boxes[node + 1]) <= point_to_box(query, boxes[node + 2 * half])
                for turn in range(2):  # the nearer child goes on top
                    if (turn == 1) == near_left:
                        nodes[depth] = node + 1
                        firsts[depth] = first
                        counts[depth] = half
                    else:
                        nodes[depth] = node + 2 * half
                        firsts[depth] = first + half
                        counts[depth] = count - half
                    depth += 1
                continue
            if scan_leaf(tiles[first], query, limit, total) > 0:
                for t in range(min(TILE, n - first * TILE)):
                    if total[t] <= limit:
                        i = first * TILE + t
                        d2 = squared_distance(X, i, guests, guest)
                        slot = k
                        while slot > 0 and (
                            d2 < squares[guest, slot - 1]
                            or (d2 == squares[guest, slot - 1] and names[i] < found[guest, slot - 1])
                            or found[guest, slot - 1] < 0
                        ):
                            if slot < k:
                                found[guest, slot] = found[guest, slot - 1]
                                squares[guest, slot] = squares[guest, slot - 1]
                            slot -= 1
                        if slot < k:
                            found[guest, slot] = names[i]
                            squares[guest, slot] = d2
                            limit = tiles.dtype.type(search_limit(squares[guest, k - 1], shifts[guest], stretch))
