"""Solvers with all of W in memory, coordinate descent and multiplicative updates, and the loop of all solvers.

A solver takes steps; the loop keeps the history and decides when to stop.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock._progress import set_stage
from penstock._types import Factors, FloatArray
from penstock.factor.objectives import Objective, nmf
from penstock.factor.terms import Terms, has_risen, shorten_rows

Progress = Callable[[int, float], None]


class Descent(ABC):
    """A run of a solver under way.

    A step sets `residual`, which may be a cheap stand-in for the KKT residual (infinite when unknown): the loop
    confirms it before it stops.
    """

    residual: float = math.inf
    little: float = 0.0  # a run that has less than this `remaining` is done rather than out of rounds

    @property
    def finished(self) -> bool:
        """Whether to stop by a rule of the solver's own."""
        return False

    @property
    def remaining(self) -> float:
        """By what share one exact sweep of coordinate descent would lower the objective; NaN if unknown."""
        return math.nan

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
    remaining: float = math.nan


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
        set_stage("iteration", len(history), max_iter)
        history.append(check_finite(descent.step()))
        if progress is not None:
            progress(len(history) - 1, history[-1])
        if after_step is not None:
            after_step(history)
        if descent.residual <= tol:
            converged = descent.kkt_residual() <= tol
    objective = check_finite(descent.value())
    residual = descent.kkt_residual()
    remaining = descent.remaining
    converged = residual <= tol or remaining < descent.little
    return Outcome(objective, len(history) - 1, converged, residual, np.array(history), remaining)


def check_finite(value: float) -> float:
    """Return the value, or raise an error that says what to do if it is not finite."""
    if not math.isfinite(value):
        raise FloatingPointError(
            "The factors are no longer finite: the data or the similarities are too large to square in double "
            "precision. Scale the table to [0, 1] or use a bounded similarity such as 'normalized' or 'binary'."
        )
    return value


NEGLIGIBLE = 1e-100  # below all rounding; products with it would be subnormal and a hundred times slower


class CoordinateDescent(InMemoryDescent):
    """A run of coordinate descent: the factors, and the sums that a sweep needs and leaves up to date.

    Rows are visited in the order of their starting weights' sums, or along the tree (`PathStructure`): a fixed order
    that moves with the rows when the rows and the start are permuted together, so that the result does not depend on
    how a table happens to be sorted.
    """

    def __init__(self, objective: Objective, start: Factors, profile_passes: int) -> None:
        self.objective = objective
        self._passes = profile_passes
        self._W, self._H = start.W.copy(order="C"), start.H.copy(order="C")
        self._order = np.argsort(start.W.sum(axis=1), kind="stable").astype(np.int64)
        self._shift = own_curvature(objective.terms, objective.structure.degree, objective.structure.diagonal)
        self._before: Factors | None = None
        self._pace = 1.0
        self._value = math.inf

    @property
    def factors(self) -> Factors:
        return Factors(self._W, self._H)

    def step(self) -> float:
        """Sweep once; return the objective, and leave in `residual` how far from stationary the sweep began.

        From the second on, a sweep starts a little further along the way that the last one went (Nesterov's momentum).
        Should the objective end higher for it, the sweep is done again from where the last one ended, the momentum
        starts again, and so the objective never rises.
        """
        W, H = self._W, self._H
        push = 0.0
        if self._before is not None:
            self._pace, push = next_pace(self._pace)
            self._W = reach(W, self._before.W, push)
            self._H = shorten_rows(reach(H, self._before.H, push), self.objective.row_bound)
        else:
            self._W, self._H = W.copy(), H.copy()
        value = self._sweep()
        if push > 0.0 and has_risen(self.objective.terms, value, self._value):
            self._pace = 1.0
            self._W, self._H = W.copy(), H.copy()
            value = self._sweep()
        self._before, self._value = Factors(W, H), value
        return value

    def _sweep(self) -> float:
        objective, terms, W, H = self.objective, self.objective.terms, self._W, self._H
        objective.refill(W, H)
        M = terms.symmetric * (W.T @ W)  # afresh each sweep: the kernel's updates in place gather rounding errors
        linear = np.zeros_like(W)
        if terms.alpha:
            M += (terms.alpha / 2) * (H @ H.T)
            linear = objective.attributes_onto(terms.alpha / 2 * H)
        weights = terms.symmetric, terms.symmetric + terms.laplacian / 2, float(W.mean())
        total, agreement = objective.structure.sweep(W, linear, M, self._shift, self._order, *weights)
        self.residual = math.sqrt(total / len(W))
        G = W.T @ W
        if not terms.alpha:
            return objective.value_from(self.factors, G, H, agreement=agreement)
        objective.refill(W, H)
        V = objective.attributes_by(W)
        self.residual = max(self.residual, update_profiles(terms, H, G, V))
        for _ in range(self._passes - 1):
            update_profiles(terms, H, G, V)
        return objective.value_from(self.factors, G, V, agreement=agreement)


