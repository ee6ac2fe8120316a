"""Algorithm 1 of the paper by blocks of rows that an executor steps: this machine's threads, or a cluster.

Sums go over fixed pieces and chunks in their order, so that neither threads nor machines change a bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from penstock._types import FloatArray, IndexArray
from penstock.factor._block_sums import BlockProblem, offers_of
from penstock.factor._block_work import look, stand
from penstock.factor._sgd_kernels import find_entries, step_rows
from penstock.factor.block_sgd import (
    Course,
    check_terms,
    cut_pieces,
    draw_instances,
    read_draws,
    step_length,
    step_scales,
    write_draws,
)
from penstock.factor.blocks import RowBlock, State, equal_runs
from penstock.factor.loop import Descent
from penstock.factor.settings import BlockSGD
from penstock.factor.start import draw_seed, draws_from


class Meeting(NamedTuple):
    """What a block receives of its instance set {i,j,k}."""

    weights: FloatArray  # the step, and the factors of structure, attributes and ridge
    gram: FloatArray  # the partner's WᵀW
    partners: FloatArray | None  # the partner's rows that it is similar to; None: it is its own partner
    first_border: int  # which of the block's border rows is the first of them
    H: FloatArray  # the profiles' columns k, as p×K
    columns: tuple[int, int]


class Moved(NamedTuple):
    """What a block reports of its step."""

    gram: FloatArray
    slope: FloatArray  # −(A−WH)ᵀW over the columns of its instance set
    offered: FloatArray


class ExecutorSGDDescent(Descent):
    """The driver's part of a run: H, the blocks' Gram matrices, and the rows that blocks offer."""

    def __init__(
        self,
        problem: BlockProblem,
        settings: BlockSGD,
        H: FloatArray,
        rng: Any,
        snapshot: Mapping[str, Any] | None = None,
    ) -> None:
        """Begin from the weights W in the blocks' states; with a snapshot, go on from where it was taken."""
        check_terms(problem.terms)
        if H.shape[1] != problem.terms.n_columns:
            raise ValueError(f"H must have the table's {problem.terms.n_columns} columns, but has {H.shape[1]}.")
        self._problem, self._settings, self._rng = problem, settings, rng
        self._Ht = H.T.copy(order="C")
        self._columns = equal_runs(problem.terms.n_columns, problem.executor.n_blocks)
        places = problem.executor.each(look, "W")
        self._offered = [place.offers for place in places]
        self._bounds = np.cumsum([0, *(len(rows) for rows in self._offered)])
        if snapshot is not None:
            self._grams = np.asarray(snapshot["grams"], dtype=np.float64)
            self._scales = float(snapshot["scales"][0]), float(snapshot["scales"][1])
            first, last = float(snapshot["history"][0]), float(snapshot["history"][-1])
            self._course = Course(settings, first, last, int(snapshot["rounds"]), int(snapshot["stalls"]))
            return
        self._grams = np.array([place.G for place in places])
        G, Q = self._grams.sum(axis=0), H @ H.T
        self._scales = step_scales(problem.terms, G, Q, settings, problem.executor.n_blocks)
        value = self._measure()
        self._course = Course(settings, value, value)

    @classmethod
    def drawn(cls, problem: BlockProblem, settings: BlockSGD, n_components: int, random_state: Any) -> Any:
        """Begin from ALAD's start, 0.1·U(0,1), which every block draws for itself."""
        rng = draws_from(random_state)
        seed = draw_seed(rng)
        numbers = [(number,) for number in range(problem.executor.n_blocks)]
        problem.executor.each(draw_weights, seed, n_components, apart=numbers)
        return cls(problem, settings, start_profiles(seed, n_components, problem.terms.n_columns), rng)

    @classmethod
    def resumed(cls, problem: BlockProblem, settings: BlockSGD, snapshot: Mapping[str, Any]) -> Any:
        """Go on from a snapshot, with blocks that have the states of that moment."""
        H = np.asarray(snapshot["H"], dtype=np.float64)
        return cls(problem, settings, H, read_draws(snapshot["draws"]), snapshot)

    def snapshot(self) -> dict[str, Any]:
        """All that a run needs to go on, beside the history and the blocks' states: plain values and arrays."""
        return {
            "H": self.H,
            "grams": self._grams,
            "scales": list(self._scales),
            "rounds": self._course.rounds,
            "stalls": self._course.stalls,
            "draws": write_draws(self._rng),
        }

    @property
    def H(self) -> FloatArray:
        return np.ascontiguousarray(self._Ht.T)

    @property
    def finished(self) -> bool:
        return self._course.finished

    @property
    def settled(self) -> bool:
        return self._course.settled

    def value(self) -> float:
        return self._course.value

    def kkt_residual(self) -> float:
        return self._problem.judge(self.H)[1]

    def step(self) -> float:
        """Take a few rounds, then evaluate the objective: Algorithm 1 as ALAD runs it."""
        rounds = self._course.rounds_to_check
        for number in rounds:
            self._take_round(draw_instances(self._problem.executor.n_blocks, self._rng), number)
        self._course.note(self._measure(), len(rounds))
        return self._course.value

    def _measure(self) -> float:
        """The objective, from the blocks' sums."""
        standings = self._problem.executor.each(stand, self._problem.terms)
        return self._problem.value(self.H, self._problem.sums_of(standings), offers_of([it.place for it in standings]))

    def _take_round(self, instances: list[tuple[int, int, int]], number: int) -> None:
        """Ahmed et al. (2021), eq:update: every block steps once, then every block of columns of H that was drawn."""
        step, executor = step_length(self._settings, number), self._problem.executor
        meetings = {}
        for i, j, k in instances:
            for block, partner in ((i, j), (j, i)):
                meetings[block] = self._meeting(block, partner, k, step * self._scales[0])
        moved: list[Moved] = executor.each(step_block, apart=[(meetings[b],) for b in range(executor.n_blocks)])
        self._grams = np.array([report.gram for report in moved])
        self._offered = [report.offered for report in moved]
        if self._problem.terms.alpha:
            self._move_profiles(instances, [report.slope for report in moved], step * self._scales[1])

    def _meeting(self, block: int, partner: int, k: int, step: float) -> Meeting:
        terms = self._problem.terms
        share = 2.0 if block == partner else 1.0
        weights = np.array([2 * terms.symmetric, terms.alpha, terms.gamma / self._problem.executor.n_blocks]) * share
        columns = (int(self._columns[k]), int(self._columns[k + 1])) if terms.alpha else (0, 0)
        rows, first = None, 0
        if block != partner:
            # Border rows are in the order of their blocks, for they are named by places in the list of all offers.
            needs = self._problem.coupling.needs[block]
            ends: IndexArray = self._bounds[partner : partner + 2]
            first, last = (int(place) for place in np.searchsorted(needs, ends))
            rows = self._offered[partner][needs[first:last] - ends[0]]
        H = self._Ht[columns[0] : columns[1]]
        return Meeting(np.array([step, *weights]), self._grams[partner], rows, first, H, columns)

    def _move_profiles(self, instances: list[tuple[int, int, int]], slopes: list[FloatArray], step: float) -> None:
        terms = self._problem.terms
        ridge = 2 * terms.gamma / self._problem.executor.n_blocks
        moved = self._Ht.copy()
        for i, j, k in instances:
            columns = slice(self._columns[k], self._columns[k + 1])
            gradient = terms.alpha * (slopes[i] + slopes[j]) + ridge * self._Ht[columns]
            moved[columns] = np.maximum(self._Ht[columns] - step * gradient, 0.0)
        self._Ht = moved


