"""Rows that lie in a folder, cut into parts: their spanning tree, and the search for the nearest of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from penstock._types import FloatArray, Tree
from penstock.graph.approximate import Approximation, approximate_spanning_tree
from penstock.graph.parts import common_frame
from penstock.graph.points import Frame
from penstock.scale.cluster import Cluster
from penstock.scale.parts_search import PartsSearch
from penstock.scale.tree import grow_tree
from penstock.scale.workspace import Workspace, open_array, open_arrays, save_arrays


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
