"""Kruskal's algorithm over edges that are sorted already, compiled."""

from __future__ import annotations

from typing import Any

from penstock._jit import kernel
from penstock.graph._boruvka_kernels import find_root
from penstock.graph._kernels import squared_distance

Array = Any


@kernel
def take_edges(ends: Array, order: Array, parent: Array, taken: Array) -> int:
    """Go through the edges in `order` and keep those that join two sets; `taken` lists them, their number is returned.

    The smallest member is the root of its set: no ranks to be kept, and paths are halved on the way.
    """
    count = 0
    for place in range(order.shape[0]):
        edge = order[place]
        a = find_root(parent, ends[edge, 0])
        b = find_root(parent, ends[edge, 1])
        if a != b:
            parent[max(a, b)] = min(a, b)
            taken[count] = edge
            count += 1
    return count


@kernel
def number_sets(parent: Array, label: Array) -> int:
    """`label[i]` = the number of i's set, from 0 in order of their roots; `parent` leads to smaller members only."""
    fresh = 0
    for i in range(parent.shape[0]):
        if parent[i] == i:
            label[i] = fresh
            fresh += 1
        else:
            label[i] = label[parent[i]]
    return fresh


@kernel
def measure_edges(X: Array, edges: Array, squares: Array) -> None:
    """The squared length of each edge, as every comparison sees it."""
    for e in range(edges.shape[0]):
        squares[e] = squared_distance(X, edges[e, 0], X, edges[e, 1])
