"""The one loop: a solver takes steps, the loop watches, keeps the history and decides when to stop."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from penstock._types import FloatArray

Progress = Callable[[int, float], None]
MAX_ITER = 300
TOL = 1e-4


class Descent(Protocol):
    """A run under way: `step` goes on by one iteration and returns the objective; `residual` guides the stopping test.

    `residual` may be a cheap stand-in for the KKT residual (infinite when unknown): the loop confirms it before
    stopping. `finished` is a solver's own rule to stop; `settled` says that it is done rather than out of rounds.
    """

    @property
    def residual(self) -> float: ...

    @property
    def finished(self) -> bool: ...

    @property
    def settled(self) -> bool: ...

    def step(self) -> float: ...

    def value(self) -> float: ...

    def kkt_residual(self) -> float: ...


@dataclass(frozen=True)
class Outcome:
    """How good the factors are that a run ended with, and how it got there. See `Solution`."""

    objective: float
    n_iter: int
    converged: bool
    kkt_residual: float
    history: FloatArray


def descend(
    descent: Descent,
    history: list[float],
    max_iter: int,
    tol: float,
    progress: Progress | None = None,
    after_step: Callable[[list[float]], None] | None = None,
) -> Outcome:
    """Go on until the KKT residual is at most `tol`, the solver is finished, or there were `max_iter` iterations.

    `history` is that of a run which this one continues: it begins with the objective at the start. Its iterations
    count, and if that run had reached `tol`, nothing is left to do.
    """
    history = list(history)
    converged = len(history) > 1 and descent.residual <= tol and descent.kkt_residual() <= tol
    while len(history) <= max_iter and not converged:
        history.append(finite(descent.step()))
        if progress is not None:
            progress(len(history) - 1, history[-1])
        if after_step is not None:
            after_step(history)
        if descent.residual <= tol:
            converged = descent.kkt_residual() <= tol
        if descent.finished:
            break
    objective, residual = finite(descent.value()), descent.kkt_residual()
    return Outcome(objective, len(history) - 1, descent.settled or residual <= tol, residual, np.array(history))


def finite(value: float) -> float:
    """The value, or the error that says what to do if it is none.

    >>> finite(1.5)
    1.5
    """
    if not math.isfinite(value):
        raise FloatingPointError(
            "The factors are no longer finite: the data or the similarities are too large to square in double "
            "precision. Scale the table to [0, 1] or use a bounded similarity such as 'normalized' or 'binary'."
        )
    return value
