"""A detector fitted on a Dask cluster: the same detector, the same answer, more rows."""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np

import penstock
from penstock._parameters import check_choice, check_whole_number
from penstock._types import Factors, FloatArray, IndexArray, Tree
from penstock.detectors import NMF, Detector
from penstock.detectors._base import BaseDetector
from penstock.detectors._input import pandas_index
from penstock.detectors._undo import restored_if_it_fails
from penstock.factor.start import draw_seed, draws_from
from penstock.factor.terms import Terms
from penstock.graph.approximate import Approximation, approximate_spanning_tree
from penstock.graph.search import SearchWhenAsked
from penstock.prepare import MinMaxScaling
from penstock.scale.adoption import adopt, fitted_rows, in_table_order, refuse_unsupported
from penstock.scale.cluster import Cluster, use_cluster
from penstock.scale.crew import DaskCrew
from penstock.scale.factorise import Factorisation, asked_blocks, block_settings, make_blocks, refuse_solver
from penstock.scale.laid_rows import LaidRows
from penstock.scale.model_files import save_model
from penstock.scale.plan import (
    MOST_PARTS,
    Plan,
    check_disk,
    check_memory_of_driver,
    check_pieces,
    group_count,
    settled_plan,
)
from penstock.scale.progress import Progress, terminal_progress
from penstock.scale.rows import Extents, cut_into_parts, measure, scale_rows
from penstock.scale.runs import settled_runs
from penstock.scale.sources import Source, open_source
from penstock.scale.training_scores import Scoring, score_training_rows
from penstock.scale.views_fit import ViewsFit, adopt_views, read_into_memory
from penstock.scale.workspace import (
    SOURCE_FOLDER,
    Workspace,
    open_array,
    open_workspace,
    read_json,
    save_array,
    write_json,
)

AnyDetector = TypeVar("AnyDetector", bound=BaseDetector)
_VIEWS_COUNT_AS = 4  # components: what the driver keeps of each row


def fit(
    detector: AnyDetector,
    source: Any,
    client: Any = None,
    *,
    folder: str | Path | None = None,
    columns: Sequence[str] | None = None,
    n_parts: int | None = None,
    tree: Literal["exact", "approximate"] | Approximation = "exact",
    progress: Progress | None = None,
) -> AnyDetector:
    """Fit a detector on a Dask cluster, and return it.

    It is then fitted as by its own `fit`: scores, thresholds, explanations, `save` and all else work as ever. The tree
    is the same to the last bit, and so are the scores of a `Detector`; a factorisation is that of the same detector
    with ``solver=Auto(n_blocks=…)`` (or its own solver by blocks) on one machine.

    Parameters
    ----------
    detector : Detector, NSNMF, LaplacianNSNMF or NMF
        Is changed, as `fit` changes it; left as it was should anything fail.
    source
        Parquet files (a path, a folder, a list), a Zarr array or its path, a Dask array or dataframe, or a table in
        memory. Missing values are refused.
    client : distributed.Client, optional
        By default workers are started on this machine, one for each core, and closed at the end.
    folder : path, optional
        Where the job keeps its files. All workers must see it under this path. If a run is cut short, the same call
        with the same folder goes on from there; afterwards the detector's large arrays are read from it, so it must
        stay. By default a temporary folder on this machine is used and the result is read into memory.
    columns : list of str, optional
        The columns to use, where the source has names.
    n_parts : int, optional
        Into how many parts the rows are cut; by default as many as keep workers busy and fit into their memory.
    tree : {"exact", "approximate"} or Approximation
        "approximate" (or an `Approximation` that says how hard to look) settles for part trees that may be a little
        longer; `tree_excess_` then says by what share they were longer on a sample of the rows.
    progress : callable, optional
        Called with (what is done, how many of its tasks are done, how many there are). By default a bar on a terminal,
        nothing elsewhere.

    Examples
    --------
    >>> import numpy as np
    >>> from penstock import NSNMF, scale
    >>> X = np.random.default_rng(0).normal(size=(500, 4))
    >>> X[11] += 9
    >>> with scale.local_client(n_workers=1) as client:
    ...     detector = scale.fit(NSNMF(n_components=2, random_state=0), X, client)
    >>> detector.top(1).index.tolist()
    [11]
    """
    refuse_unsupported(detector)
    if not isinstance(detector, Detector):
        refuse_solver(detector)
    n_parts = _asked_parts(detector, n_parts)
    if not isinstance(tree, Approximation):
        check_choice("tree", tree, ("exact", "approximate"))
    with (
        restored_if_it_fails(detector),
        terminal_progress(progress) as report,
        open_workspace(folder) as space,
        use_cluster(client, report) as cluster,
    ):
        detector._check_parameters()
        cluster.check()
        cluster.check_sees(space.folder)
        job = _open_job(cluster, space, detector, source, columns, n_parts, tree)
        job.run(keeps_files=folder is not None)
        detector._row_labels = pandas_index(source)
    return detector


