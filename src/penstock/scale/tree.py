"""The spanning tree of all rows, from the trees of parts and the edges between them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from penstock._types import FloatArray, IndexArray, Tree
from penstock.graph.parts import join_edges, skippable_pairs
from penstock.graph.points import Frame
from penstock.scale._tree_tasks import TreeSummary, edges_between, grow, join_two, own_edges, save_frame
from penstock.scale.cluster import Call, Cluster
from penstock.scale.workspace import Workspace


def grow_tree(
    cluster: Cluster, space: Workspace, job: str, parts: Sequence[int], n: int, frame: Frame, approximate: Any
) -> Tree:
    """The minimum spanning tree of the n rows of the table: exact, unless part trees are `approximate`.

    The tree of the whole is contained in the parts' own trees and the edges between two parts that the tree of these
    two has, so that no task ever sees more than two parts.
    """
    place = space / "frame"
    save_frame(place, frame)
    grown = [
        Call(f"part-tree-{job}-{part}", grow, (space / f"part-{part}", place, approximate, space / f"tree-{part}"))
        for part in parts
    ]
    pairs = [(parts[a], parts[b]) for a, b in pairs_to_join(cluster.run("trees of parts", grown))]
    joined = [
        Call(
            f"pair-edges-{job}-{one}-{other}",
            join_two,
            (space / f"tree-{one}", space / f"tree-{other}", space / f"pair-{one}-{other}", place),
        )
        for one, other in pairs
    ]
    cluster.run("edges between parts", joined)
    cluster.report("joining the parts", 0, 1)
    own = [own_edges(space / f"tree-{part}", frame) for part in parts]
    edges = join_edges(n, [*own, *(edges_between(space / f"pair-{one}-{other}") for one, other in pairs)])
    copies = np.concatenate([np.load(space / f"part-{part}" / "copies.npy").reshape(-1, 2) for part in parts])
    tree = _with_copies(edges.ends, edges.lengths, copies)
    if len(tree.lengths) != n - 1:
        raise AssertionError(f"The parts joined to {len(tree.lengths)} edges of {n - 1}. Please report this as a bug.")
    cluster.report("joining the parts", 1, 1)
    return tree


def pairs_to_join(summaries: Sequence[TreeSummary]) -> list[tuple[int, int]]:
    """The pairs of parts that an edge of the tree may join.

    A pair is left out if its boxes are farther apart than the longest edge on a way from the one to the other that is
    known already: through trees of parts, and between points that the parts have shown.
    """
    low, high = (np.array([getattr(summary, side) for summary in summaries]) for side in ("low", "high"))
    longest = np.array([summary.longest for summary in summaries])
    known = np.full((len(summaries), len(summaries)), np.inf)
    for a, b in combinations(range(len(summaries)), 2):
        known[a, b] = known[b, a] = cdist(summaries[a].shown, summaries[b].shown).min()
    skip = skippable_pairs(low, high, longest, known)
    return [(a, b) for a, b in combinations(range(len(summaries)), 2) if not skip[a, b]]


def _with_copies(ends: IndexArray, lengths: FloatArray, copies: IndexArray) -> Tree:
    """The tree with copies hung on their originals, in the order of edges."""
    every_end = np.concatenate([np.sort(copies, axis=1), ends]).astype(np.intp)
    every_length = np.concatenate([np.zeros(len(copies)), lengths])
    order = np.lexsort((every_end[:, 1], every_end[:, 0], every_length))
    return Tree(every_end[order], every_length[order])
