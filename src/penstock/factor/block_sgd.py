"""Algorithm 1 of the paper: stochastic gradient descent on blocks, the blocks of a round in parallel.

There are two runs by the same rules: `BlockSGDDescent` with all of W in memory, on this machine's threads, and
`ExecutorSGDDescent` by blocks of rows that an executor steps. Sums go over fixed pieces and chunks in their order, so
that neither threads nor machines change a bit.
"""

from __future__ import annotations

import json
import math
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from penstock._threads import thread_count
from penstock._types import Factors, FloatArray, IndexArray
from penstock.factor._kernels import find_entries, finish_round, step_pieces, step_rows
from penstock.factor.blocks import RowBlock, State, equal_runs, look, stand
from penstock.factor.descent import CoordinateDescent, Descent, InMemoryDescent
from penstock.factor.objectives import Objective
from penstock.factor.row_blocks import BlockProblem, offers_of, sweep_once
from penstock.factor.settings import BlockSGD, Coordinate
from penstock.factor.start import draw_seed, draws_from
from penstock.factor.terms import Terms

PIECE = 1600  # rows per piece of work, about 0.2 ms; fixed, because the order of sums depends on it
_EXPLODED = 10.0  # times the objective of the start: clipping at 0 keeps many an explosion finite for a while
_CHECK_EVERY = 10  # rounds, where the steps are given: as ALAD does
_FIRST_PACE = 2.0


def check_terms(terms: Terms | Objective) -> None:
    """Raise a ValueError for objectives that block SGD is not defined for."""
    if terms.laplacian or math.isfinite(terms.row_bound):
        raise ValueError("Block SGD is for NMF, SNMF and NS-NMF: no Laplacian term, no bounded rows of H.")


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


def write_draws(rng: Any) -> str:
    """Write the state of a source of random numbers as text, so that a run can go on drawing where it stopped."""
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


class _SGDDescent(Descent):
    """What the two runs have in common: the rounds, the rules to stop, and all that they look at."""

    _settings: BlockSGD
    _terms: Terms
    _rng: Any
    _B: int
    _first: float  # value of the objective
    _last: float
    _pace = _FIRST_PACE
    _rounds = 0
    _stalls = 0

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
    def settled(self) -> bool:
        return self.remaining < (self._settings.stall or BlockSGD.stall)

    @property
    def _stalled(self) -> bool:
        """Whether the objective has stopped falling: as ALAD finds it, or in truth."""
        if self._settings.stall == 0:
            return False
        return self._stalls >= 2 if self._given else self._stalls >= 1 and self.settled

    @property
    def remaining(self) -> float:
        if self._remaining is None:
            self._remaining = 1 - self._swept() / self._last if self._last > 0 else 0.0
        return self._remaining

    _remaining: float | None = None

    @abstractmethod
    def _swept(self) -> float:
        """Compute the objective after one exact sweep of coordinate descent, which is not kept."""


class BlockSGDDescent(_SGDDescent, InMemoryDescent):
    """A run with all of W in memory: two copies, of which a round reads one and writes the other, and Gram matrices."""

    def __init__(
        self, objective: Objective, start: Factors, settings: BlockSGD, rng: Any, bounds: IndexArray | None = None
    ) -> None:
        """Begin with blocks of equal runs of rows, unless `bounds` says where each begins and the last one ends."""
        check_terms(objective)
        self.objective, self._terms, self._settings, self._rng = objective, objective.terms, settings, rng
        self._W = start.W.copy(order="C")
        self._moved = np.empty_like(self._W)
        self._Ht = start.H.T.copy(order="C")
        rows = equal_runs(objective.n_rows, min(settings.n_blocks, objective.n_rows)) if bounds is None else bounds
        self._B = len(rows) - 1
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
            SW = self.objective.spread(self._W)
            value = self.objective.value_from(self.factors, self._grams.sum(axis=0), attributes.result(), SW)
        self._note(value, len(rounds))
        return value

    def take_round(self, instances: Instances, number: int, pool: ThreadPoolExecutor, threads: int) -> None:
        """Ahmed et al. (2021), eq:update: θ ← max(0, θ − ε∇L_ijk) for all instance sets of a round."""
        objective, terms = self.objective, self._terms
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
                objective.degree, self._grams, self._entries, *objective.graph[1:], start, stop, self._piece_grams,
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


class Meeting(NamedTuple):
    """What a block receives of its instance set {i,j,k}."""

    weights: FloatArray  # of `step_rows`
    bends: FloatArray  # of the groups
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