def next_pace(pace: float) -> tuple[float, float]:
    """Compute Nesterov's next pace, and how much of the last way a sweep starts further along."""
    following = (1 + math.sqrt(1 + 4 * pace**2)) / 2
    return following, (pace - 1) / following


def reach(now: FloatArray, before: FloatArray, push: float) -> FloatArray:
    """Go further along the way from `before` to `now`, but not below 0."""
    return np.asarray(np.maximum(now + push * (now - before), 0.0))


def own_curvature(terms: Terms, degree: FloatArray, diagonal: FloatArray) -> FloatArray:
    """Compute what a row's degree, its diagonal entry and the ridge add to the curvature of f/4 in its weights."""
    return terms.laplacian / 2 * (degree - diagonal) + terms.gamma / 2 - terms.symmetric * diagonal


def update_profiles(terms: Terms, H: FloatArray, G: FloatArray, V: FloatArray) -> float:
    """Minimise f exactly over each row of H in turn, in place (HALS); return how far from stationary they were.

    h_k ← max(0, α(V_k − Σ_{l≠k} G_kl h_l)/(αG_kk+γ)), shortened to `row_bound`. The curvature is the same in every
    direction of a row, so shortening the unbounded minimiser gives the bounded one. Minimises Ahmed et al. (2021),
    eq:main, over H.
    """
    alpha, gamma = terms.alpha, terms.gamma
    total, typical = 0.0, float(H.mean())
    for k in range(len(H)):
        curvature = alpha * G[k, k] + gamma
        if curvature <= 0.0:
            continue  # no row uses this group and nothing prices it: any profile is as good
        rise = alpha * (G[k] @ H)
        best = np.maximum(H[k] + (alpha * V[k] - rise - gamma * H[k]) / curvature, 0.0)
        best[best < NEGLIGIBLE] = 0.0
        best = shorten_rows(best[None, :], terms.row_bound)[0]
        moved = curvature * (best - H[k])
        scale = rise + gamma * H[k] + alpha * V[k] + curvature * typical
        total += float(moved @ moved) / (float(scale @ scale) or 1.0)
        H[k] = best
    return math.sqrt(total / len(H))


def fit_profiles(A: FloatArray, W: FloatArray, *, max_iter: int = 1000, tol: float = 1e-10) -> FloatArray:
    """Find the H ≥ 0 that minimises ‖A−WH‖² for given W ≥ 0: how SNMF, which has no H, gets one.

    Missing entries of A (NaN) are left out: each column with some is fitted to the rows that have it.

    >>> W = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> fit_profiles(W @ np.array([[1.0, 2.0], [3.0, 0.0]]), W).round(6)
    array([[1., 2.],
           [3., 0.]])
    """
    H = np.zeros((W.shape[1], A.shape[1]))
    holes = np.isnan(A)
    if holes.any():
        whole = ~holes.any(axis=0)
        if whole.any():
            H[:, whole] = fit_profiles(A[:, whole], W, max_iter=max_iter, tol=tol)
        for column in np.flatnonzero(~whole):
            seen = ~holes[:, column]
            H[:, [column]] = fit_profiles(A[seen][:, [column]], W[seen], max_iter=max_iter, tol=tol)
        return H
    objective = nmf(A)
    G, V = W.T @ W, objective.attributes_by(W)
    for _ in range(max_iter):
        if update_profiles(objective.terms, H, G, V) <= tol:
            break
    return H


