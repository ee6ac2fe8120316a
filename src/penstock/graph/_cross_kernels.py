"""Edges between two parts of the points, each with its own kd-tree in the same frame, compiled.

The points of both parts have one numbering: those of the first by their position in its tree, those of the second
behind them. As everywhere, search points only rule out, and the rows and the order of edges decide.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock._jit import kernel
from penstock.graph._boruvka_kernels import find_root, offer, separate
from penstock.graph._kdtree_kernels import STACK, box_to_box, leaf_node, point_to_box, scan_leaf
from penstock.graph._kernels import TILE, precedes, search_limit, squared_distance

Array = Any


@kernel
def surely_beyond(gap: float, shift: float, stretch: float) -> float:
    """A square that no pair falls below whose search points are `gap` apart (squared) or more: `search_limit` reversed.

    Lowered by a little more than what rounding can do to either of them.
    """
    reach = np.sqrt(np.float64(gap) * (1 - 2.0**-21) / stretch) - shift
    return reach * reach * (1 - 2.0**-40) if reach > 0.0 else 0.0


@kernel
def push_near(
    box: Array, boxes: Array, node: int, first: int, count: int, widest: float,
    nodes: Array, firsts: Array, counts: Array, gaps: Array, depth: int,
) -> int:  # fmt: skip
    """Put a node's children within reach of a box of the other tree on the stack, the nearer one on top."""
    half = (count + 1) // 2
    left_gap = box_to_box(box, boxes[node + 1])
    right_gap = box_to_box(box, boxes[node + 2 * half])
    left_last = left_gap < right_gap
    for turn in range(2):
        if (turn == 1) == left_last:
            if left_gap <= widest:
                nodes[depth] = node + 1
                firsts[depth] = first
                counts[depth] = half
                gaps[depth] = left_gap
                depth += 1
        elif right_gap <= widest:
            nodes[depth] = node + 2 * half
            firsts[depth] = first + half
            counts[depth] = count - half
            gaps[depth] = right_gap
            depth += 1
    return depth


@kernel
def bound_leaves(
    boxes: Array, n_leaves: int, other_boxes: Array, n_other: int, shift: float, stretch: float,
    enough: float, most: int, start: int, stop: int, lower: Array,
) -> None:  # fmt: skip
    """`lower[leaf]` = a square that no pair of a point of the leaf and one of the other part falls below.

    Taken from the nearest leaf box of the other tree. The walk ends early where the bound is above `enough` anyway, or
    after `most` nodes: then what is still open bounds it.
    """
    nodes = np.empty(STACK, np.int64)
    firsts = np.empty(STACK, np.int64)
    counts = np.empty(STACK, np.int64)
    gaps = np.empty(STACK, boxes.dtype)
    for leaf in range(start, stop):
        box = boxes[leaf_node(leaf, n_leaves)]
        nodes[0] = 0
        firsts[0] = 0
        counts[0] = n_other
        gaps[0] = box_to_box(box, other_boxes[0])
        depth = 1
        nearest = boxes.dtype.type(np.inf)
        looked = 0
        if surely_beyond(gaps[0], shift, stretch) > enough:
            nearest = gaps[0]
            depth = 0
        while depth > 0 and nearest > 0.0:
            depth -= 1
            if gaps[depth] >= nearest:
                continue
            if counts[depth] == 1 or looked >= most:
                nearest = gaps[depth]
                continue
            looked += 1
            depth = push_near(
                box, other_boxes, nodes[depth], firsts[depth], counts[depth], nearest, nodes, firsts, counts, gaps,
                depth,
            )  # fmt: skip
        lower[leaf] = surely_beyond(nearest, shift, stretch)


