"""The tree of the buffered samples and a new one, compiled: who is near it, and how near."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock._jit import kernel
from penstock.factor._memory_kernels import Memory
from penstock.graph.distance_kernels import distance, precedes
from penstock.graph.similarities import LARGEST_SIMILARITY

Array = Any

INVERSE, BINARY, RELATIVE, NORMALIZED = 0, 1, 2, 3


@kernel
def shared_distance(X: Array, i: int, Y: Array, j: int) -> float:
    """Over the readings both have, scaled up to all p; infinite where they share none."""
    total = 0.0
    shared = 0
    for d in range(X.shape[1]):
        difference = X[i, d] - Y[j, d]
        if not np.isnan(difference):
            total += difference * difference
            shared += 1
    if shared == 0:
        return np.inf
    return np.sqrt(total * (X.shape[1] / shared))


@kernel
def measure(memory: Memory, X: Array, i: int, gap: int, out: Array) -> None:
    """Distances of a sample to the buffered ones, the oldest first: the only distances a sample costs."""
    capacity = len(memory.rows)
    for age in range(memory.ring[1]):
        slot = (memory.ring[0] + age) % capacity
        if gap == 0 and memory.gaps[slot] == 0:
            out[age] = distance(X, i, memory.rows, slot)
        else:
            out[age] = shared_distance(X, i, memory.rows, slot)


@kernel
def measure_buffer(memory: Memory) -> None:
    """All distances between the buffered samples, which lie in the ring from its first slot on."""
    for i in range(memory.ring[1]):
        for j in range(i):
            if memory.gaps[i] == 0 and memory.gaps[j] == 0:
                between = distance(memory.rows, i, memory.rows, j)
            else:
                between = shared_distance(memory.rows, i, memory.rows, j)
            memory.distances[i, j] = memory.distances[j, i] = between


@kernel
def grow_local_tree(memory: Memory, n: int, to_new: Array, parent: Array, length: Array, left: Array) -> None:
    """Prim over the n oldest samples of the buffer and a new one, number n, which is the root.

    Ties go by (length, smaller number, larger number), where numbers are in order of age. Sample i hangs on `parent[i]`
    by an edge of `length[i]`.
    """
    capacity = len(memory.rows)
    head = memory.ring[0]
    nearest = 0
    for i in range(n):
        parent[i] = n
        length[i] = to_new[i]
        left[i] = i
        if length[i] < length[nearest]:
            nearest = i
    for remaining in range(n - 1, 0, -1):
        joined = left[nearest]
        left[nearest] = left[remaining]
        joined_slot = (head + joined) % capacity
        nearest = 0
        for place in range(remaining):
            i = left[place]
            between = memory.distances[joined_slot, (head + i) % capacity]
            if precedes(between, i, joined, length[i], i, parent[i]):
                length[i] = between
                parent[i] = joined
            best = left[nearest]
            if precedes(length[i], i, parent[i], length[best], best, parent[best]):
                nearest = place


@kernel
def middle_of(values: Array, n: int) -> float:
    """The median of the first n, which are put in order: np.median takes seconds to compile."""
    for i in range(1, n):
        value = values[i]
        j = i
        while j > 0 and values[j - 1] > value:
            values[j] = values[j - 1]
            j -= 1
        values[j] = value
    return 0.5 * (values[(n - 1) // 2] + values[n // 2])


@kernel
def tree_strengths(parent: Array, length: Array, n: int, kind: int, of_copies: float, s: Array) -> None:
    """Similarities of the new sample, number n, to the buffered ones.

    That of an edge of length 0 is given; an infinite one, between samples that share no reading, gives none.
    """
    unit = 1.0
    if kind == RELATIVE:
        usable = np.empty(n)
        count = 0
        for i in range(n):
            if 0.0 < length[i] < np.inf:
                usable[count] = length[i]
                count += 1
        if count > 0:
            unit = middle_of(usable, count)
    own_degree = 0.0
    degree = np.zeros(n)
    for i in range(n):
        s[i] = 0.0
        value = 0.0
        if length[i] == 0.0:
            value = of_copies
        elif length[i] < np.inf:
            value = 1.0 if kind == BINARY else min(unit / length[i], LARGEST_SIMILARITY)
        degree[i] += value
        if parent[i] == n:
            s[i] = value
            own_degree += value
        else:
            degree[parent[i]] += value
    if kind == NORMALIZED:
        for i in range(n):
            if s[i] > 0.0:
                s[i] /= np.sqrt(degree[i]) * np.sqrt(own_degree)
