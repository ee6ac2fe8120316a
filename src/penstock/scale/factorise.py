"""The factorisation by blocks of rows, with checkpoints."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from penstock._types import IndexArray, SparseMatrix
from penstock.detectors import LaplacianNSNMF
from penstock.factor import Auto, BlockSGD, Coordinate, RowBlocks
from penstock.factor.blocks import Wiring, cut_graph
from penstock.factor.row_blocks import BlockSolution, RowBlockDescent, fit_by_blocks
from penstock.factor.sgd_by_blocks import sgd_by_blocks
from penstock.factor.terms import Terms
from penstock.scale.cluster import Cluster
from penstock.scale.crew import DaskCrew, save_block
from penstock.scale.workspace import Workspace, open_array, open_arrays, read_json, save_arrays, write_json

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
) -> tuple[list[tuple[Path, Path]], Wiring]:
    """The similarities cut along the parts, in files; and how the blocks are wired."""
    numbers = [np.array(open_array(space / f"part-{part}" / "numbers.npy")) for part in parts]
    bounds = np.array([0, *accumulate(len(part) for part in numbers)])
    blocks, wiring = cut_graph(S, np.searchsorted(kept, np.concatenate(numbers)), bounds)
    places = []
    for part, block in zip(parts, blocks, strict=True):
        folder = space / f"block-{part}"
        save_block(folder, block)
        places.append((folder, space / f"part-{part}" / "rows.npy"))
    return places, wiring


class Factorisation:
    """A run on a cluster: solved, or taken up where a checkpoint left it."""

    def __init__(self, cluster: Cluster, space: Workspace, crew: DaskCrew) -> None:
        self._cluster, self._space, self._crew = cluster, space, crew
        self._saved_at, self._since = time.monotonic(), _CHECKPOINT_EVERY  # the end of the starts is kept at once
        self._file = space / "checkpoint.json"

    def solve(
        self,
        wiring: Wiring,
        terms: Terms,
        n_components: int,
        settings: Settings,
        max_iter: int,
        tol: float,
        random_state: Any,
    ) -> BlockSolution:
        problem = self._crew, wiring, terms, n_components
        options: dict[str, Any] = {
            "max_iter": max_iter,
            "random_state": random_state,
            "progress": lambda iteration, _: self._cluster.report("factorising", iteration, max_iter),
            "checkpoint": self._checkpoint,
            "resume": self._resume(),
        }
        if not isinstance(settings, BlockSGD):
            return fit_by_blocks(*problem, settings, tol=tol, **options)
        found = sgd_by_blocks(*problem, settings, **options)
        residual = RowBlockDescent(self._crew, wiring, terms, found.H, profile_passes=1).kkt_residual()
        return BlockSolution(
            H=found.H,
            objective=found.objective,
            n_iter=found.n_iter,
            converged=found.settled or residual <= tol,
            kkt_residual=residual,
            history=found.history,
            start_objectives=found.history[-1:],
        )

    def _checkpoint(self, snapshot: Mapping[str, Any]) -> None:
        """Every few iterations, states and snapshot in files; the snapshot last, since it says that all is there."""
        self._since += 1
        if self._since < _CHECKPOINT_EVERY and time.monotonic() - self._saved_at < _CHECKPOINT_SECONDS:
            return
        folder = self._crew.save("states")
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
        self._crew.restore(folder)
        arrays = {name: np.array(values) for name, values in open_arrays(folder / "driver").items()}
        return {**known["snapshot"], **arrays}
