"""Searches for nearest points, compiled: over a kd-tree, and over all rows with missing values.

Search points only rule pairs out; `squared_distance` of the rows decides, and ties go to the smaller number.
"""

from __future__ import annotations

import numpy as np

from penstock._jit import Array, inlined_kernel, kernel
from penstock.graph._kdtree_kernels import (
    TreeArrays,
    leaf_node,
    new_stack,
    point_to_box,
    push,
    push_near_box,
    push_near_point,
    scan_leaf,
)
from penstock.graph.distance_kernels import (
    CHUNK,
    TILE,
    add_shared_distances,
    count_below,
    count_shared,
    search_limit,
    shared_squared_distance,
    squared_distance,
)


@inlined_kernel
def insert_sorted(found: Array, squares: Array, row: int, item: int, square: float, names: Array) -> bool:
    """Insert an item into a row's list in the order of (square, name), dropping the last; return whether it belonged.

    Empty places hold an infinite square; every square that is inserted is finite.
    """
    slot = found.shape[1] - 1
    last = squares[row, slot]
    if square > last or (square == last and names[item] > names[found[row, slot]]):
        return False
    while slot > 0:
        before = squares[row, slot - 1]
        if square > before or (square == before and names[item] > names[found[row, slot - 1]]):
            break
        found[row, slot] = found[row, slot - 1]
        squares[row, slot] = before
        slot -= 1
    found[row, slot] = item
    squares[row, slot] = square
    return True


@kernel
def list_neighbors(tree: TreeArrays, start: int, stop: int, step: int, near: Array, squares: Array) -> int:
    """List the nearest other points of the points of every `step`-th leaf in start..stop, by position in the tree.

    Returns how many leaves were scanned in all, the measure of what a search costs on these data.
    """
    n = tree.exact.shape[0]
    k = near.shape[1]
    number = tree.tiles.dtype.type
    width = tree.tiles.shape[1]
    limits = np.empty(TILE, tree.tiles.dtype)
    total = np.empty(TILE, tree.tiles.dtype)
    query = np.empty((TILE, width), tree.tiles.dtype)
    stack = new_stack(tree.boxes)
    scanned = 0
    for leaf in range(start, stop, step):
        base = leaf * TILE
        size = min(TILE, n - base)
        for a in range(size):
            limits[a] = np.inf
            for d in range(width):
                query[a, d] = tree.tiles[leaf, d, a]
            for slot in range(k):
                near[base + a, slot] = -1
                squares[base + a, slot] = np.inf
        own = leaf_node(leaf, tree.tiles.shape[0])
        widest = number(np.inf)
        depth = push(stack, 0, 0, 0, tree.tiles.shape[0], number(0.0))
        while depth > 0:
            depth -= 1
            if stack.gaps[depth] > widest:
                continue
            if stack.counts[depth] > 1:
                depth = push_near_box(stack, depth, tree.boxes, tree.boxes[own], own)
                continue
            first = stack.firsts[depth]
            box = tree.boxes[stack.nodes[depth]]
            inside = min(TILE, n - first * TILE)
            widest = number(0.0)
            for a in range(size):
                i = base + a
                if first == leaf or point_to_box(query[a], box) <= limits[a]:
                    scanned += 1
                    if scan_leaf(tree.tiles[first], query[a], limits[a], total) > 0:
                        for t in range(inside):
                            j = first * TILE + t
                            if total[t] <= limits[a] and j != i:
                                d2 = squared_distance(tree.exact, i, tree.exact, j)
                                if insert_sorted(near, squares, i, j, d2, tree.names):
                                    limits[a] = search_limit(squares[i, k - 1], 2.0 * tree.error, tree.stretch)
                widest = max(widest, limits[a])
    return scanned


@kernel
def nearest_rows(
    tree: TreeArrays, guests: Array, guest_points: Array, errors: Array, start: int, stop: int,
    found: Array, squares: Array,
) -> None:  # fmt: skip
    """Find the nearest points of guests start..stop, by position in the tree.

    `guests` are rows at the scale of the tree, `guest_points` their search points, `errors` the rounding of these.
    """
    tiles = tree.tiles
    boxes = tree.boxes
    exact = tree.exact
    names = tree.names
    k = found.shape[1]
    number = tiles.dtype.type
    total = np.empty(TILE, tiles.dtype)
    stack = new_stack(boxes)
    for guest in range(start, stop):
        query = guest_points[guest]
        shift = tree.error + errors[guest]
        limit = number(np.inf)
        for slot in range(k):
            found[guest, slot] = -1
            squares[guest, slot] = np.inf
        depth = push(stack, 0, 0, 0, tiles.shape[0], number(0.0))
        while depth > 0:
            depth -= 1
            if stack.gaps[depth] > limit:
                continue
            if stack.counts[depth] > 1:
                depth = push_near_point(stack, depth, boxes, query)
                continue
            base = stack.firsts[depth] * TILE
            if scan_leaf(tiles[stack.firsts[depth]], query, limit, total) > 0:
                for t in range(min(TILE, exact.shape[0] - base)):
                    if total[t] <= limit:
                        d2 = squared_distance(exact, base + t, guests, guest)
                        if insert_sorted(found, squares, guest, base + t, d2, names):
                            limit = number(search_limit(squares[guest, k - 1], shift, tree.stretch))


@kernel
def nearest_sharing(
    X: Array, tiles: Array, patterns: Array, shifts: Array, stretch: float, guests: Array, guest_points: Array,
    guest_patterns: Array, left_out: Array, names: Array, start: int, stop: int, found: Array, squares: Array,
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
                    insert_sorted(found, squares, guest, i, d2, names)
                    limits[:] = search_limit(squares[guest, k - 1] * seen, shifts[guest], stretch)


@kernel
def shared_squared_distances(X: Array, start: int, stop: int, squares: Array) -> None:
    """Squared distances of rows start..stop to all rows: squares[i − start, j]."""
    for i in range(start, stop):
        for j in range(X.shape[0]):
            squares[i - start, j] = shared_squared_distance(X, i, X, j)