@kernel
def contract_sure(edges: Array, squares: Array, leaf_lower: Array, parent: Array, left: Array) -> int:
    """Join along those edges of a part's tree, in their order, that no edge to the other part can replace.

    An edge is sure if it is the first of all that leave the component at one of its ends: shorter than any to the
    other part, and no earlier one is open there. Where neither end can tell, both are nearer to the other part than
    the edge is long, so that they vouch for no later one either. `left` lists the edges that are not sure; their
    number is returned.
    """
    n = parent.shape[0]
    nearest = np.empty(n, np.float64)  # of a component's points to the other part, kept at its root
    for i in range(n):
        nearest[i] = leaf_lower[i // TILE]
    n_left = 0
    for e in range(edges.shape[0]):
        a = find_root(parent, edges[e, 0])
        b = find_root(parent, edges[e, 1])
        if nearest[a] > squares[e] or nearest[b] > squares[e]:
            parent[max(a, b)] = min(a, b)
            nearest[min(a, b)] = min(nearest[a], nearest[b])
        else:
            left[n_left] = e
            n_left += 1
    return n_left


@kernel
def propose_known(
    names: Array, component: Array, ends: Array, squares: Array, found: Array, found_square: Array,
    best: Array, best_from: Array, best_to: Array,
) -> None:  # fmt: skip
    """Each component's first edge among the open ones of the parts' trees and what earlier searches found."""
    for e in range(ends.shape[0]):
        i = ends[e, 0]
        j = ends[e, 1]
        if component[i] != component[j]:
            offer(names, component[i], i, j, squares[e], best, best_from, best_to)
            offer(names, component[j], j, i, squares[e], best, best_from, best_to)
    for i in range(component.shape[0]):
        if found[i] >= 0 and component[found[i]] != component[i]:
            offer(names, component[i], i, found[i], found_square[i], best, best_from, best_to)


@kernel
def mark_open(
    component: Array, lower: Array, found: Array, found_square: Array, best: Array, largest: int, needed: Array
) -> int:
    """Mark points that might still know a shorter edge than their component's best.

    What a search found is a point's first edge, for as long as it leads elsewhere, if nothing below it was left out.
    Returns whether the largest component is certified without a search (1) or not (0).
    """
    certified = 1
    for i in range(component.shape[0]):
        c = component[i]
        needed[i] = False
        if lower[i] <= best[c]:
            j = found[i]
            if j < 0 or component[j] == c or found_square[i] > lower[i]:
                if c == largest:
                    certified = 0
                else:
                    needed[i] = True
    return certified


@kernel
def search_across(
    X: Array, tiles: Array, boxes: Array, centers: Array, offset: int,
    Y: Array, other_tiles: Array, other_boxes: Array, other_centers: Array, other_offset: int,
    labels: Array, radius: float, shift: float, stretch: float,
    names: Array, component: Array, needed: Array, bound: Array, lower: Array, found: Array, found_square: Array,
    leaves: Array, start: int, stop: int,
) -> None:  # fmt: skip
    """For the marked points of leaves[start:stop], the nearest point of the other part in another component.

    Only if within `bound`, the squares of the shortest edges known to leave each component: shared by all threads and
    only ever lengths that exist, so that a lost update costs work, not correctness; the choice is made afterwards.
    """
    n = X.shape[0]
    n_other = Y.shape[0]
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
    for place in range(start, stop):
        leaf = leaves[place]
        base = leaf * TILE
        size = min(TILE, n - base)
        asked = 0
        common = np.int64(-2)  # the one component of all that ask, or −1
        widest = tiles.dtype.type(0.0)
        for a in range(size):
            i = offset + base + a
            if needed[i]:
                c = component[i]
                reach[a] = bound[c]
                if lower[i] > reach[a]:  # what others of its component have found since it was marked is shorter
                    needed[i] = False
                    continue
                asked += 1
                found[i] = -1
                found_square[i] = np.inf
                common = c if common in (-2, c) else -1
                limits[a] = search_limit(reach[a], shift, stretch)
                widest = max(widest, limits[a])
        if asked == 0:
            continue
        for a in range(size):
            if needed[offset + base + a]:
                for d in range(width):
                    query[a, d] = tiles[leaf, d, a]
        box = boxes[leaf_node(leaf, tiles.shape[0])]
        nodes[0] = 0
        firsts[0] = 0
        counts[0] = other_tiles.shape[0]
        gaps[0] = box_to_box(box, other_boxes[0])
        depth = 1
        while depth > 0:
            depth -= 1
            node = nodes[depth]
            if gaps[depth] > widest or (common >= 0 and labels[node] == common):
                continue
            first = firsts[depth]
            count = counts[depth]
            if count > 1:
                depth = push_near(box, other_boxes, node, first, count, widest, nodes, firsts, counts, gaps, depth)
                continue
            inside = min(TILE, n_other - first * TILE)
            edge = separate(tiles, centers, leaf, other_tiles, other_centers, first, radius, axis, ours, theirs)
            widest = tiles.dtype.type(0.0)
            for a in range(size):
                i = offset + base + a
                if not needed[i]:
                    continue
                c = component[i]
                if bound[c] < reach[a]:
                    reach[a] = bound[c]
                    limits[a] = search_limit(reach[a], shift, stretch)
                gap = max(edge - ours[a], tiles.dtype.type(0.0))
                if (
                    labels[node] != c
                    and gap * gap <= limits[a]
                    and point_to_box(query[a], other_boxes[node]) <= limits[a]
                    and scan_leaf(other_tiles[first], query[a], limits[a], total) > 0
                ):
                    for t in range(inside):
                        j = other_offset + first * TILE + t
                        if total[t] <= limits[a] and component[j] != c:
                            d2 = squared_distance(X, base + a, Y, first * TILE + t)
                            bound[component[j]] = min(bound[component[j]], d2)  # it leaves that component too
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
            if needed[offset + base + a]:
                lower[offset + base + a] = max(lower[offset + base + a], reach[a])
