"""Multiplicative updates: every factor entry times a ratio that is 1 at a stationary point."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from penstock._types import Factors, FloatArray
from penstock.factor.coordinate import update_profiles
from penstock.factor.objectives import Objective
from penstock.factor.terms import Weighed

FLOOR = 1e-12  # an exact 0 could never grow again
_LOOK_EVERY = 10  # steps between two looks at the KKT residual, which costs about a step


@dataclass(frozen=True)
class Multiplicative:
    """Settings of the multiplicative updates W ← W∘(N/P)^β, H ← H∘(αWᵀA)/(αGH+γH), floored at 1e-12.

    N = (2σ+λ)SW + αC and P = 2σWG + αWQ + λDW + γW are the two halves of the gradient. With the symmetric term
    (σ > 0), β is `exponent`: ¼ provably never raises the loss; the default ½ is twice as fast and never raised it in
    any trial; 1 does raise it and is refused. Without that term the loss is quadratic in W and β = 1, the classical
    rule of Lee and Seung (and of Cai et al. for GNMF), provably never raises it, so that `exponent` is not used.

    Where rows of H are bounded, scaling a row back would raise the Laplacian term, so H takes the exact bounded
    row-by-row minimum (HALS) instead, which keeps the loss from rising.

    >>> Multiplicative(exponent=0.25)
    Multiplicative(exponent=0.25)
    """

    exponent: float = 0.5

    def __post_init__(self) -> None:
        if not 0 < self.exponent <= 0.5:
            raise ValueError(f"exponent must lie in (0, 0.5], beyond which the loss can rise: {self.exponent!r}.")

    def begin(self, objective: Objective, start: Factors, rng: object) -> MultiplicativeDescent:
        return MultiplicativeDescent(objective, start, self.exponent_for(objective))

    def exponent_for(self, terms: Weighed) -> float:
        """β."""
        return self.exponent if terms.symmetric else 1.0


class MultiplicativeDescent:
    """The state of a run. Each step updates W with the old H, then H with the new W."""

    finished = settled = False

    def __init__(self, objective: Objective, start: Factors, exponent: float) -> None:
        self._objective = objective
        self._exponent = exponent
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
        return math.inf if self._taken % _LOOK_EVERY else self._objective.kkt_residual(self.factors)

    def step(self) -> float:
        """One update of W and H; returns the objective after it."""
        self._taken += 1
        self._objective.refill(self._W, self._H)
        self._update_weights()
        self._G = self._W.T @ self._W
        if not self._objective.alpha:
            return self._objective.value_from(self.factors, self._G, None)
        self._objective.refill(self._W, self._H)
        V = self._objective.attributes_by(self._W)
        scale_profiles(self._objective, self._H, self._G, V)
        return self._objective.value_from(self.factors, self._G, V)

    def _update_weights(self) -> None:
        """Ahmed et al. (2021), eq:main, minimised by a ratio of its halves; Cai et al. (2011) for GNMF."""
        objective, W, H = self._objective, self._W, self._H
        SW = objective.spread(W) if objective.symmetric or objective.laplacian else None
        C = objective.attributes_onto(objective.alpha * H) if objective.alpha else None
        scale_weights(objective, W, self._G, H, objective.degree, SW, C, self._exponent)


def scale_weights(
    terms: Weighed,
    W: FloatArray,
    G: FloatArray,
    H: FloatArray,
    degree: FloatArray,
    SW: FloatArray | None,
    C: FloatArray | None,
    exponent: float,
) -> None:
    """One update of these rows of W, in place, given G, and SW and C = αAHᵀ for these rows where something weighs them.

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


def scale_profiles(terms: Weighed, H: FloatArray, G: FloatArray, V: FloatArray) -> None:
    """One update of H in place; HALS where its rows are bounded."""
    if math.isfinite(terms.row_bound):
        update_profiles(terms, H, G, V)
        return
    _scale(H, terms.alpha * V, terms.alpha * (G @ H) + terms.gamma * H, 1.0)


def _scale(X: FloatArray, numerator: FloatArray, denominator: FloatArray, exponent: float) -> None:
    """X ← max(X∘(numerator/denominator)^exponent, floor) in place; an entry that nothing holds back stays.

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