def _asked_parts(detector: Any, n_parts: int | None) -> int | None:
    """How many parts are asked for, by the caller or by the solver's blocks, which are one and the same."""
    blocks = None if isinstance(detector, Detector) else asked_blocks(detector.solver)
    if n_parts is None:
        return blocks
    check_whole_number("n_parts", n_parts, least=1)
    if n_parts > MOST_PARTS:
        raise ValueError(f"n_parts must be at most {MOST_PARTS:,}, but is {n_parts:,}: pairs of parts are tasks.")
    if blocks is not None and blocks != n_parts:
        raise ValueError(f"Parts are the blocks of the solver: n_parts = {n_parts}, but its n_blocks = {blocks}.")
    return n_parts


@dataclass(frozen=True)
class _Job(ABC):
    """From a source to a fitted detector, for each kind of detector in its own way."""

    cluster: Cluster
    space: Workspace
    name: str  # part of every task's name, so that two runs on a cluster do not meet, be it of the same job
    detector: Any
    source: Source
    n_parts: int | None
    tree: Literal["exact", "approximate"] | Approximation

    def run(self, *, keeps_files: bool) -> None:
        detector, (p, n_components) = self.detector, self._counts_as()
        extents = measure(self.cluster, self.space, self.name, self.source)
        check_memory_of_driver(extents.n_rows, p, n_components, keeps_files=keeps_files)
        self._open_door(extents)
        plan = self._plan(extents.n_rows)
        laid = self._prepare_rows(extents, plan)
        detector._note_copies(self._originals(laid))
        if self._has_tree():
            detector.tree_ = self._tree(laid)
        self._learn(laid, plan)
        if keeps_files:
            self._leave_in_files(laid)
        else:
            self._read_into_memory()

    @abstractmethod
    def _has_tree(self) -> bool: ...

    @abstractmethod
    def _merges_copies(self) -> bool: ...

    @abstractmethod
    def _counts_as(self) -> tuple[int, int]:
        """How many columns and components there are to be kept of each row."""

    @abstractmethod
    def _plan(self, n: int) -> Plan: ...

    @abstractmethod
    def _learn(self, laid: LaidRows, plan: Plan) -> None:
        """Fit the detector to rows that are cut into parts, whose tree it has; large arrays may stay in files."""

    @abstractmethod
    def _leave_in_files(self, laid: LaidRows) -> None:
        """Let the detector work from the folder, where workers find it too."""

    @abstractmethod
    def _read_into_memory(self) -> None:
        """Let the detector do without the folder."""

    def _open_door(self, extents: Extents) -> None:
        """What a detector notes of a table when it comes in."""
        detector = self.detector
        detector._check_row_count(extents.n_rows)
        detector.n_features_in_ = self.source.n_columns
        for name in ("feature_names_in_", "tree_excess_"):
            vars(detector).pop(name, None)
        if self.source.columns is not None:
            detector.feature_names_in_ = np.array(self.source.columns, dtype=object)
        detector._row_labels = None
        scaled = detector.scale == "minmax"
        detector.scaling_ = MinMaxScaling(extents.minimum, extents.maximum) if scaled else None

    def _prepare_rows(self, extents: Extents, plan: Plan) -> LaidRows:
        """The rows, scaled and cut into parts."""
        cluster, space, n = self.cluster, self.space, extents.n_rows
        scaling, unfit = self.detector.scaling_, self.detector._needs_nonnegative
        sample = scale_rows(
            cluster, space, self.name, self.source, extents, scaling, plan.n_parts, needs_nonnegative=unfit
        )
        parts = cut_into_parts(cluster, space, self.name, n, sample, plan, self._merges_copies())
        return LaidRows(space, parts, n, *rows_range(extents, scaling))

    def _originals(self, laid: LaidRows) -> IndexArray:
        """For each row the first one that equals it, or itself if copies are not merged."""
        original = np.arange(laid.n)
        if self._merges_copies():
            for part in laid.parts:
                copies = open_array(self.space / f"part-{part}" / "copies.npy").reshape(-1, 2)
                original[copies[:, 0]] = copies[:, 1]
        return original

    def _tree(self, laid: LaidRows) -> Tree:
        approximate = self._approximation()
        tree = laid.tree(self.cluster, self.name, approximate)
        if approximate is not None:
            sample = open_array(self.space / "sample.npy")
            self.detector.tree_excess_ = approximate_spanning_tree(
                sample, **vars(approximate), sample_size=len(sample)
            ).excess
        return tree

    def _approximation(self) -> Approximation | None:
        if self.tree == "exact":
            return None
        return self.tree if isinstance(self.tree, Approximation) else Approximation()


