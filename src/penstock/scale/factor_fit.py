"""Fit detectors that factorise on a cluster, with checkpoints."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from penstock._blas import one_blas_thread
from penstock._types import Factors, FloatArray, IndexArray, SparseMatrix, Tree
from penstock.detectors import Copies, FactorModel, LaplacianNSNMF
from penstock.factor import Auto, BlockSGD, Coordinate, RowBlocks
from penstock.factor.blocks import BlockCoupling, BlockExecutor, RowBlock, State, cut_graph
from penstock.factor.loop import Outcome
from penstock.factor.objectives import nmf
from penstock.factor.placement import settle_rows
from penstock.factor.solve import BlockProblem, fit_by_blocks
from penstock.factor.start import draw_seed, draws_from
from penstock.graph.search import LazySearch
from penstock.graph.similarities import neighbor_mean
from penstock.scale.cluster import Cluster
from penstock.scale.executor import DaskExecutor, save_block
from penstock.scale.job import Job, fitted_file, fitted_rows, in_table_order
from penstock.scale.model_files import save_model
from penstock.scale.plan import Plan, group_count, settled_plan
from penstock.scale.tree import LaidRows
from penstock.scale.workspace import Workspace, open_array, open_arrays, read_json, save_array, save_arrays, write_json
from penstock.scoring import residual_scores


@dataclass(frozen=True)
class FactorJob(Job):
    """For detectors that factorise."""

    def _counts_as(self) -> tuple[int, int]:
        return self.source.n_columns, self.detector.n_components

    def _plan(self, n: int) -> Plan:
        p, n_components = self._counts_as()
        return settled_plan(self.space / "plan.json", self.cluster, n, p, n_components, self.n_parts)

    def _learn(self, laid: LaidRows, plan: Plan, copies: Copies, tree: Tree | None) -> FloatArray:
        detector, space, parts = self.detector, self.space, laid.parts
        task = detector.pose(fitted_rows(space, copies.kept), copies, tree)
        objective = task.problem.objective
        blocks, coupling = make_blocks(space, parts, copies.kept, objective.S)
        n_groups = group_count(self.cluster, objective.n_rows, task.n_components, len(blocks))
        executor = DaskExecutor(self.cluster, space, self.name, blocks, n_groups)
        with one_blas_thread():  # as on one machine: the norms of the objective are sums
            problem = BlockProblem(executor, coupling, objective.terms)
        settings = block_settings(detector.solver, len(parts))
        limits = detector.max_iter, detector.tol, self._seed()
        H, outcome = Factorisation(self.cluster, space, executor).solve(problem, task.n_components, settings, *limits)
        if not (laid.high > 0).any():  # as on one machine: solvers that come near 0 but not down to it
            H = np.zeros_like(H)
        found = score_training_rows(executor, coupling, Scoring(H, task.structural, task.settle))
        places = [np.searchsorted(copies.kept, open_array(space / f"part-{part}" / "numbers.npy")) for part in parts]
        W = in_table_order(space, "weights", places, executor.gather("W"))
        scores = in_table_order(space, "scores", places, found)
        if task.settle:
            outcome = replace(outcome, objective=float(np.vdot(scores, scores)))
        search = None if task.settle else LazySearch(objective.A)
        detector.install(FactorModel(copies, task.problem, Factors(W, H), search, tree), outcome, complete=True)
        return np.asarray(scores)[copies.copy_of]

    def _seed(self) -> int:
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
        detector, space, model = self.detector, self.space, self.detector.model_
        if model.search is None:
            return
        numbers = space / "fitted.npy"
        save_array(numbers, model.copies.kept)
        detector.model_ = replace(model, search=laid.search(numbers, fitted_file(space, model.copies.kept, laid.n)))
        save_model(space / "model", model.problem)


_CHECKPOINT_EVERY = 5  # iterations: the line of tasks that a lost worker would cost
_CHECKPOINT_SECONDS = 60.0

Settings = Auto | RowBlocks | BlockSGD


def block_settings(solver: Any, n_blocks: int) -> Settings:
    """The settings by which a detector's solver works by blocks."""
    if solver == "auto":
        return Auto(n_blocks=n_blocks)
    if isinstance(solver, Auto):
        return replace(solver, n_blocks=n_blocks)
    if isinstance(solver, Coordinate):
        return RowBlocks(n_blocks, solver.profile_passes)
    if isinstance(solver, RowBlocks | BlockSGD):
        return replace(solver, n_blocks=n_blocks)
    raise ValueError(
        f"{type(solver).__name__} does not work by blocks of rows. Use solver='auto', Auto(), Coordinate(), "
        f"RowBlocks() or BlockSGD()."
    )


def refuse_solver(detector: Any) -> None:
    """Raise if a detector's solver cannot work on a cluster: at once, and not when the tree is grown."""
    settings = block_settings(detector.solver, 1)
    if not isinstance(settings, BlockSGD):
        return
    if isinstance(detector, LaplacianNSNMF):
        raise ValueError("Block SGD is for NMF, SNMF and NS-NMF: no Laplacian term, no bounded rows of H.")
    if settings.blocks != "space":
        raise ValueError("On a cluster blocks are made of near rows: say BlockSGD(blocks='space').")


