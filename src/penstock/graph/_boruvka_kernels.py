"""Rounds of Borůvka's algorithm over one kd-tree or between two, first edges between clumps, and Kruskal, compiled.

Points are given by their position in the order of the tree; `names` holds their numbers in the data, which break ties.
`squared_distance` of the rows makes every decision; search points only rule pairs out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from penstock._jit import Array, kernel
from penstock.graph._kdtree_kernels import (
    TreeArrays,
    box_to_box,
    leaf_node,
    new_stack,
    point_to_box,
    project_tile,
    push,
    push_near_box,
    push_near_point,
    scan_leaf,
)
from penstock.graph.distance_kernels import TILE, precedes, search_limit, squared_distance


class PointStates(NamedTuple):
    """What the rounds know of each point. Between two trees, the points of the second follow those of the first."""

    names: Array  # number in the data
    component: Array
    lower: Array  # the square of every edge to another component that is not known is at least this
    needed: Array  # whether to search for the point in this round
    found: Array  # nearest point of another component that a search has found, or −1
    found_square: Array


class FirstEdges(NamedTuple):
    """The first edge known to leave each component: its square, from which point and to which (−1 if none)."""

    square: Array
    leave: Array
    enter: Array


@kernel
def offer(names: Array, first: FirstEdges, c: int, i: int, j: int, square: float) -> None:
    """Let component c take edge (i, j) if it comes before the one it holds."""
    if first.leave[c] < 0 or precedes(
        square, names[i], names[j], first.square[c], names[first.leave[c]], names[first.enter[c]]
    ):
        first.square[c] = square
        first.leave[c] = i
        first.enter[c] = j


@kernel
def offer_listed(points: PointStates, near: Array, squares: Array, cursor: Array, first: FirstEdges) -> None:
    """Offer to each component the first edge out of it that each of its points lists; `cursor` skips inner edges."""
    k = near.shape[1]
    for i in range(near.shape[0]):
        c = points.component[i]
        slot = cursor[i]
        while slot < k and near[i, slot] >= 0 and points.component[near[i, slot]] == c:
            slot += 1
        cursor[i] = slot
        if slot < k and near[i, slot] >= 0:
            offer(points.names, first, c, i, near[i, slot], squares[i, slot])


@kernel
def offer_edges(points: PointStates, ends: Array, squares: Array, first: FirstEdges) -> None:
    """Offer given edges to the components at both ends."""
    for e in range(ends.shape[0]):
        i = ends[e, 0]
        j = ends[e, 1]
        if points.component[i] != points.component[j]:
            offer(points.names, first, points.component[i], i, j, squares[e])
            offer(points.names, first, points.component[j], j, i, squares[e])


@kernel
def offer_found(points: PointStates, first: FirstEdges) -> None:
    """Offer to each component what searches from its points have found."""
    for i in range(points.component.shape[0]):
        j = points.found[i]
        if j >= 0 and points.component[j] != points.component[i]:
            offer(points.names, first, points.component[i], i, j, points.found_square[i])


@kernel
def mark_searches(points: PointStates, cursor: Array, k: int, first: FirstEdges, largest: int) -> int:
    """Mark points whose list is used up and that may have a shorter edge than the first known of their component.

    What a search found is the first edge of a point for as long as it leads to another component, if its square is not
    above `lower`. Returns whether the largest component is certified without a search (1) or not (0).
    """
    certified = 1
    for i in range(points.component.shape[0]):
        c = points.component[i]
        points.needed[i] = False
        if cursor[i] >= k and points.lower[i] <= first.square[c]:
            j = points.found[i]
            if j < 0 or points.component[j] == c or points.found_square[i] > points.lower[i]:
                if c == largest:
                    certified = 0
                else:
                    points.needed[i] = True
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
    tree: TreeArrays, leaf: int, other: TreeArrays, other_leaf: int, radius: float,
    axis: Array, ours: Array, theirs: Array,
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
        axis[d] = other.centers[other_leaf, d] - tree.centers[leaf, d]
        length += axis[d] * axis[d]
    # the squares underflow, or the centres coincide: there is no axis
    if length < np.finfo(axis.dtype).tiny * number(1e8):
        return number(-np.inf)
    rounding = np.finfo(axis.dtype).eps / 2 * number(width + 8)
    shrink = number(1.0) / (np.sqrt(length) * (number(1.0) + rounding))
    for d in range(width):
        axis[d] *= shrink
    project_tile(tree.tiles[leaf], axis, ours)
    project_tile(other.tiles[other_leaf], axis, theirs)
    edge = theirs[0]
    for t in range(1, TILE):
        edge = min(edge, theirs[t])
    return edge - number(4.0) * rounding * number(radius)


@kernel
def search_foreign(
    tree: TreeArrays, offset: int, other: TreeArrays, other_offset: int, labels: Array,
    points: PointStates, bound: Array, leaves: Array, start: int, stop: int,
) -> int:  # fmt: skip
    """For marked points of leaves[start:stop] find the nearest point of `other` in another component, within `bound`.

    `other` is the same tree, at the same offset, or that of another part; `labels` are the components of its nodes.
    `bound[c]` is the square of the shortest edge known to leave component c. It is shared by all threads and only ever
    a length that exists, so a lost update costs work, not correctness; the final choice is made afterwards.

    Returns how many leaves were visited in all, the measure of what the searches cost.
    """
    number = tree.tiles.dtype.type
    width = tree.tiles.shape[1]
    radius = max(tree.radius, other.radius)
    shift = tree.error + other.error
    stretch = max(tree.stretch, other.stretch)
    limits = np.empty(TILE, tree.tiles.dtype)
    reach = np.empty(TILE, np.float64)
    total = np.empty(TILE, tree.tiles.dtype)
    ours = np.zeros(TILE, tree.tiles.dtype)  # read before it is filled: the first leaf is the own one, without an axis
    theirs = np.empty(TILE, tree.tiles.dtype)
    axis = np.empty(width, tree.tiles.dtype)
    query = np.empty((TILE, width), tree.tiles.dtype)
    stack = new_stack(tree.boxes)
    visited = 0
    for place in range(start, stop):
        leaf = leaves[place]
        base = leaf * TILE
        size = min(TILE, tree.exact.shape[0] - base)
        asked = 0
        common = np.int64(-2)  # the one component of all points to search for, or −1
        widest = number(0.0)
        for a in range(size):
            i = offset + base + a
            if points.needed[i]:
                c = points.component[i]
                reach[a] = bound[c]
                if points.lower[i] > reach[a]:  # the component has found a shorter edge since the point was marked
                    points.needed[i] = False
                    continue
                asked += 1
                common = c if common in (-2, c) else -1
                limits[a] = search_limit(reach[a], shift, stretch)
                widest = max(widest, limits[a])
                points.found[i] = -1
                points.found_square[i] = np.inf
                for d in range(width):
                    query[a, d] = tree.tiles[leaf, d, a]
        if asked == 0:
            continue
        own = leaf_node(leaf, tree.tiles.shape[0])
        box = tree.boxes[own]
        depth = push(stack, 0, 0, 0, other.tiles.shape[0], box_to_box(box, other.boxes[0]))
        while depth > 0:
            depth -= 1
            node = stack.nodes[depth]
            if stack.gaps[depth] > widest or (common >= 0 and labels[node] == common):
                continue
            if stack.counts[depth] > 1:
                depth = push_near_box(stack, depth, other.boxes, box, own)
                continue
            visited += 1
            first = stack.firsts[depth]
            inside = min(TILE, other.exact.shape[0] - first * TILE)
            edge = separate(tree, leaf, other, first, radius, axis, ours, theirs)
            widest = number(0.0)
            for a in range(size):
                i = offset + base + a
                if not points.needed[i]:
                    continue
                c = points.component[i]
                if bound[c] < reach[a]:
                    reach[a] = bound[c]
                    limits[a] = search_limit(reach[a], shift, stretch)
                gap = max(edge - ours[a], number(0.0))
                if (
                    labels[node] != c
                    and gap * gap <= limits[a]
                    and point_to_box(query[a], other.boxes[node]) <= limits[a]
                    and scan_leaf(other.tiles[first], query[a], limits[a], total) > 0
                ):
                    for t in range(inside):
                        j = other_offset + first * TILE + t
                        if total[t] <= limits[a] and points.component[j] != c:
                            d2 = squared_distance(tree.exact, base + a, other.exact, first * TILE + t)
                            theirs_too = points.component[j]  # the edge leaves that component too
                            bound[theirs_too] = min(bound[theirs_too], d2)
                            held = points.found[i]
                            if held < 0 or precedes(
                                d2, points.names[i], points.names[j],
                                points.found_square[i], points.names[i], points.names[held],
                            ):  # fmt: skip
                                points.found[i] = j
                                points.found_square[i] = d2
                                if d2 < reach[a]:
                                    reach[a] = d2
                                    limits[a] = search_limit(d2, shift, stretch)
                                    bound[c] = min(bound[c], d2)
                widest = max(widest, limits[a])
        for a in range(size):
            i = offset + base + a
            if points.needed[i]:
                # The search ended at `reach`: of edges as long as a longer one that it found, it may have missed the
                # first. Where `lower` is not below that length, nothing else would say so.
                if reach[a] < points.found_square[i] <= points.lower[i]:
                    points.found[i] = -1
                    points.found_square[i] = np.inf
                points.lower[i] = max(points.lower[i], reach[a])
    return visited


@kernel
def find_root(parent: Array, c: int) -> int:
    while parent[c] != c:
        parent[c] = parent[parent[c]]
        c = parent[c]
    return c


@kernel
def join_components(component: Array, first: FirstEdges, label: Array, taken: Array) -> tuple[int, int]:
    """Join components along their first edges; return how many edges were taken, and how many components are left.

    `label` becomes old → new number, `taken` lists the components whose edge counts. The order of edges is strict, so
    the only circles are pairs that chose the same edge: that one is taken once.
    """
    m = label.shape[0]
    parent = np.arange(m)
    n_taken = 0
    for c in range(m):
        if first.leave[c] >= 0:
            a = find_root(parent, c)
            b = find_root(parent, component[first.enter[c]])
            if a != b:
                parent[max(a, b)] = min(a, b)
                taken[n_taken] = c
                n_taken += 1
    return n_taken, number_sets(parent, label)


@kernel
def surely_beyond(gap: float, shift: float, stretch: float) -> float:
    """A square that no pair falls below whose search points are `gap` apart (squared) or more: `search_limit` reversed.

    Lowered by a little more than what rounding can do to either of them.
    """
    reach = np.sqrt(np.float64(gap) * (1 - 2.0**-21) / stretch) - shift
    return reach * reach * (1 - 2.0**-40) if reach > 0.0 else 0.0


@kernel
def bound_leaves(
    tree: TreeArrays, other: TreeArrays, enough: float, most: int, start: int, stop: int, lower: Array
) -> None:
    """Set `lower[leaf]` to a square that no pair of a point of the leaf and one of the other tree falls below.

    It is taken from the nearest leaf box of the other tree. The walk ends early where the bound is above `enough`
    anyway, or after `most` nodes: then what is still open bounds it.
    """
    shift = tree.error + other.error
    stretch = max(tree.stretch, other.stretch)
    stack = new_stack(tree.boxes)
    for leaf in range(start, stop):
        box = tree.boxes[leaf_node(leaf, tree.tiles.shape[0])]
        depth = push(stack, 0, 0, 0, other.tiles.shape[0], box_to_box(box, other.boxes[0]))
        nearest = tree.boxes.dtype.type(np.inf)
        looked = 0
        if surely_beyond(stack.gaps[0], shift, stretch) > enough:
            nearest = stack.gaps[0]
            depth = 0
        while depth > 0 and nearest > 0.0:
            depth -= 1
            if stack.gaps[depth] >= nearest:
                continue
            if stack.counts[depth] == 1 or looked >= most:
                nearest = stack.gaps[depth]
                continue
            looked += 1
            depth = push_near_box(stack, depth, other.boxes, box, 0)
        lower[leaf] = surely_beyond(nearest, shift, stretch)


@kernel
def contract_sure(edges: Array, squares: Array, leaf_lower: Array, parent: Array, left: Array) -> int:
    """Join along those edges of a part's tree, in their order, that no edge to the other part can replace.

    An edge is sure if it is the first of all that leave the component at one of its ends: shorter than any to the other
    part, and no earlier one is open there. Where it is not, both ends are nearer to the other part than the edge is
    long, so that no later edge is sure by them either. `left` lists the edges that are not sure; their number is
    returned.
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
def first_edge(
    tree: TreeArrays, host: TreeArrays, hosts: Array, guests: Array, guest_points: Array, errors: Array,
    start: int, stop: int, bound: Array,
) -> tuple[float, int, int]:  # fmt: skip
    """Find the first edge from guests start..stop to a clump, as (square, guest, host); −1 if none is within bound.

    `hosts` and `guests` are positions in `tree`: the former in the order of the tree `host` of the clump, the latter
    with their search points in its frame. `bound[0]` is the square of an edge known to exist, or infinite; it is shared
    by all threads, so that a lost update costs work, not correctness.
    """
    number = host.tiles.dtype.type
    names = tree.names
    total = np.empty(TILE, host.tiles.dtype)
    stack = new_stack(host.boxes)
    best = np.inf
    leave = np.int64(-1)
    enter = np.int64(-1)
    for guest in range(start, stop):
        query = guest_points[guest]
        i = guests[guest]
        shift = host.error + errors[guest]
        reach = bound[0]
        limit = number(search_limit(reach, shift, host.stretch))
        depth = push(stack, 0, 0, 0, host.tiles.shape[0], point_to_box(query, host.boxes[0]))
        while depth > 0:
            depth -= 1
            if stack.gaps[depth] > limit:
                continue
            if stack.counts[depth] > 1:
                depth = push_near_point(stack, depth, host.boxes, query)
                continue
            base = stack.firsts[depth] * TILE
            if scan_leaf(host.tiles[stack.firsts[depth]], query, limit, total) == 0:
                continue
            for t in range(min(TILE, hosts.shape[0] - base)):
                if total[t] <= limit:
                    j = hosts[base + t]
                    d2 = squared_distance(tree.exact, i, tree.exact, j)
                    if d2 <= reach and (
                        leave < 0 or precedes(d2, names[i], names[j], best, names[leave], names[enter])
                    ):
                        best = d2
                        leave = i
                        enter = j
                        if d2 < reach:
                            reach = d2
                            limit = number(search_limit(d2, shift, host.stretch))
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
