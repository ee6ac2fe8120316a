"""How surprising a score is beside the latest ones, as a p-value."""

from __future__ import annotations

import math
from bisect import bisect_left

from penstock._parameters import check_switch
from penstock.thresholds._base import refuse_infinite
from penstock.thresholds.rolling_quantile import RollingQuantile


class ConformalPValue(RollingQuantile):
    """Flag a score whose conformal p-value, p = (1 + #{remembered scores ≥ it})/(1 + #remembered), is at most `rate`.

    p ≤ rate just where the score is above the ⌈(n+1)(1 − rate)⌉-th smallest of the n remembered: with everything learnt
    these are the verdicts of `RollingQuantile`, and its docstring says what they promise: on exchangeable scores, a
    flag with probability ⌊(n+1)·rate⌋/(n+1) ≤ rate, whatever the distribution. This class also tells p.

    Parameters
    ----------
    rate, window, min_scores :
        As in `RollingQuantile`; the default of `min_scores` is the fewest with which p ≤ rate is possible.
    learn_flagged : bool
        Learning flagged scores too is what keeps the promise. Without it anomalies do not hide those that follow, but
        the remembered scores lack their own upper end, and the share of false alarms grows with time, without bound.

    Examples
    --------
    >>> threshold = ConformalPValue(rate=0.2, window=9)
    >>> threshold.update_many([1, 2, 3, 4, 5, 6, 7, 8, 9]).sum()
    np.int64(5)
    >>> threshold.p_value(8.5), threshold.p_value(20.0), threshold.value
    (0.2, 0.1, 8.0)
    """

    def __init__(
        self, rate: float = 0.01, window: int = 1000, min_scores: int | None = None, learn_flagged: bool = True
    ) -> None:
        super().__init__(rate, window, min_scores)
        self.learn_flagged = learn_flagged

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_switch("learn_flagged", self.learn_flagged)

    def p_value(self, score: float) -> float:
        """The p-value of a score beside those remembered now; it is not learnt. NaN for NaN, and 1 beside none."""
        if not math.isfinite(score):
            refuse_infinite(score)
            return math.nan
        ordered = self._ordered if self._begun else []
        not_below = len(ordered) - bisect_left(ordered, score)
        return (1 + not_below) / (1 + len(ordered))

    def _learn(self, score: float, flagged: bool) -> None:
        if self.learn_flagged or not flagged:
            super()._learn(score, flagged)
