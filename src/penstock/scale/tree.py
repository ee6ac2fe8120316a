"""The spanning tree of all rows from the trees of parts, and the nearest row from the parts' search trees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from penstock._types import FloatArray, IndexArray, Tree
from penstock.graph.approximate import Approximation, approximate_spanning_tree
from penstock.graph.parts import Edges, Part, common_frame, cross_edges, grow_part, join_edges, skippable_pairs
from penstock.graph.points import Frame
from penstock.graph.rows import first_copies
from penstock.graph.search import PointTree, RowSearch, search_over
from penstock.scale.cluster import Call, Cluster
from penstock.scale.workspace import Workspace, load_arrays, open_array, open_arrays, save_arrays


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


_SHOWN = 64  # points of a part by which the driver bounds how near two parts come


@dataclass(frozen=True)
class TreeSummary:
    """What the driver is told of a part's tree; all lengths in the frame's units."""

    low: FloatArray
    high: FloatArray
    longest: float
    shown: FloatArray


def save_frame(folder: Path, frame: Frame) -> None:
    """The frame in files: its axes may be megabytes, of which the scheduler would keep a copy for each task."""
    axes = {} if frame.axes is None else {"axes": frame.axes}
    scalars = {"exponent": frame.exponent, "precise": frame.precise}
    save_arrays(folder, {**axes, **scalars, "origin": frame.origin, "center": frame.center})


def load_frame(folder: Path) -> Frame:
    arrays = load_arrays(folder)
    exponent, precise = int(arrays["exponent"].item()), bool(arrays["precise"].item())
    return Frame(arrays["origin"], exponent, arrays["center"], arrays.get("axes"), precise)


def grow(rows_folder: Path, frame_folder: Path, approximate: Any, folder: Path) -> TreeSummary:
    """The search tree and the spanning tree of a part's distinct rows."""
    frame = load_frame(frame_folder)
    if folder.exists():
        return summarise(folder, frame)
    arrays = open_arrays(rows_folder)
    order = np.argsort(arrays["numbers"], kind="stable")
    numbers, rows = arrays["numbers"][order], arrays["rows"][order]
    if len(arrays["copies"]):
        first = np.flatnonzero(first_copies(rows) == np.arange(len(rows)))
        numbers, rows = numbers[first], rows[first]
    save_part(folder, grow_part(rows, numbers, frame, approximate=approximate))
    return summarise(folder, frame)


