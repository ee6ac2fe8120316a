"""Fit `penstock.Detector` on a cluster, as `penstock.detectors.views.learn_composite` does on one machine.

To the last bit: sums are those of the same blocks of rows, medians are found exactly, and trees are exact. The driver
holds a few numbers of each row, and never the rows.
"""

from __future__ import annotations

import copy
import shutil
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock._types import FloatArray, Tree
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
from penstock.graph.partition import sample_distinct, sample_size
from penstock.scale.cluster import Cluster
from penstock.scale.plan import Plan
from penstock.scale.rows import Extent, Runs, cut_into_parts, joint_extent, load_rows, merge_sample_files
from penstock.scale.tree import LaidRows
from penstock.scale.workspace import (
    Workspace,
    create_array,
    fill_rows,
    load_arrays,
    map_arrays,
    open_array,
    save_array,
    save_arrays,
)

_MOST_PICKED = 1024  # readings of a column near its median that are sent to the driver
_FEWEST_BINS, _MOST_BINS = 16, 2048
_STAGE = "looking for medians"
_ARRAYS = [field.name for field in fields(Joining) if field.name != "search"]


def fit_views(
    cluster: Cluster, laid: LaidRows, random_state: Any, plan: Plan, copies: Copies, tree: Tree, *, keeps_files: bool
) -> ViewsModel:
    """Return the model of rows that are cut into parts."""
    runs = Runs.settled(laid.space / "runs.json", cluster, laid.n, plan)
    views, parts = ViewsFit(runs, laid, plan, copies).learn(tree, random_state)
    model = ViewsModel(copies, tree, views, parts)
    return model if keeps_files else model.in_memory()


