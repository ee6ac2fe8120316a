"""The steps of a fit on a cluster that all detectors share: rows, parts, tree, and the fitted detector."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from penstock._types import FloatArray, IndexArray, Tree
from penstock.detectors import NMF, NSNMF, Copies, Detector, LaplacianNSNMF
from penstock.graph.approximate import Approximation
from penstock.prepare import MinMaxScaling
from penstock.scale.cluster import Cluster
from penstock.scale.plan import Plan, check_memory_of_driver
from penstock.scale.rows import Extents, cut_into_parts, measure, scale_rows
from penstock.scale.sources import Source
from penstock.scale.tree import LaidRows
from penstock.scale.workspace import Workspace, create_array, fill_rows, open_array


@dataclass(frozen=True)
class Job(ABC):
    """From a source to a fitted detector, for each kind of detector in its own way."""

    cluster: Cluster
    space: Workspace
    name: str  # part of every task's name, so that two runs on a cluster do not meet, be it of the same job
    detector: Any
    source: Source
    n_parts: int | None
    tree: Literal["exact", "approximate"] | Approximation

    def run(self, *, keeps_files: bool, table: Any) -> None:
        detector, (p, n_components) = self.detector, self._counts_as()
        extents = measure(self.cluster, self.space, self.name, self.source)
        check_memory_of_driver(extents.n_rows, p, n_components, keeps_files=keeps_files)
        vars(detector).pop("tree_excess_", None)
        detector.begin_fit(extents.n_rows, extents.minimum, extents.maximum, self.source.columns)
        plan = self._plan(extents.n_rows)
        laid = self._prepare_rows(extents, plan)
        copies = Copies.from_originals(self._originals(laid))
        tree = self._tree(laid) if detector.needs.tree else None
        scores = self._learn(laid, plan, copies, tree)
        if keeps_files:
            self._leave_in_files(laid)
        else:
            detector.model_ = detector.model_.in_memory()
        detector.finish_fit(scores, table=table)

    @abstractmethod
    def _counts_as(self) -> tuple[int, int]:
        """How many columns and components there are to be kept of each row."""

    @abstractmethod
    def _plan(self, n: int) -> Plan: ...

    @abstractmethod
    def _learn(self, laid: LaidRows, plan: Plan, copies: Copies, tree: Tree | None) -> FloatArray:
        """Install the model of rows that are cut into parts, and return their scores; arrays may stay in files."""

    @abstractmethod
    def _leave_in_files(self, laid: LaidRows) -> None:
        """Let the detector work from the folder, where workers find it too."""

    def _prepare_rows(self, extents: Extents, plan: Plan) -> LaidRows:
        """The rows, scaled and cut into parts."""
        cluster, space, n = self.cluster, self.space, extents.n_rows
        scaling = self.detector.scaling_
        sample = scale_rows(
            cluster,
            space,
            self.name,
            self.source,
            extents,
            scaling,
            plan.n_parts,
            needs_nonnegative=self.detector.needs.nonnegative,
        )
        parts = cut_into_parts(cluster, space, self.name, n, sample, plan, self.detector.needs.merge_copies)
        return LaidRows(space, parts, n, *rows_range(extents, scaling))

    def _originals(self, laid: LaidRows) -> IndexArray:
        """For each row the first one that equals it, or itself if copies are not merged."""
        original = np.arange(laid.n)
        if self.detector.needs.merge_copies:
            for part in laid.parts:
                copies = open_array(self.space / f"part-{part}" / "copies.npy").reshape(-1, 2)
                original[copies[:, 0]] = copies[:, 1]
        return original

    def _tree(self, laid: LaidRows) -> Tree:
        approximate = self._approximation()
        tree = laid.tree(self.cluster, self.name, approximate)
        if approximate is not None:
            self.detector.tree_excess_ = laid.excess(approximate)
        return tree

    def _approximation(self) -> Approximation | None:
        if self.tree == "exact":
            return None
        return self.tree if isinstance(self.tree, Approximation) else Approximation()


def rows_range(extents: Extents, scaling: MinMaxScaling | None) -> tuple[FloatArray, FloatArray]:
    """What the columns of the scaled rows range over."""
    ends = np.array([extents.minimum, extents.maximum])
    low, high = ends if scaling is None else scaling.apply(ends)
    return low, high


_ROWS_AT_ONCE = 1 << 16
SUPPORTED = (Detector, NSNMF, LaplacianNSNMF, NMF)


def refuse_unsupported(detector: Any) -> None:
    """Raise if a detector cannot be fitted on a cluster."""
    if not isinstance(detector, SUPPORTED):
        names = ", ".join(kind.__name__ for kind in SUPPORTED)
        raise TypeError(f"{type(detector).__name__} cannot be fitted on a cluster; those that can: {names}.")


def fitted_rows(space: Workspace, kept: IndexArray) -> FloatArray:
    """The rows that are fitted, in the order of the table, in a file that is read as it is used."""
    everything: FloatArray = open_array(space / "rows.npy")
    file = fitted_file(space, kept, len(everything))
    if file == space / "rows.npy":
        return everything
    create_array(file, (len(kept), everything.shape[1]))
    for start in range(0, len(kept), _ROWS_AT_ONCE):
        fill_rows(file, start, everything[kept[start : start + _ROWS_AT_ONCE]])
    rows: FloatArray = open_array(file)
    return rows


def fitted_file(space: Workspace, kept: IndexArray, n: int) -> Path:
    """The file of `fitted_rows`: that of the whole table of n rows, if all of them are kept."""
    return space / ("rows.npy" if len(kept) == n else "kept.npy")


def in_table_order(space: Workspace, name: str, parts: Sequence[IndexArray], values: Sequence[Any]) -> FloatArray:
    """What blocks have found for their rows, in the order of the fitted rows, in a file.

    `parts` are each block's rows by their place among the fitted ones.
    """
    n, shape = sum(len(part) for part in parts), np.shape(values[0])[1:]
    file = space / f"{name}.npy"
    file.unlink(missing_ok=True)
    create_array(file, (n, *shape))
    everything = np.load(file, mmap_mode="r+")
    for part, found in zip(parts, values, strict=True):
        everything[part] = found
    everything.flush()
    result: FloatArray = open_array(file)
    return result
