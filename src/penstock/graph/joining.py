"""One spanning tree from those of the parts, and which pairs of parts need not be looked at."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from penstock._types import FloatArray, IndexArray, Tree
from penstock.graph.duplicates import first_copies
from penstock.graph.forest import spanning_forest
from penstock.graph.mst import check_rows, sorted_tree
from penstock.graph.parts import Edges, Part, common_frame, cross_edges, grow_part
from penstock.graph.points import frame_between

# Distances of boxes are trusted to this share of themselves, and not at all where their squares might vanish.
_ROUNDING = 1e-9
_SMALLEST = 1e-140


def join_edges(n: int, edges: Sequence[Edges]) -> Edges:
    """Those of the given edges between n rows that are in their minimum spanning tree (or forest), in their order.

    It may be done step by step: what is not in the tree of some of the edges is not in the tree of all.

    >>> some = Edges(np.array([[0, 1], [1, 2]]), np.array([1.0, 4.0]), np.array([1.0, 2.0]))
    >>> more = Edges(np.array([[0, 2]]), np.array([2.25]), np.array([1.5]))
    >>> join_edges(3, [some, more]).ends.tolist()
    [[0, 1], [0, 2]]
    """
    ends = np.concatenate([np.empty((0, 2), dtype=np.intp), *(part.ends for part in edges)])
    squares = np.concatenate([np.empty(0), *(part.squares for part in edges)])
    taken, _ = spanning_forest(n, ends, squares)
    ends, squares = ends[taken], squares[taken]
    return Edges(ends, squares, np.concatenate([np.empty(0), *(part.lengths for part in edges)])[taken])


def spanning_tree_by_parts(X: ArrayLike, part_of: IndexArray) -> Tree:
    """`minimum_spanning_tree`, part by part and pair by pair: the same tree to the last bit.

    `part_of` is the number of each row's part; any division will do in which equal rows are together, but only one
    into regions saves work.

    >>> tree = spanning_tree_by_parts([[0.0], [10.0], [1.0], [4.0]], np.array([0, 1, 0, 1]))
    >>> tree.edges.tolist(), tree.lengths.tolist()
    ([[0, 2], [2, 3], [1, 3]], [1.0, 3.0, 6.0])
    """
    data = check_rows(X)
    if np.isnan(data).any():
        raise ValueError("A tree by parts needs all values, but some are missing (NaN).")
    original = first_copies(data)
    if len(part_of) != len(data) or (part_of[original] != part_of).any():
        raise ValueError("Each row needs a part, and equal rows the same one.")
    kept = np.flatnonzero(original == np.arange(len(data)))
    frame = common_frame(data.min(axis=0), data.max(axis=0), data)
    groups = [kept[part_of[kept] == number] for number in np.unique(part_of)]
    joined = join_parts(len(data), [grow_part(data[group], group, frame) for group in groups])
    copies = np.flatnonzero(original != np.arange(len(data)))
    edges = np.concatenate([joined.ends, np.column_stack([original[copies], copies])])
    return sorted_tree(edges, np.concatenate([joined.lengths, np.zeros(len(copies))]))


def join_parts(n: int, parts: Sequence[Part]) -> Edges:
    """The spanning tree of all rows of all parts, n being above every number of a row.

    First the pairs that lead through all parts by the nearest boxes; with what they found, most others are skipped.
    """
    boxes = [(part.tree.exact.min(axis=0), part.tree.exact.max(axis=0)) for part in parts]
    low, high = np.array([box[0] for box in boxes]), np.array([box[1] for box in boxes])
    longest = np.array([part.longest for part in parts])
    joined = np.full((len(parts), len(parts)), np.inf)
    first = first_pairs(low, high)
    found = [part.tree_edges() for part in parts]
    for a, b in first:
        found.append(cross_edges(parts[a], parts[b]))
        joined[a, b] = joined[b, a] = np.sqrt(found[-1].squares[0])
    skipped = skippable_pairs(low, high, longest, joined)
    skipped[tuple(first.T)] = True
    for a, b in np.argwhere(np.triu(~skipped, 1)):
        found.append(cross_edges(parts[a], parts[b]))
    return join_edges(n, found)


def box_distances(low: FloatArray, high: FloatArray) -> FloatArray:
    """The distance between any two of P boxes (P × p lower and upper corners): never more than of any of their rows.

    >>> box_distances(np.array([[0.0], [3.0]]), np.array([[1.0], [4.0]])).round(6).tolist()
    [[0.0, 2.0], [2.0, 0.0]]
    """
    frame = frame_between(low.min(axis=0), high.max(axis=0))
    low, high = frame.scale(low), frame.scale(high)
    found = np.empty((len(low), len(low)))
    for a in range(len(low)):
        gaps = np.maximum(np.maximum(low[a] - high, low - high[a]), 0.0)
        found[a] = np.sqrt(np.einsum("ij,ij->i", gaps, gaps))
    found = np.where(found > _SMALLEST, found * (1 - _ROUNDING), 0.0)
    with np.errstate(over="ignore"):
        return np.minimum(np.ldexp(found, frame.exponent), np.finfo(np.float64).max)


def first_pairs(low: FloatArray, high: FloatArray) -> IndexArray:
    """The P − 1 pairs of parts, smaller first, that join all parts by the nearest boxes, (P − 1) × 2.

    >>> first_pairs(np.array([[0.0], [9.0], [3.0]]), np.array([[1.0], [9.5], [4.0]])).tolist()
    [[0, 2], [1, 2]]
    """
    pairs = np.column_stack(np.triu_indices(len(low), 1))
    taken, _ = spanning_forest(len(low), pairs, box_distances(low, high)[pairs[:, 0], pairs[:, 1]])
    return pairs[taken]


def skippable_pairs(low: FloatArray, high: FloatArray, longest: FloatArray, joined: FloatArray) -> NDArray[np.bool_]:
    """Which pairs of parts (P × P) no edge of the tree of all rows joins.

    Two rows are not joined if a chain of shorter edges leads from one to the other. There is such a chain for all rows
    of two parts if their boxes are farther apart than any step of a way through parts: the longest edges of the trees
    of the parts on it, the two included, and the shortest distances from one to the next.

    Parameters
    ----------
    low, high : arrays of shape (P, p)
        The smallest and the largest value of each column in each part.
    longest : array of shape (P,)
        The longest edge of a spanning tree of each part.
    joined : array of shape (P, P)
        For each pair the distance of two of their rows, the shorter the better; infinite where none is known.
        All in the same units, those of the data or of the frame.

    Examples
    --------
    >>> low, high = np.array([[0.0], [2.0], [9.0]]), np.array([[1.0], [3.0], [9.5]])
    >>> joined = np.array([[np.inf, 1.0, np.inf], [1.0, np.inf, 6.0], [np.inf, 6.0, np.inf]])
    >>> skippable_pairs(low, high, np.array([0.5, 0.5, 0.5]), joined)[0].tolist()
    [False, False, True]
    """
    step = np.maximum(np.minimum(joined, joined.T), np.maximum(longest[:, None], longest[None, :]))
    np.fill_diagonal(step, longest)
    for between in range(len(step)):
        np.minimum(step, np.maximum(step[:, between, None], step[None, between, :]), out=step)
    return box_distances(low, high) > step
