"""Spanning trees part by part, from the definitions. Imports nothing of ours."""

from __future__ import annotations

import itertools
import math


def squared(x, y):
    return sum((a - b) ** 2 for a, b in zip(x, y, strict=True))


def forest(edges):
    """Kruskal over (square, i, j): those that join two components, in their order."""
    leader = {}

    def find(i):
        while leader.setdefault(i, i) != i:
            i = leader[i]
        return i

    taken = []
    for square, i, j in sorted(edges):
        a, b = find(i), find(j)
        if a != b:
            leader[b] = a
            taken.append((square, i, j))
    return taken


def tree_of(X, numbers):
    """The tree of the rows with these numbers."""
    return forest((squared(X[i], X[j]), i, j) for i, j in itertools.combinations(sorted(numbers), 2))


def cross_edges(X, one, other):
    """Those edges of the tree of both parts that join the two."""
    return [(s, i, j) for s, i, j in tree_of(X, [*one, *other]) if (i in one) != (j in one)]


def minimax(longest, joined, a, b):
    """The least over all ways from part a to part b of the largest step on it."""
    others = [part for part in range(len(longest)) if part not in {a, b}]
    least = math.inf
    for count in range(len(others) + 1):
        for between in itertools.permutations(others, count):
            way = [a, *between, b]
            steps = [joined[x][y] for x, y in itertools.pairwise(way)]
            least = min(least, max(*steps, *(longest[x] for x in way)))
    return least


def box_distance(low, high, other_low, other_high):
    gaps = zip(low, high, other_low, other_high, strict=True)
    return math.hypot(*(max(a - d, c - b, 0.0) for a, b, c, d in gaps))
