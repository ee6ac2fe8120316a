"""Algorithm 1 of the paper by blocks of rows that an executor steps: this machine's threads, or a cluster."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from penstock._blas import one_blas_thread
from penstock._types import Factors, FloatArray, IndexArray
from penstock.factor._sgd_work import (
    Fit,
    Meeting,
    Moved,
    Outset,
    draw_weights,
    measure_fit,
    measure_residual,
    stand,
    start_profiles,
    start_weights,
    step_block,
)
from penstock.factor.blocks import Crew, Layout, LocalCrew, Wiring, equal_runs
from penstock.factor.objectives import Objective
from penstock.factor.start import draw_seed, draws_from
from penstock.factor.terms import Gaps, Sums, Terms, Weighed, value_of


@dataclass(frozen=True, eq=False)
class SGDSolution:
    """What a run by blocks returns; W stays with the crew, as the part "W" of the blocks' states."""

    H: FloatArray
    objective: float
    n_iter: int
    settled: bool  # whether it was done rather than out of rounds
    history: FloatArray  # the objective at the start and after each check


def refuse_other_terms(terms: Weighed) -> None:
    """A ValueError for objectives that block SGD is not defined for."""
    if terms.laplacian or math.isfinite(terms.row_bound):
        raise ValueError("Block SGD is for NMF, SNMF and NS-NMF: no Laplacian term, no bounded rows of H.")


def sgd_by_blocks(
    crew: Crew,
    wiring: Wiring,
    terms: Weighed,
    n_components: int,
    settings: StepSettings,
    random_state: Any = None,
    *,
    max_iter: int | None = None,
    progress: Callable[[int, float], None] | None = None,
    checkpoint: Callable[[dict[str, Any]], None] | None = None,
    resume: Mapping[str, Any] | None = None,
) -> SGDSolution:
    """Block SGD over the crew's blocks, from ALAD's start. Ahmed et al. (2021), Algorithm 1.

    One iteration is `rounds_per_check` rounds. After each, `progress` is called with its number and the objective, and
    `checkpoint` with all that the driver knows, plain values and arrays. With such a record as `resume`, and the states
    that the crew had then, the run goes on as if it had never stopped, to the last bit.

    >>> from penstock.factor import BlockSGD, nmf
    >>> from penstock.factor.blocks import ArrayRows, LocalCrew, cut_graph
    >>> from dataclasses import replace
    >>> A = np.outer([1.0, 2.0, 3.0, 4.0], [1.0, 1.0])
    >>> blocks, wiring = cut_graph(None, np.arange(4), np.array([0, 2, 4]))
    >>> crew = LocalCrew([replace(b, rows=ArrayRows(A[f:f + 2])) for b, f in zip(blocks, (0, 2))])
    >>> solution = sgd_by_blocks(crew, wiring, nmf(A), 1, BlockSGD(stall=0.0), 0)
    >>> solution.n_iter, solution.objective < 0.01, [W.shape for W in crew.gather("W")]
    (70, True, [(2, 1), (2, 1)])
    """
    with one_blas_thread():
        if resume is None:
            rng = draws_from(random_state)
            seed = draw_seed(rng)
            crew.each(draw_weights, seed, n_components, apart=[(number,) for number in range(crew.n_blocks)])
            run = CrewDescent(crew, wiring, terms, settings, start_profiles(seed, n_components, terms.n_columns), rng)
        else:
            run = CrewDescent.resume(crew, wiring, terms, settings, resume)
        while not run.finished and (max_iter is None or len(run.history) <= max_iter):
            value = run.step()
            if progress is not None:
                progress(len(run.history) - 1, value)
            if checkpoint is not None:
                checkpoint(run.snapshot())
    return SGDSolution(run.H, run.history[-1], len(run.history) - 1, run.settled, np.array(run.history))