class ExecutorSGDDescent(_SGDDescent):
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
        self._problem, self._terms, self._settings, self._rng = problem, problem.terms, settings, rng
        self._B = problem.executor.n_blocks
        self._Ht = H.T.copy(order="C")
        self._columns = equal_runs(problem.terms.n_columns, self._B)
        places = problem.executor.each(look, "W")
        self._offered = [place.offers for place in places]
        self._bounds = np.cumsum([0, *(len(rows) for rows in self._offered)])
        if snapshot is not None:
            self._grams = np.asarray(snapshot["grams"], dtype=np.float64)
            self._first, self._last = float(snapshot["history"][0]), float(snapshot["history"][-1])
            self._rounds, self._stalls = int(snapshot["rounds"]), int(snapshot["stalls"])
            self._pace = float(snapshot["pace"])
            return
        self._grams = np.array([place.G for place in places])
        self._first = self._last = self._measure()

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
        """Return plain values and arrays from which, with the history and the blocks' states, a run continues."""
        return {
            "H": self.H,
            "grams": self._grams,
            "pace": self._pace,
            "rounds": self._rounds,
            "stalls": self._stalls,
            "draws": write_draws(self._rng),
        }

    @property
    def H(self) -> FloatArray:
        return np.ascontiguousarray(self._Ht.T)

    def value(self) -> float:
        return self._last

    def kkt_residual(self) -> float:
        return self._problem.judge(self.H)[1]

    def step(self) -> float:
        """Take some rounds, then evaluate the objective. Algorithm 1."""
        rounds = self._draw_rounds()
        for number, instances in rounds:
            self._take_round(instances, number)
        self._note(self._measure(), len(rounds))
        return self._last

    def _swept(self) -> float:
        return sweep_once(self._problem, self.H)

    def _measure(self) -> float:
        """Compute the objective from the blocks' sums."""
        standings = self._problem.executor.each(stand, self._problem.terms)
        return self._problem.value(self.H, self._problem.sums_of(standings), offers_of(standings))

    def _take_round(self, instances: Instances, number: int) -> None:
        """Ahmed et al. (2021), eq:update: every block steps once, then every block of columns of H that was drawn."""
        executor = self._problem.executor
        steps = self._steps(number, self._grams.sum(axis=0), self._Ht)
        meetings = {}
        for i, j, k in instances:
            for block, partner in ((i, j), (j, i)):
                meetings[block] = self._meeting(block, partner, k, steps)
        moved: list[Moved] = executor.each(step_block, apart=[(meetings[b],) for b in range(self._B)])
        self._grams = np.array([report.gram for report in moved])
        self._offered = [report.offered for report in moved]
        if self._terms.alpha:
            self._move_profiles(instances, [report.slope for report in moved], steps)

    def _meeting(self, block: int, partner: int, k: int, steps: Steps) -> Meeting:
        weights = np.array(steps.weights(self._terms, self._B, alone=block == partner))
        columns = (int(self._columns[k]), int(self._columns[k + 1])) if self._terms.alpha else (0, 0)
        rows, first = None, 0
        if block != partner:
            # Border rows are in the order of their blocks, for they are named by places in the list of all offers.
            needs = self._problem.coupling.needs[block]
            ends: IndexArray = self._bounds[partner : partner + 2]
            first, last = (int(place) for place in np.searchsorted(needs, ends))
            rows = self._offered[partner][needs[first:last] - ends[0]]
        H = self._Ht[columns[0] : columns[1]]
        return Meeting(weights, steps.weight_bends, self._grams[partner], rows, first, H, columns)

    def _move_profiles(self, instances: Instances, slopes: list[FloatArray], steps: Steps) -> None:
        alpha, ridge, moved = self._terms.alpha, 2 * self._terms.gamma / self._B, self._Ht.copy()
        held = steps.profile_bends > 0
        for i, j, k in instances:
            columns, length = slice(self._columns[k], self._columns[k + 1]), steps.length * steps.shares[i == j]
            gradient = alpha * (slopes[i] + slopes[j]) + ridge * self._Ht[columns]
            change = np.where(held, length * gradient / np.where(held, steps.profile_bends, 1.0), 0.0)
            moved[columns] = np.maximum(self._Ht[columns] - change, 0.0)
        self._Ht = moved


def draw_weights(block: RowBlock, state: State, seed: int, n_components: int, number: int) -> tuple[State, None]:
    """Draw ALAD's start of W from a stream of the block's own."""
    return {**state, "W": start_weights(seed, number, block.n, n_components)}, None


def start_weights(seed: int, number: int, n: int, n_components: int) -> FloatArray:
    """Draw the start of block `number`: 1 + number, because NumPy takes [seed, 0, 0] for [seed, 0], the stream of H."""
    return 0.1 * np.random.default_rng([seed, 0, 1 + number]).random((n, n_components))


def start_profiles(seed: int, n_components: int, n_columns: int) -> FloatArray:
    """Draw the start of H."""
    return 0.1 * np.random.default_rng([seed, 0]).random((n_components, n_columns))


def step_block(block: RowBlock, state: State, meeting: Meeting) -> tuple[State, Moved]:
    """Ahmed et al. (2021), eq:update, for the rows of one block: W ← max(0, W − ε∇L_ijk)."""
    W = state["W"]
    K = W.shape[1]
    partners, low = (W, 0) if meeting.partners is None else (meeting.partners, block.n + meeting.first_border)
    first, last = np.empty(block.n, np.int64), np.empty(block.n, np.int64)
    find_entries(block.indptr, block.indices, low, low + len(partners), first, last)
    (begin, end), H = meeting.columns, np.ascontiguousarray(meeting.H)
    A = np.empty((block.n, end - begin))
    if end > begin and block.rows is not None:  # read each time again: a table in a file may be larger than memory
        for at, chunk in block.rows.chunks():
            A[at : at + len(chunk)] = chunk[:, begin:end]
    moved, gram, slope = np.empty_like(W), np.zeros((K, K)), np.zeros_like(H)
    for _, start, stop in cut_pieces(np.array([0, block.n], dtype=np.int64)):
        part, part_slope = np.zeros_like(gram), np.zeros_like(slope)
        step_rows(
            W, start, stop, A, H, meeting.weights, meeting.bends, block.degree, meeting.gram, first, last,
            block.indices, block.data, partners, low, moved, part, part_slope,
        )  # fmt: skip
        gram += part
        slope += part_slope
    return {**state, "W": moved}, Moved(gram, slope, moved[block.offers])
