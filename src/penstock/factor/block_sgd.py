"""Algorithm 1 of the paper: stochastic gradient descent on blocks, the blocks of a round in parallel."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from penstock._threads import thread_count
from penstock._types import Factors, FloatArray, IndexArray
from penstock.factor._kernels import finish_round, step_pieces
from penstock.factor.objectives import Objective
from penstock.factor.start import draws_from

_PIECE = 1600  # rows per piece of work, about 0.2 ms
_EXPLODED = 10.0  # times the objective of the start: clipping at 0 keeps many an explosion finite for a while


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

    def __post_init__(self) -> None:
        for name in ("n_blocks", "rounds", "rounds_per_check"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, but is {getattr(self, name)!r}.")
        if not 0 < self.last_step <= self.first_step < math.inf:
            raise ValueError(f"Steps must fall, first_step ≥ last_step > 0: {self.first_step!r}, {self.last_step!r}.")
        if not self.stall >= 0:
            raise ValueError(f"stall must be at least 0, but is {self.stall!r}.")

    def start(self, objective: Objective, n_components: int, rng: Any) -> Factors:
        """ALAD's start, 0.1·U(0,1)."""
        rng = draws_from(rng)
        W = 0.1 * rng.random((objective.n_rows, n_components))
        return Factors(W, 0.1 * rng.random((n_components, objective.n_columns)))

    def begin(self, objective: Objective, start: Factors, rng: Any) -> BlockDescent:
        if objective.laplacian or math.isfinite(objective.row_bound):
            raise ValueError("Block SGD is for NMF, SNMF and NS-NMF: no Laplacian term, no bounded rows of H.")
        return BlockDescent(objective, start, self, draws_from(rng))


def draw_instances(n_blocks: int, rng: Any) -> list[tuple[int, int, int]]:
    """One round's instance sets {i,j,k}: no two share a W-index or an H-index; i = j is allowed. Algorithm 1.

    Drawn one after the other, uniformly from those still compatible, until every W-index is used. So i = j comes up
    more often than its share of the sum eq:loss, as the last index left can only be paired with itself.

    >>> sorted(index for i, j, _ in draw_instances(5, np.random.default_rng(0)) for index in {i, j})
    [0, 1, 2, 3, 4]
    """
    free = list(range(n_blocks))
    columns = iter(rng.permutation(n_blocks))
    drawn = []
    while free:
        i, j = (free[int(rng.random() * len(free))] for _ in range(2))
        drawn.append((i, j, int(next(columns))))
        free = [index for index in free if index not in (i, j)]
    return drawn


