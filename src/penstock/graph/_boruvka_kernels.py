"""Borůvka's algorithm with certified neighbour lists over a kd-tree, compiled.

Points are named by their position in the tree's order; `names` gives the original index, which breaks ties. All
comparisons that decide anything are made on `squared_distance` of the rows; search points only rule pairs out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock._jit import kernel
from penstock.graph._kdtree_kernels import STACK, leaf_node, point_to_box, project_tile, push_children, scan_leaf
from penstock.graph._kernels import TILE, precedes, search_limit, squared_distance

Array = Any


@kernel
def offer(names: Array, c: int, i: int, j: int, d2: float, best: Array, best_from: Array, best_to: Array) -> None:
    """Let component c take edge (i, j) if it comes before the one it holds."""
    if best_from[c] < 0 or precedes(d2, names[i], names[j], best[c], names[best_from[c]], names[best_to[c]]):
        best[c] = d2
        best_from[c] = i
        best_to[c] = j


@kernel
def propose_from_lists(
    names: Array, component: Array, near: Array, squares: Array, cursor: Array, found: Array, found_square: Array,
    best: Array, best_from: Array, best_to: Array,
) -> None:  # fmt: skip
    """Each component's best edge among the lists of its points and what earlier searches found."""
    n = near.shape[0]
    k = near.shape[1]
    for i in range(n):
        c = component[i]
        slot = cursor[i]
        while slot < k and near[i, slot] >= 0 and component[near[i, slot]] == c:
            slot += 1
        cursor[i] = slot
        if slot < k and near[i, slot] >= 0:
            offer(names, c, i, near[i, slot], squares[i, slot], best, best_from, best_to)
        elif found[i] >= 0 and component[found[i]] != c:
            offer(names, c, i, found[i], found_square[i], best, best_from, best_to)


@kernel
def mark_searches(
    component: Array, cursor: Array, k: int, lower: Array, best: Array, largest: int, needed: Array
) -> int:
    """Mark points whose list is used up and that might still know a shorter edge than their component's best.

    Returns whether the largest component is certified without a search (1) or not (0).
    """
    certified = 1
    for i in range(component.shape[0]):
        used_up = cursor[i] >= k
        c = component[i]
        open_ = used_up and lower[i] <= best[c]
        needed[i] = open_ and c != largest
        if open_ and c == largest:
            certified = 0
    return certified


@kernel
def label_nodes(component: Array, labels: Array, node: int, first: int, count: int) -> int:
    """`labels[node]` = the component that holds all points of the node, or −1."""
    if count == 1:
        stop = min((first + 1) * TILE, component.shape[0])
        label = component[first * TILE]
        for i in range(first * TILE + 1, stop):
            if component[i] != label:
                label = -1
                break
        labels[node] = label
        return label
    half = (count + 1) // 2
    left = label_nodes(component, labels, node + 1, first, half)
    right = label_nodes(component, labels, node + 2 * half, first + half, count - half)
    labels[node] = left if left == right else -1
    return labels[node]


@kernel
def separate(
    tiles: Array, centers: Array, leaf: int, other_tiles: Array, other_centers: Array, other: int,
    radius: float, axis: Array, ours: Array, theirs: Array,
) -> float:  # fmt: skip
    """Project two leaves on the line through their centres; return the nearest coordinate of the other one.

    A point at `ours[a]` is at least the returned value minus `ours[a]` away from every point of the other leaf. The
    axis is made slightly shorter than one and the value lowered by the rounding of the projections, so that this holds
    for the computed numbers too.
    """
    width = axis.shape[0]
    number = axis.dtype.type
    length = number(0.0)
    for d in range(width):
        axis[d] = other_centers[other, d] - centers[leaf, d]
        length += axis[d] * axis[d]
    # squares have vanished, or the centres coincide: no axis to speak of
    if length < np.finfo(axis.dtype).tiny * number(1e8):
        return number(-np.inf)
    rounding = np.finfo(axis.dtype).eps / 2 * number(width + 8)
    shrink = number(1.0) / (np.sqrt(length) * (number(1.0) + rounding))
    for d in range(width):
        axis[d] *= shrink
    project_tile(tiles[leaf], axis, ours)
    project_tile(other_tiles[other], axis, theirs)
    edge = theirs[0]
    for t in range(1, TILE):
        edge = min(edge, theirs[t])
    return edge - number(4.0) * rounding * number(radius)


