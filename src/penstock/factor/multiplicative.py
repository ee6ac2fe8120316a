"""Multiplicative updates: every factor entry times a ratio that is 1 at a stationary point."""

from __future__ import annotations

import math

import numpy as np

from penstock._types import Factors, FloatArray
from penstock.factor.coordinate import update_profiles
from penstock.factor.loop import InMemoryDescent
from penstock.factor.objectives import Objective
from penstock.factor.terms import Terms

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
        self._taken = 0

    @property
    def factors(self) -> Factors:
        return Factors(self._W, self._H)

    @property
    def residual(self) -> float:
        """The KKT residual after every tenth step, else unknown."""
        return math.inf if self._taken % _LOOK_EVERY else self.kkt_residual()

    def step(self) -> float:
        """Update W and H once; return the objective."""
        objective = self.objective
        objective.refill(self._W, self._H)
        self._update_weights()
        self._G = self._W.T @ self._W
        V = self._H
        if objective.alpha:
            objective.refill(self._W, self._H)
            V = objective.attributes_by(self._W)
            scale_profiles(objective.terms, self._H, self._G, V)
        self._taken += 1
        return objective.value_from(self.factors, self._G, V)

    def _update_weights(self) -> None:
        """Ahmed et al. (2021), eq:main, minimised by a ratio of its halves; Cai et al. (2011) for GNMF."""
        objective, W, H = self.objective, self._W, self._H
        SW = objective.spread(W) if objective.symmetric or objective.laplacian else None
        C = objective.attributes_onto(objective.alpha * H) if objective.alpha else None
        scale_weights(objective.terms, W, self._G, H, objective.degree, SW, C, self._exponent)


def scale_weights(
    terms: Terms,
    W: FloatArray,
    G: FloatArray,
    H: FloatArray,
    degree: FloatArray,
    SW: FloatArray | None,
    C: FloatArray | None,
    exponent: float,
) -> None:
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
        numerator, denominator = np.where(held, numerator, 1.0), np.where(held, denominator, 1.0)
    ratio = np.divide(numerator, denominator, out=numerator)
    if exponent == 0.5:
        np.sqrt(ratio, out=ratio)
    elif exponent != 1.0:
        np.power(ratio, exponent, out=ratio)
    X *= ratio
    np.maximum(X, FLOOR, out=X)
