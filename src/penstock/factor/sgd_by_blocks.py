"""Algorithm 1 of the paper by blocks of rows that a crew works on: this machine's threads, or a cluster."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

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
    step_block,
)
from penstock.factor.blocks import Crew, Wiring
from penstock.factor.start import draw_seed, draws_from
from penstock.factor.strata import (
    Course,
    StepSettings,
    draw_instances,
    equal_runs,
    read_draws,
    step_length,
    step_scales,
    write_draws,
)
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
