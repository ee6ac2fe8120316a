"""Algorithm 1 of the paper: stochastic gradient descent on blocks, the blocks of a round in parallel."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from penstock._parameters import check_whole_number
from penstock._threads import thread_count
from penstock._types import Factors, FloatArray, IndexArray
from penstock.factor._sgd_kernels import finish_round, step_pieces
from penstock.factor._sgd_work import cut_pieces
from penstock.factor.blocks import Layout, equal_runs
from penstock.factor.objectives import Objective
from penstock.factor.sgd_by_blocks import (
    Course,
    Run,
    SpaceDescent,
    begin_in_space,
    draw_instances,
    refuse_other_terms,
    start_in_space,
    step_length,
    step_scales,
)
from penstock.factor.start import draws_from


@dataclass(frozen=True)
class BlockSGD:
    """Settings of block SGD, Algorithm 1 of Ahmed et al. (2021).

    The defaults are those of ALAD (Liu et al. 2017), from which the paper's formulation comes.

    Rows and columns are split into `n_blocks`; the step falls linearly from `first_step` to `last_step` over `rounds`
    rounds. One iteration of the loop is `rounds_per_check` rounds; the run ends after two checks in a row between
    which the objective fell by less than the share `stall` (0: all rounds are run).

    ALAD's steps explode on similarities such as 1/M. With `scale_steps`, W's and H's are multiplied once, at the start,
    by what brings the first down to 1/L where it is longer; L bounds the curvature of a block's loss with WᵀW no larger
    than the largest degree of S, ‖A‖ or its value at the start, and HHᵀ no larger than ‖A‖ or its value at the start:
    L_W = 4σ(3g + max D) + 2αq + 2γ/B and L_H = 2αg + 2γ/B. Without it ALAD's raw steps are taken, and a run that
    explodes ends in an error. Early stopping is part of the method: for a minimum use `Coordinate` or `Auto`.

    Blocks are equal runs of "rows" in their order, or rows that are near each other in "space", so that fewer
    similarities are between blocks. The latter is how a cluster works, and ends where it does, to the last bit, if its
    parts are the same; without a table, where there is no space, its blocks are runs of rows.

    >>> BlockSGD(rounds=100, first_step=0.004, last_step=0.0004).n_blocks
    5
    """

    n_blocks: int = 5
    first_step: float = 0.04
    last_step: float = 0.0035
    rounds: int = 700
    rounds_per_check: int = 10
    stall: float = 1e-3
    scale_steps: bool = True
    blocks: Literal["rows", "space"] = "rows"

    def __post_init__(self) -> None:
        for name in ("n_blocks", "rounds", "rounds_per_check"):
            check_whole_number(name, getattr(self, name), least=1)
        if not 0 < self.last_step <= self.first_step < math.inf:
            raise ValueError(f"Steps must fall, first_step ≥ last_step > 0: {self.first_step!r}, {self.last_step!r}.")
        if not self.stall >= 0:
            raise ValueError(f"stall must be at least 0, but is {self.stall!r}.")
        if self.blocks not in ("rows", "space"):
            raise ValueError(f"blocks must be 'rows' or 'space', but is {self.blocks!r}.")

    def __repr__(self) -> str:
        """Names `blocks` only where they are not runs of rows, so that files can be compared with older ones."""
        named = [field.name for field in fields(self) if field.name != "blocks" or self.blocks != "rows"]
        return f"BlockSGD({', '.join(f'{name}={getattr(self, name)!r}' for name in named)})"

    def start(self, objective: Objective, n_components: int, rng: Any) -> Factors:
        """ALAD's start, 0.1·U(0,1); for blocks in space as the blocks of a cluster draw it."""
        rng = draws_from(rng)
        if self.blocks == "space":
            return start_in_space(objective, n_components, self.n_blocks, rng)
        W = 0.1 * rng.random((objective.n_rows, n_components))
        return Factors(W, 0.1 * rng.random((n_components, objective.n_columns)))

    def begin(self, objective: Objective, start: Factors, rng: Any) -> BlockDescent | SpaceDescent:
        refuse_other_terms(objective)
        if self.blocks == "rows":
            return BlockDescent(objective, start, self, draws_from(rng))
        layout = Layout.of(objective, self.n_blocks)
        start = Factors(start.W[layout.order], start.H)
        if objective.table is not objective.A:  # what fills its holes changes, and blocks keep what they are given
            run: Run = BlockDescent(layout.arranged(objective), start, self, draws_from(rng), layout.bounds)
        else:
            run = begin_in_space(layout, objective, start, self, draws_from(rng))
        return SpaceDescent(layout, run)


