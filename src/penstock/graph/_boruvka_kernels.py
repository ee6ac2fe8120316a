"""Borůvka's algorithm with certified neighbour lists over a kd-tree, compiled.

Points are named by their position in the tree's order; `names` gives the original index, which breaks ties. All
comparisons that decide anything are made on `squared_distance` in float64; float32 only rules pairs out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock._jit import kernel
from penstock.graph._kdtree_kernels import box_to_box, point_to_box, project_tile
from penstock.graph._kernels import TILE, add_tile_distances, precedes, search_limit, squared_distance

Array = Any

CHUNK = 16
STACK = 128


@kernel
def scan_leaf(tile: Array, query: Array, limit: float, total: Array) -> int:
    """Distances from `query` to a leaf's points, given up (0) as soon as all are beyond `limit`."""
    width = query.shape[0]
    for t in range(TILE):
        total[t] = np.float32(0.0)
    start = 0
    found = np.int32(0)
    while start < width:
        stop = min(start + CHUNK, width)
        add_tile_distances(tile, query, start, stop, total)
        found = np.int32(0)
        for t in range(TILE):
            found += np.int32(total[t] <= limit)
        if found == 0:
            break
        start = stop
    return int(found)


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
    limits = np.empty(TILE, np.float32)
    total = np.empty(TILE, np.float32)
    query = np.empty((TILE, width), np.float32)
    nodes = np.empty(STACK, np.int64)
    firsts = np.empty(STACK, np.int64)
    counts = np.empty(STACK, np.int64)
    gaps = np.empty(STACK, np.float32)
    scanned = 0
    for leaf in range(start, stop, step):
        base = leaf * TILE
        size = min(TILE, n - base)
        for a in range(size):
            limits[a] = np.float32(np.inf)
            for d in range(width):
                query[a, d] = tiles[leaf, d, a]
            for slot in range(k):
                near[base + a, slot] = -1
                squares[base + a, slot] = np.inf
        own = leaf_box(boxes, leaf, n_leaves)
        widest = np.float32(np.inf)
        nodes[0] = 0
        firsts[0] = 0
        counts[0] = n_leaves
        gaps[0] = np.float32(0.0)
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
            widest = np.float32(0.0)
            for a in range(size):
                if first == leaf or point_to_box(query[a], boxes[node]) <= limits[a]:
                    scanned += 1
                    if scan_leaf(tiles[first], query[a], limits[a], total) > 0:
                        for t in range(inside):
                            j = first * TILE + t
                            if total[t] <= limits[a] and j != base + a:
                                d2 = squared_distance(X, base + a, j)
                                if insert(names, base + a, j, d2, near, squares):
                                    limits[a] = np.float32(search_limit(squares[base + a, k - 1], shift, stretch))
                widest = max(widest, limits[a])
    return scanned


@kernel
def leaf_box(boxes: Array, leaf: int, n_leaves: int) -> int:
    """The node that is this leaf."""
    node = 0
    first = 0
    count = n_leaves
    while count > 1:
        half = (count + 1) // 2
        if leaf < first + half:
            node += 1
            count = half
        else:
            node += 2 * half
            first += half
            count -= half
    return node


@kernel
def push_children(
    boxes: Array, own: int, node: int, first: int, count: int, widest: float,
    nodes: Array, firsts: Array, counts: Array, gaps: Array, depth: int,
) -> int:  # fmt: skip
    """Put a node's children within reach of box `own` on the stack, the nearer one on top."""
    half = (count + 1) // 2
    left = node + 1
    right = node + 2 * half
    left_gap = box_to_box(boxes[own], boxes[left])
    right_gap = box_to_box(boxes[own], boxes[right])
    left_last = left_gap < right_gap or (left_gap == right_gap and own < right)
    for turn in range(2):
        if (turn == 1) == left_last:
            if left_gap <= widest:
                nodes[depth] = left
                firsts[depth] = first
                counts[depth] = half
                gaps[depth] = left_gap
                depth += 1
        elif right_gap <= widest:
            nodes[depth] = right
            firsts[depth] = first + half
            counts[depth] = count - half
            gaps[depth] = right_gap
            depth += 1
    return depth


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
    component: Array, near: Array, cursor: Array, lower: Array, best: Array, largest: int, needed: Array
) -> int:
    """Mark points whose list is used up and that might still know a shorter edge than their component's best.

    Returns whether the largest component is certified without a search (1) or not (0).
    """
    k = near.shape[1]
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
    tiles: Array, centers: Array, radius: float, leaf: int, other: int, axis: Array, ours: Array, theirs: Array
) -> float:
    """Project two leaves on the line through their centres; return the nearest coordinate of the other one.

    A point at `ours[a]` is at least the returned value minus `ours[a]` away from every point of the other leaf. The
    axis is made slightly shorter than one and the value lowered by the rounding of the projections, so that this holds
    for the computed numbers too.
    """
    width = axis.shape[0]
    length = np.float32(0.0)
    for d in range(width):
        axis[d] = centers[other, d] - centers[leaf, d]
        length += axis[d] * axis[d]
    rounding = np.float32(2.0**-24) * np.float32(width + 8)
    shrink = np.float32(1.0) / (np.sqrt(length) * (np.float32(1.0) + rounding) + np.float32(1e-30))
    for d in range(width):
        axis[d] *= shrink
    project_tile(tiles[leaf], axis, ours)
    project_tile(tiles[other], axis, theirs)
    edge = theirs[0]
    for t in range(1, TILE):
        edge = min(edge, theirs[t])
    return edge - np.float32(4.0) * rounding * np.float32(radius)


