"""Fit `penstock.Detector` on a cluster.

To the last bit: sums are those of the same blocks of rows, medians are found exactly, and trees are exact. The driver
holds a few numbers of each row, and never the rows.
"""

from __future__ import annotations

import copy
import secrets
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock._types import FloatArray, IndexArray, Tree
from penstock.detectors import Copies, ViewsModel
from penstock.detectors.views import (
    COARSE,
    FINE,
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
from penstock.graph.approximate import Approximation
from penstock.graph.edges import tree_among
from penstock.graph.partition import sample_distinct, sample_size
from penstock.scale.cluster import Cluster
from penstock.scale.job import Job, fitted_file, fitted_rows
from penstock.scale.model_files import load_draws, load_encoding, load_margins, save_views
from penstock.scale.plan import Plan, check_disk, settled_plan
from penstock.scale.rows import Extent, Runs, cut_into_parts, extent_of, load_rows, merged_sample, settled_runs
from penstock.scale.tree import LaidRows
from penstock.scale.workspace import (
    Workspace,
    create_array,
    fill_rows,
    load_arrays,
    open_array,
    save_array,
    save_arrays,
)


@dataclass(frozen=True)
class ViewsFit:
    """The views of rows that lie in a folder, each step kept there.

    kept, copy_of : the rows that are different from all before them, and which of these each row equals.
    """

    runs: Runs
    space: Workspace
    laid: LaidRows
    plan: Plan
    kept: IndexArray
    copy_of: IndexArray

    def learn(self, tree: Tree, random_state: Any, approximate: Approximation | None) -> tuple[Composite, FloatArray]:
        """The views, and the parts of all rows, given the spanning tree of all rows.

        Rows are searched by the trees of parts, in the folder.
        """
        rows = fitted_rows(self.space, self.kept)
        encoding = self._encoding()
        logged = self._logged(len(rows))
        margins, draws = self._margins(logged), self._draws(logged, random_state)
        log_tree = logged.tree(encoded_too(self.runs.cluster), secrets.token_hex(3), approximate)
        plain, log = join_rows(rows, tree_among(tree, self.kept)), join_rows(open_rows(logged), log_tree)
        views = Composite(encoding, plain, log, *draws, margins, NO_STANDARDS)
        views, parts = views.on_their_scale(self._raw(plain, log), self.copy_of)
        save_views(self.space / "model", views)
        return self._searched(views, logged), parts

    def excess(self, approximate: Approximation) -> float:
        """Of the tree of encoded rows, once views are learnt."""
        return self._logged(len(self.kept)).excess(approximate)

    def _encoding(self) -> LogEncoding:
        """Learnt from all rows, copies and all."""
        folder = self.space / "encoding"
        if not folder.exists():
            file, n, low, high = self.space / "rows.npy", self.laid.n, self.laid.low, self.laid.high
            unit = unit_of(low, high)
            sums = self.runs.each("adding up columns", "add-units", add_units, file, n, unit)
            mean = np.concatenate(sums).sum(axis=0) / n
            sums = self.runs.each("adding up squares", "add-squares", add_squares, file, n, unit, mean)
            spread = np.sqrt(np.concatenate(sums).sum(axis=0) / n)
            lower, upper = middle_values(self.runs, file, n, low, high)
            save_arrays(folder, vars(encoding_of(low, high, (lower / unit + upper / unit) / 2, spread)))
        return load_encoding(folder)

    def _logged(self, m: int) -> LaidRows:
        """The different rows, encoded, in a folder of their own that is laid out as that of all rows."""
        space, size = Workspace(self.space / "logged"), sample_size(self.plan.n_parts)
        done, samples = space / "sample.npy", space / "samples"
        if not done.exists():
            samples.mkdir(parents=True, exist_ok=True)
            create_array(space / "rows.npy", (m, len(self.laid.low)))
            apart = [(size, samples / f"{start}.npy") for start in self.runs.starts(m)]
            given = (self.space / "encoding", space / "rows.npy")
            found = self.runs.each("encoding rows", "encode", encode, self._file_of_kept, m, *given, apart=apart)
            low, high = np.min([run.minimum for run in found], axis=0), np.max([run.maximum for run in found], axis=0)
            save_arrays(space / "range", {"low": low, "high": high})
            save_array(done, merged_sample([sample for _, sample in apart], size))
            shutil.rmtree(samples, ignore_errors=True)
        cluster, sample = encoded_too(self.runs.cluster), np.array(open_array(done))
        parts = cut_into_parts(cluster, space, secrets.token_hex(3), m, sample, self.plan, merge_copies=True)
        return LaidRows(space, parts, m, **load_arrays(space / "range"))

    def _margins(self, logged: LaidRows) -> Margins:
        """Learnt from all rows, copies and all."""
        done, empty, bins = self.space / "margins", self.space / "empty-bins", self.space / "bins"
        file, n, encoding = self.space / "rows.npy", self.laid.n, self.space / "encoding"
        if not bins.exists():
            nothing = empty_bins(n, logged.low, logged.high)
            save_arrays(empty, vars(nothing))
            found = self.runs.each("counting readings", "count-bins", count_bins, file, n, encoding, empty)
            save_arrays(bins, vars(with_counts(nothing, np.sum(found, axis=0))))
        if not done.exists():
            sums = self.runs.each("adding up surprises", "add-surprises", add_surprises, file, n, encoding, bins)
            save_arrays(done, vars(with_usual(load_margins(bins), np.concatenate(sums).sum(axis=0))))
        return load_margins(done)

    def _draws(self, logged: LaidRows, random_state: Any) -> tuple[Sampling, Sampling]:
        folder = self.space / "draws"
        if not folder.exists():
            rng, rows = np.random.default_rng(draw_seed(draws_from(random_state))), open_rows(logged)
            coarse, fine = (draw_nodes(rows, *how, rng) for how in (COARSE, FINE))
            drawn = {"coarse_members": coarse.members, "coarse_nodes": coarse.nodes}
            save_arrays(folder, {**drawn, "fine_members": fine.members, "fine_nodes": fine.nodes})
        return load_draws(folder)

    def _raw(self, plain: Joining, logged: Joining) -> tuple[FloatArray, ...]:
        """What `Composite.own_raw` gives; the views that look at rows themselves do so in"""
        done, folder, m = self.space / "values.npy", self.space / "values", len(plain.own)
        if not done.exists():
            folder.mkdir(exist_ok=True)
            file, given = self.space / "logged" / "rows.npy", (self.space / "draws", self.space / "margins")
            apart = [(folder / f"{start}.npy",) for start in self.runs.starts(m)]
            self.runs.each("looking at rows", "view", view, file, m, *given, apart=apart)
            save_array(done, np.concatenate([np.load(one) for (one,) in apart]))
            shutil.rmtree(folder, ignore_errors=True)
        coarse, fine, marginal = (np.ascontiguousarray(values) for values in open_array(done).T)
        return coarse, fine, plain.values(plain.own_places()), logged.values(logged.own_places()), marginal

    def _searched(self, views: Composite, logged: LaidRows) -> Composite:
        """With searches by the parts' trees."""
        numbers, log_numbers = self.space / "fitted.npy", logged.space / "fitted.npy"
        save_array(numbers, self.kept)
        save_array(log_numbers, np.arange(logged.n))
        return replace(
            views,
            plain=replace(views.plain, search=self.laid.search(numbers, self._file_of_kept)),
            logged=replace(views.logged, search=logged.search(log_numbers, logged.space / "rows.npy")),
        )

    @property
    def _file_of_kept(self) -> Path:
        return fitted_file(self.space, self.kept, self.laid.n)


def open_rows(laid: LaidRows) -> FloatArray:
    rows: FloatArray = open_array(laid.space / "rows.npy")
    return rows


def encoded_too(cluster: Cluster) -> Cluster:
    """The cluster, telling that what it does it does to encoded rows: it has done the same before."""
    again, report = copy.copy(cluster), cluster.report
    again.report = lambda stage, done, total: report(f"{stage} (encoded)", done, total)
    return again


_VIEWS_COUNT_AS = 4  # components: what the driver keeps of each row


@dataclass(frozen=True)
class ViewsJob(Job):
    """For `penstock.Detector`."""

    def _counts_as(self) -> tuple[int, int]:
        return 2 * self.source.n_columns, _VIEWS_COUNT_AS  # rows are kept as they are, and encoded

    def _plan(self, n: int) -> Plan:
        file = self.space / "plan.json"
        if not file.exists():
            check_disk(self.space.folder, n, *self._counts_as())
        return settled_plan(file, self.cluster, n, self.source.n_columns, 0, self.n_parts)

    def _learn(self, laid: LaidRows, plan: Plan, copies: Copies, tree: Tree | None) -> FloatArray:
        assert tree is not None
        detector, approximate = self.detector, self._approximation()
        runs = settled_runs(self.space / "runs.json", self.cluster, laid.n, plan)
        fit = ViewsFit(runs, self.space, laid, plan, copies.kept, copies.copy_of)
        views, parts = fit.learn(tree, detector.random_state, approximate)
        if approximate is not None:
            detector.tree_excess_ = max(detector.tree_excess_, fit.excess(approximate))
        scores: FloatArray = detector.install(ViewsModel(copies, tree, views, parts))
        return scores

    def _leave_in_files(self, laid: LaidRows) -> None:
        pass  # its views are there already


def add_units(file: Path, start: int, stop: int, unit: FloatArray) -> FloatArray:
    return sums_in_units(load_rows(file, start, stop), unit)


def add_squares(file: Path, start: int, stop: int, unit: FloatArray, mean: FloatArray) -> FloatArray:
    return sums_of_squares(load_rows(file, start, stop), unit, mean)


def encode(
    file: Path, start: int, stop: int, encoding: Path, encoded_file: Path, sampled: int, sample_file: Path
) -> Extent:
    """Encode a run of rows into its place, leave a sample of it in a file, and tell what it ranges over."""
    encoded = load_encoding(encoding).apply(load_rows(file, start, stop))
    fill_rows(encoded_file, start, encoded)
    save_array(sample_file, sample_distinct(encoded, sampled))
    return extent_of(encoded)


def count_bins(file: Path, start: int, stop: int, encoding: Path, bins: Path) -> FloatArray:
    """The histograms of a run's readings."""
    return count_readings(load_margins(bins), load_encoding(encoding).apply(load_rows(file, start, stop)))


def add_surprises(file: Path, start: int, stop: int, encoding: Path, bins: Path) -> FloatArray:
    return sums_of_surprises(load_margins(bins), load_encoding(encoding).apply(load_rows(file, start, stop)))


def view(encoded_file: Path, start: int, stop: int, draws: Path, margins: Path, file: Path) -> None:
    """What the coarse, the fine and the marginal view say of a run of fitted rows, each as if it came last."""
    if file.exists():
        return
    encoded, nothing = load_rows(encoded_file, start, stop), np.zeros(stop - start)
    at_home = Places(np.arange(start, stop), nothing, nothing)
    values = [*(draw.values(encoded, at_home) for draw in load_draws(draws)), load_margins(margins).values(encoded)]
    save_array(file, np.column_stack(values))


_MOST_PICKED = 1024  # readings of a column near its median that are sent to the driver
_FEWEST_BINS, _MOST_BINS = 16, 2048
_STAGE = "looking for medians"


def middle_values(runs: Runs, file: Path, n: int, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The two values in the middle of each column (one and the same if n is odd), given what the columns range over.

    Numbers are counted by whole ones in the same order, of which each column has as many as there are numbers between
    its ends. Counting readings in bins tells in which the middle is; that one is cut into bins in turn, until few
    readings are left.
    """
    first, second, columns = (n - 1) // 2, n // 2, np.arange(len(low))
    least, most = keys_of(low), keys_of(high)
    below, inside = np.zeros(len(low), dtype=np.int64), np.full(len(low), n)
    bins = max(_FEWEST_BINS, min(_MOST_BINS, runs.n_rows // 64))  # what tasks tell stays small beside their rows
    while ((inside > _MOST_PICKED) & (least < most)).any():
        counts = np.zeros((len(low), bins), dtype=np.int64)
        for some in runs.each(_STAGE, "count-keys", count_keys, file, n, least, most, bins):
            counts += some
        ends = counts.cumsum(axis=1)
        chosen = (ends <= (first - below)[:, None]).sum(axis=1)
        inside = counts[columns, chosen]
        below += ends[columns, chosen] - inside
        widths = bin_widths(least, most, bins)
        steps = chosen.astype(np.uint64) * widths
        room = np.minimum(widths - np.uint64(1), most - least - steps)
        least, most = least + steps, least + steps + room
    found = runs.each(_STAGE, "pick-keys", pick_keys, file, n, least, most)
    above = np.min([next_one for _, next_one in found], axis=0)
    middle = np.empty((2, len(low)), dtype=np.uint64)
    for d in columns:
        picked = np.sort(np.concatenate([keys[d] for keys, _ in found])) if least[d] < most[d] else least[[d]]
        for place, rank in enumerate((first - below[d], second - below[d])):
            middle[place, d] = picked[min(rank, len(picked) - 1)] if rank < inside[d] else above[d]
    lower, upper = values_of(middle)
    return lower, upper


Keys = NDArray[np.uint64]
_LAST = np.iinfo(np.uint64).max
_SIGN = np.uint64(1 << 63)


def keys_of(values: FloatArray) -> Keys:
    """Whole numbers in the order of the values, one for each number that there is.

    >>> keys = keys_of(np.array([-1.0, -0.0, 0.0, 5e-324, 2.0]))
    >>> [int(later - sooner) for sooner, later in zip(keys[1:3], keys[2:4])], bool(keys[0] < keys[1] < keys[4])
    ([0, 1], True)
    """
    bits = (values + 0.0).view(np.uint64)  # there is but one zero
    return np.where(bits & _SIGN, ~bits, bits | _SIGN)


def values_of(keys: Keys) -> FloatArray:
    """The values again.

    >>> values_of(keys_of(np.array([-3.5, 0.0, 1e300]))).tolist()
    [-3.5, 0.0, 1e+300]
    """
    return np.where(keys & _SIGN, keys ^ _SIGN, ~keys).view(np.float64)


def bin_widths(least: Keys, most: Keys, bins: int) -> Keys:
    """How many keys make one of so many bins, of which the first begins at `least` and the last reaches `most`."""
    return (most - least) // np.uint64(bins) + np.uint64(1)


def count_keys(file: Path, start: int, stop: int, least: Keys, most: Keys, bins: int) -> NDArray[np.uint32]:
    """(p, bins): how many of each column's keys are in which bin."""
    counts = np.zeros((len(least), bins), dtype=np.uint32)
    widths = bin_widths(least, most, bins)
    for d, column in enumerate(load_rows(file, start, stop).T):
        keys = keys_of(column)
        inside = keys[(keys >= least[d]) & (keys <= most[d])]
        counts[d] = np.bincount(((inside - least[d]) // widths[d]).astype(np.intp), minlength=bins)
    return counts


def pick_keys(file: Path, start: int, stop: int, least: Keys, most: Keys) -> tuple[list[Keys], Keys]:
    """Each column's keys from `least` to `most`, unless these are one and the same, and the next one above."""
    picked, above = [], np.full(len(least), _LAST)
    for d, column in enumerate(load_rows(file, start, stop).T):
        keys = keys_of(column)
        above[d] = keys[keys > most[d]].min(initial=_LAST)
        picked.append(keys[(keys >= least[d]) & (keys <= most[d])] if least[d] < most[d] else keys[:0])
    return picked, above
