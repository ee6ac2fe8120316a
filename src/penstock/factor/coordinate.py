"""Exact coordinate descent: minimise over each entry of W and each row of H in turn."""

from __future__ import annotations

import math

import numpy as np

from penstock._types import Factors, FloatArray
from penstock.factor._kernels import sweep_rows
from penstock.factor.loop import InMemoryDescent
from penstock.factor.objectives import Objective, nmf
from penstock.factor.terms import Terms, has_risen, shorten_rows

NEGLIGIBLE = 1e-100  # below all rounding; products with it would be subnormal and a hundred times slower


class CoordinateDescent(InMemoryDescent):
    """A run of coordinate descent: the factors, and the sums that a sweep needs and leaves up to date.

    Rows are visited in the order of their starting weights' sums: a fixed order that moves with the rows when the rows
    and the start are permuted together, so that the result does not depend on how a table happens to be sorted.
    """

    def __init__(self, objective: Objective, start: Factors, profile_passes: int) -> None:
        self.objective = objective
        self._passes = profile_passes
        self._W, self._H = start.W.copy(order="C"), start.H.copy(order="C")
        self._order = np.argsort(start.W.sum(axis=1), kind="stable").astype(np.int64)
        diagonal = None if objective.S is None else np.asarray(objective.S.diagonal(), dtype=np.float64)
        self._shift = own_curvature(objective.terms, objective.degree, diagonal)
        self._before: Factors | None = None
        self._pace, self._value, self._residual = 1.0, math.inf, math.inf

    @property
    def factors(self) -> Factors:
        return Factors(self._W, self._H)

    @property
    def residual(self) -> float:
        return self._residual

    def step(self) -> float:
        """Sweep once; return the objective, and leave in `residual` how far from stationary the sweep began.

        From the second on, a sweep starts a little further along the way that the last one went (Nesterov's momentum).
        Should the objective end higher for it, the sweep is done again from where the last one ended, the momentum
        starts anew, and so the objective never rises.
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
        objective, terms = self.objective, self.objective.terms
        objective.refill(self._W, self._H)
        self._residual = self._sweep_weights()
        G = self._W.T @ self._W
        if not terms.alpha:
            return objective.value_from(self.factors, G, self._H)
        objective.refill(self._W, self._H)
        V = objective.attributes_by(self._W)
        self._residual = max(self._residual, update_profiles(terms, self._H, G, V))
        for _ in range(self._passes - 1):
            update_profiles(terms, self._H, G, V)
        return objective.value_from(self.factors, G, V)

    def _sweep_weights(self) -> float:
        objective, W, H = self.objective, self._W, self._H
        M = objective.symmetric * (W.T @ W)  # afresh each sweep: the kernel's updates in place gather rounding errors
        if objective.alpha:
            M += (objective.alpha / 2) * (H @ H.T)
            linear = objective.attributes_onto(objective.alpha / 2 * H)
        else:
            linear = np.zeros_like(W)
        coupling = objective.symmetric + objective.laplacian / 2
        weights = objective.symmetric, coupling, float(W.mean())
        total = sweep_rows(W, linear, M, self._shift, *objective.graph, self._order, *weights)
        return math.sqrt(total / len(W))


def next_pace(pace: float) -> tuple[float, float]:
    """Compute Nesterov's next pace, and how much of the last way a sweep starts further along.

    >>> next_pace(1.0)
    (1.618033988749895, 0.0)
    """
    following = (1 + math.sqrt(1 + 4 * pace**2)) / 2
    return following, (pace - 1) / following


def reach(now: FloatArray, before: FloatArray, push: float) -> FloatArray:
    """Go further along the way from `before` to `now`, but not below 0."""
    further: FloatArray = np.maximum(now + push * (now - before), 0.0)
    return further


def own_curvature(terms: Terms, degree: FloatArray, diagonal: FloatArray | None) -> FloatArray:
    """Compute what a row's degree, its diagonal entry and the ridge add to the curvature of f/4 in its weights."""
    if diagonal is None:
        return np.full(len(degree), terms.gamma / 2)
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
