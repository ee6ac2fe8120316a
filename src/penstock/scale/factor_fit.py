"""Fit detectors that factorise on a cluster, with checkpoints.

Blocks of rows are kept in the memory of the workers by `DaskExecutor`; solvers are those of one machine.
"""

from __future__ import annotations

import pickle
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from penstock._threads import one_blas_thread
from penstock._types import Factors, FloatArray, IndexArray, SparseMatrix, Tree
from penstock.detectors import NSNMF, ClusterPlan, Copies, FactorModel, FactorTask
from penstock.factor import Coordinate, RowBlocks
from penstock.factor.blocks import CHUNK, BlockCoupling, RowBlock, State, Work, cut_graph
from penstock.factor.row_blocks import BlockProblem
from penstock.factor.solve import fit_by_blocks
from penstock.factor.start import draw_seed, draws_from
from penstock.graph.search import RowSearch
from penstock.graph.similarities import neighbor_mean
from penstock.scale.cluster import Cluster
from penstock.scale.plan import group_count
from penstock.scale.tree import LaidRows
from penstock.scale.workspace import Workspace, create_array, load_arrays, open_array, open_arrays, save_arrays
from penstock.scoring import residual_scores

_CHECKPOINT_EVERY = 5  # iterations: the line of tasks that a lost worker would cost
_CHECKPOINT_SECONDS = 60.0


def fit_factors(
    cluster: Cluster,
    laid: LaidRows,
    detector: NSNMF,
    steps: ClusterPlan,
    copies: Copies,
    tree: Tree,
    *,
    keeps_files: bool,
) -> FloatArray:
    """Fit a detector to rows that are cut into parts; return the scores of all training rows."""
    space, parts = laid.space, laid.parts
    rows = laid.fitted_rows(copies.kept)
    assert steps.pose is not None
    task: FactorTask = steps.pose(rows, copies, tree)
    objective = task.problem.objective
    blocks, coupling = make_blocks(space, parts, copies.kept, objective.S)
    n_groups = group_count(cluster, objective.n_rows, task.n_components, len(blocks))
    executor = DaskExecutor(cluster, space, blocks, n_groups)
    with one_blas_thread():  # as on one machine: the norms of the objective are sums
        problem = BlockProblem(executor, coupling, objective.terms)
    checkpoints = Checkpoints(space, executor)
    H, outcome = fit_by_blocks(
        problem,
        task.n_components,
        block_settings(detector.solver, len(parts)),
        detector.max_iter,
        detector.tol,
        _seed(space, detector.random_state),
        progress=lambda iteration, _: cluster.report("factorising", iteration, detector.max_iter),
        checkpoint=checkpoints.save,
        resume=checkpoints.load(),
    )
    if not (laid.high > 0).any():  # as on one machine: solvers come near 0 but not down to it, where H = 0 is exact
        H = np.zeros_like(H)
    borders = coupling.borders(executor.each(offer_weights))
    found = executor.each(score_block, H, task.structural, apart=[(border,) for border in borders])
    places = [np.searchsorted(copies.kept, open_array(space / f"part-{part}" / "numbers.npy")) for part in parts]
    W = in_table_order(space / "weights.npy", places, executor.gather("W"))
    scores = in_table_order(space / "scores.npy", places, found)
    model = FactorModel(copies, rows, task.problem, Factors(W, H), RowSearch(rows), tree)
    steps.install(model if keeps_files else model.in_memory(), outcome, complete=True)
    return np.asarray(scores)[copies.copy_of]


def check_solver(detector: NSNMF) -> None:
    """Raise if a detector's solver cannot work on a cluster: at once, and not when the tree is grown."""
    block_settings(detector.solver, 1)
    if detector.similarity == "path":
        raise ValueError(
            "Blocks of rows on a cluster need the matrix S, which similarity='path' has none of. Fit it on one machine "
            "(engine='local'), or use a similarity of the tree's edges such as 'inverse' or 'normalized'."
        )


def block_settings(solver: Any, n_blocks: int) -> RowBlocks:
    """Return the settings by which a detector's solver works by blocks."""
    if solver == "auto":
        return RowBlocks(n_blocks)
    if isinstance(solver, Coordinate):
        return RowBlocks(n_blocks, solver.profile_passes)
    if isinstance(solver, RowBlocks):
        return replace(solver, n_blocks=n_blocks)
    raise ValueError(
        f"{type(solver).__name__} does not work on a cluster. Use solver='auto', Coordinate() or RowBlocks()."
    )


