"""Quantiles and conformal p-values of the latest scores."""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import deque
from typing import Annotated, Any, ClassVar

import numpy as np

from penstock._parameters import check_share, estimator, optional, whole
from penstock.storage import Fields, Record
from penstock.thresholds.base import Threshold, check_not_infinite

_LOWEST_RATE = 1e-12  # no window is long enough for less


@estimator
class RollingQuantile(Threshold):
    """Flag about a given share of scores: those above the upper quantile of the last `window` scores.

    The quantile of n scores is the ⌈(n+1)(1 − rate)⌉-th smallest. Where the window and the next score are exchangeable
    (for example independent, of one distribution, whichever) and without ties, that next score is flagged with a
    probability of exactly ⌊(n+1)·rate⌋/(n+1): never more than `rate`, and less by less than 1/(n+1). Ties make it
    smaller. Until the window is full the verdicts are independent; after that neighbours are related.

    All scores are taken in, flagged or not: after a lasting shift everything is flagged for about rate·window scores,
    then the new level is the normal one.

    Parameters
    ----------
    rate : float in (0, 1)
        The share of scores to flag.
    window : int ≥ 1/rate − 1
        How many scores are remembered. One update searches it in O(log window), and moves window/2 numbers in memory.
    min_scores : int or None
        Nothing is flagged before so many scores came, and never before ⌈1/rate⌉ − 1, where the probability of a flag
        would be above `rate`; that number if None.

    Examples
    --------
    >>> threshold = RollingQuantile(rate=0.25, window=7)
    >>> threshold.update_many([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])
    array([False, False, False,  True,  True,  True,  True,  True])
    >>> threshold.value  # 2 to 8 are remembered: the 6th smallest of 7
    7.0
    """

    rate: Annotated[float, check_share] = 0.01
    window: Annotated[int, whole(1)] = 1000
    min_scores: Annotated[int | None, optional(whole(1))] = None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.rate < _LOWEST_RATE:
            raise ValueError(f"rate must be at least {_LOWEST_RATE:g}; got {self.rate!r}.")
        if self.window < fewest_for(self.rate):
            raise ValueError(
                f"window = {self.window} is too short for rate = {self.rate:g}: so few scores know no value that is "
                f"exceeded so seldom. It must be at least {fewest_for(self.rate)}, or the rate higher."
            )
        if self.min_scores is not None and self.min_scores > self.window:
            raise ValueError(f"min_scores = {self.min_scores} scores never fit into window = {self.window}.")

    def _fewest_scores(self) -> int:
        return max(fewest_for(self.rate), self.min_scores or 0)

    def _begin(self) -> None:
        self._needed = self._fewest_scores()
        self._arrived: deque[float] = deque()
        self._ordered: list[float] = []

    def _learn(self, score: float, flagged: bool) -> None:
        arrived, ordered = self._arrived, self._ordered
        if len(arrived) == self.window:
            del ordered[bisect_left(ordered, arrived.popleft())]
        else:
            self._above = most_above(len(ordered) + 1, self.rate)
        arrived.append(score)
        insort(ordered, score)
        if len(ordered) >= self._needed:
            self._value = ordered[-self._above]

    _fields: ClassVar[Fields] = {"scores": "k"}

    def _state(self) -> dict[str, Any]:
        return {"scores": np.array(self._arrived, dtype=np.float64)}

    def _restore(self, state: dict[str, Any], record: Record) -> None:
        scores = state["scores"]
        if len(scores) > self.window:
            raise record.error("scores", f"at most window = {self.window} numbers")
        self._arrived.extend(scores.tolist())
        self._ordered = sorted(self._arrived)
        self._above = most_above(len(scores), self.rate)
        if len(scores) >= self._needed:
            self._value = self._ordered[-self._above]


def most_above(n: int, rate: float) -> int:
    """Return the largest k with k/(n+1) ≤ rate: ⌊(n+1)·rate⌋ = (n+1) − ⌈(n+1)(1 − rate)⌉, safe against rounding.

    The quotient is rounded as the rate was when it was written down as a decimal, so that 0.29 of 100 is 29.

    >>> most_above(99, 0.29), int(100 * 0.29)
    (29, 28)
    """
    k = int((n + 1) * rate)
    return k + 1 if (k + 1) / (n + 1) <= rate else k - (k / (n + 1) > rate)


def fewest_for(rate: float) -> int:
    """Return the smallest n for which `most_above(n, rate)` is not 0: ⌈1/rate⌉ − 1."""
    n = max(1, math.ceil(1 / max(rate, _LOWEST_RATE)) - 2)
    return next(n + step for step in range(5) if most_above(n + step, rate) > 0 or step == 4)


@estimator
class ConformalPValue(RollingQuantile):
    """Flag a score whose conformal p-value, p = (1 + #{remembered scores ≥ it})/(1 + #remembered), is at most `rate`.

    p ≤ rate just where the score is above the ⌈(n+1)(1 − rate)⌉-th smallest of the n remembered: with everything kept
    these are the verdicts of `RollingQuantile`, with the same guarantee. This class also has p.

    Parameters
    ----------
    rate, window, min_scores :
        As in `RollingQuantile`; the default of `min_scores` is the fewest with which p ≤ rate is possible.
    learn_flagged : bool
        The guarantee needs flagged scores to be taken in too. Without them anomalies do not hide those that follow, but
        the remembered scores lack their own upper end, and the share of false alarms grows without bound.

    Examples
    --------
    >>> threshold = ConformalPValue(rate=0.2, window=9)
    >>> threshold.update_many([1, 2, 3, 4, 5, 6, 7, 8, 9]).sum()
    np.int64(5)
    >>> threshold.p_value(8.5), threshold.p_value(20.0), threshold.value
    (0.2, 0.1, 8.0)
    """

    learn_flagged: bool = True

    def p_value(self, score: float) -> float:
        """Return the p-value of a score among those remembered, without taking it in; NaN for NaN, and 1 among none."""
        if not math.isfinite(score):
            check_not_infinite(score)
            return math.nan
        ordered = self._ordered if self._begun else []
        not_below = len(ordered) - bisect_left(ordered, score)
        return (1 + not_below) / (1 + len(ordered))

    def _learn(self, score: float, flagged: bool) -> None:
        if self.learn_flagged or not flagged:
            super()._learn(score, flagged)