def summarise(folder: Path, frame: Frame) -> TreeSummary:
    part = open_part(folder, frame)
    exact = part.tree.exact
    low, high = (np.array(open_array(folder / f"{side}.npy")) for side in ("low", "high"))
    return TreeSummary(low, high, part.longest, np.array(exact[:: max(1, len(exact) // _SHOWN)]))


def join_two(one: Path, other: Path, folder: Path, frame_folder: Path) -> None:
    """The edges between two parts."""
    if folder.exists():
        return
    frame = load_frame(frame_folder)
    found = cross_edges(open_part(one, frame), open_part(other, frame))
    save_arrays(folder, {"ends": found.ends.reshape(-1, 2), "squares": found.squares, "lengths": found.lengths})


def save_part(folder: Path, part: Part) -> None:
    tree = part.tree
    rounded = {} if part.rounded is None else {"rounded": part.rounded}
    save_arrays(
        folder,
        {
            **rounded,
            "exact": tree.exact,
            "low": tree.exact.min(axis=0),
            "high": tree.exact.max(axis=0),
            "names": tree.names,
            "tiles": tree.tiles,
            "boxes": tree.boxes,
            "centers": tree.centers,
            "bounds": np.array([tree.radius, tree.error, tree.stretch]),
            "edges": part.edges,
            "squares": part.squares,
            "lengths": part.lengths,
        },
    )


def open_part(folder: Path, frame: Frame) -> Part:
    """A part whose arrays are read from their files as they are used: the border of a part is a few of its pages."""
    arrays = open_arrays(folder)
    radius, error, stretch = (float(value) for value in arrays["bounds"])
    tree = PointTree(
        frame, arrays["exact"], arrays["names"], arrays["tiles"], arrays["boxes"], arrays["centers"], radius, error,
        stretch,
    )  # fmt: skip
    return Part(tree, arrays["edges"], arrays["squares"], arrays["lengths"], arrays.get("rounded"))


def own_edges(folder: Path, frame: Frame) -> Edges:
    """The edges of a part's tree by row of the table, in memory: many files are not to stay open."""
    edges = open_part(folder, frame).tree_edges()
    return Edges(edges.ends, np.array(edges.squares), np.array(edges.lengths))


def edges_between(folder: Path) -> Edges:
    """The edges between two parts, in memory."""
    arrays = open_arrays(folder)
    return Edges(*(np.array(arrays[name]) for name in ("ends", "squares", "lengths")))


@dataclass(frozen=True)
class LaidRows:
    """What `cut_into_parts` has left: n rows, whose columns range from low to high, in these parts."""

    space: Workspace
    parts: Sequence[int]
    n: int
    low: FloatArray
    high: FloatArray

    @cached_property
    def frame(self) -> Frame:
        """The frame that all parts' trees share."""
        return common_frame(self.low, self.high, open_array(self.space / "sample.npy"), self.n)

    def tree(self, cluster: Cluster, job: str, approximate: Approximation | None) -> Tree:
        """The spanning tree, in its files."""
        folder = self.space / "tree"
        if not folder.exists():
            grown = grow_tree(cluster, self.space, job, self.parts, self.n, self.frame, approximate)
            save_arrays(folder, {"edges": grown.edges, "lengths": grown.lengths})
        arrays = open_arrays(folder)
        return Tree(arrays["edges"], arrays["lengths"])

    def excess(self, approximate: Approximation) -> float:
        """By what share such trees are longer than the shortest one of a sample of the rows."""
        sample = open_array(self.space / "sample.npy")
        return approximate_spanning_tree(sample, **vars(approximate), sample_size=len(sample)).excess

    def search(self, numbers: Path, rows: Path) -> PartsSearch:
        """The search by the parts' trees; `numbers` and `rows` are the files of the rows that are fitted."""
        return PartsSearch(self.frame, tuple(self.space / f"tree-{part}" for part in self.parts), numbers, rows)


_SLACK = 1 + 1e-9  # boxes and distances are computed in float64: far more than their rounding


@dataclass(frozen=True)
class PartsSearch:
    """What `RowSearch` finds, without ever having all rows in memory: of a part's files only what is near is read.

    Answers count fitted rows; `numbers` is the file of their numbers in the table, `file` that of the rows themselves.
    Rows with holes are compared with all rows, for which these are read into memory.
    """

    frame: Frame
    folders: tuple[Path, ...]
    numbers: Path
    file: Path

    def __reduce__(self) -> tuple[type[PartsSearch], tuple[Frame, tuple[Path, ...], Path, Path]]:
        return PartsSearch, (self.frame, self.folders, self.numbers, self.file)  # not what is cached

    def _tree(self, part: int) -> PointTree:
        """Opened anew each time: thousands of parts would be tens of thousands of open files."""
        return open_part(self.folders[part], self.frame).tree

    @cached_property
    def _boxes(self) -> tuple[FloatArray, FloatArray]:
        return (
            np.array([np.load(folder / "low.npy") for folder in self.folders]),
            np.array([np.load(folder / "high.npy") for folder in self.folders]),
        )

    @cached_property
    def _with_holes(self) -> RowSearch:
        return search_over(self.rows())

    def rows(self) -> FloatArray:
        """The rows that are searched."""
        rows: FloatArray = open_array(self.file)
        return rows

    def nearest_or_equal(self, X: FloatArray) -> tuple[IndexArray, FloatArray, NDArray[np.bool_]]:
        """For each row of X the nearest fitted row, its distance, and whether it is equal, holes and all."""
        holes = np.isnan(X).any(axis=1)
        near, distances = np.empty(len(X), dtype=np.intp), np.empty(len(X))
        equal = np.empty(len(X), dtype=np.bool_)
        if holes.any():
            near[holes], distances[holes], equal[holes] = self._with_holes.nearest_or_equal(X[holes])
        if not holes.all():
            near[~holes], distances[~holes] = self._nearest(X[~holes])
            equal[~holes] = distances[~holes] == 0
        return near, distances, equal

    def _nearest(self, X: FloatArray) -> tuple[IndexArray, FloatArray]:
        """The nearest fitted rows of rows without holes.

        Parts are asked in the order of their boxes' distances, each only for rows that it may be nearest to; ties go to
        the row that comes first in the table.
        """
        bounds = self._box_squares(self.frame.scale(X))
        best, found = np.full(len(X), np.inf), np.full(len(X), np.iinfo(np.int64).max, dtype=np.int64)
        for turn in np.argsort(bounds, axis=1, kind="stable").T:
            open_ = bounds[np.arange(len(X)), turn] <= best * _SLACK
            if not open_.any():
                break
            for part in np.unique(turn[open_]):
                asking = np.flatnonzero(open_ & (turn == part))
                names, squares = self._tree(part).nearest_squares(X[asking], 1)
                _keep_first(best, found, asking, squares[:, 0], names[:, 0])
        return np.searchsorted(open_array(self.numbers), found), self.frame.lengths_of(best)

    def _box_squares(self, exact: FloatArray) -> FloatArray:
        """Squared distances of rows to the boxes of all parts, in the frame's units: no row of a part is nearer."""
        low, high = self._boxes
        squares = np.empty((len(exact), len(low)))
        for part in range(len(low)):
            gap = np.maximum(np.maximum(low[part] - exact, exact - high[part]), 0.0)
            squares[:, part] = np.einsum("ij,ij->i", gap, gap) / _SLACK
        return squares


def _keep_first(
    best: FloatArray, found: IndexArray, asking: IndexArray, squares: FloatArray, names: IndexArray
) -> None:
    """Take over what comes before what is held: the nearer, and among those as near the first of the table."""
    first = (squares < best[asking]) | ((squares == best[asking]) & (names < found[asking]))
    best[asking[first]], found[asking[first]] = squares[first], names[first]