FLOOR = 1e-12  # an exact 0 could never grow again
_LOOK_EVERY = 10  # steps between two computations of the KKT residual, which costs about a step


class MultiplicativeDescent(InMemoryDescent):
    """A run of multiplicative updates. Each step updates W with the old H, then H with the new W."""

    def __init__(self, objective: Objective, start: Factors, exponent: float) -> None:
        self.objective = objective
        self._exponent = exponent if objective.symmetric else 1.0
        self._W, self._H = np.maximum(start.W, FLOOR), start.H.copy(order="C")
        if objective.alpha:
            np.maximum(self._H, FLOOR, out=self._H)
        self._G = self._W.T @ self._W
        self._SW: FloatArray | None = None  # of the weights as they are, if known
        self._taken = 0

    @property
    def factors(self) -> Factors:
        return Factors(self._W, self._H)

    def step(self) -> float:
        """Update W and H once; return the objective. Ahmed et al. (2021), eq:main; Cai et al. (2011) for GNMF."""
        objective = self.objective
        objective.refill(self._W, self._H)
        C = objective.attributes_onto(objective.alpha * self._H) if objective.alpha else None
        degree = objective.structure.degree
        scale_weights(objective.terms, self._W, self._G, self._H, degree, self._spread(), C, self._exponent)
        self._G = self._W.T @ self._W
        V = self._H
        if objective.alpha:
            objective.refill(self._W, self._H)
            V = objective.attributes_by(self._W)
            scale_profiles(objective.terms, self._H, self._G, V)
        self._taken += 1
        self._SW = None
        self._SW = self._spread()  # for the value, and for the next step
        value = objective.value_from(self.factors, self._G, V, self._SW)
        self.residual = math.inf if self._taken % _LOOK_EVERY else self.kkt_residual()  # refills missing entries
        return value

    def _spread(self) -> FloatArray | None:
        """Return SW, None where S has no weight."""
        if self._SW is None and (self.objective.symmetric or self.objective.laplacian):
            return self.objective.structure.spread(self._W)
        return self._SW


def scale_weights(
    terms: Terms, W: FloatArray, G: FloatArray, H: FloatArray, degree: FloatArray,
    SW: FloatArray | None, C: FloatArray | None, exponent: float,
) -> None:  # fmt: skip
    """Update these rows of W once, in place, given G, and SW and C = αAHᵀ of these rows where their weights are not 0.

    Overwrites SW.
    """
    mix = 2 * terms.symmetric * G + terms.gamma * np.eye(len(G))
    numerator = np.zeros_like(W) if SW is None else np.multiply(2 * terms.symmetric + terms.laplacian, SW, out=SW)
    if C is not None:
        mix += terms.alpha * (H @ H.T)
        numerator += C
    denominator = W @ mix
    if terms.laplacian:
        denominator += terms.laplacian * degree[:, None] * W
    _scale(W, numerator, denominator, exponent)


def scale_profiles(terms: Terms, H: FloatArray, G: FloatArray, V: FloatArray) -> None:
    """Update H once, in place; by HALS where its rows are bounded."""
    if math.isfinite(terms.row_bound):
        update_profiles(terms, H, G, V)
    else:
        _scale(H, terms.alpha * V, terms.alpha * (G @ H) + terms.gamma * H, 1.0)


def _scale(X: FloatArray, numerator: FloatArray, denominator: FloatArray, exponent: float) -> None:
    """X ← max(X∘(numerator/denominator)^exponent, floor) in place; an entry whose denominator is 0 stays.

    Overwrites the numerator.
    """
    if denominator.size and not denominator.min() > 0:
        held = denominator > 0
        numerator = np.where(held, numerator, 1.0)
        denominator = np.where(held, denominator, 1.0)
    ratio = np.divide(numerator, denominator, out=numerator)
    if exponent == 0.5:
        np.sqrt(ratio, out=ratio)
    elif exponent != 1.0:
        np.power(ratio, exponent, out=ratio)
    X *= ratio
    np.maximum(X, FLOOR, out=X)
