"""The habit of the paper's authors, on a stream: mean + k standard deviations of what was not flagged."""

from __future__ import annotations

import math
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from penstock._parameters import check_number, check_whole_number
from penstock.thresholds._base import Threshold
from penstock.thresholds._state import StateReader

_LARGEST_LEARNT = 1e140  # squares of what is far beyond it would overflow


class MeanDeviation(Threshold):
    """Flag scores above mean + k·sd of all the scores that were not flagged before (Welford's recursion).

    Its trap: flagged scores teach nothing, so after a lasting shift to a higher level everything is flagged for ever.
    Where levels move, use `RollingQuantile`. And k says nothing about how many scores are flagged unless they are
    Gaussian: with k = 3, 0.1 % of Gaussian scores, but 1.8 % of exponential ones, and more once those are left out.

    Parameters
    ----------
    k : float ≥ 0
        How many standard deviations (of the population: divided by n) above the mean.
    min_scores : int ≥ 2
        So many are learnt before any is flagged. Scores beyond ±1e140 are judged but never learnt.

    Examples
    --------
    >>> threshold = MeanDeviation(k=3.0, min_scores=4)
    >>> threshold.update_many([1.0, 3.0, 1.0, 3.0, 5.1])
    array([False, False, False, False,  True])
    >>> threshold.value
    5.0
    """

    _entries = frozenset({"count", "mean", "squares"})

    def __init__(self, k: float = 3.0, min_scores: int = 50) -> None:
        self.k = k
        self.min_scores = min_scores

    def _check_parameters(self) -> None:
        check_number("k", self.k, least=0.0)
        check_whole_number("min_scores", self.min_scores, least=2)

    def _fewest_scores(self) -> int:
        return self.min_scores

    def _begin(self) -> None:
        self._count = 0
        self._mean = 0.0
        self._squares = 0.0  # the sum of squared distances from the mean

    def _learn(self, score: float, flagged: bool) -> None:
        if flagged or not -_LARGEST_LEARNT <= score <= _LARGEST_LEARNT:
            return
        self._count = count = self._count + 1
        step = score - self._mean
        self._mean = mean = self._mean + step / count
        self._squares = squares = self._squares + step * (score - mean)
        if count >= self.min_scores:
            self._value = mean + self.k * sqrt(squares / count)

    def update_many(self, scores: ArrayLike) -> NDArray[np.bool_]:
        """As in `Threshold`; `update` and `_learn` in one loop without calls, for speed."""
        values = self._read(scores)
        flagged = []
        count, mean, squares, value = self._count, self._mean, self._squares, self._value
        k, min_scores, largest = self.k, self.min_scores, _LARGEST_LEARNT
        for position, score in enumerate(values):
            if score > value:
                flagged.append(position)
            elif -largest <= score <= largest:  # NaN is not
                count += 1
                step = score - mean
                mean += step / count
                squares += step * (score - mean)
                if count >= min_scores:
                    value = mean + k * sqrt(squares / count)
        self._count, self._mean, self._squares, self._value = count, mean, squares, value
        flags = np.zeros(len(values), dtype=np.bool_)
        flags[flagged] = True
        return flags

    def _state(self) -> dict[str, Any]:
        return {"count": self._count, "mean": self._mean, "squares": self._squares}

    def _restore(self, state: StateReader) -> None:
        self._count = state.whole_number("count")
        self._mean = state.number("mean")
        self._squares = state.number("squares", least=0.0)
        known = self._count >= self.min_scores
        self._value = self._mean + self.k * sqrt(self._squares / self._count) if known else math.nan
