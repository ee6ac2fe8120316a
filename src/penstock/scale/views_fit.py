"""`penstock.Detector` on a cluster: its views, learnt as `penstock.views.composite.learn_composite` learns them.

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

from penstock._types import FloatArray, IndexArray, Tree
from penstock.detectors.recommended import Detector
from penstock.factor.start import draw_seed, draws_from
from penstock.graph.approximate import Approximation
from penstock.graph.edges import tree_among
from penstock.graph.partition import sample_size
from penstock.graph.search import SearchWhenAsked
from penstock.scale import _view_tasks as tasks
from penstock.scale.adoption import fitted_file, fitted_rows
from penstock.scale.cluster import Cluster
from penstock.scale.laid_rows import LaidRows
from penstock.scale.medians import middle_values
from penstock.scale.model_files import save_views
from penstock.scale.plan import Plan
from penstock.scale.rows import cut_into_parts, merged_sample
from penstock.scale.runs import Runs
from penstock.scale.workspace import (
    Workspace,
    create_array,
    load_arrays,
    open_array,
    save_array,
    save_arrays,
)
from penstock.views.composite import COARSE, FINE, NO_STANDARDS, Composite, counted, total_of
from penstock.views.encoding import LogEncoding, encoding_of, unit_of
from penstock.views.joining import Joining, join_rows
from penstock.views.margins import Margins, empty_bins, with_counts, with_usual
from penstock.views.sampling import Sampling, draw_nodes


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
            sums = self.runs.each("adding up columns", "add-units", tasks.add_units, file, n, unit)
            mean = np.concatenate(sums).sum(axis=0) / n
            sums = self.runs.each("adding up squares", "add-squares", tasks.add_squares, file, n, unit, mean)
            spread = np.sqrt(np.concatenate(sums).sum(axis=0) / n)
            lower, upper = middle_values(self.runs, file, n, low, high)
            save_arrays(folder, vars(encoding_of(low, high, (lower / unit + upper / unit) / 2, spread)))
        return tasks.load_encoding(folder)

    def _logged(self, m: int) -> LaidRows:
        """The different rows, encoded, in a folder of their own that is laid out as that of all rows."""
        space, size = Workspace(self.space / "logged"), sample_size(self.plan.n_parts)
        done, samples = space / "sample.npy", space / "samples"
        if not done.exists():
            samples.mkdir(parents=True, exist_ok=True)
            create_array(space / "rows.npy", (m, len(self.laid.low)))
            apart = [(size, samples / f"{start}.npy") for start in self.runs.starts(m)]
            given = (self.space / "encoding", space / "rows.npy")
            found = self.runs.each("encoding rows", "encode", tasks.encode, self._file_of_kept, m, *given, apart=apart)
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
            found = self.runs.each("counting readings", "count-bins", tasks.count_bins, file, n, encoding, empty)
            save_arrays(bins, vars(with_counts(nothing, np.sum(found, axis=0))))
        if not done.exists():
            sums = self.runs.each("adding up surprises", "add-surprises", tasks.add_surprises, file, n, encoding, bins)
            save_arrays(done, vars(with_usual(tasks.load_margins(bins), np.concatenate(sums).sum(axis=0))))
        return tasks.load_margins(done)

    def _draws(self, logged: LaidRows, random_state: Any) -> tuple[Sampling, Sampling]:
        folder = self.space / "draws"
        if not folder.exists():
            rng, rows = np.random.default_rng(draw_seed(draws_from(random_state))), open_rows(logged)
            coarse, fine = (draw_nodes(rows, *how, rng) for how in (COARSE, FINE))
            drawn = {"coarse_members": coarse.members, "coarse_nodes": coarse.nodes}
            save_arrays(folder, {**drawn, "fine_members": fine.members, "fine_nodes": fine.nodes})
        return tasks.load_draws(folder)

    def _raw(self, plain: Joining, logged: Joining) -> tuple[FloatArray, ...]:
        """What `Composite.own_raw` gives; the views that look at rows themselves do so in tasks."""
        done, folder, m = self.space / "values.npy", self.space / "values", len(plain.own)
        if not done.exists():
            folder.mkdir(exist_ok=True)
            file, given = self.space / "logged" / "rows.npy", (self.space / "draws", self.space / "margins")
            apart = [(folder / f"{start}.npy",) for start in self.runs.starts(m)]
            self.runs.each("looking at rows", "view", tasks.view, file, m, *given, apart=apart)
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


def adopt_views(detector: Detector, views: Composite, parts: FloatArray) -> None:
    """Give a detector its views and the parts of its rows, from which its scores follow."""
    detector._views, detector.parts_ = views, parts
    detector._conclude(total_of(counted(parts)), np.ones(len(parts)))


def read_into_memory(detector: Detector) -> None:
    """Let the detector do without the folder."""
    views, tree = detector._views, detector.tree_
    rows = np.array(views.plain.search.rows())
    encoded = views.encoding.apply(rows)
    detector._views = replace(
        views,
        plain=replace(views.plain, search=SearchWhenAsked(rows)),
        logged=replace(views.logged, search=SearchWhenAsked(encoded)),
    )
    detector.tree_ = Tree(np.array(tree.edges), np.array(tree.lengths))
