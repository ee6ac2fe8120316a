"""A kd-tree whose leaves are full tiles of points, compiled: building, walking and scanning it.

Nodes are numbered in preorder: a node over m leaves has its left child right behind it and its right child 2·⌈m/2⌉
further on, so two integers (node, first leaf) and a count describe any node and no pointers are stored.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from penstock._jit import Array, inlined_kernel, kernel, relaxed_kernel
from penstock.graph.distance_kernels import CHUNK, TILE, add_tile_distances

_STACK = 128  # open nodes of a depth-first walk: two per level are enough for 2**60 leaves


class TreeArrays(NamedTuple):
    """A kd-tree over n points in L leaves, as kernels take it."""

    exact: Array  # (n, p) float64: rows in the order of the leaves
    names: Array  # (n,): number of each row in the data; breaks ties
    tiles: Array  # (L, width, TILE): search points of each leaf
    boxes: Array  # (2L − 1, 2, width): lower and upper corner of each node
    centers: Array  # (L, width): mean of each leaf
    radius: float  # no search point is farther from the origin
    error: float  # no search point is farther from its row
    stretch: float


class Stack(NamedTuple):
    """Open nodes of a depth-first walk: node, first leaf, number of leaves, squared distance to what is searched."""

    nodes: Array
    firsts: Array
    counts: Array
    gaps: Array


@kernel
def select(keys: Array, items: Array, start: int, stop: int, rank: int) -> None:
    """Hoare's quickselect: afterwards no key before position `rank` is larger than any from it on."""
    low = start
    high = stop - 1
    while low < high:
        middle = (low + high) // 2
        a = keys[low]
        b = keys[middle]
        c = keys[high]
        pivot = max(min(a, b), min(max(a, b), c))
        i = low
        j = high
        while i <= j:
            while keys[i] < pivot:
                i += 1
            while keys[j] > pivot:
                j -= 1
            if i <= j:
                key = keys[i]
                keys[i] = keys[j]
                keys[j] = key
                item = items[i]
                items[i] = items[j]
                items[j] = item
                i += 1
                j -= 1
        if rank <= j:
            high = j
        elif rank >= i:
            low = i
        else:
            return


