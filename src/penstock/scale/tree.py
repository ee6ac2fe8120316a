"""The spanning tree of all rows from the trees of their parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import combinations
from pathlib import Path

import numpy as np
from scipy.spatial.distance import cdist

from penstock._types import FloatArray, IndexArray, Tree
from penstock.graph.parts import Edges, Part, common_frame, cross_edges, grow_part, join_edges, skippable_pairs
from penstock.graph.points import Frame
from penstock.graph.rows import first_copies
from penstock.graph.search import PointTree
from penstock.scale.cluster import Cluster
from penstock.scale.workspace import (
    Workspace,
    create_array,
    fields_of,
    fill_rows,
    load_arrays,
    open_array,
    open_arrays,
    save_arrays,
)

_SHOWN = 64  # points of a part by which the driver bounds how near two parts come
_ROWS_AT_ONCE = 1 << 16


@dataclass(frozen=True)
class LaidRows:
    """Rows in a folder, cut into parts by `cut_into_parts`: n rows, whose columns range from low to high."""

    space: Workspace
    parts: Sequence[int]
    n: int
    low: FloatArray
    high: FloatArray

    @cached_property
    def frame(self) -> Frame:
        """The frame that all parts' trees share."""
        return common_frame(self.low, self.high, open_array(self.space / "laid" / "sample.npy"), self.n)

    def originals(self, *, merge: bool) -> IndexArray:
        """For each row the first one that equals it, or itself if copies are not merged."""
        original = np.arange(self.n)
        for part in self.parts if merge else ():
            copies = open_array(self.space / f"part-{part}" / "copies.npy").reshape(-1, 2)
            original[copies[:, 0]] = copies[:, 1]
        return original

    def tree(self, cluster: Cluster) -> Tree:
        """Compute the spanning tree, or open it from its files."""
        return Tree(**self.space.keep("tree", lambda: fields_of(grow_tree(cluster, self))))

    def fitted_rows(self, kept: IndexArray) -> FloatArray:
        """Write the rows that are kept to a file, in the order of the table, and open it."""
        file, everything = self.fitted_file(kept), open_array(self.space / "rows.npy")
        if len(kept) < self.n:
            create_array(file, (len(kept), everything.shape[1]))
            for start in range(0, len(kept), _ROWS_AT_ONCE):
                fill_rows(file, start, everything[kept[start : start + _ROWS_AT_ONCE]])
        return np.asarray(open_array(file))

    def fitted_file(self, kept: IndexArray) -> Path:
        """Return the file of `fitted_rows`: that of the whole table, if all rows are kept."""
        return self.space / ("rows.npy" if len(kept) == self.n else "kept.npy")


@dataclass(frozen=True)
class TreeSummary:
    """What the driver knows of a part's tree; all lengths in the frame's units."""

    low: FloatArray
    high: FloatArray
    longest: float
    shown: FloatArray


def grow_tree(cluster: Cluster, laid: LaidRows) -> Tree:
    """Grow the exact minimum spanning tree of the rows.

    The tree of the whole is contained in the parts' own trees and the edges between two parts that the tree of these
    two has, so that no task ever sees more than two parts.
    """
    space, parts, place = laid.space, laid.parts, laid.space / "frame"
    # Tasks get names of files: axes may be megabytes, and the scheduler would keep a copy for each task.
    save_arrays(place, fields_of(laid.frame))
    growing = [(space / f"part-{part}", place, space / f"tree-{part}") for part in parts]
    summaries = cluster.run("trees of parts", grow_part_tree, growing)
    pairs = [(parts[a], parts[b]) for a, b in pairs_to_join(summaries)]
    joining = [
        (space / f"tree-{one}", space / f"tree-{other}", space / f"pair-{one}-{other}", place) for one, other in pairs
    ]
    cluster.run("edges between parts", join_two, joining)
    cluster.report("joining the parts", 0, 1)
    found = [Edges(**load_arrays(space / f"pair-{one}-{other}")) for one, other in pairs]
    for part in parts:  # into memory one by one: many files are not to stay open
        own = open_part(space / f"tree-{part}", laid.frame).tree_edges()
        found.append(Edges(own.ends, np.array(own.squares), np.array(own.lengths)))
    edges = join_edges(laid.n, found)
    copies = np.concatenate([np.load(space / f"part-{part}" / "copies.npy").reshape(-1, 2) for part in parts])
    ends = np.concatenate([np.sort(copies, axis=1), edges.ends]).astype(np.intp)  # copies are joined to their originals
    lengths = np.concatenate([np.zeros(len(copies)), edges.lengths])
    if len(lengths) != laid.n - 1:
        raise AssertionError(f"The parts joined to {len(lengths)} edges of {laid.n - 1}. Please report this as a bug.")
    order = np.lexsort((ends[:, 1], ends[:, 0], lengths))
    cluster.report("joining the parts", 1, 1)
    return Tree(ends[order], lengths[order])


def pairs_to_join(summaries: Sequence[TreeSummary]) -> list[tuple[int, int]]:
    """Find the pairs of parts that an edge of the tree may join.

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


def grow_part_tree(rows_folder: Path, frame_folder: Path, folder: Path) -> TreeSummary:
    """Task: grow the search tree and the spanning tree of a part's distinct rows."""
    frame = Frame(**load_arrays(frame_folder))
    if not folder.exists():
        arrays = open_arrays(rows_folder)
        order = np.argsort(arrays["numbers"], kind="stable")
        numbers, rows = arrays["numbers"][order], arrays["rows"][order]
        if len(arrays["copies"]):
            first = np.flatnonzero(first_copies(rows) == np.arange(len(rows)))
            numbers, rows = numbers[first], rows[first]
        save_part(folder, grow_part(rows, numbers, frame))
    part = open_part(folder, frame)
    exact = part.tree.exact
    low, high = (np.array(open_array(folder / f"{side}.npy")) for side in ("low", "high"))
    return TreeSummary(low, high, part.longest, np.array(exact[:: max(1, len(exact) // _SHOWN)]))


def join_two(one: Path, other: Path, folder: Path, frame_folder: Path) -> None:
    """Task: find the edges between two parts."""
    if folder.exists():
        return
    frame = Frame(**load_arrays(frame_folder))
    save_arrays(folder, fields_of(cross_edges(open_part(one, frame), open_part(other, frame))))


def save_part(folder: Path, part: Part) -> None:
    """Save a part's trees and its box, but not the frame, which all parts share."""
    content = fields_of(part) | fields_of(part.tree)
    del content["tree"], content["frame"]
    save_arrays(folder, content | {"low": part.tree.exact.min(axis=0), "high": part.tree.exact.max(axis=0)})


def open_part(folder: Path, frame: Frame) -> Part:
    """Open a part whose arrays are read from their files as they are used: its border is a few of its pages."""
    content = open_arrays(folder) | {"frame": frame}
    tree = PointTree(**{field.name: content[field.name] for field in fields(PointTree)})
    return Part(tree, content["edges"], content["squares"], content["lengths"], content.get("rounded"))