@dataclass(frozen=True)
class ViewsFit:
    """The views of rows in a folder, each step kept there."""

    runs: Runs
    laid: LaidRows
    plan: Plan
    copies: Copies

    def learn(self, tree: Tree, random_state: Any) -> tuple[Composite, FloatArray]:
        """Compute the views, and the parts of all rows, given the spanning tree of all rows.

        Large arrays are in files, and rows are searched by the trees of parts.
        """
        space, kept = self.laid.space, self.copies.kept
        rows = self.laid.fitted_rows(kept)
        encoding = self._encoding()
        logged = self.logged_rows()
        encoded = open_array(logged.space / "rows.npy")
        margins, sampled = self._margins(logged), self._draws(encoded, random_state)
        log_tree = logged.tree(_encoded_too(self.runs.cluster))
        plain = join_rows(rows, tree_among(tree, kept), sampled.times)
        log = join_rows(encoded, log_tree, sampled.times)
        views = Composite(encoding, plain, log, sampled, margins, NO_STANDARDS)
        views, parts = views.on_their_scale(self._raw(plain, log), self.copies.copy_of)
        plain = _in_files(space / "model" / "plain", views.plain, self.laid.search(kept))
        log = _in_files(space / "model" / "logged", views.logged, logged.search(np.arange(logged.n)))
        return replace(views, plain=plain, logged=log), parts

    def _encoding(self) -> LogEncoding:
        """Learnt from all rows, copies and all."""
        laid, folder = self.laid, self.laid.space / "encoding"
        if not folder.exists():
            file, n, low, high = laid.space / "rows.npy", laid.n, laid.low, laid.high
            unit = unit_of(low, high)
            sums = self.runs.each("adding up columns", add_units, file, n, unit)
            mean = np.concatenate(sums).sum(axis=0) / n
            sums = self.runs.each("adding up squares", add_squares, file, n, unit, mean)
            spread = np.sqrt(np.concatenate(sums).sum(axis=0) / n)
            lower, upper = middle_values(self.runs, file, n, low, high)
            save_arrays(folder, vars(encoding_of(low, high, (lower / unit + upper / unit) / 2, spread)))
        return LogEncoding(**load_arrays(folder))

    def logged_rows(self) -> LaidRows:
        """Encode the different rows, in a folder of their own that is laid out as that of all rows."""
        space, kept, m = Workspace(self.laid.space / "logged"), self.copies.kept, len(self.copies.kept)
        if not (space / "sample.npy").exists():
            (space / "samples").mkdir(parents=True, exist_ok=True)
            create_array(space / "rows.npy", (m, len(self.laid.low)))
            size = sample_size(self.plan.n_parts)
            files = [space / "samples" / f"{start}.npy" for start in self.runs.starts(m)]
            common = self.laid.space / "encoding", space / "rows.npy", size
            found = self.runs.each(
                "encoding rows", encode, self.laid.fitted_file(kept), m, *common, apart=[(file,) for file in files]
            )
            extent = joint_extent(found)
            save_arrays(space / "range", {"low": extent.minimum, "high": extent.maximum})
            merge_sample_files(files, size, space / "sample.npy")
        parts = cut_into_parts(_encoded_too(self.runs.cluster), space, self.plan, merge_copies=True)
        return LaidRows(space, parts, m, **load_arrays(space / "range"))

    def _margins(self, logged: LaidRows) -> Margins:
        """Learnt from all rows, copies and all."""
        space, n = self.laid.space, self.laid.n
        done, empty, bins = space / "margins", space / "empty-bins", space / "bins"
        file, encoding = space / "rows.npy", space / "encoding"
        if not bins.exists():
            nothing = empty_bins(n, logged.low, logged.high)
            save_arrays(empty, vars(nothing))
            found = self.runs.each("counting readings", count_bins, file, n, encoding, empty)
            save_arrays(bins, vars(with_counts(nothing, np.sum(found, axis=0))))
        if not done.exists():
            sums = self.runs.each("adding up surprises", add_surprises, file, n, encoding, bins)
            usual = with_usual(Margins(**load_arrays(bins)), np.concatenate(sums).sum(axis=0))
            save_arrays(done, vars(usual))
        return Margins(**load_arrays(done))

    def _draws(self, encoded: FloatArray, random_state: Any) -> Sampling:
        folder = self.laid.space / "draws"
        if not folder.exists():
            rng = np.random.default_rng(draw_seed(draws_from(random_state)))
            drawn = draw_nodes(encoded, self.copies.copy_of, rng)
            save_arrays(folder, {field.name: getattr(drawn, field.name) for field in fields(Sampling)})
        return Sampling(**load_arrays(folder))

    def _raw(self, plain: Joining, logged: Joining) -> tuple[FloatArray, ...]:
        """Compute what `Composite.own_raw` gives; the views that look at rows themselves do so in tasks."""
        space = self.laid.space
        done, folder, m = space / "values.npy", space / "values", len(plain.own)
        if not done.exists():
            folder.mkdir(exist_ok=True)
            files = [folder / f"{start}.npy" for start in self.runs.starts(m)]
            common = space / "logged" / "rows.npy", m, space / "draws", space / "margins"
            self.runs.each("looking at rows", view, *common, apart=[(file,) for file in files])
            save_array(done, np.concatenate([np.load(file) for file in files]))
            shutil.rmtree(folder, ignore_errors=True)
        coarse, fine, marginal = (np.ascontiguousarray(values) for values in open_array(done).T)
        return coarse, fine, plain.values(plain.own_places()), logged.values(logged.own_places()), marginal


def _in_files(folder: Path, joining: Joining, search: Any) -> Joining:
    """Return the joining with its arrays in files, for workers to open instead of being sent, and another search."""
    return replace(joining, search=search, **map_arrays(folder, {name: getattr(joining, name) for name in _ARRAYS}))


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


def encode(
    file: Path, start: int, stop: int, encoding: Path, encoded_file: Path, sampled: int, sample_file: Path
) -> Extent:
    """Task: encode a run of rows into its place, leave a sample of it in a file, and return its extent."""
    encoded = LogEncoding(**load_arrays(encoding)).apply(load_rows(file, start, stop))
    fill_rows(encoded_file, start, encoded)
    save_array(sample_file, sample_distinct(encoded, sampled))
    return Extent.of(encoded)


def count_bins(file: Path, start: int, stop: int, encoding: Path, bins: Path) -> FloatArray:
    """Task: the histograms of a run's readings."""
    rows = LogEncoding(**load_arrays(encoding)).apply(load_rows(file, start, stop))
    return count_readings(Margins(**load_arrays(bins)), rows)


def add_surprises(file: Path, start: int, stop: int, encoding: Path, bins: Path) -> FloatArray:
    """Task: `sums_of_surprises` of a run of rows."""
    rows = LogEncoding(**load_arrays(encoding)).apply(load_rows(file, start, stop))
    return sums_of_surprises(Margins(**load_arrays(bins)), rows)


