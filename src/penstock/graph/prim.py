"""Exact spanning tree by Prim's algorithm (strategy "prim"): no assumption on the data, O(n²p) time, O(np) memory."""

from __future__ import annotations

import numpy as np

from penstock._types import IndexArray
from penstock.graph._kernels import TILE
from penstock.graph._prim_kernels import prim
from penstock.graph.points import Points, SearchArray
from penstock.graph.shared import patterns_seen, shares_seen


def spanning_edges(points: Points) -> IndexArray:
    """The edges of the minimum spanning tree; where coordinates are missing (NaN), under the shared distance.

    Points that share no coordinate are infinitely far apart; there is a tree without such edges (`find_groups`).
    """
    n = len(points.search)
    tiles = tiles_of(points.search)
    members = np.arange(len(tiles) * TILE).reshape(-1, TILE)
    seen = shares_seen(points.exact)
    patterns = patterns_seen(points.exact) if (seen < 1).any() else np.empty((n, 0), dtype=np.uint64)
    edges = np.empty((n - 1, 2), dtype=np.int64)
    prim(points.exact, tiles, members, seen, patterns, points.shift, points.stretch, edges)
    return edges


def tiles_of(search: SearchArray) -> SearchArray:
    """Points as (tile, dimension, slot); the last tile is filled up with zeros."""
    n, width = search.shape
    n_tiles = -(-n // TILE)
    padded = np.zeros((n_tiles * TILE, width), dtype=search.dtype)
    padded[:n] = search
    return np.ascontiguousarray(padded.reshape(n_tiles, TILE, width).transpose(0, 2, 1))
