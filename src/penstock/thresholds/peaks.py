"""Peaks over threshold (SPOT) and its version for drifting scores (DSPOT)."""

from __future__ import annotations

import math
from collections import deque
from math import isnan
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from penstock._parameters import check_share, estimator, whole
from penstock._types import FloatArray
from penstock.storage import LARGEST_WHOLE, Fields, Record, StorageError
from penstock.thresholds.base import LARGEST, Threshold
from penstock.thresholds.pareto import ParetoTail, fit_tail


@estimator
class PeaksOverThreshold(Threshold):
    """Flag scores that only a share `rate` of normal scores exceeds, also where `rate` is too small to count (SPOT).

    Siffer, Fouque, Termier and Largouët (KDD 2017). The first `n_calibration` scores give a high level t. How far
    scores go beyond it, their excess, follows nearly a generalised Pareto distribution (γ, σ), whatever the scores
    follow. The threshold is z = t + σ/γ·((rate·n/N)^(−γ) − 1), where N of n scores were above t. After calibration a
    score above z is flagged and changes nothing; one between t and z is a new peak, and the tail is fitted again;
    others only count.

    **What differs from the paper.** As flagged scores are not taken in, the peaks lack their own upper end: fitted as
    they are, the tail seems shorter each time and the threshold sinks; false alarms are 3 to 5 times `rate` after
    50,000 scores, 6 to 10 times after 200,000, and rising. So the fit also counts, for every score that was not
    flagged, the rate/(1 − rate) false alarms to be expected, as excesses known only to be above the threshold then.
    `expect_alarms=False` is the paper's way.

    **What to expect** on independent scores of one distribution (Gaussian, exponential, Student t₃, Pareto, uniform),
    rate = 1e-3: with n_calibration = 5000 false alarms between half and twice the `rate` on average over streams, and
    0.2 to 3 times in a single one. With 1000: up to three times on average, 0.1 to 10 times in a single stream.
    Calibrate with 5/rate scores or more.

    **Where there are no peaks**, because the calibration scores are constant or tied at their upper end, the threshold
    stays t, their highest value; with fewer than ten peaks, or all of them equal, the tail is exponential.

    Parameters
    ----------
    rate : float in (0, 1 − level)
        The share of normal scores that are flagged, the paper's q.
    level : float in (0, 1)
        t is the ⌈level·n_calibration⌉-th smallest of the calibration scores.
    n_calibration : int ≥ 1/(1 − level)
        How many scores are taken in before any is flagged.
    max_peaks : int ≥ 10
        Only so many of the latest peaks are kept. With a peak, the scores that came since the peak before it are
        forgotten too: n and N both count from just after the last forgotten peak.
    expect_alarms : bool
        See above.

    Attributes
    ----------
    level_value : float
        t, NaN before calibration.
    tail : ParetoTail or None
        γ and σ, None before calibration and where there are no peaks.

    Examples
    --------
    >>> import numpy as np
    >>> scores = np.random.default_rng(1).exponential(size=20_000)
    >>> threshold = PeaksOverThreshold(rate=1e-3, n_calibration=5000)
    >>> int(threshold.update_many(scores).sum())  # 15 are to be expected
    17
    >>> threshold.update(30.0)
    True
    """

    rate: Annotated[float, check_share] = 1e-3
    level: Annotated[float, check_share] = 0.98
    n_calibration: Annotated[int, whole(1)] = 1000
    max_peaks: Annotated[int, whole(10)] = 1000
    expect_alarms: bool = True

    @property
    def level_value(self) -> float:
        return self._level_value if self._begun else math.nan

    @property
    def tail(self) -> ParetoTail | None:
        return self._tail if self._begun else None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.rate >= 1 - self.level:
            raise ValueError(
                f"rate must be below 1 − level, as the threshold lies beyond the level; got rate = {self.rate:g} and "
                f"level = {self.level:g}."
            )
        if self.n_calibration * (1 - self.level) < 1 - 1e-9:
            raise ValueError(
                f"n_calibration = {self.n_calibration} leaves no score above level = {self.level:g}; it must be at "
                f"least {math.ceil(1 / (1 - self.level) - 1e-9)}, and better twenty times that."
            )

    def _fewest_scores(self) -> int:
        return self.n_calibration

    def _begin(self) -> None:
        self._calibration: list[float] = []
        self._level_value = self._limit = math.nan
        self._tail: ParetoTail | None = None
        self._excesses: FloatArray = np.empty(0)
        self._ceilings: FloatArray = np.empty(0)  # the largest unflagged excess at the time; 0 in calibration
        self._gaps: NDArray[np.int64] = np.empty(0, dtype=np.int64)  # scores since the peak before, with the peak
        self._since_peak = 0

    def _learn(self, score: float, flagged: bool) -> None:
        if not flagged:
            self._see(score)
            self._value = self._limit

    def _see(self, score: float) -> None:
        """Learn from a score that was not flagged."""
        if isnan(self._level_value):
            self._calibration.append(score)
            if len(self._calibration) == self.n_calibration:
                self._calibrate()
            return
        self._since_peak += 1
        if score > self._level_value:
            self._keep_peak(score, max(self._limit - self._level_value, 0.0))
            self._fit()

    def _calibrate(self) -> None:
        rank = math.ceil(self.level * self.n_calibration - 1e-9)
        self._level_value = self._limit = sorted(self._calibration)[rank - 1]
        for score in self._calibration:
            self._since_peak += 1
            if score > self._level_value:
                self._keep_peak(score, 0.0)
        self._calibration = []
        if len(self._excesses):
            self._fit()

    def _keep_peak(self, score: float, ceiling: float) -> None:
        kept = slice(-self.max_peaks, None)
        self._excesses = np.append(self._excesses, min(score - self._level_value, LARGEST))[kept]
        self._ceilings = np.append(self._ceilings, min(ceiling, LARGEST))[kept]
        self._gaps = np.append(self._gaps, self._since_peak)[kept]
        self._since_peak = 0

    def _fit(self) -> None:
        """Compute γ, σ and z from the peaks: the paper's eq. 1, with the alarms to be expected among them."""
        alarms = self.rate / (1.0 - self.rate) if self.expect_alarms else 0.0
        unseen = np.where(self._ceilings > 0, alarms * self._gaps, 0.0)
        self._tail = fit_tail(self._excesses, self._ceilings, unseen)
        n = int(self._gaps.sum()) + self._since_peak + float(unseen.sum())
        N = len(self._excesses) + float(unseen.sum())
        self._limit = min(self._level_value + self._tail.exceeded_by(self.rate * n / N), LARGEST)

    _fields: ClassVar[Fields] = {
        "calibration": "c", "level_value": ("?", float), "limit": ("?", float), "gamma": ("?", "float >=-1"),
        "sigma": ("?", "float >=0"), "excesses": "k >0", "ceilings": "k >=0", "gaps": f"k int >=1 <={LARGEST_WHOLE}",
        "since_peak": int,
    }  # fmt: skip

    def _state(self) -> dict[str, Any]:
        known = not isnan(self._limit)
        return {
            "calibration": np.array(self._calibration, dtype=np.float64),
            "level_value": self._level_value if known else None,
            "limit": self._limit if known else None,
            "gamma": None if self._tail is None else self._tail.gamma,
            "sigma": None if self._tail is None else self._tail.sigma,
            "excesses": self._excesses.copy(),
            "ceilings": self._ceilings.copy(),
            "gaps": self._gaps.copy(),
            "since_peak": self._since_peak,
        }

    def _restore(self, state: dict[str, Any], record: Record) -> None:
        n = len(state["excesses"])
        if len(state["calibration"]) >= self.n_calibration:
            raise record.error("calibration", f"fewer than n_calibration = {self.n_calibration} numbers")
        if n > self.max_peaks:
            raise record.error("excesses", f"at most max_peaks = {self.max_peaks} numbers")
        self._calibration = state["calibration"].tolist()
        self._since_peak = state["since_peak"]
        self._excesses, self._ceilings, self._gaps = (state[name].copy() for name in ("excesses", "ceilings", "gaps"))
        limit, level, gamma, sigma = (state[name] for name in ("limit", "level_value", "gamma", "sigma"))
        if limit is None:
            if n or self._since_peak or (level, gamma, sigma) != (None, None, None):
                raise StorageError(f"{record.place} has peaks, but no limit")
            return
        if self._calibration:
            raise StorageError(f"{record.place} has a limit, and still calibrates")
        if level is None:
            raise record.error("level_value", "a number, as there is a limit")
        if limit < level:
            raise record.error("limit", f"at least the level_value, {level:g}")
        self._level_value, self._limit, self._value = level, limit, limit
        if (gamma is None) != (sigma is None) or (n and gamma is None):
            raise record.error("gamma", "there, and sigma too, as there are peaks")
        if gamma is not None and sigma is not None:
            self._tail = ParetoTail(gamma, sigma)


