"""How many normal scores are as high as this one: from scores to rates and back."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from penstock._types import FloatArray
from penstock.thresholds._base import LARGEST
from penstock.thresholds._pareto import ParetoTail, fit_tail

_TAIL_SHARE, _FEWEST_PEAKS, _MOST_PEAKS = 0.05, 10, 1000
_SMALLEST_RATE = 1e-300


@dataclass(frozen=True, eq=False)
class Exceedance:
    """Rates at which scores are exceeded, learnt from scores of rows that are normal, or nearly all of them.

    Up to the highest score learnt, the conformal p-value (1 + #{scores ≥ s})/(n + 1): a new score that is exchangeable
    with those learnt has one ≤ r with a probability of at most r. Beyond it a Pareto tail, fitted to the highest
    twentieth of the scores (10 to 1,000 of them), and at most 1/(n + 1). No tail is taken to end (γ < 0): a few scores
    cannot tell where, and a normal one beyond that end would count as impossible. The lightest is what N exponential
    excesses say of the next one, whose scale they know by their mean alone: (1 + y/(N·mean))^−N, which is γ = 1/N.

    ordered : the scores, ascending.
    level, n_peaks, tail : where the tail begins, how many scores are above, and how far they go; None if all scores are
        equal: then a higher one has a rate of 1/(n + 1), and is above every threshold.
    """

    ordered: FloatArray
    level: float
    n_peaks: int
    tail: ParetoTail | None

    @classmethod
    def of(cls, scores: FloatArray) -> Exceedance:
        """
        >>> exceedance = Exceedance.of(np.arange(999.0))
        >>> exceedance.rate_of(np.array([998.0, 500.0])).tolist(), exceedance.exceeded_at(0.01)
        ([0.002, 0.5], 989.0)
        >>> bool(exceedance.rate_of(np.array([1300.0]))[0] < 0.001)
        True
        """
        ordered = np.sort(scores)
        peaks = min(max(int(_TAIL_SHARE * len(ordered)), _FEWEST_PEAKS), _MOST_PEAKS, len(ordered) - 1)
        below = ordered[: np.searchsorted(ordered, ordered[-1])]  # where the highest are equal, the tail begins below
        level = min(float(ordered[-peaks - 1]), float(below[-1])) if len(below) else float(ordered[-1])
        excesses = ordered[ordered > level] - level
        return cls(ordered, level, len(excesses), _endless_tail(excesses) if len(excesses) else None)

    def rate_of(self, scores: FloatArray) -> FloatArray:
        """The share of normal scores expected to be at least as high as each of these; never 0."""
        n = len(self.ordered)
        rates: FloatArray = (1 + n - np.searchsorted(self.ordered, scores, "left")) / (n + 1)
        for i in np.flatnonzero(scores > self.ordered[-1]):
            rates[i] = min(rates[i], self._beyond(float(scores[i])))
        return rates

    def exceeded_at(self, rate: float) -> float:
        """The threshold that this share of normal scores is above."""
        n = len(self.ordered)
        allowed = math.floor(rate * (n + 1) + 1e-9)
        if allowed >= 1 or self.tail is None:
            return float(self.ordered[n - max(allowed, 1)])
        beyond = self.level + self.tail.exceeded_by(rate * n / self.n_peaks)
        return min(max(beyond, float(self.ordered[-1])), LARGEST)

    def _beyond(self, score: float) -> float:
        if self.tail is None:
            return 1.0
        share = self.n_peaks / len(self.ordered)
        return max(share * self.tail.share_beyond(score - self.level), _SMALLEST_RATE)


def _endless_tail(excesses: FloatArray) -> ParetoTail:
    """The most likely tail, or the lightest where that is lighter."""
    tail, lightest = fit_tail(excesses, np.empty(0), np.empty(0)), 1 / len(excesses)
    return tail if tail.gamma >= lightest else ParetoTail(lightest, float(excesses.mean()))
