"""DSPOT: SPOT around a moving mean, for scores whose level drifts."""

from __future__ import annotations

import math
from collections import deque
from typing import Any

import numpy as np

from penstock._parameters import check_whole_number
from penstock.thresholds._base import LARGEST
from penstock.thresholds._state import StateReader
from penstock.thresholds.peaks import PeaksOverThreshold


class DriftingPeaks(PeaksOverThreshold):
    """`PeaksOverThreshold` of what a score has above the mean of the `depth` unflagged scores before it: DSPOT.

    Siffer, Fouque, Termier and Largouët (KDD 2017). The threshold, `value`, follows the scores: it is that mean plus
    the threshold for the difference. It follows drift that is slow beside `depth`; after a sudden lasting rise the mean
    stops, and everything is flagged for ever, because flagged scores are not learnt.

    False alarms on independent scores of one distribution are as said in `PeaksOverThreshold`. Each score costs a sum
    over `depth` numbers, exactly rounded, so that equal scores have equal differences.

    Parameters
    ----------
    rate, level, n_calibration, max_peaks, expect_alarms :
        As in `PeaksOverThreshold`, for the differences. Nothing is flagged in the first depth + n_calibration scores.
    depth : int ≥ 1
        How many scores the mean is taken of.

    Attributes
    ----------
    level_value, tail :
        As in `PeaksOverThreshold`, for the differences.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> scores = np.linspace(0.0, 50.0, 20_000) + rng.normal(size=20_000)
    >>> threshold = DriftingPeaks(rate=1e-3, n_calibration=5000, depth=20)
    >>> int(threshold.update_many(scores).sum())  # 15 are to be expected
    11
    >>> 52.0 < threshold.value < 55.0
    True
    """

    _entries = PeaksOverThreshold._entries | {"recent"}

    def __init__(
        self,
        rate: float = 1e-3,
        level: float = 0.98,
        n_calibration: int = 1000,
        max_peaks: int = 1000,
        expect_alarms: bool = True,
        depth: int = 50,
    ) -> None:
        super().__init__(rate, level, n_calibration, max_peaks, expect_alarms)
        self.depth = depth

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_whole_number("depth", self.depth, least=1)

    def _fewest_scores(self) -> int:
        return self.depth + self.n_calibration

    def _begin(self) -> None:
        super()._begin()
        self._recent: deque[float] = deque(maxlen=self.depth)
        self._mean = 0.0

    def _learn(self, score: float, flagged: bool) -> None:
        if flagged:
            return
        if len(self._recent) == self.depth:
            self._see(_bounded(score - self._mean))
        self._recent.append(score)
        self._follow()

    def _follow(self) -> None:
        self._mean = _mean(self._recent)
        self._value = _bounded(self._mean + self._limit)

    def _state(self) -> dict[str, Any]:
        return super()._state() | {"recent": np.array(self._recent, dtype=np.float64)}

    def _restore(self, state: StateReader) -> None:
        super()._restore(state)
        recent = state.numbers("recent")
        begun = len(self._calibration) > 0 or not math.isnan(self._limit)
        if len(recent) > self.depth or (begun and len(recent) < self.depth):
            state.refuse(f"recent holds {len(recent)} scores, but depth is {self.depth}")
        self._recent.extend(recent.tolist())
        if len(recent):
            self._follow()


def _mean(scores: deque[float]) -> float:
    try:
        return math.fsum(scores) / len(scores)
    except OverflowError:  # halves, of which the sum cannot
        return _bounded(2.0 * math.fsum(score / (2 * len(scores)) for score in scores))


def _bounded(value: float) -> float:
    """Within the range of floats, for sums of huge scores. NaN stays: `min` and `max` return it as their first."""
    return max(min(value, LARGEST), -LARGEST)