@estimator
class DriftingPeaks(PeaksOverThreshold):
    """`PeaksOverThreshold` of what a score has above the mean of the `depth` unflagged scores before it: DSPOT.

    Siffer, Fouque, Termier and Largouët (KDD 2017). The threshold, `value`, follows the scores: it is that mean plus
    the threshold for the difference. It follows drift that is slow compared with `depth`; after a sudden lasting rise
    the mean stops, and everything is flagged, because flagged scores are not taken in.

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

    depth: Annotated[int, whole(1)] = 50

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
        try:
            self._mean = math.fsum(self._recent) / len(self._recent)
        except OverflowError:  # the sum of halves cannot
            depth = len(self._recent)
            self._mean = _bounded(2.0 * math.fsum(score / (2 * depth) for score in self._recent))
        self._value = _bounded(self._mean + self._limit)

    _fields: ClassVar[Fields] = {**PeaksOverThreshold._fields, "recent": "r"}

    def _state(self) -> dict[str, Any]:
        return super()._state() | {"recent": np.array(self._recent, dtype=np.float64)}

    def _restore(self, state: dict[str, Any], record: Record) -> None:
        super()._restore(state, record)
        recent = state["recent"]
        begun = len(self._calibration) > 0 or not isnan(self._limit)
        if len(recent) > self.depth or (begun and len(recent) < self.depth):
            raise record.error("recent", f"depth = {self.depth} numbers")
        self._recent.extend(recent.tolist())
        if len(recent):
            self._follow()


def _bounded(value: float) -> float:
    """Return a value within the range of floats, for sums of huge scores; NaN stays NaN."""
    return max(min(value, LARGEST), -LARGEST)
