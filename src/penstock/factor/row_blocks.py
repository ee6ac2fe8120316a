"""Coordinate descent by blocks of rows: all blocks sweep at once, then take the joint step of least loss."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from penstock._types import FloatArray
from penstock.factor._block_sums import BlockProblem, gram_of, offers_after, offers_of
from penstock.factor._block_work import (
    Place,
    Standing,
    advance,
    begin,
    choose_start,
    draw,
    look,
    multiply,
    rescale,
    sweep,
)
from penstock.factor.coordinate import next_pace, reach, update_profiles
from penstock.factor.loop import Descent, check_finite
from penstock.factor.multiplicative import FLOOR, scale_profiles
from penstock.factor.settings import Multiplicative
from penstock.factor.start import best_scales, draw_seed, draws_from
from penstock.factor.terms import has_risen, shorten_rows


class RowBlockDescent(Descent):
    """A run under way on blocks of rows, each block's part of W in its state.

    What is known here are sums over rows and the few rows that touch other blocks. An iteration is a sweep of every
    block from y, a little further along the way that the last iteration went (Nesterov's momentum), and H's best
    answer to it. f along the joint step D of all blocks is a quartic, so its minimum on the way is known, and so is
    where it would end without momentum, should it end higher: the loss never rises.
    """

    def __init__(self, problem: BlockProblem, H: FloatArray, profile_passes: int) -> None:
        self._problem, self._passes = problem, profile_passes
        self.H = self._reached = self._next = H
        self._pace, self._push, self._value, self._residual = 1.0, 0.0, math.inf, math.inf
        self._steps = np.ones(problem.executor.n_blocks)
        self._places: list[Place] = []
        self._judged: tuple[float, float] | None = None

    @classmethod
    def resumed(cls, problem: BlockProblem, profile_passes: int, snapshot: Mapping[str, Any]) -> RowBlockDescent:
        """Go on where a snapshot was taken, with blocks that have the states of that moment."""
        run = cls(problem, np.asarray(snapshot["H"], dtype=np.float64), profile_passes)
        run._reached = np.asarray(snapshot["reached"], dtype=np.float64)
        run._pace, run._push = float(snapshot["pace"]), float(snapshot["push"])
        if snapshot["value"] is not None:  # not before the first step
            run._value, run._residual = float(snapshot["value"]), float(snapshot["residual"])
            run._places = problem.executor.each(look, "y")
        return run

    def snapshot(self) -> dict[str, Any]:
        """All that is known here: arrays, and numbers or None. The blocks' states of the same moment belong to it."""
        begun = math.isfinite(self._value)
        return {
            "H": self.H.copy(),
            "reached": self._reached.copy(),
            "pace": self._pace,
            "push": self._push,
            "value": self._value if begun else None,
            "residual": self._residual if begun else None,
        }

    @property
    def residual(self) -> float:
        return self._residual

    def step(self) -> float:
        """Take one iteration; return the objective, and leave in `residual` how far from stationary it began."""
        executor, terms = self._problem.executor, self._problem.terms
        if not self._places:
            self._places = executor.each(begin)
        value = self._sweep()
        if self._push > 0.0 and has_risen(terms, value, self._value):
            self._pace, self._reached = 1.0, self.H
            self._places = executor.each(begin)
            value = self._sweep()
        self._pace, self._push = next_pace(self._pace)
        self._reached = shorten_rows(reach(self._next, self.H, self._push), terms.row_bound)
        self.H, self._value, self._judged = self._next, value, None
        self._places = executor.each(advance, self._push, apart=[(float(t),) for t in self._steps])
        return value

    def value(self) -> float:
        return self._judge()[0]

    def kkt_residual(self) -> float:
        return self._judge()[1]

    def _judge(self) -> tuple[float, float]:
        if self._judged is None:
            self._judged = self._problem.judge(self.H)
        return self._judged

    def _sweep(self) -> float:
        """Sweep from y; leave the steps to take and the H to go with them, and return the objective there."""
        problem, terms, H, places = self._problem, self._problem.terms, self._reached, self._places
        mean, borders = problem.mean(places), problem.borders(places)
        swept = problem.executor.each(sweep, terms, H, gram_of(places), mean, apart=borders)
        self._steps = steps = problem.joint_steps(H, places, swept).choose()
        self._residual = math.sqrt(sum(report.residual for report in swept) / terms.n_rows)
        sums = problem.sums_after(places, swept, steps)
        self._next = H = H.copy()
        if terms.alpha:
            self._residual = max(self._residual, update_profiles(terms, H, sums.G, sums.V))
            for _ in range(self._passes - 1):
                update_profiles(terms, H, sums.G, sums.V)
        return problem.value(H, sums, offers_after(places, swept, steps), steps)


@dataclass(frozen=True, eq=False)
class BlockStart:
    """Where a descent by blocks starts: H (the blocks have W), and the objective on the way there, if there was one."""

    H: FloatArray
    history: list[float] = field(default_factory=list)
    start_objectives: FloatArray = field(default_factory=lambda: np.zeros(0))


def one_start(problem: BlockProblem, n_components: int, random_state: Any) -> BlockStart:
    """Draw random factors on the scale of the problem; every block draws its own rows."""
    seed = draw_seed(draws_from(random_state))
    return BlockStart(_drawn(problem, n_components, seed, 0, keep=False, floor=0.0)[0])


def best_start(problem: BlockProblem, n_components: int, n_starts: int, burn_in: int, random_state: Any) -> BlockStart:
    """Find the best of some random starts after a burn-in of each."""
    seed = draw_seed(draws_from(random_state))
    best, keep = BlockStart(np.zeros((0, 0))), False
    ends: list[float] = []
    for start in range(n_starts):
        H, standings = _drawn(problem, n_components, seed, start, keep, FLOOR)
        tried = _burn_in(problem, H, standings, burn_in)
        keep = not ends or tried.history[-1] < best.history[-1]
        best = tried if keep else best
        ends.append(tried.history[-1])
    problem.executor.each(choose_start, keep)
    return BlockStart(best.H, best.history, np.array(ends))


def given_start(problem: BlockProblem, H: FloatArray, burn_in: int) -> BlockStart:
    """Take multiplicative steps from the W that the blocks have."""
    return _burn_in(problem, H, problem.executor.each(rescale, problem.terms, 1.0, FLOOR), burn_in)


def _drawn(
    problem: BlockProblem, n_components: int, seed: int, start: int, keep: bool, floor: float
) -> tuple[FloatArray, list[Standing]]:
    """Uniform random factors times the numbers that suit the objective best (see `random_start`).

    H is drawn from the stream [seed, start], the rows of block b from [seed, start, 1 + b].
    """
    terms, executor = problem.terms, problem.executor
    H = np.random.default_rng([seed, start]).random((n_components, terms.n_columns))
    numbers = [(number,) for number in range(executor.n_blocks)]
    sums = problem.sums_of(executor.each(draw, terms, n_components, seed, start, keep, apart=numbers))
    fit, energy = float(np.vdot(sums.V, H)), float(np.vdot(sums.G, H @ H.T))
    t, u = best_scales(terms, sums.G, H, fit, energy, sums.agreement)
    return shorten_rows(u * H, terms.row_bound), executor.each(rescale, terms, t, floor)


def _burn_in(problem: BlockProblem, H: FloatArray, standings: Sequence[Standing], steps: int) -> BlockStart:
    """Multiplicative updates of W, then of H, from where the blocks are."""
    terms = problem.terms
    H = np.maximum(H, FLOOR) if terms.alpha else H
    exponent = Multiplicative().exponent if terms.symmetric else 1.0
    sums = problem.sums_of(standings)
    history = [check_finite(problem.value(H, sums, offers_of([it.place for it in standings])))]
    for _ in range(steps):
        borders = problem.borders([it.place for it in standings])
        standings = problem.executor.each(multiply, terms, H, sums.G, exponent, apart=borders)
        sums = problem.sums_of(standings)
        if terms.alpha:
            H = H.copy()  # what blocks received stays as it was: a cluster may send it again
            scale_profiles(terms, H, sums.G, sums.V)
        history.append(check_finite(problem.value(H, sums, offers_of([it.place for it in standings]))))
    return BlockStart(H, history)