class BlockDescent:
    """The state of a run: two copies of W, of which a round reads one and writes the other, and the blocks' Grams."""

    residual = math.inf

    def __init__(
        self, objective: Objective, start: Factors, settings: BlockSGD, rng: Any, bounds: IndexArray | None = None
    ) -> None:
        """The blocks are runs of rows, equal ones unless `bounds` says where each begins and the last one ends."""
        self._objective, self._settings, self._rng = objective, settings, rng
        self._W = start.W.copy(order="C")
        self._moved = np.empty_like(self._W)
        self._Ht = start.H.T.copy(order="C")
        rows = equal_runs(objective.n_rows, min(settings.n_blocks, objective.n_rows)) if bounds is None else bounds
        self._B = len(rows) - 1
        self._columns = equal_runs(objective.n_columns, self._B)
        self._A = _column_blocks(objective, self._columns)
        self._entries = _sliced(objective, rows)
        self._pieces = cut_pieces(rows)
        K = self._W.shape[1]
        self._grams = np.array([self._W[a:b].T @ self._W[a:b] for a, b in pairwise(rows)])
        self._piece_grams = np.empty((len(self._pieces), K, K))
        self._piece_slopes = np.empty((len(self._pieces), int(np.diff(self._columns).max()), K))
        G, Q, degree = start.W.T @ start.W, start.H @ start.H.T, float(objective.degree.max())
        self._scale_W, self._scale_H = step_scales(objective, G, Q, degree, settings, self._B)
        value = objective.value(start)
        self._course = Course(value, value)

    @property
    def finished(self) -> bool:
        return self._course.finished(self._settings)

    @property
    def settled(self) -> bool:
        return self._course.settled(self._settings)

    @property
    def factors(self) -> Factors:
        return Factors(self._W, np.ascontiguousarray(self._Ht.T))

    def step(self) -> float:
        """A few rounds, then a look at the objective: Algorithm 1 as ALAD runs it."""
        if self._objective.refill(self._W, self._Ht.T):
            self._A = _column_blocks(self._objective, self._columns)
        rounds = self._course.rounds_to_check(self._settings)
        threads = thread_count()
        with ThreadPoolExecutor(threads) as pool:
            for number in rounds:
                self._take_round(draw_instances(self._B, self._rng), number, pool, threads)
            value = self._measure(pool)
        self._course.note(value, len(rounds), self._settings)
        return value

    def _take_round(
        self, instances: list[tuple[int, int, int]], number: int, pool: ThreadPoolExecutor, threads: int
    ) -> None:
        """Ahmed et al. (2021), eq:update: θ ← max(0, θ − ε∇L_ijk) for all instance sets of a round."""
        objective = self._objective
        step = step_length(self._settings, number)
        order = [0] * self._B, [(0, 0, 0)] * self._B, [1.0] * self._B
        for i, j, k in instances:
            for block, partner in ((i, j), (j, i)):
                order[0][block] = partner
                order[1][block] = (k, self._columns[k], self._columns[k + 1])
                order[2][block] = 2.0 if i == j else 1.0
        partners, columns = np.array(order[0], dtype=np.int64), np.array(order[1], dtype=np.int64)
        weights = np.empty((self._B, 4))
        weights[:, 0] = step * self._scale_W
        weights[:, 1:] = np.outer(order[2], [2 * objective.symmetric, objective.alpha, objective.gamma / self._B])

        def work(start: int, stop: int) -> None:
            step_pieces(
                self._W, self._Ht, self._A, self._moved, self._pieces, partners, columns, weights, self._grams,
                self._entries, *objective.graph[1:], start, stop, self._piece_grams, self._piece_slopes,
            )  # fmt: skip

        _share_out(work, len(self._pieces), pool, threads)
        finish_round(
            self._pieces, partners, columns, self._piece_grams, self._piece_slopes, self._grams, self._Ht,
            step * self._scale_H if objective.alpha else 0.0, objective.alpha, 2 * objective.gamma / self._B,
        )  # fmt: skip
        self._W, self._moved = self._moved, self._W

    def _measure(self, pool: ThreadPoolExecutor) -> float:
        """The objective, its two large products side by side."""
        attributes = pool.submit(self._objective.attributes_by, self._W)
        SW = self._objective.spread(self._W)
        return self._objective.value_from(self.factors, self._grams.sum(axis=0), attributes.result(), SW)


def _share_out(work: Callable[[int, int], None], n: int, pool: ThreadPoolExecutor, threads: int) -> None:
    """Call ``work(start, stop)`` on ranges that cover 0..n; each thread takes the next range that is left."""
    count = min(n, 4 * threads if threads > 1 else 1)
    left = deque(pairwise(n * part // count for part in range(count + 1)))

    def run() -> None:
        while left:
            try:
                start, stop = left.popleft()
            except IndexError:
                return
            work(start, stop)

    others = [pool.submit(run) for _ in range(min(threads, count) - 1)]
    run()
    for other in others:
        other.result()


def _column_blocks(objective: Objective, columns: IndexArray) -> FloatArray:
    """A as (block, row, column within the block), so that an instance set reads its own columns in one stream."""
    blocks = np.zeros((len(columns) - 1, objective.n_rows, int(np.diff(columns).max())))
    if objective.table is not None:
        for block, (a, b) in enumerate(pairwise(columns)):
            blocks[block, :, : b - a] = objective.table[:, a:b]
    return blocks


def _sliced(objective: Objective, bounds: IndexArray) -> IndexArray:
    """S cut along the blocks' columns: row i's entries in block b lie from result[b, i] to result[b+1, i]."""
    indptr, indices, _ = objective.graph
    key = np.repeat(np.arange(objective.n_rows), np.diff(indptr)) * (objective.n_rows + 1) + indices
    rows = np.arange(objective.n_rows) * (objective.n_rows + 1)
    return np.array([np.searchsorted(key, rows + bound) for bound in bounds], dtype=np.int64)