@dataclass(frozen=True)
class _FactorJob(_Job):
    """For detectors that factorise."""

    def _has_tree(self) -> bool:
        return bool(self.detector._has_graph)

    def _merges_copies(self) -> bool:
        return bool(self.detector._merges_copies)

    def _counts_as(self) -> tuple[int, int]:
        return self.source.n_columns, self.detector.n_components

    def _plan(self, n: int) -> Plan:
        p, n_components = self._counts_as()
        return settled_plan(self.space / "plan.json", self.cluster, n, p, n_components, self.n_parts)

    def _learn(self, laid: LaidRows, plan: Plan) -> None:
        detector = self.detector
        rows = fitted_rows(self.space, detector._kept)
        detector._problem = detector._pose(rows)
        detector.n_components_ = detector._usable_components(*rows.shape)
        self._factorise(laid.parts, is_zero=not (laid.high > 0).any())

    def _factorise(self, parts: Sequence[int], *, is_zero: bool) -> None:
        detector, space = self.detector, self.space
        objective = detector._problem.objective
        blocks, wiring = make_blocks(space, parts, detector._kept, objective.S)
        n_groups = group_count(self.cluster, objective.n_rows, detector.n_components_, len(blocks))
        crew = DaskCrew(self.cluster, space, self.name, blocks, n_groups)
        solution = Factorisation(self.cluster, space, crew).solve(
            wiring,
            Terms.of(objective),
            detector.n_components_,
            block_settings(detector.solver, len(parts)),
            detector.max_iter,
            detector.tol,
            self._seed(),
        )
        if is_zero:  # as on one machine: solvers that come near 0 but not down to it, where H = 0 is exact
            solution = replace(solution, H=np.zeros_like(solution.H))
        settle = isinstance(detector, NMF)
        structural = getattr(detector, "_score_kind", "residual") == "structural"
        scores = score_training_rows(crew, wiring, Scoring(solution.H, structural, settle))
        places = [np.searchsorted(detector._kept, open_array(space / f"part-{part}" / "numbers.npy")) for part in parts]
        W = in_table_order(space, "weights", places, crew.gather("W"))
        found = in_table_order(space, "scores", places, scores)
        adopt(detector, Factors(W, solution.H), solution, found)
        if settle:
            detector.objective_ = float(np.vdot(found, found))

    def _seed(self) -> Any:
        """The detector's seed, or one drawn from its source of random numbers and kept.

        A run that is taken up again must draw the same.
        """
        if isinstance(self.detector.random_state, int | np.integer):
            return int(self.detector.random_state)
        file = self.space / "seed.json"
        if not file.exists():
            write_json(file, {"seed": draw_seed(draws_from(self.detector.random_state)) % 2**32})
        return int(read_json(file)["seed"])

    def _leave_in_files(self, laid: LaidRows) -> None:
        """New rows are searched for in the parts' trees, and workers open the rest from the folder."""
        detector, space = self.detector, self.space
        if not self._has_tree():
            return
        numbers, rows = space / "fitted.npy", space / ("rows.npy" if len(detector._kept) == laid.n else "kept.npy")
        save_array(numbers, detector._kept)
        detector._tree = laid.search(numbers, rows)
        save_model(space / "model", detector)

    def _read_into_memory(self) -> None:
        detector, problem = self.detector, self.detector._problem
        rows = np.array(problem.objective.A)
        detector._problem = replace(problem, objective=replace(problem.objective, A=rows))
        detector._factors = Factors(np.array(detector._factors.W), detector._factors.H)
        if self._has_tree():
            detector._tree = SearchWhenAsked(rows)
            detector.tree_ = Tree(np.array(detector.tree_.edges), np.array(detector.tree_.lengths))