class CrewDescent:
    """The driver's part of a run: H, the blocks' Gram matrices, and the rows that blocks tell each other."""

    residual = math.inf

    def __init__(
        self, crew: Crew, wiring: Wiring, terms: Weighed, settings: StepSettings, H: FloatArray, rng: Any
    ) -> None:
        """From the weights W that the crew has in its states."""
        self._attend(crew, wiring, terms, settings, H, rng)
        G, Q = self._grams.sum(axis=0), H @ H.T
        self._scales = step_scales(self._terms, G, Q, self._max_degree, settings, crew.n_blocks)
        value = self._measure()
        self._course = Course(value, value)
        self.history = [value]

    @classmethod
    def resume(
        cls, crew: Crew, wiring: Wiring, terms: Weighed, settings: StepSettings, snapshot: Mapping[str, Any]
    ) -> CrewDescent:
        """A run that goes on from a `snapshot`, the crew having the states of that time."""
        run = cls.__new__(cls)
        H = np.asarray(snapshot["H"], dtype=np.float64)
        run._attend(crew, wiring, terms, settings, H, read_draws(snapshot["draws"]))
        run._scales = (float(snapshot["scales"][0]), float(snapshot["scales"][1]))
        run.history = [float(value) for value in snapshot["history"]]
        rounds, stalls = int(snapshot["rounds"]), int(snapshot["stalls"])
        run._course = Course(run.history[0], run.history[-1], rounds, stalls)
        return run

    def _attend(
        self, crew: Crew, wiring: Wiring, terms: Weighed, settings: StepSettings, H: FloatArray, rng: Any
    ) -> None:
        """Learn how the blocks stand.

        ‖A‖² and ‖S‖² are theirs, too, not those of `terms`: summed in another order they would have other last bits.
        """
        refuse_other_terms(terms)
        if H.shape[1] != terms.n_columns:
            raise ValueError(f"H must have the table's {terms.n_columns} columns, but has {H.shape[1]}.")
        self._crew, self._wiring, self._settings, self._rng = crew, wiring, settings, rng
        self._Ht = H.T.copy(order="C")
        self._columns = equal_runs(terms.n_columns, crew.n_blocks)
        reports: list[Outset] = crew.each(stand)
        self._grams = np.array([report.gram for report in reports])
        self._offered = [report.offered for report in reports]
        self._places = np.cumsum([0, *(len(rows) for rows in self._offered)])
        self._max_degree = max(report.max_degree for report in reports)
        norm_A, norm_S, count = np.sum([report.sizes for report in reports], axis=0).tolist()
        self._terms = replace(Terms.of(terms), norm_A=norm_A, norm_S=norm_S)
        self._is_dense = count == terms.n_rows**2

    @property
    def H(self) -> FloatArray:
        return np.ascontiguousarray(self._Ht.T)

    @property
    def factors(self) -> Factors:
        """W has the blocks' rows one below the other."""
        return Factors(np.concatenate(self._crew.gather("W")), self.H)

    @property
    def finished(self) -> bool:
        return self._course.finished(self._settings)

    @property
    def settled(self) -> bool:
        return self._course.settled(self._settings)

    def snapshot(self) -> dict[str, Any]:
        """All that a run needs to go on, beside the crew's states: plain values and arrays."""
        return {
            "H": self.H,
            "scales": list(self._scales),
            "rounds": self._course.rounds,
            "stalls": self._course.stalls,
            "history": np.array(self.history),
            "draws": write_draws(self._rng),
        }

    def step(self) -> float:
        """A few rounds, then a look at the objective: Algorithm 1 as ALAD runs it."""
        rounds = self._course.rounds_to_check(self._settings)
        for number in rounds:
            self._take_round(draw_instances(self._crew.n_blocks, self._rng), number)
        self._course.note(self._measure(), len(rounds), self._settings)
        self.history.append(self._course.value)
        return self._course.value

    def _take_round(self, instances: list[tuple[int, int, int]], number: int) -> None:
        """Ahmed et al. (2021), eq:update: every block steps once, then every block of columns of H that was drawn."""
        step = step_length(self._settings, number)
        told = {}
        for i, j, k in instances:
            for block, partner in ((i, j), (j, i)):
                told[block] = self._meeting(block, partner, k, step * self._scales[0])
        moved: list[Moved] = self._crew.each(step_block, apart=[(told[b],) for b in range(self._crew.n_blocks)])
        self._grams = np.array([report.gram for report in moved])
        self._offered = [report.offered for report in moved]
        if self._terms.alpha:
            self._move_profiles(instances, [report.slope for report in moved], step * self._scales[1])

    def _meeting(self, block: int, partner: int, k: int, step: float) -> Meeting:
        terms = self._terms
        share = 2.0 if block == partner else 1.0
        weights = np.array([2 * terms.symmetric, terms.alpha, terms.gamma / self._crew.n_blocks]) * share
        columns = (int(self._columns[k]), int(self._columns[k + 1])) if terms.alpha else (0, 0)
        told, first = (None, 0) if block == partner else self._told(block, partner)
        H = self._Ht[columns[0] : columns[1]]
        return Meeting(np.array([step, *weights]), self._grams[partner], told, first, H, columns)

    def _told(self, block: int, partner: int) -> tuple[FloatArray, int]:
        """The partner's rows that the block is similar to, and where among all of its border rows they begin.

        Border rows are in the order of their blocks, for they are named by places in the list of all offers.
        """
        needs = self._wiring.needs[block]
        ends: IndexArray = self._places[partner : partner + 2]
        first, last = (int(place) for place in np.searchsorted(needs, ends))
        return self._offered[partner][needs[first:last] - ends[0]], first

    def _move_profiles(self, instances: list[tuple[int, int, int]], slopes: list[FloatArray], step: float) -> None:
        ridge = 2 * self._terms.gamma / self._crew.n_blocks
        moved = self._Ht.copy()
        for i, j, k in instances:
            columns = slice(self._columns[k], self._columns[k + 1])
            gradient = self._terms.alpha * (slopes[i] + slopes[j]) + ridge * self._Ht[columns]
            moved[columns] = np.maximum(self._Ht[columns] - step * gradient, 0.0)
        self._Ht = moved

    def _measure(self) -> float:
        """The objective, from the blocks' sums."""
        terms, G, H = self._terms, self._grams.sum(axis=0), self.H
        fits: list[Fit] = self._crew.each(measure_fit, terms.n_columns if terms.alpha else 0)
        within = np.sum([fit.similarities for fit in fits], axis=0)
        agreement, energy, misfit = (within + self._fit_across()).tolist()
        V = np.sum([fit.V for fit in fits], axis=0)

        def gaps() -> Gaps:
            attributes = sum(self._crew.each(measure_residual, H)) if terms.alpha else 0.0
            off_graph = 0.0 if self._is_dense else max(float(np.vdot(G, G)) - energy, 0.0)
            return Gaps(attributes, misfit, off_graph)

        return value_of(terms, H, Sums(G, V, agreement, 0.0), gaps)

    def _fit_across(self) -> FloatArray:
        """What `fit_within` sums, over the similarities between blocks, each of which is in S twice."""
        offered, similarities = np.concatenate(self._offered), self._wiring.similarities
        fitted = np.sum(offered[self._wiring.ends[:, 0]] * offered[self._wiring.ends[:, 1]], axis=1)
        misfit = similarities - fitted
        return 2 * np.array([np.vdot(similarities, fitted), np.vdot(fitted, fitted), np.vdot(misfit, misfit)])