def view(encoded_file: Path, start: int, stop: int, draws: Path, margins: Path, file: Path) -> None:
    """Task: the coarse, fine and marginal views of a run of fitted rows, each as if it came last."""
    if file.exists():
        return
    encoded, nothing = load_rows(encoded_file, start, stop), np.zeros(stop - start)
    at_home = Places(np.arange(start, stop), nothing, nothing)
    coarse, fine = Sampling(**load_arrays(draws)).values(encoded, at_home)
    marginal = Margins(**load_arrays(margins)).values(encoded, encoded, nothing + 1.0)
    save_array(file, np.column_stack([coarse, fine, marginal]))


Keys = NDArray[np.uint64]
_LAST = np.iinfo(np.uint64).max
_SIGN = np.uint64(1 << 63)


def middle_values(runs: Runs, file: Path, n: int, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Find the two values in the middle of each column (the same one if n is odd), given the columns' ranges.

    Numbers are counted by whole ones in the same order, of which each column has as many as there are numbers between
    its ends. Counting readings in bins tells in which the middle is; that one is cut into bins in turn, until few
    readings are left.
    """
    first, second, columns = (n - 1) // 2, n // 2, np.arange(len(low))
    least, most = keys_of(low), keys_of(high)
    below, inside = np.zeros(len(low), dtype=np.int64), np.full(len(low), n)
    bins = max(_FEWEST_BINS, min(_MOST_BINS, runs.n_rows // 64))  # keeps results of tasks smaller than their rows
    while ((inside > _MOST_PICKED) & (least < most)).any():
        counts = np.zeros((len(low), bins), dtype=np.int64)
        for some in runs.each(_STAGE, count_keys, file, n, least, most, bins):
            counts += some
        ends = counts.cumsum(axis=1)
        chosen = (ends <= (first - below)[:, None]).sum(axis=1)
        inside = counts[columns, chosen]
        below += ends[columns, chosen] - inside
        widths = bin_widths(least, most, bins)
        steps = chosen.astype(np.uint64) * widths
        room = np.minimum(widths - np.uint64(1), most - least - steps)
        least, most = least + steps, least + steps + room
    found = runs.each(_STAGE, pick_keys, file, n, least, most)
    above = np.min([next_one for _, next_one in found], axis=0)
    middle = np.empty((2, len(low)), dtype=np.uint64)
    for d in columns:
        picked = np.sort(np.concatenate([keys[d] for keys, _ in found])) if least[d] < most[d] else least[[d]]
        for place, rank in enumerate((first - below[d], second - below[d])):
            middle[place, d] = picked[min(rank, len(picked) - 1)] if rank < inside[d] else above[d]
    lower, upper = np.where(middle & _SIGN, middle ^ _SIGN, ~middle).view(np.float64)  # keys back to floats
    return lower, upper


def keys_of(values: FloatArray) -> Keys:
    """Map floats to whole numbers in the same order, one for each float that exists."""
    bits = (values + 0.0).view(np.uint64)  # there is but one zero
    return np.where(bits & _SIGN, ~bits, bits | _SIGN)


def bin_widths(least: Keys, most: Keys, bins: int) -> Keys:
    """Compute how many keys make one of so many bins, the first from `least`, the last to `most`."""
    return (most - least) // np.uint64(bins) + np.uint64(1)


def count_keys(file: Path, start: int, stop: int, least: Keys, most: Keys, bins: int) -> NDArray[np.uint32]:
    """Count each column's keys in bins, (p, bins)."""
    counts = np.zeros((len(least), bins), dtype=np.uint32)
    widths = bin_widths(least, most, bins)
    for d, column in enumerate(load_rows(file, start, stop).T):
        keys = keys_of(column)
        inside = keys[(keys >= least[d]) & (keys <= most[d])]
        counts[d] = np.bincount(((inside - least[d]) // widths[d]).astype(np.intp), minlength=bins)
    return counts


def pick_keys(file: Path, start: int, stop: int, least: Keys, most: Keys) -> tuple[list[Keys], Keys]:
    """Return each column's keys from `least` to `most`, unless these are the same, and the next one above."""
    picked, above = [], np.full(len(least), _LAST)
    for d, column in enumerate(load_rows(file, start, stop).T):
        keys = keys_of(column)
        above[d] = keys[keys > most[d]].min(initial=_LAST)
        picked.append(keys[(keys >= least[d]) & (keys <= most[d])] if least[d] < most[d] else keys[:0])
    return picked, above
