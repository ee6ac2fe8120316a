"""The loop of all solvers: a solver takes steps, the loop keeps the history and decides when to stop."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from penstock._types import Factors, FloatArray, Solution
from penstock.factor.objectives import Objective

Progress = Callable[[int, float], None]


class Descent(ABC):
    """A run of a solver under way.

    `residual` may be a cheap stand-in for the KKT residual (infinite when unknown): the loop confirms it before it
    stops. `finished` is a solver's own rule to stop; `settled` says that it is done rather than out of rounds.
    """

    @property
    def residual(self) -> float:
        return math.inf

    @property
    def finished(self) -> bool:
        return False

    @property
    def settled(self) -> bool:
        return False

    @abstractmethod
    def step(self) -> float:
        """Take one iteration and return the objective."""

    @abstractmethod
    def value(self) -> float:
        """Compute the objective of the factors as they are."""

    @abstractmethod
    def kkt_residual(self) -> float:
        """Compute the KKT residual of the factors as they are. See `Objective.kkt_residual`."""


class InMemoryDescent(Descent):
    """A run with all of W in memory."""

    objective: Objective

    @property
    @abstractmethod
    def factors(self) -> Factors:
        """W and H as they are."""

    def value(self) -> float:
        return self.objective.value(self.factors)

    def kkt_residual(self) -> float:
        return self.objective.kkt_residual(self.factors)


@dataclass(frozen=True, eq=False)
class Outcome:
    """How good the factors are that a run ended with, and how it got there. See `Solution`."""

    objective: float
    n_iter: int
    converged: bool
    kkt_residual: float
    history: FloatArray
    start_objectives: FloatArray

    def solution(self, factors: Factors) -> Solution:
        """The outcome together with the factors."""
        return Solution(factors=factors, **vars(self))


def descend(
    descent: Descent,
    history: list[float],
    max_iter: int,
    tol: float,
    progress: Progress | None = None,
    after_step: Callable[[list[float]], Any] | None = None,
) -> Outcome:
    """Go on until the KKT residual is at most `tol`, the solver is finished, or there were `max_iter` iterations.

    `history` is that of a run which this one continues: it begins with the objective at the start. Its iterations
    count, and if that run had reached `tol` or was finished, nothing is left to do. `after_step` is called with the
    history after each iteration.
    """
    history = list(history)
    converged = len(history) > 1 and descent.residual <= tol and descent.kkt_residual() <= tol
    while len(history) <= max_iter and not converged and not descent.finished:
        history.append(check_finite(descent.step()))
        if progress is not None:
            progress(len(history) - 1, history[-1])
        if after_step is not None:
            after_step(history)
        if descent.residual <= tol:
            converged = descent.kkt_residual() <= tol
    objective, residual = check_finite(descent.value()), descent.kkt_residual()
    converged = descent.settled or residual <= tol
    return Outcome(objective, len(history) - 1, converged, residual, np.array(history), np.array(history[-1:]))


def with_starts(outcome: Outcome, start_objectives: FloatArray) -> Outcome:
    """The outcome with the objectives of several starts, if there were any."""
    return replace(outcome, start_objectives=start_objectives) if len(start_objectives) else outcome


def check_finite(value: float) -> float:
    """Return the value, or raise an error that says what to do if it is not finite.

    >>> check_finite(1.5)
    1.5
    """
    if not math.isfinite(value):
        raise FloatingPointError(
            "The factors are no longer finite: the data or the similarities are too large to square in double "
            "precision. Scale the table to [0, 1] or use a bounded similarity such as 'normalized' or 'binary'."
        )
    return value
