"""Kernels of LoMST: local minimum spanning trees that grow by one row at a time."""

from __future__ import annotations

import numpy as np

from penstock._jit import Array, kernel
from penstock.graph.distance_kernels import distance


@kernel
def root_tree(ends: Array, m: int, first: Array, following: Array, order: Array, parent: Array, via: Array) -> None:
    """Root the tree of vertices 0..m and edges ends[0:m] at 0: `order` has parents before children.

    `via[v]` is the edge to the parent of v. `first` and `following` are the workspace of adjacency lists: edge e is
    listed as 2e from its one end and as 2e + 1 from its other.
    """
    for v in range(m + 1):
        first[v] = -1
    for e in range(m):
        for side in range(2):
            v = ends[e, side]
            following[2 * e + side] = first[v]
            first[v] = 2 * e + side
    order[0] = 0
    parent[0] = -1
    known = 1
    for place in range(m + 1):
        v = order[place]
        half = first[v]
        while half >= 0:
            other = ends[half // 2, 1 - half % 2]
            if other != parent[v]:
                parent[other] = v
                via[other] = half // 2
                order[known] = other
                known += 1
            half = following[half]


@kernel
def join_vertex(
    ends: Array, weights: Array, m: int, spokes: Array, order: Array, parent: Array, via: Array,
    spare_ends: Array, spare_weights: Array, rim: Array,
) -> None:  # fmt: skip
    """Add vertex m + 1, at distance spokes[v] from vertex v, to the minimum spanning tree of 0..m, in O(m).

    From the leaves up, each vertex knows the longest edge on the best way from it to the new vertex (`rim` says between
    which vertices). Of that edge and the edge to the parent the shorter is in the new tree; the longer competes with
    the parent's own way (Spira & Pan 1975; Chin & Houck 1978). `spokes` is consumed.
    """
    for v in range(m + 1):
        rim[v, 0] = v
        rim[v, 1] = m + 1
    for place in range(m, 0, -1):
        v = order[place]
        u = parent[v]
        e = via[v]
        slot = place - 1
        if weights[e] < spokes[v]:
            spare_ends[slot, 0] = ends[e, 0]
            spare_ends[slot, 1] = ends[e, 1]
            spare_weights[slot] = weights[e]
            if spokes[v] < spokes[u]:
                spokes[u] = spokes[v]
                rim[u, 0] = rim[v, 0]
                rim[u, 1] = rim[v, 1]
        else:
            spare_ends[slot, 0] = rim[v, 0]
            spare_ends[slot, 1] = rim[v, 1]
            spare_weights[slot] = spokes[v]
            if weights[e] < spokes[u]:
                spokes[u] = weights[e]
                rim[u, 0] = ends[e, 0]
                rim[u, 1] = ends[e, 1]
    spare_ends[m, 0] = rim[0, 0]
    spare_ends[m, 1] = rim[0, 1]
    spare_weights[m] = spokes[0]
    for e in range(m + 1):
        ends[e, 0] = spare_ends[e, 0]
        ends[e, 1] = spare_ends[e, 1]
        weights[e] = spare_weights[e]


@kernel
def grow_local_trees(X: Array, Q: Array, near: Array, start: int, stop: int, lengths: Array) -> None:
    """lengths[i, m] = length of the minimum spanning tree of Q[i] and the rows X[near[i, 0:m+1]]."""
    k = near.shape[1]
    ends = np.empty((k, 2), np.int64)
    weights = np.empty(k)
    spare_ends = np.empty((k, 2), np.int64)
    spare_weights = np.empty(k)
    spokes = np.empty(k + 1)
    rim = np.empty((k + 1, 2), np.int64)
    first = np.empty(k + 1, np.int64)
    following = np.empty(2 * k, np.int64)
    order = np.empty(k + 1, np.int64)
    parent = np.empty(k + 1, np.int64)
    via = np.empty(k + 1, np.int64)
    for i in range(start, stop):
        for m in range(k):
            j = near[i, m]
            spokes[0] = distance(X, j, Q, i)
            for v in range(1, m + 1):
                spokes[v] = distance(X, j, X, near[i, v - 1])
            root_tree(ends, m, first, following, order, parent, via)
            join_vertex(ends, weights, m, spokes, order, parent, via, spare_ends, spare_weights, rim)
            total = 0.0
            for e in range(m + 1):
                total += weights[e]
            lengths[i, m] = total