@dataclass(frozen=True)
class _ViewsJob(_Job):
    """For `penstock.Detector`."""

    def _has_tree(self) -> bool:
        return True

    def _merges_copies(self) -> bool:
        return True

    def _counts_as(self) -> tuple[int, int]:
        return 2 * self.source.n_columns, _VIEWS_COUNT_AS  # rows are kept as they are, and encoded

    def _plan(self, n: int) -> Plan:
        file = self.space / "plan.json"
        if not file.exists():
            check_disk(self.space.folder, n, *self._counts_as())
        return settled_plan(file, self.cluster, n, self.source.n_columns, 0, self.n_parts)

    def _learn(self, laid: LaidRows, plan: Plan) -> None:
        detector = self.detector
        runs = settled_runs(self.space / "runs.json", self.cluster, laid.n, plan)
        views = ViewsFit(runs, self.space, laid, plan, detector._kept, detector._copy_of)
        adopt_views(detector, *views.learn(detector.tree_, detector.random_state, self._approximation()))

    def _leave_in_files(self, laid: LaidRows) -> None:
        pass  # its views are there already

    def _read_into_memory(self) -> None:
        read_into_memory(self.detector)


def _open_job(
    cluster: Cluster,
    space: Workspace,
    detector: Any,
    source: Any,
    columns: Sequence[str] | None,
    n_parts: int | None,
    tree: Literal["exact", "approximate"] | Approximation,
) -> _Job:
    opened = open_source(source, columns=columns, folder=space / SOURCE_FOLDER)
    check_pieces(cluster, opened)
    asked = {
        "detector": type(detector).__name__,
        **{f"parameter {name}": _shown(value) for name, value in sorted(detector.get_params(deep=False).items())},
        "source": opened.signature,
        "n_parts": n_parts,
        "tree": repr(tree),
        "penstock": penstock.__version__,
    }
    space.begin(asked)
    kind = _ViewsJob if isinstance(detector, Detector) else _FactorJob
    return kind(cluster, space, secrets.token_hex(3), detector, opened, n_parts, tree)


def _shown(value: Any) -> str:
    """A parameter as text that is the same in the next process: not the address of a source of random numbers."""
    return type(value).__name__ if isinstance(value, np.random.RandomState | np.random.Generator) else repr(value)


def rows_range(extents: Extents, scaling: MinMaxScaling | None) -> tuple[FloatArray, FloatArray]:
    """What the columns of the scaled rows range over."""
    ends = np.array([extents.minimum, extents.maximum])
    low, high = ends if scaling is None else scaling.apply(ends)
    return low, high
