"""Block SGD on blocks of near rows: the local counterpart of a run on a cluster, with the same bits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from penstock._types import Factors, FloatArray, IndexArray
from penstock.factor._sgd_work import start_profiles, start_weights
from penstock.factor.blocks import ArrayRows, LocalCrew, cut_graph
from penstock.factor.objectives import Objective
from penstock.factor.sgd_by_blocks import CrewDescent, draw_seed
from penstock.factor.strata import StepSettings, equal_runs
from penstock.graph.partition import arrange_rows


@dataclass(frozen=True, eq=False)
class Layout:
    """Blocks of near rows: block b has the rows order[bounds[b]:bounds[b+1]].

    >>> from penstock.factor import nmf
    >>> layout = Layout.of(nmf(np.array([[9.0], [0.0], [8.0], [1.0]])), 2)
    >>> layout.bounds.tolist(), sorted(layout.order[:2].tolist())
    ([0, 2, 4], [1, 3])
    """

    order: IndexArray
    bounds: IndexArray

    @classmethod
    def of(cls, objective: Objective, n_blocks: int) -> Layout:
        """Near rows together; without a table, runs of rows."""
        n = objective.n_rows
        if objective.A is None:
            return cls(np.arange(n), equal_runs(n, min(n_blocks, n)))
        return cls(*arrange_rows(_without_holes(objective.A), min(n_blocks, n)))

    def arranged(self, objective: Objective) -> Objective:
        """The objective with its rows block by block."""
        A, S = objective.A, objective.S
        A = None if A is None else A[self.order]
        return replace(objective, A=A, S=None if S is None else S[self.order][:, self.order])

    def begin(self, objective: Objective, start: Factors, settings: StepSettings, rng: Any) -> CrewDescent:
        """A run on this machine's threads. The start's rows are in the order of the blocks."""
        blocks, wiring = cut_graph(objective.S, self.order, self.bounds)
        runs = list(pairwise(int(bound) for bound in self.bounds))
        if objective.A is not None:
            tables = [ArrayRows(objective.A[self.order[a:b]]) for a, b in runs]
            blocks = [replace(block, rows=rows) for block, rows in zip(blocks, tables, strict=True)]
        crew = LocalCrew(blocks, [{"W": start.W[a:b]} for a, b in runs])
        return CrewDescent(crew, wiring, objective, settings, start.H, rng)

    def restored(self, W: FloatArray) -> FloatArray:
        """Rows that are in the order of the blocks, in their own again."""
        result = np.empty_like(W)
        result[self.order] = W
        return result


def start_in_space(objective: Objective, n_components: int, n_blocks: int, rng: Any) -> Factors:
    """ALAD's start, drawn as `sgd_by_blocks` has each block draw its own.

    >>> from penstock.factor import nmf
    >>> start_in_space(nmf(np.eye(4)), 2, 2, np.random.default_rng(0)).W.shape
    (4, 2)
    """
    layout, seed = Layout.of(objective, n_blocks), draw_seed(rng)
    sizes = enumerate(int(size) for size in np.diff(layout.bounds))
    W = np.concatenate([start_weights(seed, number, n, n_components) for number, n in sizes])
    return Factors(layout.restored(W), start_profiles(seed, n_components, objective.n_columns))


class Run(Protocol):
    """A run of block SGD whose rows are in the order of the blocks."""

    @property
    def finished(self) -> bool: ...
    @property
    def settled(self) -> bool: ...
    @property
    def factors(self) -> Factors: ...
    def step(self) -> float: ...


class SpaceDescent:
    """A run on blocks of near rows, seen from outside with the rows in their own order."""

    residual = float("inf")

    def __init__(self, layout: Layout, run: Run) -> None:
        self._layout, self._run = layout, run

    @property
    def finished(self) -> bool:
        return self._run.finished

    @property
    def settled(self) -> bool:
        return self._run.settled

    @property
    def factors(self) -> Factors:
        factors = self._run.factors
        return Factors(self._layout.restored(factors.W), factors.H)

    def step(self) -> float:
        return self._run.step()


def _without_holes(A: FloatArray) -> FloatArray:
    """A with the means of the columns where entries are missing: only to say which rows are near each other."""
    known = np.isfinite(A)
    if known.all():
        return A
    means = np.where(known, A, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    return np.where(known, A, means)
