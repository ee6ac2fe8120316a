"""How many rows of a table reach a score by chance: estimated from scores of normal rows, each by a model of others.

Rows are like independent draws here, so rows are counted; in time they come in episodes (`EpisodeRate`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from penstock._types import FloatArray
from penstock.thresholds import ParetoTail
from penstock.thresholds.base import LARGEST
from penstock.thresholds.pareto import fit_tail

_TAIL_SHARE, _FEWEST_PEAKS, _MOST_PEAKS = 0.05, 10, 1000
_SMALLEST_RATE = 1e-300


@dataclass(frozen=True, eq=False)
class RowRate:
    """Rates at which scores are exceeded, fitted to scores of rows that are normal, or nearly all of them.

    Up to the highest score fitted, the conformal p-value (1 + #{scores ≥ s})/(n + 1): a new score that is exchangeable
    with those fitted has one ≤ r with a probability of at most r. Beyond it a Pareto tail, fitted to the highest
    twentieth of the scores (10 to 1,000 of them), and at most 1/(n + 1). No tail has an end (γ < 0): a few scores do
    not show where, and a normal one beyond that end would count as impossible. The lightest is what N exponential
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
    def of(cls, scores: FloatArray) -> RowRate:
        ordered = np.sort(scores)
        peaks = min(max(int(_TAIL_SHARE * len(ordered)), _FEWEST_PEAKS), _MOST_PEAKS, len(ordered) - 1)
        below = ordered[: np.searchsorted(ordered, ordered[-1])]  # where the highest are equal, the tail begins below
        level = min(float(ordered[-peaks - 1]), float(below[-1])) if len(below) else float(ordered[-1])
        excesses = ordered[ordered > level] - level
        tail = fit_tail(excesses, np.empty(0), np.empty(0)) if len(excesses) else None
        if tail is not None and tail.gamma < 1 / len(excesses):
            tail = ParetoTail(1 / len(excesses), float(excesses.mean()))
        return cls(ordered, level, len(excesses), tail)

    def rate_of(self, scores: FloatArray) -> FloatArray:
        """Return the share of normal scores expected to be at least as high as each of these; never 0."""
        n = len(self.ordered)
        rates: FloatArray = (1 + n - np.searchsorted(self.ordered, scores, "left")) / (n + 1)
        if self.tail is not None:
            beyond = self.n_peaks / n * self.tail.share_beyond(np.maximum(scores - self.level, 0.0))
            beyond = np.minimum(rates, np.maximum(beyond, _SMALLEST_RATE))
            rates = np.where(scores > self.ordered[-1], beyond, rates)
        return rates

    def expected(self, scores: FloatArray, n_rows: int) -> FloatArray:
        """Return how many of n_rows normal rows are expected to score at least as high."""
        return n_rows * self.rate_of(scores)

    def exceeded_at(self, rate: float) -> float:
        """Return the threshold that this share of normal scores is above."""
        n = len(self.ordered)
        allowed = math.floor(rate * (n + 1) + 1e-9)
        if allowed >= 1 or self.tail is None:
            return float(self.ordered[n - max(allowed, 1)])
        beyond = self.level + self.tail.exceeded_by(rate * n / self.n_peaks)
        return min(max(beyond, float(self.ordered[-1])), LARGEST)
