"""Thresholds on a stream straight from their definitions, as slow loops. Imports nothing of ours.

Each twin takes the whole stream and returns two lists: whether each score is flagged, and the threshold after it.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

NAN = math.nan


def score(scores, learn, threshold):
    """The rules that all share: compare with the threshold known before, and pass NaN over."""
    flags, values, value = [], [], NAN
    for score in scores:
        flags.append(score > value)
        if not math.isnan(score):
            learn(score, flags[-1])
            value = threshold()
        values.append(value)
    return flags, values


def mean_deviation(scores, k, min_scores):
    unflagged = []

    def threshold():
        if len(unflagged) < min_scores:
            return NAN
        mean = math.fsum(unflagged) / len(unflagged)
        return mean + k * math.sqrt(math.fsum((score - mean) ** 2 for score in unflagged) / len(unflagged))

    return score(scores, lambda score, flagged: None if flagged else unflagged.append(score), threshold)


def rolling_quantile(scores, rate, window, min_scores=1):
    """The ⌈(n+1)(1 − rate)⌉-th smallest of the last n ≤ window scores, if there are so many."""
    seen = []

    def threshold():
        latest = sorted(seen[-window:])
        rank = math.ceil((len(latest) + 1) * (1 - Fraction(str(rate))))
        return latest[rank - 1] if min_scores <= len(latest) >= rank else NAN

    return score(scores, lambda score, flagged: seen.append(score), threshold)


def p_value(remembered, score):
    """(1 + #{remembered ≥ score})/(1 + #remembered), as a fraction."""
    return Fraction(1 + sum(other >= score for other in remembered), 1 + len(remembered))


def conformal_flags(scores, rate, window, min_scores=1, learn_flagged=True):
    """Flags alone: p ≤ rate."""
    remembered, flags = [], []
    for score in scores:
        enough = len(remembered[-window:]) >= min_scores and not math.isnan(score)
        flagged = enough and p_value(remembered[-window:], score) <= Fraction(str(rate))
        flags.append(flagged)
        if not math.isnan(score) and (learn_flagged or not flagged):
            remembered.append(score)
    return flags


def top_n(scores, n):
    """(positions, scores) of the n highest, best first, ties in order of arrival."""
    best = sorted((-score, position) for position, score in enumerate(scores) if not math.isnan(score))[:n]
    return [position for _, position in best], [-score for score, _ in best]


def pareto_log_likelihood(excesses, gamma, sigma, ceilings=(), unseen=()):
    """Σ log density of the excesses + Σ unseen·log P(excess > ceiling), for generalised Pareto excesses."""
    y, c, w = (np.asarray(values, dtype=float) for values in (excesses, ceilings, unseen))
    if gamma == 0:
        return float(-len(y) * math.log(sigma) - y.sum() / sigma - (w * c).sum() / sigma)
    if gamma == -1:
        fits = y.max() <= sigma and c.max(initial=0.0) < sigma
        return float(-len(y) * math.log(sigma) + (w * np.log1p(-c / sigma)).sum()) if fits else -math.inf
    y, c = 1 + gamma * y / sigma, 1 + gamma * c / sigma
    if min(y.min(), c.min(initial=1.0)) <= 0:
        return -math.inf
    inside = -len(y) * math.log(sigma) - (1 + 1 / gamma) * np.log(y).sum()
    return float(inside - (w * np.log(c)).sum() / gamma)


def highest(function, low, high, rounds):
    """Where a function with one top is highest: (value, place), by golden sections."""
    ratio = (math.sqrt(5) - 1) / 2
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right = function(left), function(right)
    for _ in range(rounds):
        if at_left <= at_right:
            low, left, at_left = left, right, at_right
            right = low + ratio * (high - low)
            at_right = function(right)
        else:
            high, right, at_right = right, left, at_left
            left = high - ratio * (high - low)
            at_left = function(left)
    return max((at_left, left), (at_right, right))


def fit_pareto(excesses, ceilings=(), unseen=()):
    """The most likely (γ, σ) with γ ≥ −1, by brute force: the best σ for each γ, and the best γ."""
    if len(excesses) < 10 or min(excesses) == max(excesses):
        total = sum(excesses) + sum(w * c for w, c in zip(unseen, ceilings, strict=True))
        return 0.0, total / len(excesses)
    top = math.log(max([*excesses, *ceilings]))

    def best_sigma(gamma):
        def likelihood(log_sigma):
            return pareto_log_likelihood(excesses, gamma, math.exp(log_sigma), ceilings, unseen)

        value, log_sigma = highest(likelihood, top - 8, top + 4, 45)
        return value, math.exp(log_sigma)

    middle = max((-1.0 + 0.25 * step for step in range(17)), key=lambda gamma: best_sigma(gamma)[0])
    found = highest(lambda gamma: best_sigma(gamma)[0], max(middle - 0.25, -1.0), middle + 0.25, 35)
    gamma = max(found, (best_sigma(-1.0)[0], -1.0))[1]
    return gamma, best_sigma(gamma)[1]


def pareto_quantile(gamma, sigma, share):
    """The excess that this share exceeds."""
    if share >= 1:
        return 0.0
    return -sigma * math.log(share) if abs(gamma) < 1e-12 else sigma / gamma * (share**-gamma - 1)


class Peaks:
    """SPOT. Siffer et al. (2017), algorithm 2; with the false alarms to be expected, where they are wanted."""

    def __init__(self, rate, level, n_calibration, max_peaks, expect_alarms):
        self.rate, self.level, self.n_calibration, self.max_peaks = rate, level, n_calibration, max_peaks
        self.alarms = rate / (1 - rate) if expect_alarms else 0.0
        self.seen, self.peaks, self.t, self.z = 0, [], NAN, NAN
        self.calibration = []

    def learn(self, score, flagged):
        if flagged:
            return
        self.seen += 1
        if math.isnan(self.t):
            self.calibration.append(score)
            if self.seen == self.n_calibration:
                self.t = self.z = sorted(self.calibration)[math.ceil(Fraction(str(self.level)) * self.seen) - 1]
                self.peaks = [(x - self.t, at + 1, 0.0) for at, x in enumerate(self.calibration) if x > self.t]
                self.fit()
        elif score > self.t:
            self.peaks.append((score - self.t, self.seen, self.z - self.t))
            self.fit()

    def fit(self):
        if not self.peaks:
            return
        kept = self.peaks[-self.max_peaks :]
        forgotten = self.peaks[-self.max_peaks - 1][1] if len(self.peaks) > self.max_peaks else 0
        before = [forgotten] + [at for _, at, _ in kept[:-1]]
        beside = [(c, self.alarms * (at - b)) for (_, at, c), b in zip(kept, before, strict=True) if c > 0]
        ceilings, unseen = [c for c, w in beside if w > 0], [w for _, w in beside if w > 0]
        gamma, sigma = fit_pareto([y for y, _, _ in kept], ceilings, unseen)
        share = self.rate * (self.seen - forgotten + sum(unseen)) / (len(kept) + sum(unseen))
        self.z = self.t + pareto_quantile(gamma, sigma, share)


def peaks_over_threshold(scores, **parameters):
    spot = Peaks(**parameters)
    return score(scores, spot.learn, lambda: spot.z)


def drifting_peaks(scores, depth, **parameters):
    """DSPOT. Siffer et al. (2017), algorithm 3: SPOT of the differences from the mean of the last unflagged scores."""
    spot, unflagged = Peaks(**parameters), []

    def mean():
        return sum(unflagged[-depth:]) / depth

    def learn(score, flagged):
        if not flagged:
            if len(unflagged) >= depth:
                spot.learn(score - mean(), False)
            unflagged.append(score)

    return score(scores, learn, lambda: mean() + spot.z)