@kernel
def search_foreign(
    X: Array, names: Array, tiles: Array, boxes: Array, centers: Array, radius: float, shift: float, stretch: float, component: Array, labels: Array,
    needed: Array, bound: Array, lower: Array, found: Array, found_square: Array, start: int, stop: int,
) -> None:  # fmt: skip
    """For the marked points of leaves start..stop, the nearest point of another component, if within `bound`.

    `bound[c]` is the square of the shortest edge known to leave component c. It is shared by all threads and only ever
    a length that exists, so a lost update costs work, not correctness; the final choice is made afterwards.
    """
    n = X.shape[0]
    n_leaves = tiles.shape[0]
    width = tiles.shape[1]
    limits = np.empty(TILE, np.float32)
    reach = np.empty(TILE, np.float64)
    total = np.empty(TILE, np.float32)
    ours = np.empty(TILE, np.float32)
    theirs = np.empty(TILE, np.float32)
    axis = np.empty(width, np.float32)
    query = np.empty((TILE, width), np.float32)
    nodes = np.empty(STACK, np.int64)
    firsts = np.empty(STACK, np.int64)
    counts = np.empty(STACK, np.int64)
    gaps = np.empty(STACK, np.float32)
    for leaf in range(start, stop):
        base = leaf * TILE
        size = min(TILE, n - base)
        asked = 0
        common = np.int64(-2)  # the one component of all that ask, or −1
        widest = np.float32(0.0)
        for a in range(size):
            i = base + a
            if needed[i]:
                asked += 1
                c = component[i]
                common = c if common == -2 or common == c else -1
                reach[a] = bound[c]
                limits[a] = np.float32(search_limit(reach[a], shift, stretch))
                widest = max(widest, limits[a])
                found[i] = -1
                found_square[i] = np.inf
                for d in range(width):
                    query[a, d] = tiles[leaf, d, a]
        if asked == 0:
            continue
        own = leaf_box(boxes, leaf, n_leaves)
        nodes[0] = 0
        firsts[0] = 0
        counts[0] = n_leaves
        gaps[0] = np.float32(0.0)
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
            inside = min(TILE, n - first * TILE)
            edge = separate(tiles, centers, radius, leaf, first, axis, ours, theirs)
            widest = np.float32(0.0)
            for a in range(size):
                i = base + a
                if not needed[i]:
                    continue
                c = component[i]
                if bound[c] < reach[a]:
                    reach[a] = bound[c]
                    limits[a] = np.float32(search_limit(reach[a], shift, stretch))
                gap = max(edge - ours[a], np.float32(0.0))
                if labels[node] != c and gap * gap <= limits[a] and point_to_box(query[a], boxes[node]) <= limits[a]:  # noqa: SIM102
                    if scan_leaf(tiles[first], query[a], limits[a], total) > 0:
                        for t in range(inside):
                            j = first * TILE + t
                            if total[t] <= limits[a] and component[j] != c:
                                d2 = squared_distance(X, i, j)
                                if found[i] < 0 or precedes(
                                    d2, names[i], names[j], found_square[i], names[i], names[found[i]]
                                ):
                                    found[i] = j
                                    found_square[i] = d2
                                    if d2 < reach[a]:
                                        reach[a] = d2
                                        limits[a] = np.float32(search_limit(d2, shift, stretch))
                                        bound[c] = min(bound[c], d2)
                widest = max(widest, limits[a])
        for a in range(size):
            if needed[base + a]:
                lower[base + a] = max(lower[base + a], reach[a])


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
