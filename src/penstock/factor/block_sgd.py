"""Algorithm 1 of the paper: stochastic gradient descent on blocks, the blocks of a round in parallel.

All of W is in memory, and the threads of this machine share the work. Sums go over fixed pieces in their order, so that
the number of threads does not change a bit.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from penstock._threads import thread_count
from penstock._types import Factors, FloatArray, IndexArray
from penstock.factor._kernels import finish_round, step_pieces
from penstock.factor.blocks import equal_runs
from penstock.factor.descent import CoordinateDescent, InMemoryDescent
from penstock.factor.objectives import Objective
from penstock.factor.settings import BlockSGD, Coordinate
from penstock.factor.terms import Terms

PIECE = 1600  # rows per piece of work, about 0.2 ms; fixed, because the order of sums depends on it
_EXPLODED = 10.0  # times the objective of the start: clipping at 0 keeps many an explosion finite for a while
_CHECK_EVERY = 10  # rounds, where the steps are given: as ALAD does
_FIRST_PACE = 2.0


Instances = list[tuple[int, int, int]]  # the sets {i,j,k} of a round


def draw_instances(n_blocks: int, rng: Any) -> Instances:
    """Draw one round's instance sets {i,j,k}: no two share a W-index or an H-index; i = j is allowed. Algorithm 1.

    Drawn one after the other, uniformly from those still compatible, until every W-index is used. So i = j comes up
    more often than its share of the sum eq:loss, as the last index left can only be paired with itself.
    """
    free = list(range(n_blocks))
    columns = iter(rng.permutation(n_blocks))
    drawn = []
    while free:
        i, j = (free[int(rng.random() * len(free))] for _ in range(2))
        drawn.append((i, j, int(next(columns))))
        free = [index for index in free if index not in (i, j)]
    return drawn


def draw_epoch(n_blocks: int, rng: Any) -> list[Instances]:
    """Draw the rounds of an epoch, in which every instance set {i,j,k} comes up once: B² rounds. Algorithm 1.

    In a round i + j is the same for all sets modulo B, after a random renaming of the blocks: so every W-index is in
    one set, and in B rounds in a row it meets every other and itself. Over the epoch gradients add up to B·∇f.
    """
    B, epoch = n_blocks, []
    rows, columns = rng.permutation(B), rng.permutation(B)
    for shift in rng.permutation(B):
        for total in rng.permutation(B):
            pairs = [(i, (total - i) % B) for i in range(B) if i <= (total - i) % B]
            epoch.append(
                [(int(rows[i]), int(rows[j]), int(columns[(place + shift) % B])) for place, (i, j) in enumerate(pairs)]
            )
    return epoch


def cut_pieces(bounds: IndexArray) -> IndexArray:
    """Cut the blocks' rows into pieces, (block, first row, last row): fixed, so that threads do not change a bit."""
    pieces = [
        (block, a, min(a + PIECE, bounds[block + 1]))
        for block in range(len(bounds) - 1)
        for a in range(bounds[block], bounds[block + 1], PIECE)
    ]
    return np.array(pieces, dtype=np.int64)