@kernel
def search_foreign(
    X: Array, names: Array, tiles: Array, boxes: Array, centers: Array, radius: float, shift: float, stretch: float,
    component: Array, labels: Array,
    needed: Array, bound: Array, lower: Array, found: Array, found_square: Array,
    leaves: Array, start: int, stop: int,
) -> int:  # fmt: skip
    """For the marked points of leaves[start:stop], the nearest point of another component, if within `bound`.

    `bound[c]` is the square of the shortest edge known to leave component c. It is shared by all threads and only ever
    a length that exists, so a lost update costs work, not correctness; the final choice is made afterwards.

    Returns how many leaves were visited in all, the measure of what the searches cost.
    """
    n = X.shape[0]
    n_leaves = tiles.shape[0]
    width = tiles.shape[1]
    limits = np.empty(TILE, tiles.dtype)
    reach = np.empty(TILE, np.float64)
    total = np.empty(TILE, tiles.dtype)
    ours = np.empty(TILE, tiles.dtype)
    theirs = np.empty(TILE, tiles.dtype)
    axis = np.empty(width, tiles.dtype)
    query = np.empty((TILE, width), tiles.dtype)
    nodes = np.empty(STACK, np.int64)
    firsts = np.empty(STACK, np.int64)
    counts = np.empty(STACK, np.int64)
    gaps = np.empty(STACK, tiles.dtype)
    visited = 0
    for place in range(start, stop):
        leaf = leaves[place]
        base = leaf * TILE
        size = min(TILE, n - base)
        asked = 0
        common = np.int64(-2)  # the one component of all that ask, or −1
        widest = tiles.dtype.type(0.0)
        for a in range(size):
            i = base + a
            if needed[i]:
                asked += 1
                c = component[i]
                common = c if common in (-2, c) else -1
                reach[a] = bound[c]
                limits[a] = search_limit(reach[a], shift, stretch)
                widest = max(widest, limits[a])
                found[i] = -1
                found_square[i] = np.inf
                for d in range(width):
                    query[a, d] = tiles[leaf, d, a]
        if asked == 0:
            continue
        own = leaf_node(leaf, n_leaves)
        nodes[0] = 0
        firsts[0] = 0
        counts[0] = n_leaves
        gaps[0] = 0.0
        depth = 1
        while depth > 0:
            depth -= 1
            node = nodes[depth]
            if gaps[depth] > widest or (common >= 0 and labels[node] == common):
                continue
            first = firsts[depth]
            count = counts[depth]
            if count > 1:
                depth = push_children(boxes, own, node, first, count, widest, nodes, firsts, counts, gaps, depth)
                continue
            visited += 1
            inside = min(TILE, n - first * TILE)
            edge = separate(tiles, centers, leaf, tiles, centers, first, radius, axis, ours, theirs)
            widest = tiles.dtype.type(0.0)
            for a in range(size):
                i = base + a
                if not needed[i]:
                    continue
                c = component[i]
                if bound[c] < reach[a]:
                    reach[a] = bound[c]
                    limits[a] = search_limit(reach[a], shift, stretch)
                gap = max(edge - ours[a], tiles.dtype.type(0.0))
                if labels[node] != c and gap * gap <= limits[a] and point_to_box(query[a], boxes[node]) <= limits[a]:
                    if scan_leaf(tiles[first], query[a], limits[a], total) > 0:
                        for t in range(inside):
                            j = first * TILE + t
                            if total[t] <= limits[a] and component[j] != c:
                                d2 = squared_distance(X, i, X, j)
                                if found[i] < 0 or precedes(
                                    d2, names[i], names[j], found_square[i], names[i], names[found[i]]
                                ):
                                    found[i] = j
                                    found_square[i] = d2
                                    if d2 < reach[a]:
                                        reach[a] = d2
                                        limits[a] = search_limit(d2, shift, stretch)
                                        bound[c] = min(bound[c], d2)
                widest = max(widest, limits[a])
        for a in range(size):
            if needed[base + a]:
                lower[base + a] = max(lower[base + a], reach[a])
    return visited


@kernel
def propose_from_searches(
    names: Array, component: Array, needed: Array, found: Array, found_square: Array,
    best: Array, best_from: Array, best_to: Array,
) -> None:  # fmt: skip
    """Let what the searches found compete with what the lists proposed."""
    for i in range(component.shape[0]):
        if needed[i] and found[i] >= 0:
            offer(names, component[i], i, found[i], found_square[i], best, best_from, best_to)


@kernel
def find_root(parent: Array, c: int) -> int:
    while parent[c] != c:
        parent[c] = parent[parent[c]]
        c = parent[c]
    return c


@kernel
def join_components(component: Array, leave: Array, enter: Array, label: Array, taken: Array) -> tuple[int, int]:
    """Join components along their edges; `label` becomes old → new number, `taken` the components whose edge counts.

    The order of edges is strict, so the only circles are pairs that chose the same edge: that one is taken once.
    """
    m = leave.shape[0]
    n_taken = 0
    for c in range(m):
        if leave[c] < 0:
            continue
        a = find_root(label, c)
        b = find_root(label, component[enter[c]])
        if a != b:
            label[max(a, b)] = min(a, b)
            taken[n_taken] = c
            n_taken += 1
    for c in range(m):
        label[c] = find_root(label, c)
    number = np.empty(m, np.int64)
    fresh = 0
    for c in range(m):  # a root is the smallest of its set, so it is numbered before its members ask
        if label[c] == c:
            number[c] = fresh
            fresh += 1
    for c in range(m):
        label[c] = number[label[c]]
    return n_taken, fresh
