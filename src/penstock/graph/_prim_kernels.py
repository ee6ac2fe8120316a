"""Prim's algorithm over tiles of search points, every decision taken on the rows."""

from __future__ import annotations

import numpy as np

from penstock._jit import Array, kernel
from penstock.graph.distance_kernels import (
    CHUNK,
    TILE,
    add_shared_distances,
    add_tile_distances,
    count_below,
    count_shared,
    precedes,
    search_limit,
    shared_squared_distance,
    squared_distance,
)


@kernel
def prim(
    X: Array, tiles: Array, members: Array, seen: Array, patterns: Array, shift: float, stretch: float, edges: Array
) -> None:
    """Fill `edges` with the minimum spanning tree.

    Points not yet in the tree sit in `tiles` (tile × dimension × slot), their original index in `members`. A point that
    joins the tree gives its slot to the last point, so the work shrinks as the tree grows.

    NaN in X and `tiles` is a missing coordinate. `patterns` says by bits which ones a point has (no words if all have
    all), `seen` how large a share of them. The sums over search points lack the factor p/|shared| of the distance: a
    pair looks shorter than it is by |shared|/p, which is at most `seen`. Points that share none are never joined,
    unless there is no other way, which callers rule out.
    """
    n = X.shape[0]
    p = X.shape[1]
    holes = patterns.shape[1] > 0
    width = tiles.shape[1]
    n_tiles = tiles.shape[0]
    best = np.full((n_tiles, TILE), np.inf)
    parent = np.zeros((n_tiles, TILE), np.int64)
    limit = np.full((n_tiles, TILE), tiles.dtype.type(-1.0))
    tile_best = np.full(n_tiles, np.inf)
    tile_slot = np.zeros(n_tiles, np.int64)
    total = np.empty(TILE, tiles.dtype)
    query = np.empty(width, tiles.dtype)
    left = n
    for position in range(n):
        limit[position // TILE, position % TILE] = np.inf
    tile = np.int64(0)  # the tree starts at the point in the first slot; a bare 0 would be compiled for once more
    slot = np.int64(0)
    for step in range(n):
        newcomer = members[tile, slot]
        if step > 0:
            edges[step - 1, 0] = min(newcomer, parent[tile, slot])
            edges[step - 1, 1] = max(newcomer, parent[tile, slot])
        for d in range(width):
            query[d] = tiles[tile, d, slot]
        left -= 1
        last_tile = left // TILE
        last_slot = left % TILE
        for d in range(width):
            tiles[tile, d, slot] = tiles[last_tile, d, last_slot]
        members[tile, slot] = members[last_tile, last_slot]
        best[tile, slot] = best[last_tile, last_slot]
        parent[tile, slot] = parent[last_tile, last_slot]
        limit[tile, slot] = limit[last_tile, last_slot]
        limit[last_tile, last_slot] = -1.0
        best[last_tile, last_slot] = np.inf
        find_tile_best(tile, best, parent, members, left, tile_best, tile_slot)
        find_tile_best(last_tile, best, parent, members, left, tile_best, tile_slot)
        if left == 0:
            break
        active = (left + TILE - 1) // TILE
        for k in range(active):
            for t in range(TILE):
                total[t] = 0.0
            start = np.int64(0)
            found = 0
            while start < width:
                stop = min(start + CHUNK, width)
                if holes:
                    add_shared_distances(tiles[k], query, start, stop, total)
                else:
                    add_tile_distances(tiles[k], query, start, stop, total)
                found = count_below(total, limit[k])
                if found == 0:
                    break
                start = stop
            if found == 0:
                continue
            for t in range(TILE):
                if total[t] <= limit[k, t]:
                    other = members[k, t]
                    if holes:
                        shared = count_shared(patterns, newcomer, patterns, other)
                        if shared == 0 or total[t] > search_limit(best[k, t] * shared / p, shift, stretch):
                            continue
                        d2 = shared_squared_distance(X, newcomer, X, other)
                    else:
                        d2 = squared_distance(X, newcomer, X, other)
                    if precedes(d2, newcomer, other, best[k, t], parent[k, t], other):
                        best[k, t] = d2
                        parent[k, t] = newcomer
                        limit[k, t] = search_limit(d2 * seen[other], shift, stretch)
                        held = tile_slot[k]
                        if held == t or precedes(d2, newcomer, other, tile_best[k], parent[k, held], members[k, held]):
                            tile_best[k] = d2
                            tile_slot[k] = t
        tile = np.int64(0)
        slot = tile_slot[0]
        for k in range(1, active):
            if tile_best[k] < tile_best[tile] or (
                tile_best[k] == tile_best[tile]
                and precedes(
                    tile_best[k], parent[k, tile_slot[k]], members[k, tile_slot[k]],
                    tile_best[tile], parent[tile, slot], members[tile, slot],
                )
            ):  # fmt: skip
                tile = k
                slot = tile_slot[k]


@kernel
def find_tile_best(
    tile: int, best: Array, parent: Array, members: Array, left: int, tile_best: Array, tile_slot: Array
) -> None:
    """Look anew for the shortest edge into a tile whose points have moved."""
    held = 0
    for t in range(1, min(TILE, left - tile * TILE)):
        if precedes(
            best[tile, t], parent[tile, t], members[tile, t], best[tile, held], parent[tile, held], members[tile, held]
        ):
            held = t
    tile_slot[tile] = held
    tile_best[tile] = best[tile, held]
