"""Nearest-neighbour searches, compiled: exact over a kd-tree, over all rows with missing values, and approximate."""

from __future__ import annotations

import numpy as np

from penstock._jit import Array, kernel
from penstock.graph._kdtree_kernels import STACK, leaf_node, point_to_box, push_children, scan_leaf
from penstock.graph.distances import (
    CHUNK,
    TILE,
    add_shared_distances,
    count_below,
    count_shared,
    precedes,
    search_limit,
    shared_squared_distance,
    squared_distance,
)


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
