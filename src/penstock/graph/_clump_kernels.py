"""The first edge between two clumps of points, compiled: the points of one searched for in the tree of the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock._jit import kernel
from penstock.graph._kdtree_kernels import STACK, point_to_box, scan_leaf
from penstock.graph._kernels import TILE, precedes, search_limit, squared_distance

Array = Any


@kernel
def push_halves(
    query: Array, boxes: Array, node: int, first: int, count: int, limit: float,
    nodes: Array, firsts: Array, counts: Array, gaps: Array, depth: int,
) -> int:  # fmt: skip
    """Put a node's children within reach of a point on the stack, the nearer one on top."""
    half = (count + 1) // 2
    left_gap = point_to_box(query, boxes[node + 1])
    right_gap = point_to_box(query, boxes[node + 2 * half])
    left_last = left_gap < right_gap
    for turn in range(2):
        if (turn == 1) == left_last:
            if left_gap <= limit:
                nodes[depth] = node + 1
                firsts[depth] = first
                counts[depth] = half
                gaps[depth] = left_gap
                depth += 1
        elif right_gap <= limit:
            nodes[depth] = node + 2 * half
            firsts[depth] = first + half
            counts[depth] = count - half
            gaps[depth] = right_gap
            depth += 1
    return depth


@kernel
def first_edge(
    X: Array, names: Array, hosts: Array, tiles: Array, boxes: Array, error: float, stretch: float,
    guests: Array, points: Array, errors: Array, start: int, stop: int, bound: Array,
) -> tuple[float, int, int]:  # fmt: skip
    """The first edge from guests start..stop to a point of a tree, as (square, guest, host); −1 if none is in bound.

    `hosts` and `guests` are rows of X: the former in the order of the tree, the latter with their search points in the
    tree's frame. `bound[0]` is the square of an edge known to exist, or infinite; it is shared by all threads, so that
    a lost update costs work, not correctness.
    """
    total = np.empty(TILE, tiles.dtype)
    nodes = np.empty(STACK, np.int64)
    firsts = np.empty(STACK, np.int64)
    counts = np.empty(STACK, np.int64)
    gaps = np.empty(STACK, tiles.dtype)
    best = np.inf
    leave = np.int64(-1)
    enter = np.int64(-1)
    for guest in range(start, stop):
        query = points[guest]
        i = guests[guest]
        shift = error + errors[guest]
        reach = bound[0]
        limit = tiles.dtype.type(search_limit(reach, shift, stretch))
        nodes[0] = 0
        firsts[0] = 0
        counts[0] = tiles.shape[0]
        gaps[0] = point_to_box(query, boxes[0])
        depth = 1
        while depth > 0:
            depth -= 1
            if gaps[depth] > limit:
                continue
            first = firsts[depth]
            count = counts[depth]
            if count > 1:
                depth = push_halves(
                    query, boxes, nodes[depth], first, count, limit, nodes, firsts, counts, gaps, depth
                )  # fmt: skip
                continue
            if scan_leaf(tiles[first], query, limit, total) == 0:
                continue
            for t in range(min(TILE, hosts.shape[0] - first * TILE)):
                if total[t] <= limit:
                    j = hosts[first * TILE + t]
                    d2 = squared_distance(X, i, X, j)
                    if d2 <= reach and (
                        leave < 0 or precedes(d2, names[i], names[j], best, names[leave], names[enter])
                    ):
                        best = d2
                        leave = i
                        enter = j
                        if d2 < reach:
                            reach = d2
                            limit = tiles.dtype.type(search_limit(d2, shift, stretch))
                            bound[0] = min(bound[0], d2)
    return best, leave, enter
