"""Generalised Pareto tails."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from penstock._types import FloatArray
from penstock.thresholds.base import LARGEST

FEWEST_FOR_A_SHAPE = 10  # two parameters from a handful of values would be noise
_SMALLEST = 1e-15  # in units of the largest excess; below it, an excess only says that the shape is extreme
_PRECISION = 1e-9


@dataclass(frozen=True)
class ParetoTail:
    """P(excess > y) = (1 + γy/σ)^(−1/γ), for γ = 0 exp(−y/σ); for γ < 0 it ends at −σ/γ."""

    gamma: float
    sigma: float

    def exceeded_by(self, share: float) -> float:
        """Return the excess that this share of excesses exceeds; 0 for a share of 1 or more, perhaps infinity."""
        if share >= 1:
            return 0.0
        times = -math.log(share)
        if self.gamma == 0:
            return self.sigma * times
        power = self.gamma * times
        return self.sigma * (math.expm1(power) / self.gamma) if power < 700 else math.inf

    def share_beyond(self, excesses: FloatArray) -> FloatArray:
        """Return the share of excesses that are larger than each of these, the inverse of `exceeded_by`."""
        times = excesses / self.sigma
        if self.gamma == 0:
            return np.exp(-times)
        return np.asarray(np.maximum(1 + self.gamma * times, 0.0) ** (-1 / self.gamma))


def fit_tail(excesses: FloatArray, ceilings: FloatArray, unseen: FloatArray) -> ParetoTail:
    """Return the most likely tail with γ ≥ −1: below that the likelihood has no bound, at −1 excesses are uniform.

    With fewer than ten excesses (all > 0), or where all are equal, the exponential tail, γ = 0.

    ceilings, unseen : besides these, `unseen[j]` excesses (any number ≥ 0) are known to be above `ceilings[j]`, but not
        how far: they are right-censored.

    Grimshaw (1993): with θ = γ/σ fixed, the best γ is known, here (Σ log(1 + θy) + Σ unseen·log(1 + θ·ceiling))/N, and
    one number θ > −1/(largest y) remains to be found. The search goes up from θ = 0 until it has passed the maximum.
    """
    likelihood = _Likelihood(excesses, ceilings, unseen)
    best = likelihood.exponential()
    if len(excesses) >= FEWEST_FOR_A_SHAPE and excesses.min() < excesses.max():
        best = max(best, likelihood.top() or best)
        if best[0] < 0:  # in units of the largest value, a uniform tail has at most this
            best = max(best, likelihood.uniform())
    _, gamma, sigma = best
    return ParetoTail(gamma, min(sigma * likelihood.unit, LARGEST))


class _Likelihood:
    """The likelihood of excesses in units of the largest value; a candidate is (log-likelihood, γ, σ)."""

    def __init__(self, excesses: FloatArray, ceilings: FloatArray, unseen: FloatArray) -> None:
        ceilings, unseen = ceilings[unseen > 0], unseen[unseen > 0]
        points = np.concatenate([excesses, ceilings])
        self.unit = float(points.max())
        self._points = np.maximum(points / self.unit, _SMALLEST)
        self._N = len(excesses)
        self._weights = np.concatenate([np.ones(self._N), unseen]) / self._N
        self._total = float(self._weights.sum())
        self._mean = float(self._weights @ self._points)

    def exponential(self) -> tuple[float, float, float]:
        """γ = 0."""
        return -self._N * (math.log(self._mean) + 1.0), 0.0, self._mean

    def uniform(self) -> tuple[float, float, float]:
        """γ = −1, where excesses are uniform on [0, σ]."""
        ceilings, unseen = self._points[self._N :], self._weights[self._N :]
        sigma = float(self._points[: self._N].max())
        if len(ceilings):

            def slope(sigma: float) -> float:
                return float(unseen @ (ceilings / (sigma - ceilings))) - 1.0

            highest = float(ceilings.max())
            low = max(sigma, highest * (1.0 + 1e-12))
            high = highest * self._total * (1.0 + 1e-12)
            sigma = brentq(slope, low, high, xtol=_PRECISION) if low < high and slope(low) > 0 > slope(high) else low
        value = -math.log(sigma) + float(unseen @ np.log1p(-ceilings / sigma))
        return self._N * value, -1.0, sigma

    def top(self) -> tuple[float, float, float] | None:
        """Return the maximum that is reached uphill from γ = 0, if there is one apart from it and with γ > −1."""
        bracket = self._walk_right() if self._slope(0.0) > 0 else self._walk_left()
        if bracket is None:
            return None
        theta = math.expm1(brentq(self._slope, *map(math.log1p, bracket), xtol=_PRECISION))
        if abs(theta) * self._mean < 1e-6:
            return None
        grown = np.log(1.0 + theta * self._points)
        gamma = float(self._weights @ grown)
        value = -self._N * (math.log(gamma / theta) + 1.0) - float(grown[: self._N].sum())
        return (value, gamma, gamma / theta) if gamma > -1 else None

    def _slope(self, phi: float) -> float:
        """Return the derivative of the log-likelihood by φ = log(1 + θ), over N: there its maximum is well rounded."""
        if phi == 0:
            bend = float(self._weights @ self._points**2) / 2 - float(self._points[: self._N].mean()) * self._mean
            return bend / self._mean
        theta = math.expm1(phi)
        product, gamma = self._slope_and_gamma(theta)
        return product / (gamma * theta) * (1.0 + theta)

    def _slope_and_gamma(self, theta: float) -> tuple[float, float]:
        """Return the derivative by θ, times γθ/N (> 0), and γ; without censoring the former is Grimshaw's uv − 1."""
        grown = theta * self._points
        grown += 1.0
        shrunk = 1.0 / grown
        gamma = float(self._weights @ np.log(grown, out=grown))
        mean = float(np.add.reduce(shrunk[: self._N])) / self._N
        return mean * gamma - (self._total - float(self._weights @ shrunk)), gamma

    def _walk_right(self) -> tuple[float, float]:
        """Return two values of θ ≥ 0 between which the likelihood stops rising."""
        low, high = 0.0, 0.5 / self._mean
        while self._slope_and_gamma(high)[0] > 0:
            low, high = high, 4.0 * high
        return low, high

    def _walk_left(self) -> tuple[float, float] | None:
        """Return two values of θ ≤ 0 between which the likelihood stops rising leftwards, if it does before γ = −1."""
        high, rest = 0.0, 0.5  # rest is 1 + θ, which stays above 0
        while rest > 1e-12:
            product, gamma = self._slope_and_gamma(rest - 1.0)
            if product > 0:
                return rest - 1.0, high
            if gamma < -1:
                break
            high, rest = rest - 1.0, rest / 2
        return None