def make_blocks(
    space: Workspace, parts: Sequence[int], kept: IndexArray, S: SparseMatrix | None
) -> tuple[list[tuple[Path, Path]], BlockCoupling]:
    """Cut the similarities along the parts, into files: for each block their folder and the file of its rows."""
    numbers = [np.array(open_array(space / f"part-{part}" / "numbers.npy")) for part in parts]
    bounds = np.array([0, *accumulate(len(part) for part in numbers)])
    blocks, coupling = cut_graph(S, np.searchsorted(kept, np.concatenate(numbers)), bounds)
    for part, block in zip(parts, blocks, strict=True):
        names = ("indptr", "indices", "data", "offers")  # its rows have a file of their own
        save_arrays(space / f"block-{part}", {name: getattr(block, name) for name in names})
    return [(space / f"block-{part}", space / f"part-{part}" / "rows.npy") for part in parts], coupling


def in_table_order(file: Path, places: Sequence[IndexArray], values: Sequence[Any]) -> FloatArray:
    """Put what blocks have found for their rows into a file, in the order of the fitted rows.

    `places` are each block's rows by their place among the fitted ones.
    """
    file.unlink(missing_ok=True)
    create_array(file, (sum(len(part) for part in places), *np.shape(values[0])[1:]))
    everything = np.load(file, mmap_mode="r+")
    for part, found in zip(places, values, strict=True):
        everything[part] = found
    everything.flush()
    return np.asarray(open_array(file))


def _seed(space: Workspace, random_state: Any) -> int:
    """Return the detector's seed, or one drawn from its source of random numbers and kept for a run that is resumed."""
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    return int(space.keep("seed", lambda: {"seed": draw_seed(draws_from(random_state)) % 2**32})["seed"])


class Checkpoints:
    """Saves a run every few iterations, and finds where the last one left off.

    A checkpoint is a folder of the blocks' states and, written last, of what the driver knows: one without the latter
    is not whole, and is not used.
    """

    def __init__(self, space: Workspace, executor: DaskExecutor) -> None:
        self._space, self._executor = space, executor
        self._saved_at, self._since = time.monotonic(), _CHECKPOINT_EVERY  # the end of the starts is kept at once

    def save(self, snapshot: Mapping[str, Any]) -> None:
        """Save the states of the blocks and the snapshot, if it is time to."""
        self._since += 1
        if self._since < _CHECKPOINT_EVERY and time.monotonic() - self._saved_at < _CHECKPOINT_SECONDS:
            return
        folder = self._executor.save(f"states-{len(snapshot['history']):06d}")
        save_arrays(folder / "driver", snapshot)
        self._executor.leave_only(folder, "states-*")
        self._since, self._saved_at = 0, time.monotonic()

    def load(self) -> dict[str, Any] | None:
        """Load the last snapshot, with the executor's states of that moment; None if there is none."""
        whole = sorted(driver.parent for driver in self._space.folder.glob("states-*/driver"))
        if not whole:
            return None
        self._executor.restore(whole[-1])
        return load_arrays(whole[-1] / "driver")


def offer_weights(block: RowBlock, state: State) -> tuple[State, FloatArray]:
    """Report the weights of the rows that other blocks receive."""
    return state, state["W"][block.offers]


def score_block(
    block: RowBlock, state: State, H: FloatArray, structural: bool, border: FloatArray
) -> tuple[State, FloatArray]:
    """Report the scores of a block's rows, by their own weights or those of their neighbours; leave nothing but W."""
    assert block.rows is not None
    W, scores = state["W"], np.empty(block.n)
    used = W
    if structural:  # the block's share of S, with empty rows for the border
        n = block.n + len(border)
        indptr = np.concatenate([block.indptr, np.full(len(border), block.indptr[-1])])
        S = sparse.csr_array((block.data, block.indices, indptr), shape=(n, n))
        used = neighbor_mean(np.concatenate([W, border]), S)
    for start, rows in block.rows.chunks():
        scores[start : start + len(rows)] = residual_scores(rows, used[start : start + len(rows)], H)
    return {"W": W}, scores


@dataclass(frozen=True)
class FileRows:
    """Rows that are read from their file as they are needed, a chunk at a time: a table need not fit into memory."""

    path: Path

    def __len__(self) -> int:
        return len(np.load(self.path, mmap_mode="r"))

    def chunks(self) -> Iterator[tuple[int, FloatArray]]:
        mapped = np.load(self.path, mmap_mode="r")
        (n, p), offset = mapped.shape, mapped.offset
        del mapped
        # Read, not mapped: pages of a mapped file would count as this worker's memory.
        with self.path.open("rb") as stream:
            stream.seek(offset)
            for start in range(0, n, CHUNK):
                count = min(CHUNK, n - start)
                yield start, np.fromfile(stream, dtype=np.float64, count=count * p).reshape(count, p)


# What a task leaves behind for a group of blocks: each block's state, and the report of its last step.
Held = list[tuple[State, Any]]