class Steps(NamedTuple):
    """How a round steps: by `length` times the gradient, divided by what bends f there."""

    length: float
    shares: tuple[float, float]  # of the gradients of L_ijk, where i ≠ j and where i = j
    weight_bends: FloatArray  # of each group; a row's degree and ‖w‖² are added, times `own`
    own: tuple[float, float]
    profile_bends: FloatArray

    @classmethod
    def given(cls, settings: BlockSGD, number: int, K: int) -> Steps:
        """ALAD's: the length falls linearly from the first round to the last, and is the same for all entries."""
        assert settings.first_step is not None
        assert settings.last_step is not None
        share = number / max(settings.rounds - 1, 1)
        length = settings.first_step + share * (settings.last_step - settings.first_step)
        return cls(length, (1.0, 1.0), np.ones(K), (0.0, 0.0), np.ones(K))

    @classmethod
    def fitted(cls, terms: Terms, G: FloatArray, Q: FloatArray, pace: float) -> Steps:
        """Divide by a bound on each entry's curvature, from G = WᵀW and Q = HHᵀ as they are. See `BlockSGD`.

        A set with i ≠ j stands for {j,i,k}, too: so sets with i = j have their share of f.
        """
        gram = G.sum(axis=1)
        weight_bends = 4 * terms.symmetric * gram + 2 * terms.alpha * Q.sum(axis=1) + 2 * terms.gamma
        own = 4 * terms.symmetric, 8 * terms.symmetric
        return cls(pace, (2.0, 1.0), weight_bends, own, 2 * terms.alpha * gram + 2 * terms.gamma)

    def weights(self, terms: Terms, n_blocks: int, *, alone: bool) -> list[float]:
        """Return the weights of `step_rows` for a block that has a partner, or is alone in its set."""
        share = 2 * self.shares[1] if alone else self.shares[0]
        gradient = (share * weight for weight in (2 * terms.symmetric, terms.alpha, terms.gamma / n_blocks))
        return [self.length, *gradient, *self.own]


