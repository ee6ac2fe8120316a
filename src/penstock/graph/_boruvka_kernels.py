"""Borůvka rounds over one kd-tree or between two, first edges between clumps, and Kruskal, compiled."""

from __future__ import annotations

import numpy as np

from penstock._jit import Array, kernel
from penstock.graph._kdtree_kernels import (
    STACK,
    box_to_box,
    leaf_node,
    point_to_box,
    project_tile,
    push_children,
    scan_leaf,
)
from penstock.graph.distances import TILE, precedes, search_limit, squared_distance


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


@kernel
def push_halves(
    query: Array, boxes: Array, node: int, first: int, count: int, limit: float,
    nodes: Array, firsts: Array, counts: Array, gaps: Array, depth: int,
) -> int:  # fmt: skip
    """Put a node's children within reach of a point on the stack, the nearer one on top."""
    half = (count + 1) // 2
    left_gap = point_to_box(query, boxes[node + 1])
    right_gap = point_to_box(query, boxes[node + 2 * half])
    left_last = left_gap < right_gap
    for turn in range(2):
        if (turn == 1) == left_last:
            if left_gap <= limit:
                nodes[depth] = node + 1
                firsts[depth] = first
                counts[depth] = half
                gaps[depth] = left_gap
                depth += 1
        elif right_gap <= limit:
            nodes[depth] = node + 2 * half
            firsts[depth] = first + half
            counts[depth] = count - half
            gaps[depth] = right_gap
            depth += 1
    return depth


@kernel
def first_edge(
    X: Array, names: Array, hosts: Array, tiles: Array, boxes: Array, error: float, stretch: float,
    guests: Array, points: Array, errors: Array, start: int, stop: int, bound: Array,
) -> tuple[float, int, int]:  # fmt: skip
    """The first edge from guests start..stop to a point of a tree, as (square, guest, host); −1 if none is in bound.

    `hosts` and `guests` are rows of X: the former in the order of the tree, the latter with their search points in the
    tree's frame. `bound[0]` is the square of an edge known to exist, or infinite; it is shared by all threads, so that
    a lost update costs work, not correctness.
    """
    total = np.empty(TILE, tiles.dtype)
    nodes = np.empty(STACK, np.int64)
    firsts = np.empty(STACK, np.int64)
    counts = np.empty(STACK, np.int64)
    gaps = np.empty(STACK, tiles.dtype)
    best = np.inf
    leave = np.int64(-1)
    enter = np.int64(-1)
    for guest in range(start, stop):
        query = points[guest]
        i = guests[guest]
        shift = error + errors[guest]
        reach = bound[0]
        limit = tiles.dtype.type(search_limit(reach, shift, stretch))
        nodes[0] = 0
        firsts[0] = 0
        counts[0] = tiles.shape[0]
        gaps[0] = point_to_box(query, boxes[0])
        depth = 1
        while depth > 0:
            depth -= 1
            if gaps[depth] > limit:
                continue
            first = firsts[depth]
            count = counts[depth]
            if count > 1:
                depth = push_halves(
                    query, boxes, nodes[depth], first, count, limit, nodes, firsts, counts, gaps, depth
                )  # fmt: skip
                continue
            if scan_leaf(tiles[first], query, limit, total) == 0:
                continue
            for t in range(min(TILE, hosts.shape[0] - first * TILE)):
                if total[t] <= limit:
                    j = hosts[first * TILE + t]
                    d2 = squared_distance(X, i, X, j)
                    if d2 <= reach and (
                        leave < 0 or precedes(d2, names[i], names[j], best, names[leave], names[enter])
                    ):
                        best = d2
                        leave = i
                        enter = j
                        if d2 < reach:
                            reach = d2
                            limit = tiles.dtype.type(search_limit(d2, shift, stretch))
                            bound[0] = min(bound[0], d2)
    return best, leave, enter


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
