"""Compiled passes over a tree whose places are in preorder: contiguous arrays and scalars in, nothing checked.

`parent[v]` < v is the place above v (−1 for the first), `length[v]` that of the edge between them. A sum over all pairs
of places of a product along their path is found by messages: from the last place to the first, then back. `decay` has
the factors exp(−t·length) of each place's edge for each exponent t, the exponents side by side in memory.
"""

from __future__ import annotations

import numpy as np

from penstock._jit import Array, inlined_kernel, kernel


@kernel
def walk(indptr: Array, indices: Array, lengths: Array, root: int, names: Array, parent: Array, length: Array) -> None:
    """List the places of a tree in preorder, children in the order of their entries."""
    n = names.shape[0]
    waiting = np.empty(n, np.int64)  # entries still to be followed; above[entry]: where they lead from
    above = np.empty(n, np.int64)
    stretch = np.empty(n)
    waiting[0], above[0], stretch[0] = root, -1, 0.0
    size = 1
    count = 0
    while size > 0:
        size -= 1
        place, came_from, far = waiting[size], above[size], stretch[size]
        names[count], parent[count], length[count] = place, came_from, far
        last = names[came_from] if came_from >= 0 else -1
        for e in range(indptr[place + 1] - 1, indptr[place] - 1, -1):
            if indices[e] != last:
                waiting[size], above[size], stretch[size] = indices[e], count, lengths[e]
                size += 1
        count += 1


@kernel
def count_edges(parent: Array, depth: Array) -> None:
    """`depth[v]` = the number of edges between v and the first place."""
    for v in range(1, parent.shape[0]):
        depth[v] = depth[parent[v]] + 1


@kernel
def longest_path(parent: Array, length: Array) -> float:
    """The length of the longest path in the tree."""
    height = np.zeros(parent.shape[0])
    longest = 0.0
    for v in range(parent.shape[0] - 1, 0, -1):
        reach = length[v] + height[v]
        p = parent[v]
        longest = max(longest, height[p] + reach)
        height[p] = max(height[p], reach)
    return longest


@kernel
def distances_from(place: int, parent: Array, length: Array, distances: Array) -> None:
    """`distances[v]` = the length of the path from `place` to v: sums of lengths, no difference."""
    for v in range(parent.shape[0]):
        distances[v] = -1.0
    distances[place] = 0.0
    v = place
    while parent[v] >= 0:
        distances[parent[v]] = distances[v] + length[v]
        v = parent[v]
    for v in range(parent.shape[0]):
        if distances[v] < 0.0:
            distances[v] = distances[parent[v]] + length[v]


@kernel
def all_distances(parent: Array, length: Array, D: Array) -> None:
    """D[u, v] = the length of the path between u and v."""
    for v in range(parent.shape[0]):
        D[v, v] = 0.0
        for u in range(v):
            D[v, u] = D[parent[v], u] + length[v]
            D[u, v] = D[v, u]


@kernel
def list_pairs(D: Array, place_of: Array, indices: Array, data: Array) -> None:
    """The inverse distances of all rows that are not at one place, row by row."""
    entry = 0
    for i in range(place_of.shape[0]):
        for j in range(place_of.shape[0]):
            if place_of[i] != place_of[j]:
                indices[entry] = j
                data[entry] = 1.0 / D[place_of[i], place_of[j]]
                entry += 1