def draw_weights(block: RowBlock, state: State, seed: int, n_components: int, number: int) -> tuple[State, None]:
    """Draw ALAD's start of W from a stream of the block's own."""
    return {**state, "W": start_weights(seed, number, block.n, n_components)}, None


def start_weights(seed: int, number: int, n: int, n_components: int) -> FloatArray:
    """The start of block `number`: 1 + number, because NumPy takes [seed, 0, 0] for [seed, 0], the stream of H."""
    return 0.1 * np.random.default_rng([seed, 0, 1 + number]).random((n, n_components))


def start_profiles(seed: int, n_components: int, n_columns: int) -> FloatArray:
    """The start of H."""
    return 0.1 * np.random.default_rng([seed, 0]).random((n_components, n_columns))


def step_block(block: RowBlock, state: State, meeting: Meeting) -> tuple[State, Moved]:
    """Ahmed et al. (2021), eq:update, for the rows of one block: W ← max(0, W − ε∇L_ijk)."""
    W = state["W"]
    K = W.shape[1]
    partners, low = (W, 0) if meeting.partners is None else (meeting.partners, block.n + meeting.first_border)
    first, last = np.empty(block.n, np.int64), np.empty(block.n, np.int64)
    find_entries(block.indptr, block.indices, low, low + len(partners), first, last)
    A = _columns_of(block, *meeting.columns)
    H = np.ascontiguousarray(meeting.H)
    moved, gram, slope = np.empty_like(W), np.zeros((K, K)), np.zeros_like(H)
    for _, start, stop in cut_pieces(np.array([0, block.n], dtype=np.int64)):
        part, part_slope = np.zeros_like(gram), np.zeros_like(slope)
        step_rows(
            W, start, stop, A, H, meeting.weights, meeting.gram, first, last, block.indices, block.data,
            partners, low, moved, part, part_slope,
        )  # fmt: skip
        gram += part
        slope += part_slope
    return {**state, "W": moved}, Moved(gram, slope, moved[block.offers])


def _columns_of(block: RowBlock, first: int, last: int) -> FloatArray:
    """Some columns of the block's table, read anew each time: the table may be in a file, and larger than memory."""
    values = np.empty((block.n, last - first))
    if last > first and block.rows is not None:
        for start, chunk in block.rows.chunks():
            values[start : start + len(chunk)] = chunk[:, first:last]
    return values