@kernel
def widest_dimension(P: Array, order: Array, start: int, stop: int) -> int:
    """The dimension with the largest variance over at most 256 evenly spaced points of a node."""
    stride = max(1, (stop - start) // 256)
    widest = 0
    most = -1.0
    for d in range(P.shape[1]):
        count = 0
        mean = 0.0
        square = 0.0
        for position in range(start, stop, stride):
            value = np.float64(P[order[position], d])
            count += 1
            step = value - mean
            mean += step / count
            square += step * (value - mean)
        if square > most:
            most = square
            widest = d
    return widest


@kernel
def order_points(P: Array, order: Array) -> None:
    """Permute `order` so that consecutive runs of TILE points are the leaves of a balanced kd-tree."""
    n = P.shape[0]
    keys = np.empty(n, P.dtype)
    stack = np.empty((64, 2), np.int64)
    stack[0, 0] = 0
    stack[0, 1] = (n + TILE - 1) // TILE
    depth = 1
    while depth > 0:
        depth -= 1
        first = stack[depth, 0]
        after = stack[depth, 1]
        if after - first < 2:
            continue
        start = first * TILE
        stop = min(after * TILE, n)
        middle = first + (after - first + 1) // 2
        dimension = widest_dimension(P, order, start, stop)
        for position in range(start, stop):
            keys[position] = P[order[position], dimension]
        select(keys, order, start, stop, middle * TILE)
        stack[depth, 0] = first
        stack[depth, 1] = middle
        stack[depth + 1, 0] = middle
        stack[depth + 1, 1] = after
        depth += 2


@kernel
def fill_tiles(P: Array, order: Array, tiles: Array) -> None:
    """Copy points into (tile, dimension, slot); the unused slots of the last tile repeat its first point."""
    n = P.shape[0]
    for tile in range(tiles.shape[0]):
        for t in range(TILE):
            position = tile * TILE + t
            source = order[position] if position < n else order[tile * TILE]
            for d in range(P.shape[1]):
                tiles[tile, d, t] = P[source, d]


@kernel
def bound_nodes(tiles: Array, boxes: Array, node: int, first: int, count: int) -> None:
    """Fill `boxes[node]` = (low, high) for a node over `count` leaves from `first`, and for all below it."""
    width = tiles.shape[1]
    if count == 1:
        for d in range(width):
            low = tiles[first, d, 0]
            high = low
            for t in range(1, TILE):
                low = min(low, tiles[first, d, t])
                high = max(high, tiles[first, d, t])
            boxes[node, 0, d] = low
            boxes[node, 1, d] = high
        return
    half = (count + 1) // 2
    bound_nodes(tiles, boxes, node + 1, first, half)
    bound_nodes(tiles, boxes, node + 2 * half, first + half, count - half)
    for d in range(width):
        boxes[node, 0, d] = min(boxes[node + 1, 0, d], boxes[node + 2 * half, 0, d])
        boxes[node, 1, d] = max(boxes[node + 1, 1, d], boxes[node + 2 * half, 1, d])


@relaxed_kernel
def box_to_box(box: Array, other: Array) -> float:
    """Squared distance between two boxes: no pair of points inside them is nearer."""
    total = box.dtype.type(0.0)
    zero = box.dtype.type(0.0)
    for d in range(box.shape[1]):
        gap = max(max(box[0, d] - other[1, d], other[0, d] - box[1, d]), zero)
        total += gap * gap
    return total


@relaxed_kernel
def point_to_box(query: Array, box: Array) -> float:
    """Squared distance from a point to a box: no point inside it is nearer."""
    total = box.dtype.type(0.0)
    zero = box.dtype.type(0.0)
    for d in range(box.shape[1]):
        gap = max(max(box[0, d] - query[d], query[d] - box[1, d]), zero)
        total += gap * gap
    return total


@relaxed_kernel
def project_tile(tile: Array, axis: Array, projection: Array) -> None:
    """`projection[t]` = the coordinate of the tile's point t along `axis`."""
    for t in range(TILE):
        projection[t] = 0.0
    for d in range(0, axis.shape[0], 4):
        u0 = axis[d]
        u1 = axis[d + 1]
        u2 = axis[d + 2]
        u3 = axis[d + 3]
        for t in range(TILE):
            projection[t] += (tile[d, t] * u0 + tile[d + 1, t] * u1) + (tile[d + 2, t] * u2 + tile[d + 3, t] * u3)


@kernel
def leaf_node(leaf: int, n_leaves: int) -> int:
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
def new_stack(boxes: Array) -> Stack:
    """Allocate a stack for walks over a tree with these boxes."""
    return Stack(
        np.empty(_STACK, np.int64), np.empty(_STACK, np.int64), np.empty(_STACK, np.int64),
        np.empty(_STACK, boxes.dtype),
    )  # fmt: skip


@inlined_kernel
def push(stack: Stack, depth: int, node: int, first: int, count: int, gap: float) -> int:
    """Put a node on the stack; return the new depth."""
    stack.nodes[depth] = node
    stack.firsts[depth] = first
    stack.counts[depth] = count
    stack.gaps[depth] = gap
    return depth + 1


@inlined_kernel
def push_children(stack: Stack, depth: int, left_gap: float, right_gap: float, own: int) -> int:
    """Replace the node at `depth` by its children, the nearer one on top; return the new depth.

    Of children at equal distance the one that holds node `own` is on top.
    """
    node = stack.nodes[depth]
    first = stack.firsts[depth]
    count = stack.counts[depth]
    half = (count + 1) // 2
    right = node + 2 * half
    left_last = left_gap < right_gap or (left_gap == right_gap and own < right)
    for turn in range(2):
        if (turn == 1) == left_last:
            depth = push(stack, depth, node + 1, first, half, left_gap)
        else:
            depth = push(stack, depth, right, first + half, count - half, right_gap)
    return depth


@inlined_kernel
def push_near_box(stack: Stack, depth: int, boxes: Array, box: Array, own: int) -> int:
    """Replace the node at `depth` by its children, the one nearer to a box on top (`push_children`)."""
    left = stack.nodes[depth] + 1
    right = left - 1 + 2 * ((stack.counts[depth] + 1) // 2)
    return push_children(stack, depth, box_to_box(box, boxes[left]), box_to_box(box, boxes[right]), own)


@inlined_kernel
def push_near_point(stack: Stack, depth: int, boxes: Array, query: Array) -> int:
    """Replace the node at `depth` by its children, the one nearer to a point on top (`push_children`)."""
    left = stack.nodes[depth] + 1
    right = left - 1 + 2 * ((stack.counts[depth] + 1) // 2)
    return push_children(stack, depth, point_to_box(query, boxes[left]), point_to_box(query, boxes[right]), 0)


@kernel
def scan_leaf(tile: Array, query: Array, limit: float, total: Array) -> int:
    """Distances from `query` to a leaf's points, given up (0) as soon as all are beyond `limit`."""
    width = query.shape[0]
    for t in range(TILE):
        total[t] = 0.0
    start = np.int64(0)
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
def assign_rows(X: Array, columns: Array, cuts: Array, part: Array) -> None:
    """`part[i]` = the part that row i falls into: at each cut, values up to it go to the first half of the parts."""
    n_parts = cuts.shape[0] + 1
    for i in range(X.shape[0]):
        node = 0
        first = 0
        count = n_parts
        while count > 1:
            half = (count + 1) // 2
            if X[i, columns[node]] <= cuts[node]:
                node += 1
                count = half
            else:
                node += half
                first += half
                count -= half
        part[i] = first