@inlined_kernel
def weighted_sum(values: Array, weights: Array) -> float:
    """Σ weights·values in four sums side by side, then added: the length is a multiple of four."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    for m in range(0, weights.shape[0], 4):
        a += weights[m] * values[m]
        b += weights[m + 1] * values[m + 1]
        c += weights[m + 2] * values[m + 2]
        d += weights[m + 3] * values[m + 3]
    return (a + b) + (c + d)


@kernel
def send_up(sums: Array, parent: Array, decay: Array, slot: Array, below: Array, beside: Array) -> None:
    """`below[v]` = Σ exp(−t·d(u,v))·sums[u] over the places u under v.

    `beside[slot[v]]` is what comes to v's parent from the children after v; the last child has the slot −1 and no such
    sum. Nothing is ever subtracted: a difference would lose the small part of a large sum.
    """
    n, K = sums.shape
    below[:] = 0.0
    for v in range(n - 1, 0, -1):
        p, s = parent[v], slot[v]
        for k in range(K):
            own = sums[v, k]
            if s >= 0:
                for m in range(decay.shape[1]):
                    beside[s, k, m] = below[p, k, m]
            for m in range(decay.shape[1]):
                below[p, k, m] += decay[v, m] * (own + below[v, k, m])


@kernel
def send_down(
    sums: Array, parent: Array, decay: Array, weights: Array, slot: Array, below: Array, beside: Array, out: Array
) -> None:
    """out[v] = Σ_m weights_m Σ_{u≠v} exp(−t_m·d(u,v))·sums[u], after `send_up`, whose `below` it overwrites.

    Once v is done, `below[v]` holds what all but the children of v that are still to come send to those.
    """
    n, K = sums.shape
    others = np.empty(decay.shape[1])
    for v in range(n):
        p, s = parent[v], slot[v]
        for k in range(K):
            own = sums[v, k]
            for m in range(decay.shape[1]):
                above = 0.0
                if v > 0:
                    before = below[p, k, m]
                    above = decay[v, m] * (before + beside[s, k, m] if s >= 0 else before)
                    below[p, k, m] = before + decay[v, m] * (own + below[v, k, m])
                others[m] = above + below[v, k, m]
                below[v, k, m] = above + own
            out[v, k] = weighted_sum(others, weights)


@kernel
def add_pairs(counts: Array, parent: Array, decay: Array, weights: Array) -> float:
    """Σ over pairs u < v of counts[u]·counts[v]·Σ_m weights_m exp(−t_m·d(u,v))."""
    n, M = decay.shape
    inside = np.empty((n, M))
    total = 0.0
    met = np.empty(M)
    for v in range(n):
        inside[v] = counts[v]
    for v in range(n - 1, 0, -1):
        target, own, factor = inside[parent[v]], inside[v], decay[v]
        for m in range(M):
            sent = factor[m] * own[m]
            met[m] = sent * target[m]
            target[m] += sent
        total += weighted_sum(met, weights)
    return total


@kernel
def add_differences(counts: Array, means: Array, spread: Array, parent: Array, decay: Array, weights: Array) -> float:
    """Σ over pairs of places of Σ_m weights_m exp(−t_m·d)·(sum over their rows of the squared difference).

    A place has counts[v] rows with the given mean and, in spread[v], their sum of squared differences from it. Under
    each exponent what is under a place is kept as a weighted count, mean and sum of squares: nothing cancels.
    """
    n, M = decay.shape
    K = means.shape[1]
    size, scatter, center = np.empty((n, M)), np.empty((n, M)), np.empty((n, K, M))
    total = 0.0
    met = np.empty(M)
    for v in range(n):
        size[v] = counts[v]
        scatter[v] = spread[v]
        for k in range(K):
            center[v, k] = means[v, k]
    apart = np.empty(M)
    share = np.empty(M)
    for v in range(n - 1, 0, -1):
        p, factor = parent[v], decay[v]
        apart[:] = 0.0
        for m in range(M):
            sent = factor[m] * size[v, m]
            share[m] = sent / (size[p, m] + sent)
        for k in range(K):
            ours, theirs = center[p, k], center[v, k]
            for m in range(M):
                gap = theirs[m] - ours[m]
                apart[m] += gap * gap
                ours[m] += share[m] * gap
        for m in range(M):
            sent, kept = factor[m] * size[v, m], size[p, m]
            inner = factor[m] * scatter[v, m]
            met[m] = kept * sent * apart[m] + kept * inner + sent * scatter[p, m]
            scatter[p, m] += inner + kept * share[m] * apart[m]
            size[p, m] = kept + sent
        total += weighted_sum(met, weights)
    return total


@kernel
def gather_leaves(
    places: Array, gaps: Array, nearest: Array, counts: Array, sums: Array, parent: Array, length: Array,
    degree: Array, pull: Array, leaf_degree: Array, leaf_pull: Array, start: int, stop: int,
) -> None:  # fmt: skip
    """Similarities of places, and of leaves that hang on them at distances `gaps`, to the rows of all other places.

    `counts` and `sums` are the number of rows at each place and the sum of their weights. For each leaf: the sum of its
    place's similarities (`degree`), the weights multiplied by them (`pull`), and the same of the leaf, whose similarity
    to the rows at its own place is `nearest`.
    """
    K = sums.shape[1]
    distances = np.empty(parent.shape[0])
    for r in range(start, stop):
        distances_from(places[r], parent, length, distances)
        leaf_degree[r] += counts[places[r]] * nearest[r]
        for k in range(K):
            leaf_pull[r, k] += nearest[r] * sums[places[r], k]
        for v in range(parent.shape[0]):
            if v != places[r]:
                near, leaf_near = 1.0 / distances[v], 1.0 / (distances[v] + gaps[r])
                degree[r] += counts[v] * near
                leaf_degree[r] += counts[v] * leaf_near
                for k in range(K):
                    pull[r, k] += near * sums[v, k]
                    leaf_pull[r, k] += leaf_near * sums[v, k]