def run_blocks(work: Work, places: Sequence[tuple[Path, Path]], held: Held | None, given: bytes) -> Held:
    """Task: step each block of a group once. `places` are the folder of each block and the file of its rows."""
    common, own = pickle.loads(given)
    before: Held = [({}, None)] * len(places) if held is None else held
    found: Held = []
    with one_blas_thread():
        for (folder, rows), (state, _), more in zip(places, before, own, strict=True):
            block = RowBlock(FileRows(rows), **open_arrays(folder))
            # What came from another worker may lie at any odd address; see `_packed`.
            aligned = {name: np.require(values, requirements="A") for name, values in state.items()}
            found.append(work(block, aligned, *common, *more))
    return found


def reports_of(held: Held) -> bytes:
    """Task: the reports of a group."""
    return _packed([report for _, report in held])


def _packed(content: Any) -> bytes:
    """Arguments and reports by the older protocol of pickle, whose arrays come back as arrays of their own.

    Dask would send them as views into what came over the wire, at any odd address, for which NumPy takes other loops:
    the last bits would change from run to run.
    """
    return pickle.dumps(content, protocol=4)


def save_states(held: Held, places: Sequence[Path]) -> None:
    """Task: save the states of a group."""
    for (state, _), place in zip(held, places, strict=True):
        save_arrays(place, state)


def load_states(places: Sequence[Path]) -> Held:
    """Task: load the states of a group."""
    return [(load_arrays(place), None) for place in places]


class DaskExecutor:
    """Steps blocks on workers, which keep the blocks' states in their memory, as results of tasks.

    A task steps a group of blocks: the fewer tasks, the less waiting for them. Should a worker be lost, Dask runs again
    the tasks that led to what it held. That line of tasks grows with every step; `save` puts the states into files and
    begins it anew.
    """

    def __init__(self, cluster: Cluster, space: Workspace, blocks: Sequence[tuple[Path, Path]], n_groups: int) -> None:
        """`blocks` are a folder for each block's share of S and the file of its rows."""
        self._cluster, self._space, self._blocks = cluster, space, list(blocks)
        ends = [len(self._blocks) * group // n_groups for group in range(n_groups + 1)]
        self._groups = [slice(first, last) for first, last in pairwise(ends)]
        self._held: list[Any] = [None] * n_groups

    @property
    def n_blocks(self) -> int:
        return len(self._blocks)

    def each(self, work: Work, *common: Any, apart: Sequence[tuple[Any, ...]] | None = None) -> list[Any]:
        name = work.__name__.strip("_").replace("_", "-")
        own = [()] * self.n_blocks if apart is None else list(apart)
        given = [_packed((common, own[group])) for group in self._groups]
        groups = [self._blocks[group] for group in self._groups]
        held = self._submit(name, run_blocks, zip([work] * len(given), groups, self._held, given, strict=True))
        reports = self._submit(f"{name}-report", reports_of, [(future,) for future in held])
        found = self._cluster.collect(None, reports)
        self._hold(held)
        return [report for of_group in found for report in pickle.loads(of_group)]

    def save(self, name: str) -> Path:
        """Save the states in a folder whose name begins so, from which they are read again when next needed."""
        folder = self._space / f"{name}-{secrets.token_hex(4)}"  # what a driver that was killed left is never mixed in
        folder.mkdir()
        saved = self._submit("save-blocks", save_states, zip(self._held, self._places(folder), strict=True))
        self._cluster.collect(None, saved)
        self.restore(folder)
        return folder

    def restore(self, folder: Path) -> None:
        """Go on from states that were saved."""
        self._hold(self._submit("load-blocks", load_states, [(places,) for places in self._places(folder)]))

    def gather(self, name: str) -> list[FloatArray]:
        """Return the part `name` of every block's state, in files that are read as they are used."""
        folder = self.save("result")
        self.leave_only(folder, "result-*")
        return [open_array(folder / str(block) / f"{name}.npy") for block in range(self.n_blocks)]

    def leave_only(self, folder: Path, pattern: str) -> None:
        """Delete the other folders whose names match: older ones, and what a driver that was killed left half done."""
        for other in self._space.folder.glob(pattern):
            if other != folder:
                shutil.rmtree(other, ignore_errors=True)

    def _hold(self, futures: list[Any]) -> None:
        """Keep these states, and release the last ones now: until Python did, they would fill the workers."""
        for future in self._held:
            if future is not None:
                future.release()
        self._held = futures

    def _places(self, folder: Path) -> list[list[Path]]:
        places = [folder / str(block) for block in range(self.n_blocks)]
        return [places[group] for group in self._groups]

    def _submit(self, name: str, work: Any, arguments: Any) -> list[Any]:
        key = f"{name}-{secrets.token_hex(4)}"
        return [self._cluster.submit(f"{key}-{group}", work, given) for group, given in enumerate(arguments)]
