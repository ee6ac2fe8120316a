"""Exact spanning tree by Prim's algorithm (strategy "prim"): no assumption on the data, O(n²p) time, O(np) memory."""

from __future__ import annotations

import numpy as np

from penstock._types import IndexArray
from penstock.graph._kernels import TILE
from penstock.graph._prim_kernels import prim
from penstock.graph.points import Points


def spanning_edges(points: Points) -> IndexArray:
    """The edges of the minimum spanning tree."""
    n, width = points.search.shape
    n_tiles = -(-n // TILE)
    padded = np.zeros((n_tiles * TILE, width), dtype=np.float32)
    padded[:n] = points.search
    tiles = np.ascontiguousarray(padded.reshape(n_tiles, TILE, width).transpose(0, 2, 1))
    members = np.arange(n_tiles * TILE).reshape(n_tiles, TILE)
    edges = np.empty((n - 1, 2), dtype=np.int64)
    prim(points.exact, tiles, members, points.shift, points.stretch, edges)
    return edges
