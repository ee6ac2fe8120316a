"""Algorithm 1 of the paper: stochastic gradient descent on blocks, the blocks of a round in parallel.

Here are the rules of its rounds, which all runs share, and a run on this machine's threads with all of W in memory.
"""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from penstock._threads import thread_count
from penstock._types import Factors, FloatArray, IndexArray
from penstock.factor._sgd_kernels import finish_round, step_pieces
from penstock.factor.blocks import equal_runs
from penstock.factor.loop import InMemoryDescent
from penstock.factor.objectives import Objective
from penstock.factor.settings import BlockSGD
from penstock.factor.terms import Terms

PIECE = 1600  # rows per piece of work, about 0.2 ms; fixed, because the order of sums depends on it
_EXPLODED = 10.0  # times the objective of the start: clipping at 0 keeps many an explosion finite for a while


def check_terms(terms: Terms | Objective) -> None:
    """Raise a ValueError for objectives that block SGD is not defined for."""
    if terms.laplacian or math.isfinite(terms.row_bound):
        raise ValueError("Block SGD is for NMF, SNMF and NS-NMF: no Laplacian term, no bounded rows of H.")


def draw_instances(n_blocks: int, rng: Any) -> list[tuple[int, int, int]]:
    """Draw one round's instance sets {i,j,k}: no two share a W-index or an H-index; i = j is allowed. Algorithm 1.

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


def cut_pieces(bounds: IndexArray) -> IndexArray:
    """Cut the blocks' rows into pieces, (block, first row, last row): fixed, so that threads do not change a bit.

    >>> cut_pieces(np.array([0, 3, 2000])).tolist()
    [[0, 0, 3], [1, 3, 1603], [1, 1603, 2000]]
    """
    pieces = [
        (block, a, min(a + PIECE, bounds[block + 1]))
        for block in range(len(bounds) - 1)
        for a in range(bounds[block], bounds[block + 1], PIECE)
    ]
    return np.array(pieces, dtype=np.int64)


def step_length(settings: BlockSGD, number: int) -> float:
    """The step of one round: it falls linearly from the first round to the last."""
    share = number / max(settings.rounds - 1, 1)
    return settings.first_step + share * (settings.last_step - settings.first_step)


def step_scales(terms: Terms, G: FloatArray, Q: FloatArray, settings: BlockSGD, n_blocks: int) -> tuple[float, float]:
    """The factors of W's and H's steps, from G = WᵀW and Q = HHᵀ of the start; see `BlockSGD`."""
    if not settings.scale_steps:
        return 1.0, 1.0
    size = math.sqrt(terms.norm_A) if terms.alpha else 0.0
    degree = terms.max_degree if terms.symmetric else 0.0
    g = max(float(np.linalg.eigvalsh(G)[-1]), degree, size)
    q = max(float(np.linalg.eigvalsh(Q)[-1]), size)
    bend_W = 4 * terms.symmetric * (3 * g + degree) + 2 * terms.alpha * q + 2 * terms.gamma / n_blocks
    bend_H = 2 * terms.alpha * g + 2 * terms.gamma / n_blocks
    longest = settings.first_step
    return 1 / max(1.0, longest * bend_W), 1 / max(1.0, longest * bend_H)


@dataclass
class Course:
    """How a run has gone so far: all that its rules to stop look at.

    >>> course = Course(BlockSGD(), first=8.0, value=8.0)
    >>> for value in (4.0, 4.0, 4.0):
    ...     course.note(value, 10)
    >>> course.rounds, course.stalls, course.finished
    (30, 2, True)
    """

    settings: BlockSGD
    first: float
    value: float
    rounds: int = 0
    stalls: int = 0

    def note(self, value: float, rounds: int) -> None:
        """Note the objective after some more rounds; raise an error if it says that the steps are too long."""
        self.rounds += rounds
        if not value <= _EXPLODED * self.first:  # NaN is not, either
            raise FloatingPointError(
                f"Block SGD exploded by round {self.rounds}: its steps are too long for these similarities. Use "
                "scale_steps=True, shorter steps, a bounded similarity ('normalized', 'binary'), or another solver."
            )
        self.stalls = self.stalls + 1 if self.value - value < self.settings.stall * self.value else 0
        self.value = value

    @property
    def rounds_to_check(self) -> range:
        """The rounds up to the next evaluation of the objective."""
        return range(self.rounds, min(self.rounds + self.settings.rounds_per_check, self.settings.rounds))

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to do."""
        return self._stalled or self.rounds >= self.settings.rounds

    @property
    def settled(self) -> bool:
        """Whether it is done rather than out of rounds: without a stall rule all rounds were wanted."""
        return self._stalled or (self.settings.stall == 0 and self.rounds >= self.settings.rounds)

    @property
    def _stalled(self) -> bool:
        return self.settings.stall > 0 and self.stalls >= 2