class BlockDescent:
    """The state of a run: two copies of W, of which a round reads one and writes the other, and the blocks' Grams."""

    def __init__(self, objective: Objective, start: Factors, settings: BlockSGD, rng: Any) -> None:
        self._objective, self._settings, self._rng = objective, settings, rng
        self._W = start.W.copy(order="C")
        self._moved = np.empty_like(self._W)
        self._Ht = start.H.T.copy(order="C")
        self._B = min(settings.n_blocks, objective.n_rows)
        rows = _bounds(objective.n_rows, self._B)
        self._columns = _bounds(objective.n_columns, self._B)
        self._A = _column_blocks(objective, self._columns)
        self._entries = _sliced(objective, rows)
        self._pieces = _cut(rows)
        K = self._W.shape[1]
        self._grams = np.array([self._W[a:b].T @ self._W[a:b] for a, b in pairwise(rows)])
        self._piece_grams = np.empty((len(self._pieces), K, K))
        self._piece_slopes = np.empty((len(self._pieces), int(np.diff(self._columns).max()), K))
        self._scale_W, self._scale_H = _step_scales(objective, start, settings, self._B)
        self._round = 0
        self._stalls = 0
        self._first = self._value = objective.value(start)
        self.residual = math.inf
        self.finished = self.settled = False

    @property
    def factors(self) -> Factors:
        return Factors(self._W, np.ascontiguousarray(self._Ht.T))

    def step(self) -> float:
        """A few rounds, then a look at the objective: Algorithm 1 as ALAD runs it."""
        if self._objective.refill(self._W, self._Ht.T):
            self._A = _column_blocks(self._objective, self._columns)
        rounds = range(self._round, min(self._round + self._settings.rounds_per_check, self._settings.rounds))
        threads = thread_count()
        with ThreadPoolExecutor(threads) as pool:
            for self._round in rounds:
                self._take_round(draw_instances(self._B, self._rng), pool, threads)
            before, self._value = self._value, self._measure(pool)
        self._round += 1
        if not self._value <= _EXPLODED * self._first:  # NaN is not, either
            raise FloatingPointError(
                f"Block SGD exploded by round {self._round}: its steps are too long for these similarities. Use "
                "scale_steps=True, shorter steps, a bounded similarity ('normalized', 'binary'), or another solver."
            )
        self._stalls = self._stalls + 1 if before - self._value < self._settings.stall * before else 0
        stalled = self._settings.stall > 0 and self._stalls >= 2
        all_taken = self._round >= self._settings.rounds
        self.finished = stalled or all_taken
        self.settled = stalled or (all_taken and self._settings.stall == 0)  # without a stall rule that was the wish
        return self._value

    def _take_round(self, instances: list[tuple[int, int, int]], pool: ThreadPoolExecutor, threads: int) -> None:
        """Ahmed et al. (2021), eq:update: θ ← max(0, θ − ε∇L_ijk) for all instance sets of a round."""
        settings, objective = self._settings, self._objective
        share = self._round / max(settings.rounds - 1, 1)
        step = settings.first_step + share * (settings.last_step - settings.first_step)
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


def _bounds(count: int, parts: int) -> IndexArray:
    return np.array([count * part // parts for part in range(parts + 1)], dtype=np.int64)


def _column_blocks(objective: Objective, columns: IndexArray) -> FloatArray:
    """A as (block, row, column within the block), so that an instance set reads its own columns in one stream."""
    blocks = np.zeros((len(columns) - 1, objective.n_rows, int(np.diff(columns).max())))
    if objective.table is not None:
        for block, (a, b) in enumerate(pairwise(columns)):
            blocks[block, :, : b - a] = objective.table[:, a:b]
    return blocks


def _cut(rows: IndexArray) -> IndexArray:
    """The blocks' rows in pieces, (block, first row, last row): fixed, so that threads do not change a bit."""
    pieces = [
        (block, a, min(a + _PIECE, rows[block + 1]))
        for block in range(len(rows) - 1)
        for a in range(rows[block], rows[block + 1], _PIECE)
    ]
    return np.array(pieces, dtype=np.int64)


def _sliced(objective: Objective, bounds: IndexArray) -> IndexArray:
    """S cut along the blocks' columns: row i's entries in block b lie from result[b, i] to result[b+1, i]."""
    indptr, indices, _ = objective.graph
    key = np.repeat(np.arange(objective.n_rows), np.diff(indptr)) * (objective.n_rows + 1) + indices
    rows = np.arange(objective.n_rows) * (objective.n_rows + 1)
    return np.array([np.searchsorted(key, rows + bound) for bound in bounds], dtype=np.int64)


def _step_scales(objective: Objective, start: Factors, settings: BlockSGD, B: int) -> tuple[float, float]:
    """What W's and H's steps are multiplied by; see `BlockSGD`."""
    if not settings.scale_steps:
        return 1.0, 1.0
    size = math.sqrt(objective.norm_A) if objective.alpha else 0.0
    degree = float(objective.degree.max()) if objective.symmetric else 0.0
    g = max(_top(start.W.T @ start.W), degree, size)
    q = max(_top(start.H @ start.H.T), size)
    bend_W = 4 * objective.symmetric * (3 * g + degree) + 2 * objective.alpha * q + 2 * objective.gamma / B
    bend_H = 2 * objective.alpha * g + 2 * objective.gamma / B
    longest = settings.first_step
    return 1 / max(1.0, longest * bend_W), 1 / max(1.0, longest * bend_H)


def _top(gram: FloatArray) -> float:
    return float(np.linalg.eigvalsh(gram)[-1])
