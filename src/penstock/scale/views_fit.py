"""Fit `penstock.Detector` on a cluster, as it is fitted on one machine.

To the last bit: sums are those of the same blocks of rows, medians are found exactly, and trees are exact. The driver
holds a few numbers of each row, and never the rows.
"""

from __future__ import annotations

import copy
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from penstock._types import FloatArray, IndexArray, Tree
from penstock.detectors import Copies, ViewsModel
from penstock.detectors.views import (
    NO_STANDARDS,
    Composite,
    Joining,
    LogEncoding,
    Margins,
    Places,
    Sampling,
    count_readings,
    draw_nodes,
    empty_bins,
    encoding_of,
    join_rows,
    sums_in_units,
    sums_of_squares,
    sums_of_surprises,
    unit_of,
    with_counts,
    with_usual,
)
from penstock.factor.start import draw_seed, draws_from
from penstock.graph.edges import tree_among
from penstock.graph.partition import sample_size
from penstock.scale.cluster import Cluster
from penstock.scale.plan import Plan
from penstock.scale.rows import Extent, Samples, cut_into_parts, joint_extent, load_rows, read_column
from penstock.scale.tree import LaidRows
from penstock.scale.workspace import Workspace, create_array, fields_of, fill_rows, load_arrays, open_array, save_arrays


def fit_views(
    cluster: Cluster, laid: LaidRows, random_state: Any, plan: Plan, copies: Copies, tree: Tree, *, keeps_files: bool
) -> ViewsModel:
    """Return the model of rows that are cut into parts."""
    views, parts = ViewsFit(cluster, laid, plan, copies).fit(tree, random_state)
    model = ViewsModel(copies, tree, views, parts)
    return model if keeps_files else model.in_memory()


@dataclass(frozen=True)
class ViewsFit:
    """The views of rows in a folder, each step kept there."""

    cluster: Cluster
    laid: LaidRows
    plan: Plan
    copies: Copies

    def fit(self, tree: Tree, random_state: Any) -> tuple[Composite, FloatArray]:
        """Compute the views, and the parts of all rows, given the spanning tree of all rows.

        Large arrays are in files, and rows are searched by the trees of parts.
        """
        kept = self.copies.kept
        rows = self.laid.fitted_rows(kept)
        encoding = self._encoding()
        logged = self.logged_rows()
        encoded = open_array(logged.space / "rows.npy")
        margins, sampled = self._margins(logged), self._draws(encoded, random_state)
        log_tree = logged.tree(_encoded_too(self.cluster))
        plain = join_rows(rows, tree_among(tree, kept), sampled.times)
        log = join_rows(encoded, log_tree, sampled.times)
        views = Composite(encoding, plain, log, sampled, margins, NO_STANDARDS)
        return views.on_their_scale(self._raw(plain, log), self.copies.copy_of)

    def _each(self, stage: str, work: Callable[..., Any], file: Path, n: int, *common: Any) -> list[Any]:
        """Run ``work(file, start, stop, *common)`` for each run of the n rows of a file."""
        size = self.plan.task_rows
        tasks = [(file, start, min(start + size, n), *common) for start in range(0, n, size)]
        return self.cluster.run(stage, work, tasks)

    def _encoding(self) -> LogEncoding:
        """Fitted to all rows, copies and all."""
        file, n, low, high = self.laid.space / "rows.npy", self.laid.n, self.laid.low, self.laid.high

        def make() -> dict[str, Any]:
            unit = unit_of(low, high)
            sums = self._each("adding up columns", add_units, file, n, unit)
            mean = np.concatenate(sums).sum(axis=0) / n
            sums = self._each("adding up squares", add_squares, file, n, unit, mean)
            spread = np.sqrt(np.concatenate(sums).sum(axis=0) / n)
            lower, upper = middle_values(self.cluster, file, len(low))
            return fields_of(encoding_of(low, high, (lower / unit + upper / unit) / 2, spread))

        return LogEncoding(**self.laid.space.keep("encoding", make, in_memory=True))

    def logged_rows(self) -> LaidRows:
        """Encode the different rows, in a folder of their own that is laid out as that of all rows."""
        space, kept, m = Workspace(self.laid.space / "logged"), self.copies.kept, len(self.copies.kept)

        def make() -> dict[str, Any]:
            space.folder.mkdir(exist_ok=True)
            create_array(space / "rows.npy", (m, len(self.laid.low)))
            samples = Samples(space / "samples", sample_size(self.plan.n_parts))
            common = self.laid.space / "encoding", space / "rows.npy", samples
            found = self._each("encoding rows", encode, self.laid.fitted_file(kept), m, *common)
            extent = joint_extent(found)
            return samples.merge() | {"low": extent.minimum, "high": extent.maximum}

        laid = space.keep("laid", make, in_memory=True)
        parts = cut_into_parts(_encoded_too(self.cluster), space, self.plan, merge_copies=True)
        return LaidRows(space, parts, m, laid["low"], laid["high"])

    def _margins(self, logged: LaidRows) -> Margins:
        """Fitted to all rows, copies and all."""
        space, n = self.laid.space, self.laid.n
        file, encoding = space / "rows.npy", space / "encoding"

        def count() -> dict[str, Any]:
            nothing = empty_bins(n, logged.low, logged.high)
            save_arrays(space / "empty-bins", fields_of(nothing))
            found = self._each("counting readings", count_bins, file, n, encoding, space / "empty-bins")
            return fields_of(with_counts(nothing, np.sum(found, axis=0)))

        def add() -> dict[str, Any]:
            sums = self._each("adding up surprises", add_surprises, file, n, encoding, space / "bins")
            return fields_of(with_usual(Margins(**bins), np.concatenate(sums).sum(axis=0)))

        bins = space.keep("bins", count, in_memory=True)
        return Margins(**space.keep("margins", add, in_memory=True))

    def _draws(self, encoded: FloatArray, random_state: Any) -> Sampling:
        def make() -> dict[str, Any]:
            rng = np.random.default_rng(draw_seed(draws_from(random_state)))
            drawn = draw_nodes(encoded, self.copies.copy_of, rng)
            return fields_of(drawn)

        return Sampling(**self.laid.space.keep("draws", make, in_memory=True))

    def _raw(self, plain: Joining, logged: Joining) -> tuple[FloatArray, ...]:
        """Compute what `Composite.own_raw` gives; the views that look at rows themselves do so in tasks."""
        space, m = self.laid.space, len(plain.own)

        def make() -> dict[str, Any]:
            folder = space / "looked-at"  # the longest step: finished runs are kept
            folder.mkdir(exist_ok=True)
            common = space / "logged" / "rows.npy", m, space / "draws", space / "margins", folder
            runs = [load_arrays(run) for run in self._each("looking at rows", view, *common)]
            shutil.rmtree(folder)
            return {name: np.concatenate([run[name] for run in runs]) for name in runs[0]}

        views = space.keep("views", make)
        joined = plain.values(plain.own_places()), logged.values(logged.own_places())
        return views["coarse"], views["fine"], *joined, views["marginal"]