def asked_blocks(solver: Any) -> int | None:
    """How many blocks a solver asks for itself."""
    asked: int | None = getattr(solver, "n_blocks", None)
    return asked


def make_blocks(
    space: Workspace, parts: Sequence[int], kept: IndexArray, S: SparseMatrix | None
) -> tuple[list[tuple[Path, Path]], BlockCoupling]:
    """The similarities cut along the parts, in files; and how the blocks are coupled."""
    numbers = [np.array(open_array(space / f"part-{part}" / "numbers.npy")) for part in parts]
    bounds = np.array([0, *accumulate(len(part) for part in numbers)])
    blocks, coupling = cut_graph(S, np.searchsorted(kept, np.concatenate(numbers)), bounds)
    places = []
    for part, block in zip(parts, blocks, strict=True):
        folder = space / f"block-{part}"
        save_block(folder, block)
        places.append((folder, space / f"part-{part}" / "rows.npy"))
    return places, coupling


class Factorisation:
    """A run on a cluster: solved, or taken up where a checkpoint left it."""

    def __init__(self, cluster: Cluster, space: Workspace, executor: DaskExecutor) -> None:
        self._cluster, self._space, self._executor = cluster, space, executor
        self._saved_at, self._since = time.monotonic(), _CHECKPOINT_EVERY  # the end of the starts is kept at once
        self._file = space / "checkpoint.json"

    def solve(
        self, problem: BlockProblem, n_components: int, settings: Settings, max_iter: int, tol: float, seed: int
    ) -> tuple[FloatArray, Outcome]:
        return fit_by_blocks(
            problem,
            n_components,
            settings,
            max_iter,
            tol,
            seed,
            progress=lambda iteration, _: self._cluster.report("factorising", iteration, max_iter),
            checkpoint=self._checkpoint,
            resume=self._resume(),
        )

    def _checkpoint(self, snapshot: Mapping[str, Any]) -> None:
        """Every few iterations, states and snapshot in files; the snapshot last, since it says that all is there."""
        self._since += 1
        if self._since < _CHECKPOINT_EVERY and time.monotonic() - self._saved_at < _CHECKPOINT_SECONDS:
            return
        folder = self._executor.save("states")
        arrays = {key: value for key, value in snapshot.items() if isinstance(value, np.ndarray)}
        save_arrays(folder / "driver", arrays)
        rest = {key: value for key, value in snapshot.items() if key not in arrays}
        write_json(self._file, {"folder": folder.name, "snapshot": rest})
        for older in self._space.folder.glob("states-*"):
            if older != folder:
                shutil.rmtree(older, ignore_errors=True)
        self._since, self._saved_at = 0, time.monotonic()

    def _resume(self) -> dict[str, Any] | None:
        if not self._file.exists():
            return None
        known = read_json(self._file)
        folder = self._space / known["folder"]
        self._executor.restore(folder)
        arrays = {name: np.array(values) for name, values in open_arrays(folder / "driver").items()}
        return {**known["snapshot"], **arrays}


@dataclass(frozen=True)
class Scoring:
    """How: a row against its own weights, against its neighbours', or (`settle`) against the best there are for H.

    The last is for rows that are independent of each other: then a new row that equals one of them has its weights.
    """

    H: FloatArray
    structural: bool
    settle: bool


def score_training_rows(executor: BlockExecutor, coupling: BlockCoupling, scoring: Scoring) -> list[FloatArray]:
    """The scores of every block's rows; afterwards the executor holds nothing but W."""
    borders = coupling.borders(executor.each(offer_weights))
    return executor.each(score_block, scoring, apart=[(border,) for border in borders])


def offer_weights(block: RowBlock, state: State) -> tuple[State, FloatArray]:
    """The weights of the rows that other blocks have to know."""
    return state, state["W"][block.offers]


def score_block(block: RowBlock, state: State, scoring: Scoring, border: FloatArray) -> tuple[State, FloatArray]:
    W, scores = state["W"], np.empty(block.n)
    if scoring.settle:
        W = np.concatenate([_settled(rows, scoring.H) for _, rows in _chunks(block)])
    used = neighbor_mean(np.concatenate([W, border]), _with_border(block, len(border))) if scoring.structural else W
    for start, rows in _chunks(block):
        scores[start : start + len(rows)] = residual_scores(rows, used[start : start + len(rows)], scoring.H)
    return {"W": W}, scores


def _chunks(block: RowBlock) -> Iterator[tuple[int, FloatArray]]:
    assert block.rows is not None
    return block.rows.chunks()


def _settled(rows: FloatArray, H: FloatArray) -> FloatArray:
    return settle_rows(nmf(rows), Factors(np.zeros((1, len(H))), H), rows)


def _with_border(block: RowBlock, n_border: int) -> sparse.csr_array:
    """The block's share of S with empty rows for the border."""
    n = block.n + n_border
    indptr = np.concatenate([block.indptr, np.full(n_border, block.indptr[-1])])
    return sparse.csr_array((block.data, block.indices, indptr), shape=(n, n))