def write_draws(rng: Any) -> str:
    """Write the state of a source of random numbers as text, so that a run can go on drawing where it stopped.

    >>> rng = np.random.default_rng(3)
    >>> later = read_draws(write_draws(rng))
    >>> later.random() == rng.random()
    True
    """
    is_generator = isinstance(rng, np.random.Generator)
    state = rng.bit_generator.state if is_generator else rng.get_state(legacy=False)
    return json.dumps({"generator": is_generator, "state": state}, default=np.ndarray.tolist)


def read_draws(text: str) -> Any:
    """Restore the source of random numbers that `write_draws` wrote."""
    content: Mapping[str, Any] = json.loads(text)
    state = content["state"]
    kind = getattr(np.random, state["bit_generator"])
    if not (isinstance(kind, type) and issubclass(kind, np.random.BitGenerator)):
        raise ValueError(f"{state['bit_generator']!r} is no source of random numbers.")
    bits = kind()
    bits.state = state
    if content["generator"]:
        return np.random.Generator(bits)
    result = np.random.RandomState(bits)
    result.set_state(state)
    return result


class BlockSGDDescent(InMemoryDescent):
    """A run with all of W in memory: two copies, of which a round reads one and writes the other, and Gram matrices."""

    def __init__(
        self, objective: Objective, start: Factors, settings: BlockSGD, rng: Any, bounds: IndexArray | None = None
    ) -> None:
        """The blocks are runs of rows, equal ones unless `bounds` says where each begins and the last one ends."""
        check_terms(objective)
        self.objective, self._settings, self._rng = objective, settings, rng
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
        G, Q = start.W.T @ start.W, start.H @ start.H.T
        self._scale_W, self._scale_H = step_scales(objective.terms, G, Q, settings, self._B)
        value = objective.value(start)
        self._course = Course(settings, value, value)

    @property
    def finished(self) -> bool:
        return self._course.finished

    @property
    def settled(self) -> bool:
        return self._course.settled

    @property
    def factors(self) -> Factors:
        return Factors(self._W, np.ascontiguousarray(self._Ht.T))

    def step(self) -> float:
        """Take a few rounds, then evaluate the objective: Algorithm 1 as ALAD runs it."""
        if self.objective.refill(self._W, self._Ht.T):
            self._A = _column_blocks(self.objective, self._columns)
        rounds, threads = self._course.rounds_to_check, thread_count()
        with ThreadPoolExecutor(threads) as pool:
            for number in rounds:
                self.take_round(draw_instances(self._B, self._rng), number, pool, threads)
            attributes = pool.submit(self.objective.attributes_by, self._W)  # beside the other large product
            SW = self.objective.spread(self._W)
            value = self.objective.value_from(self.factors, self._grams.sum(axis=0), attributes.result(), SW)
        self._course.note(value, len(rounds))
        return value

    def take_round(
        self, instances: list[tuple[int, int, int]], number: int, pool: ThreadPoolExecutor, threads: int
    ) -> None:
        """Ahmed et al. (2021), eq:update: θ ← max(0, θ − ε∇L_ijk) for all instance sets of a round."""
        objective = self.objective
        step = step_length(self._settings, number)
        partners, columns = np.zeros(self._B, np.int64), np.zeros((self._B, 3), np.int64)
        share, weights = np.ones(self._B), np.empty((self._B, 4))
        for i, j, k in instances:
            partners[i], partners[j] = j, i
            columns[[i, j]] = k, self._columns[k], self._columns[k + 1]
            share[[i, j]] = 2.0 if i == j else 1.0
        weights[:, 0] = step * self._scale_W
        weights[:, 1:] = np.outer(share, [2 * objective.symmetric, objective.alpha, objective.gamma / self._B])

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