_EXPLODED = 10.0  # times the objective of the start: clipping at 0 keeps many an explosion finite for a while


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


class StepSettings(Protocol):
    """The settings of `BlockSGD` that rounds and checks go by."""

    @property
    def first_step(self) -> float: ...
    @property
    def last_step(self) -> float: ...
    @property
    def rounds(self) -> int: ...
    @property
    def rounds_per_check(self) -> int: ...
    @property
    def stall(self) -> float: ...
    @property
    def scale_steps(self) -> bool: ...


def step_length(settings: StepSettings, number: int) -> float:
    """The step of one round: it falls linearly from the first round to the last."""
    share = number / max(settings.rounds - 1, 1)
    return settings.first_step + share * (settings.last_step - settings.first_step)


def step_scales(
    terms: Weighed, G: FloatArray, Q: FloatArray, max_degree: float, settings: StepSettings, n_blocks: int
) -> tuple[float, float]:
    """What W's and H's steps are multiplied by, from G = WᵀW and Q = HHᵀ of the start; see `BlockSGD`."""
    if not settings.scale_steps:
        return 1.0, 1.0
    size = math.sqrt(terms.norm_A) if terms.alpha else 0.0
    degree = max_degree if terms.symmetric else 0.0
    g = max(_top(G), degree, size)
    q = max(_top(Q), size)
    bend_W = 4 * terms.symmetric * (3 * g + degree) + 2 * terms.alpha * q + 2 * terms.gamma / n_blocks
    bend_H = 2 * terms.alpha * g + 2 * terms.gamma / n_blocks
    longest = settings.first_step
    return 1 / max(1.0, longest * bend_W), 1 / max(1.0, longest * bend_H)