def _encoded_too(cluster: Cluster) -> Cluster:
    """Return the cluster with reports that name encoded rows: each stage was done for plain rows before."""
    again, report = copy.copy(cluster), cluster.report
    again.report = lambda stage, done, total: report(f"{stage} (encoded)", done, total)
    return again


def add_units(file: Path, start: int, stop: int, unit: FloatArray) -> FloatArray:
    """Task: `sums_in_units` of a run of rows."""
    return sums_in_units(load_rows(file, start, stop), unit)


def add_squares(file: Path, start: int, stop: int, unit: FloatArray, mean: FloatArray) -> FloatArray:
    """Task: `sums_of_squares` of a run of rows."""
    return sums_of_squares(load_rows(file, start, stop), unit, mean)


def encode(file: Path, start: int, stop: int, encoding: Path, encoded_file: Path, samples: Samples) -> Extent:
    """Task: encode a run of rows into its place, leave a sample of it, and return its extent."""
    encoded = LogEncoding(**load_arrays(encoding)).apply(load_rows(file, start, stop))
    fill_rows(encoded_file, start, encoded)
    samples.draw(start, encoded)
    return Extent.of(encoded)


def count_bins(file: Path, start: int, stop: int, encoding: Path, bins: Path) -> FloatArray:
    """Task: the histograms of a run's readings."""
    rows = LogEncoding(**load_arrays(encoding)).apply(load_rows(file, start, stop))
    return count_readings(Margins(**load_arrays(bins)), rows)


def add_surprises(file: Path, start: int, stop: int, encoding: Path, bins: Path) -> FloatArray:
    """Task: `sums_of_surprises` of a run of rows."""
    rows = LogEncoding(**load_arrays(encoding)).apply(load_rows(file, start, stop))
    return sums_of_surprises(Margins(**load_arrays(bins)), rows)


def view(encoded_file: Path, start: int, stop: int, draws: Path, margins: Path, folder: Path) -> Path:
    """Task: the coarse, fine and marginal views of a run of fitted rows, each as if it came last, in a folder."""
    run = folder / str(start)
    if not run.exists():
        encoded, nothing = load_rows(encoded_file, start, stop), np.zeros(stop - start)
        at_home = Places(np.arange(start, stop), nothing, nothing)
        coarse, fine = Sampling(**load_arrays(draws)).values(encoded, at_home)
        marginal = Margins(**load_arrays(margins)).values(encoded, encoded, nothing + 1.0)
        save_arrays(run, {"coarse": coarse, "fine": fine, "marginal": marginal})
    return run


def middle_values(cluster: Cluster, file: Path, n_columns: int) -> FloatArray:
    """Find the two values in the middle of each column, (2, p); the same one twice if the number of rows is odd."""
    groups = np.array_split(np.arange(n_columns), min(n_columns, cluster.n_threads))
    found = cluster.run("looking for medians", middle_of_columns, [(file, group) for group in groups])
    return np.concatenate(found, axis=1)


def middle_of_columns(file: Path, columns: IndexArray) -> FloatArray:
    """Task: the two values in the middle of some columns; one column at a time is in memory."""
    n = len(open_array(file))
    ranks = [(n - 1) // 2, n // 2]
    found = [np.partition(read_column(file, column), ranks)[ranks] for column in columns]
    return np.column_stack(found) + 0.0  # there is but one zero
