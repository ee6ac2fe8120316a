"""Coordinate descent by blocks of rows: all blocks sweep at once, then take the joint step of least loss."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from penstock._blas import one_blas_thread
from penstock._parameters import check_whole_number
from penstock._types import Factors, FloatArray, Solution
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
from penstock.factor._block_work import (
    Place,
    Standing,
    advance,
    begin,
    draw,
    judge,
    look,
    multiply,
    rescale,
    settle,
    sweep,
)
from penstock.factor.blocks import Crew, Layout, LocalCrew, RowBlock, Wiring
from penstock.factor.coordinate import Coordinate, next_pace, reach, update_profiles
from penstock.factor.loop import MAX_ITER, TOL, Progress, descend, finite
from penstock.factor.multiplicative import FLOOR, Multiplicative, scale_profiles
from penstock.factor.objectives import Objective
from penstock.factor.start import Auto, best_scales, draw_seed, draws_from
from penstock.factor.terms import Sums, Terms, has_risen, profile_parts, profile_residual, shorten_rows, value_of


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
    >>> from penstock.factor.row_blocks import LocalBlocks
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


@dataclass(frozen=True, eq=False)
class BlockStart:
    """Where a descent starts: H (the blocks have W), and the objective on the way there, if there was one."""

    H: FloatArray
    history: list[float]
    start_objectives: FloatArray | None = None


def one_start(crew: Crew, wiring: Wiring, terms: Terms, n_components: int, random_state: Any) -> BlockStart:
    """Random factors on the scale of the problem, as they are."""
    seed = draw_seed(draws_from(random_state))
    H, _ = _drawn(crew, wiring, terms, n_components, seed, 0, keep=False, floor=0.0)
    return BlockStart(H, [])


def best_start(
    crew: Crew, wiring: Wiring, terms: Terms, n_components: int, n_starts: int, burn_in: int, random_state: Any
) -> BlockStart:
    """The best of some random starts after a burn-in of each."""
    seed = draw_seed(draws_from(random_state))
    best, keep = BlockStart(np.zeros((0, 0)), []), False
    ends: list[float] = []
    for start in range(n_starts):
        H, standings = _drawn(crew, wiring, terms, n_components, seed, start, keep, FLOOR)
        tried = _burnt_in(crew, wiring, terms, H, standings, burn_in)
        keep = not ends or tried.history[-1] < best.history[-1]
        best = tried if keep else best
        ends.append(tried.history[-1])
    crew.each(settle, keep)
    return BlockStart(best.H, best.history, np.array(ends))


def given_start(crew: Crew, wiring: Wiring, terms: Terms, H: FloatArray, burn_in: int) -> BlockStart:
    """Multiplicative updates from the W that the blocks have."""
    return _burnt_in(crew, wiring, terms, H, crew.each(rescale, terms, 1.0, FLOOR), burn_in)


def _drawn(
    crew: Crew, wiring: Wiring, terms: Terms, n_components: int, seed: int, start: int, keep: bool, floor: float
) -> tuple[FloatArray, list[Standing]]:
    """Uniform random factors times the numbers that suit the objective best (see `random_start`).

    H is drawn from the stream [seed, start], the rows of block b from [seed, start, 1 + b].
    """
    H = np.random.default_rng([seed, start]).random((n_components, terms.n_columns))
    numbers = [(number,) for number in range(crew.n_blocks)]
    sums = _added(terms, wiring, crew.each(draw, terms, n_components, seed, start, keep, apart=numbers))
    fit, energy = float(np.vdot(sums.V, H)), float(np.vdot(sums.G, H @ H.T))
    t, u = best_scales(terms, sums.G, H, fit, energy, sums.agreement)
    return shorten_rows(u * H, terms.row_bound), crew.each(rescale, terms, t, floor)


def _burnt_in(
    crew: Crew, wiring: Wiring, terms: Terms, H: FloatArray, standings: Sequence[Standing], steps: int
) -> BlockStart:
    """Multiplicative updates of W, then of H, from where the blocks stand."""
    H = np.maximum(H, FLOOR) if terms.alpha else H
    exponent = Multiplicative().exponent_for(terms)
    sums = _added(terms, wiring, standings)
    history = [_value(crew, wiring, terms, H, sums, standings)]
    for _ in range(steps):
        borders = borders_of(wiring, [it.place for it in standings])
        standings = crew.each(multiply, terms, H, sums.G, exponent, apart=borders)
        sums = _added(terms, wiring, standings)
        if terms.alpha:
            H = H.copy()  # what blocks were told stays as it was: a cluster may tell it again
            scale_profiles(terms, H, sums.G, sums.V)
        history.append(_value(crew, wiring, terms, H, sums, standings))
    return BlockStart(H, history)


def _added(terms: Terms, wiring: Wiring, standings: Sequence[Standing]) -> Sums:
    return add_up(terms, wiring, offers_of([it.place for it in standings]), [it.sums for it in standings])


def _value(crew: Crew, wiring: Wiring, terms: Terms, H: FloatArray, sums: Sums, standings: Sequence[Standing]) -> float:
    offered, stay = offers_of([it.place for it in standings]), np.zeros(crew.n_blocks)
    return finite(value_of(terms, H, sums, lambda: gaps_after(crew, wiring, terms, H, sums.G, stay, offered)))


@dataclass(frozen=True, eq=False)
class LocalBlocks:
    """An objective cut into blocks of near rows.

    >>> from penstock.factor import nmf
    >>> [block.n for block in LocalBlocks.of(nmf(np.array([[9.0], [0.0], [8.0], [1.0]])), 2).blocks]
    [2, 2]
    """

    layout: Layout
    blocks: list[RowBlock]
    wiring: Wiring

    @classmethod
    def of(cls, objective: Objective, n_blocks: int) -> LocalBlocks:
        """Near rows together; without a table, runs of rows. There may be fewer blocks than asked for."""
        if objective.table is not objective.A:
            raise ValueError("Descent by blocks of rows cannot leave out missing values. Use Coordinate() or Auto().")
        layout = Layout.of(objective, n_blocks)
        return cls(layout, *layout.cut(objective))

    def crew(self, W: FloatArray | None = None) -> LocalCrew:
        """Threads that work on the blocks, each of which has its rows of W."""
        if W is None:
            return LocalCrew(self.blocks)
        return LocalCrew(self.blocks, [{"W": W[rows]} for rows in self.layout.members])

    def gather(self, crew: LocalCrew) -> FloatArray:
        """All of W, rows in the order of the table."""
        return self.layout.restored(np.concatenate(crew.gather("W")))


def solve_locally(
    objective: Objective,
    start: Factors | int,
    settings: Auto | RowBlocks,
    max_iter: int,
    tol: float,
    progress: Progress | None,
    random_state: Any,
) -> Solution:
    """Minimise the objective from a start, or from random ones with so many components."""
    assert settings.n_blocks is not None
    local, terms = LocalBlocks.of(objective, settings.n_blocks), Terms.of(objective)
    if isinstance(start, int):
        crew = local.crew()
        done = fit_by_blocks(crew, local.wiring, terms, start, settings, max_iter, tol, random_state, progress)
        return _solution(local, crew, done)
    crew = local.crew(start.W)
    begun = BlockStart(start.H, [])
    if isinstance(settings, Auto):
        begun = given_start(crew, local.wiring, terms, start.H, min(settings.burn_in, max_iter // 2))
    return _solution(local, crew, descend_from(crew, local.wiring, terms, begun, settings, max_iter, tol, progress))


def _solution(local: LocalBlocks, crew: LocalCrew, done: BlockSolution) -> Solution:
    known = {field.name: getattr(done, field.name) for field in fields(done) if field.name != "H"}
    return Solution(factors=Factors(local.gather(crew), done.H), **known)