class BlockSGDDescent(InMemoryDescent):
    """A run with all of W in memory: two copies, of which a round reads one and writes the other, and Gram matrices."""

    _pace = _FIRST_PACE
    _rounds = 0
    _stalls = 0
    _remaining: float | None = None

    def __init__(self, objective: Objective, start: Factors, settings: BlockSGD, rng: Any) -> None:
        if objective.laplacian or math.isfinite(objective.row_bound):
            raise ValueError("Block SGD is for NMF, SNMF and NS-NMF: no Laplacian term, no bounded rows of H.")
        self.objective, self._terms, self._settings, self._rng = objective, objective.terms, settings, rng
        self.little = settings.stall or BlockSGD.stall
        self._W = start.W.copy(order="C")
        self._moved = np.empty_like(self._W)
        self._Ht = start.H.T.copy(order="C")
        self._B = min(settings.n_blocks, objective.n_rows)
        rows = equal_runs(objective.n_rows, self._B)
        self._columns = equal_runs(objective.n_columns, self._B)
        self._A = _column_blocks(objective, self._columns)
        # S cut along the blocks' columns: row i's entries in block b lie from entries[b, i] to entries[b+1, i].
        indptr, indices, _ = objective.graph
        stride = objective.n_rows + 1
        key = np.repeat(np.arange(objective.n_rows), np.diff(indptr)) * stride + indices
        firsts = np.arange(objective.n_rows) * stride
        self._entries = np.array([np.searchsorted(key, firsts + bound) for bound in rows], dtype=np.int64)
        self._pieces = cut_pieces(rows)
        K = self._W.shape[1]
        self._grams = np.array([self._W[a:b].T @ self._W[a:b] for a, b in pairwise(rows)])
        self._piece_grams = np.empty((len(self._pieces), K, K))
        self._piece_slopes = np.empty((len(self._pieces), int(np.diff(self._columns).max()), K))
        self._first = self._last = objective.value(start)

    @property
    def factors(self) -> Factors:
        return Factors(self._W, np.ascontiguousarray(self._Ht.T))

    def step(self) -> float:
        """Take some rounds, then evaluate the objective. Algorithm 1."""
        if self.objective.refill(self._W, self._Ht.T):
            self._A = _column_blocks(self.objective, self._columns)
        rounds, threads = self._draw_rounds(), thread_count()
        with ThreadPoolExecutor(threads) as pool:
            for number, instances in rounds:
                self.take_round(instances, number, pool, threads)
            attributes = pool.submit(self.objective.attributes_by, self._W)  # while this thread computes SW
            SW = self.objective.structure.spread(self._W)
            value = self.objective.value_from(self.factors, self._grams.sum(axis=0), attributes.result(), SW)
        self._note(value, len(rounds))
        return value

    def take_round(self, instances: Instances, number: int, pool: ThreadPoolExecutor, threads: int) -> None:
        """Ahmed et al. (2021), eq:update: θ ← max(0, θ − ε∇L_ijk) for all instance sets of a round."""
        objective, terms, degree = self.objective, self._terms, self.objective.structure.degree
        steps = self._steps(number, self._grams.sum(axis=0), self._Ht)
        partners, columns = np.zeros(self._B, np.int64), np.zeros((self._B, 3), np.int64)
        weights, lengths = np.empty((self._B, 6)), np.empty(self._B)
        for i, j, k in instances:
            partners[i], partners[j] = j, i
            columns[[i, j]] = k, self._columns[k], self._columns[k + 1]
            weights[[i, j]] = steps.weights(terms, self._B, alone=i == j)
            lengths[[i, j]] = steps.length * steps.shares[i == j] if terms.alpha else 0.0

        def work(start: int, stop: int) -> None:
            step_pieces(
                self._W, self._Ht, self._A, self._moved, self._pieces, partners, columns, weights, steps.weight_bends,
                degree, self._grams, self._entries, *objective.graph[1:], start, stop, self._piece_grams,
                self._piece_slopes,
            )  # fmt: skip

        _share_out(work, len(self._pieces), pool, threads)
        finish_round(
            self._pieces, partners, columns, self._piece_grams, self._piece_slopes, self._grams, self._Ht, lengths,
            steps.profile_bends, terms.alpha, 2 * terms.gamma / self._B,
        )  # fmt: skip
        self._W, self._moved = self._moved, self._W

    def _swept(self) -> float:
        return CoordinateDescent(self.objective, self.factors, Coordinate().profile_passes).step()

    @property
    def _given(self) -> bool:
        return self._settings.first_step is not None

    def _draw_rounds(self) -> list[tuple[int, Instances]]:
        """Draw the rounds up to the next evaluation of the objective, each with its number."""
        if self._given:
            rounds = [draw_instances(self._B, self._rng) for _ in range(self._rounds_left(_CHECK_EVERY))]
        else:
            rounds = draw_epoch(self._B, self._rng)[: self._rounds_left(self._B**2)]
        return list(enumerate(rounds, start=self._rounds))

    def _rounds_left(self, wanted: int) -> int:
        return min(wanted, self._settings.rounds - self._rounds)

    def _steps(self, number: int, G: FloatArray, Ht: FloatArray) -> Steps:
        if self._given:
            return Steps.given(self._settings, number, len(G))
        return Steps.fitted(self._terms, G, Ht.T @ Ht, self._pace)

    def _note(self, value: float, rounds: int) -> None:
        """Note the objective after some more rounds; raise an error if it says that the steps are too long."""
        self._rounds += rounds
        if self._given and not value <= _EXPLODED * self._first:  # NaN is not, either
            raise FloatingPointError(
                f"Block SGD exploded by round {self._rounds}: its steps are too long for these similarities. Use "
                "BlockSGD() without first_step and last_step, shorter steps, a bounded similarity ('normalized', "
                "'binary'), or another solver."
            )
        self._stalls = self._stalls + 1 if self._last - value < self._settings.stall * self._last else 0
        if value >= self._last:
            self._pace /= 2
        self._last, self._remaining = value, None

    @property
    def finished(self) -> bool:
        return self._stalled or self._rounds >= self._settings.rounds

    @property
    def _stalled(self) -> bool:
        """Whether the objective has stopped falling: as ALAD finds it, or in truth."""
        if self._settings.stall == 0:
            return False
        return self._stalls >= 2 if self._given else self._stalls >= 1 and self.remaining < self.little

    @property
    def remaining(self) -> float:
        if self._remaining is None:
            self._remaining = 1 - self._swept() / self._last if self._last > 0 else 0.0
        return self._remaining


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
    """Arrange A as (block, row, column within the block), so that an instance set reads its columns in one stream."""
    blocks = np.zeros((len(columns) - 1, objective.n_rows, int(np.diff(columns).max())))
    if objective.table is not None:
        for block, (a, b) in enumerate(pairwise(columns)):
            blocks[block, :, : b - a] = objective.table[:, a:b]
    return blocks
