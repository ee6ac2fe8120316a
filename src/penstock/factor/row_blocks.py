"""Coordinate descent by blocks of rows: all blocks sweep at once, and go together as far as the loss keeps falling."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock._blas import one_blas_thread
from penstock._parameters import check_whole_number
from penstock._types import FloatArray
from penstock.factor._block_sums import (
    add_up,
    borders_of,
    gaps_after,
    gram_of,
    mean_of,
    offers_after,
    offers_of,
    steps_of,
    sums_after,
)
from penstock.factor._block_work import Place, advance, begin, judge, look, sweep
from penstock.factor.auto import Auto
from penstock.factor.block_starts import BlockStart, best_start, one_start
from penstock.factor.blocks import Crew, Wiring
from penstock.factor.coordinate import Coordinate, next_pace, reach, update_profiles
from penstock.factor.loop import MAX_ITER, TOL, Progress, descend
from penstock.factor.stationarity import profile_parts, profile_residual, shorten_rows
from penstock.factor.terms import Terms, has_risen, value_of


@dataclass(frozen=True)
class RowBlocks:
    """Settings of coordinate descent by blocks of rows, for several cores. The loss never rises.

    The rows are cut into `n_blocks` blocks of near neighbours; fewer where the table has not enough different rows.
    Each block sweeps its own rows by exact coordinate steps with the others' weights as they were, so that the result
    depends on the number of blocks, but not on the number of threads that work on them. `profile_passes` passes over H
    follow each sweep.

    >>> RowBlocks().n_blocks
    8
    """

    n_blocks: int = 8
    profile_passes: int = 2

    def __post_init__(self) -> None:
        check_whole_number("n_blocks", self.n_blocks, least=1)
        check_whole_number("profile_passes", self.profile_passes, least=1)


class RowBlockDescent:
    """A run under way on the rows that a crew holds, each block's part of W in its state.

    What is known here are sums over rows and the few rows that touch other blocks. An iteration is a sweep of every
    block from y, a little further along the way that the last iteration went (Nesterov's momentum), and H's best
    answer to it. f along the joint step D of all blocks is a quartic, so its minimum on the way is known, and so is
    where it would end without momentum, should it end higher: the loss never rises.
    """

    finished = settled = False

    def __init__(self, crew: Crew, wiring: Wiring, terms: Terms, H: FloatArray, profile_passes: int) -> None:
        self._crew, self._wiring, self._terms, self._passes = crew, wiring, terms, profile_passes
        self._H = self._reached = self._next = H
        self._pace, self._push, self._value = 1.0, 0.0, math.inf
        self._steps = np.ones(crew.n_blocks)
        self._places: list[Place] = []
        self._judged: tuple[float, float] | None = None
        self.residual = math.inf

    @classmethod
    def resumed(
        cls, crew: Crew, wiring: Wiring, terms: Terms, profile_passes: int, snapshot: Mapping[str, Any]
    ) -> RowBlockDescent:
        """Go on where a snapshot was taken, with a crew whose blocks have the states of that moment."""
        descent = cls(crew, wiring, terms, np.asarray(snapshot["H"], dtype=np.float64), profile_passes)
        descent._reached = np.asarray(snapshot["reached"], dtype=np.float64)
        descent._pace, descent._push = float(snapshot["pace"]), float(snapshot["push"])
        if snapshot["value"] is not None:  # not before the first step
            descent._value, descent.residual = float(snapshot["value"]), float(snapshot["residual"])
            descent._places = crew.each(look, "y")
        return descent

    def snapshot(self) -> dict[str, Any]:
        """All that is known here: arrays, and numbers or None. The blocks' states of the same moment belong to it."""
        begun = math.isfinite(self._value)
        return {
            "H": self._H.copy(),
            "reached": self._reached.copy(),
            "pace": self._pace,
            "push": self._push,
            "value": self._value if begun else None,
            "residual": self.residual if begun else None,
        }

    @property
    def H(self) -> FloatArray:
        return self._H

    def step(self) -> float:
        """One iteration; returns the objective after it and leaves in `residual` how far from stationary it began."""
        if not self._places:
            self._places = self._crew.each(begin)
        value = self._sweep()
        if self._push > 0.0 and has_risen(self._terms, value, self._value):
            self._pace, self._reached = 1.0, self._H
            self._places = self._crew.each(begin)
            value = self._sweep()
        self._pace, self._push = next_pace(self._pace)
        self._reached = shorten_rows(reach(self._next, self._H, self._push), self._terms.row_bound)
        self._H, self._value, self._judged = self._next, value, None
        self._places = self._crew.each(advance, self._push, apart=[(float(t),) for t in self._steps])
        return value

    def value(self) -> float:
        """The objective."""
        return self._judge()[0]

    def kkt_residual(self) -> float:
        """See `Objective.kkt_residual`."""
        return self._judge()[1]

    def _sweep(self) -> float:
        """Sweep from y; leaves the steps to take and the H to go with them, and returns the objective there."""
        crew, wiring, terms, H, places = self._crew, self._wiring, self._terms, self._reached, self._places
        G, mean = gram_of(places), mean_of(terms, places)
        swept = crew.each(sweep, terms, H, G, mean, apart=borders_of(wiring, places))
        self._steps = steps = steps_of(terms, wiring, H, places, swept).choose()
        self.residual = math.sqrt(sum(report.residual for report in swept) / terms.n_rows)
        sums = sums_after(terms, wiring, places, swept, steps)
        self._next = H = H.copy()
        if terms.alpha:
            self.residual = max(self.residual, update_profiles(terms, H, sums.G, sums.V))
            for _ in range(self._passes - 1):
                update_profiles(terms, H, sums.G, sums.V)
        offered = offers_after(places, swept, steps)
        return value_of(terms, H, sums, lambda: gaps_after(crew, wiring, terms, H, sums.G, steps, offered))

    def _judge(self) -> tuple[float, float]:
        """The objective and the KKT residual of W and H as they are."""
        if self._judged is None:
            crew, wiring, terms, H = self._crew, self._wiring, self._terms, self._H
            places = crew.each(look, "W")
            G, mean = gram_of(places), mean_of(terms, places)
            reports = crew.each(judge, terms, H, G, mean, apart=borders_of(wiring, places))
            residual = math.sqrt(sum(squares for squares, _ in reports) / terms.n_rows)
            offered, stay = offers_of(places), np.zeros(crew.n_blocks)
            sums = add_up(terms, wiring, offered, [sums for _, sums in reports])
            if terms.alpha:
                parts = profile_parts(terms, H, sums.G, sums.V)
                residual = max(residual, profile_residual(terms, H, np.diag(G), parts))
            value = value_of(terms, H, sums, lambda: gaps_after(crew, wiring, terms, H, G, stay, offered))
            self._judged = value, residual
        return self._judged


@dataclass(frozen=True, eq=False)
class BlockSolution:
    """What `fit_by_blocks` returns: a `Solution` but for W, which stays with the crew (``crew.gather("W")``)."""

    H: FloatArray
    objective: float
    n_iter: int
    converged: bool
    kkt_residual: float
    history: FloatArray
    start_objectives: FloatArray


Checkpoint = Callable[[dict[str, Any]], None]


def fit_by_blocks(
    crew: Crew,
    wiring: Wiring,
    terms: Terms,
    n_components: int,
    settings: Auto | RowBlocks | None = None,
    max_iter: int = MAX_ITER,
    tol: float = TOL,
    random_state: Any = None,
    progress: Progress | None = None,
    checkpoint: Checkpoint | None = None,
    resume: Mapping[str, Any] | None = None,
) -> BlockSolution:
    """Draw the start or starts and minimise the objective over blocks of rows. Ahmed et al. (2021), eq:main.

    The crew says how many blocks there are, whatever the settings do. Every block draws its own rows of W, from
    ``default_rng([seed, start, 1 + block])``, with one seed from `random_state`; H is from ``[seed, start]``.

    After the burn-ins and after each iteration `checkpoint` is given a snapshot, a dict of arrays and numbers. Whoever
    has kept the blocks' states of that moment goes on from there, with it as `resume`, to the same bits.

    >>> from penstock.factor import nmf
    >>> from penstock.factor.local_blocks import LocalBlocks
    >>> local = LocalBlocks.of(objective := nmf(np.eye(4)), 2)
    >>> solution = fit_by_blocks(local.crew(), local.wiring, Terms.of(objective), 4, tol=1e-9, random_state=0)
    >>> solution.converged, solution.objective < 1e-12
    (True, True)
    """
    settings = Auto() if settings is None else settings
    with one_blas_thread():
        if resume is not None:
            descent = RowBlockDescent.resumed(crew, wiring, terms, _passes(settings), resume)
            return _go_on(descent, *_past(resume), max_iter, tol, progress, checkpoint)
        if isinstance(settings, Auto):
            burn_in = min(settings.burn_in, max_iter // 2)
            start = best_start(crew, wiring, terms, n_components, settings.n_starts, burn_in, random_state)
        else:
            start = one_start(crew, wiring, terms, n_components, random_state)
        return descend_from(crew, wiring, terms, start, settings, max_iter, tol, progress, checkpoint)


def descend_from(
    crew: Crew,
    wiring: Wiring,
    terms: Terms,
    start: BlockStart,
    settings: Auto | RowBlocks,
    max_iter: int,
    tol: float,
    progress: Progress | None,
    checkpoint: Checkpoint | None = None,
) -> BlockSolution:
    """Minimise the objective from one start, the W of which the blocks have; its history is continued."""
    descent = RowBlockDescent(crew, wiring, terms, start.H, _passes(settings))
    history, starts = start.history or [descent.value()], start.start_objectives
    starts = np.zeros(0) if starts is None else starts
    if checkpoint is not None:
        checkpoint(_whole_snapshot(descent, history, starts))
    return _go_on(descent, history, starts, max_iter, tol, progress, checkpoint)


def _go_on(
    descent: RowBlockDescent,
    history: list[float],
    starts: FloatArray,
    max_iter: int,
    tol: float,
    progress: Progress | None,
    checkpoint: Checkpoint | None,
) -> BlockSolution:
    def save(so_far: list[float]) -> None:
        if checkpoint is not None:
            checkpoint(_whole_snapshot(descent, so_far, starts))

    done = descend(descent, history, max_iter, tol, progress, save)
    starts = starts if len(starts) else done.history[-1:]
    return BlockSolution(
        H=descent.H,
        objective=done.objective,
        n_iter=done.n_iter,
        converged=done.converged,
        kkt_residual=done.kkt_residual,
        history=done.history,
        start_objectives=starts,
    )


def _past(snapshot: Mapping[str, Any]) -> tuple[list[float], FloatArray]:
    """The history and the starts' objectives up to a snapshot."""
    return [float(value) for value in snapshot["history"]], np.asarray(snapshot["start_objectives"], dtype=np.float64)


def _whole_snapshot(descent: RowBlockDescent, history: list[float], starts: FloatArray) -> dict[str, Any]:
    return {**descent.snapshot(), "history": np.array(history), "start_objectives": starts}


def _passes(settings: Auto | RowBlocks) -> int:
    return Coordinate().profile_passes if isinstance(settings, Auto) else settings.profile_passes