def _top(gram: FloatArray) -> float:
    return float(np.linalg.eigvalsh(gram)[-1])


@dataclass
class Course:
    """How a run has gone so far, and what that means for it: all that its rules to stop look at.

    >>> from penstock.factor import BlockSGD
    >>> course = Course(first=8.0, value=8.0)
    >>> for value in (4.0, 4.0, 4.0):
    ...     course.note(value, 10, BlockSGD())
    >>> course.rounds, course.stalls, course.finished(BlockSGD())
    (30, 2, True)
    """

    first: float
    value: float
    rounds: int = 0
    stalls: int = 0

    def note(self, value: float, rounds: int, settings: StepSettings) -> None:
        """The objective after some more rounds; an error if it says that the steps are too long."""
        self.rounds += rounds
        if not value <= _EXPLODED * self.first:  # NaN is not, either
            raise FloatingPointError(
                f"Block SGD exploded by round {self.rounds}: its steps are too long for these similarities. Use "
                "scale_steps=True, shorter steps, a bounded similarity ('normalized', 'binary'), or another solver."
            )
        self.stalls = self.stalls + 1 if self.value - value < settings.stall * self.value else 0
        self.value = value

    def rounds_to_check(self, settings: StepSettings) -> range:
        """The rounds up to the next look at the objective."""
        return range(self.rounds, min(self.rounds + settings.rounds_per_check, settings.rounds))

    def finished(self, settings: StepSettings) -> bool:
        return self._stalled(settings) or self.rounds >= settings.rounds

    def settled(self, settings: StepSettings) -> bool:
        """Whether it is done rather than out of rounds: without a stall rule all rounds were the wish."""
        return self._stalled(settings) or (settings.stall == 0 and self.rounds >= settings.rounds)

    def _stalled(self, settings: StepSettings) -> bool:
        return settings.stall > 0 and self.stalls >= 2


def write_draws(rng: Any) -> str:
    """Where a source of random numbers is, as text, so that a run can go on drawing where it was interrupted.

    >>> rng = np.random.default_rng(3)
    >>> later = read_draws(write_draws(rng))
    >>> later.random() == rng.random()
    True
    """
    is_generator = isinstance(rng, np.random.Generator)
    state = rng.bit_generator.state if is_generator else rng.get_state(legacy=False)
    return json.dumps({"generator": is_generator, "state": state}, default=np.ndarray.tolist)


def read_draws(text: str) -> Any:
    """The source of random numbers that `write_draws` wrote down."""
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


def begin_in_space(
    layout: Layout, objective: Objective, start: Factors, settings: StepSettings, rng: Any
) -> CrewDescent:
    """A run on this machine's threads. The start's rows are in the order of the blocks."""
    blocks, wiring = layout.cut(objective)
    crew = LocalCrew(blocks, [{"W": W} for W in np.split(start.W, layout.bounds[1:-1])])
    return CrewDescent(crew, wiring, objective, settings, start.H, rng)


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
