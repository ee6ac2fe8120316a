"""Simple thresholds: from all scores at once, a fixed value, mean + k standard deviations, the N highest scores."""

from __future__ import annotations

import math
from heapq import heappush, heapreplace
from math import sqrt
from numbers import Real
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from penstock._parameters import Bounds, ParameterError, check_number, estimator, number, whole
from penstock._types import BoolArray, FloatArray
from penstock.storage import Fields, Record
from penstock.thresholds.base import Threshold

_LARGEST_KEPT = 1e140  # squares of what is far beyond it would overflow
_LARGEST_N = 2_000_000

Contamination = float | Literal["auto"] | Threshold


def score_threshold(scores: FloatArray, contamination: Contamination = "auto") -> float:
    """Return the threshold t for which rows with a (finite) score above t are flagged.

    contamination :
        - "auto": mean + 3 standard deviations of the scores that are not flagged, as the paper's authors do, repeated
          until the flagged rows no longer change. Where that flags no row although scores differ (it never can among
          ten rows), the highest score is flagged: docs/decisions/0006-auto-threshold.md.
        - a share in (0, 0.5]: that share of the rows, rounded to the nearest whole number and at least one, is flagged;
          the threshold is midway between the last flagged score and the next. Equal scores share a verdict, so that
          ties at the cut lead to fewer flags, never to more.
        - a `Threshold`: what its `calibrate` makes of the scores, in the order of the rows; it is not changed.
    """
    check_contamination("contamination", contamination)
    if isinstance(contamination, Threshold):
        return contamination.calibrate(scores)
    if contamination == "auto":
        threshold, highest = _three_sigma(scores), scores.max()
        if highest > threshold or scores.min() == highest:
            return threshold
        return midway(float(scores[scores < highest].max()), float(highest))
    flagged = max(1, int(np.floor(float(contamination) * len(scores) + 0.5)))
    if flagged >= len(scores):
        raise ValueError(f"A threshold needs at least two scores; got {len(scores)}.")
    low, high = np.sort(np.partition(scores, [-flagged - 1, -flagged])[[-flagged - 1, -flagged]])
    return midway(float(low), float(high))


def check_contamination(name: str, value: object) -> None:
    """Raise unless `value` is "auto", a number in (0, 0.5] or a Threshold with parameters within bounds."""
    if isinstance(value, str) and value == "auto":
        return
    if isinstance(value, Threshold):
        value._check_parameters()
        return
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number or not 0 < float(value) <= 0.5:  # type: ignore[arg-type]
        raise ParameterError(
            name,
            f" must be 'auto' or a number in (0, 0.5], but is {value!r}. An object of penstock.thresholds, such as "
            "TopN(20), is welcome too.",
        )


def midway(low: float, high: float) -> float:
    """Return the middle, or `low` itself where rounding leaves nothing between the two."""
    middle = low * 0.5 + high * 0.5
    return middle if low <= middle < high else low


def _three_sigma(scores: FloatArray) -> float:
    """Repeat mean + 3 sd: each round flags at least what the one before did, so that it ends within n rounds."""
    low, high = float(scores.min()), float(scores.max())
    half_range = high * 0.5 - low * 0.5
    if half_range == 0:
        return low
    # In units of the range above the lowest score: nothing overflows, and a constant remainder is 0 exactly.
    position = (scores * 0.5 - low * 0.5) / half_range
    kept = np.ones(len(scores), dtype=np.bool_)
    while True:
        limit = float(position[kept].mean() + 3.0 * position[kept].std())
        staying = kept & (position <= limit)
        if (staying == kept).all():
            break
        kept = staying
    if limit == 0:
        return low
    return float(min(2.0 * (low * 0.5 + min(limit, 1e6) * half_range), np.finfo(np.float64).max))


def _finite_or_infinite(name: str, value: object) -> None:
    if not (isinstance(value, float) and math.isinf(value)):
        check_number(name, value)


class Fixed(Threshold):
    """Flag scores above a given value; learn nothing.

    Parameters
    ----------
    value : float
        A score equal to it is not flagged. Infinity flags nothing.

    Examples
    --------
    >>> Fixed(3.0).update_many([1.0, 3.0, 3.1])
    array([False, False,  True])
    """

    value: float = math.nan  # the parameter itself, in the place of the property

    def __init__(self, value: float) -> None:
        self.value = value

    _bounds: ClassVar[Bounds] = {"value": _finite_or_infinite}

    def _fewest_scores(self) -> int:
        return 0

    def _begin(self) -> None:
        self._value = float(self.value)

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name == "value" and self._begun:
            self._begun = False  # checked, and taken over, with the next score

    def _learn(self, score: float, flagged: bool) -> None:
        pass

    def follow(self, scores: ArrayLike) -> tuple[FloatArray, BoolArray]:
        values = np.array(self._read(scores), dtype=np.float64)
        return np.full(len(values), self._value), values > self._value


@estimator
class MeanDeviation(Threshold):
    """Flag scores above mean + k·sd of all the scores that were not flagged before (Welford's recursion).

    Flagged scores are not taken in: after a lasting shift to a higher level everything is flagged. Where levels move,
    use `RollingQuantile`. How many scores are flagged depends on their distribution: with k = 3, 0.1 % of
    Gaussian scores, but 1.8 % of exponential ones, and more once those are left out.

    Parameters
    ----------
    k : float ≥ 0
        How many standard deviations (of the population: divided by n) above the mean.
    min_scores : int ≥ 2
        So many are taken in before any is flagged. Scores beyond ±1e140 are compared but never taken in.

    Examples
    --------
    >>> threshold = MeanDeviation(k=3.0, min_scores=4)
    >>> threshold.update_many([1.0, 3.0, 1.0, 3.0, 5.1])
    array([False, False, False, False,  True])
    >>> threshold.value
    5.0
    """

    k: Annotated[float, number(0.0)] = 3.0
    min_scores: Annotated[int, whole(2)] = 50

    def _fewest_scores(self) -> int:
        return self.min_scores

    def _begin(self) -> None:
        self._count, self._mean = 0, 0.0
        self._squares = 0.0  # the sum of squared distances from the mean

    def _learn(self, score: float, flagged: bool) -> None:
        if flagged or not -_LARGEST_KEPT <= score <= _LARGEST_KEPT:
            return
        self._count = count = self._count + 1
        step = score - self._mean
        self._mean = mean = self._mean + step / count
        self._squares = squares = self._squares + step * (score - mean)
        if count >= self.min_scores:
            self._value = mean + self.k * sqrt(squares / count)

    _fields: ClassVar[Fields] = {"count": int, "mean": float, "squares": "float >=0"}

    def _state(self) -> dict[str, Any]:
        return {"count": self._count, "mean": self._mean, "squares": self._squares}

    def _restore(self, state: dict[str, Any], record: Record) -> None:
        self._count, self._mean, self._squares = state["count"], state["mean"], state["squares"]
        known = self._count >= self.min_scores
        self._value = self._mean + self.k * sqrt(self._squares / self._count) if known else math.nan


@estimator
class TopN(Threshold):
    """Keep the N highest scores so far, in constant memory; flag a score that takes the place of another one.

    The first N scores fill the list and are not flagged, as nothing is before a threshold is known.

    Parameters
    ----------
    n : int ≥ 1
        How many.

    Examples
    --------
    >>> threshold = TopN(n=2)
    >>> threshold.update_many([5.0, 1.0, 3.0, 1.0, 5.0])
    array([False, False,  True, False,  True])
    >>> threshold.positions, threshold.scores
    (array([0, 4]), array([5., 5.]))
    """

    n: Annotated[int, whole(1)] = 100

    @property
    def positions(self) -> NDArray[np.int64]:
        """Which updates, counted from 0 and with NaN, brought the listed scores: best first, of equals the earlier."""
        return np.array([-entry[1] for entry in self._listed()], dtype=np.int64)

    @property
    def scores(self) -> FloatArray:
        """The listed scores, best first."""
        return np.array([entry[0] for entry in self._listed()], dtype=np.float64)

    def calibrate(self, scores: ArrayLike) -> float:
        """Return the value above which the N highest of these scores lie, midway between the N-th and the next.

        That takes at least N + 1 scores; equal ones at the cut share a verdict, and lead to fewer than N.
        """
        self._check_parameters()
        longer = TopN(self.n + 1)
        longer.update_many(scores)
        listed = longer.scores
        if len(listed) <= self.n:
            raise self._too_few(scores, self.n + 1)
        return midway(float(listed[-1]), float(listed[-2]))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.n > _LARGEST_N:
            raise ValueError(f"n must be at most {_LARGEST_N:,}, as each takes 150 bytes; got {self.n}.")

    def _fewest_scores(self) -> int:
        return self.n

    def _begin(self) -> None:
        self._seen = 0
        self._heap: list[tuple[float, int]] = []  # (score, −position): the smallest entry is the next to go

    def _pass_over(self) -> None:
        self._seen += 1

    def _learn(self, score: float, flagged: bool) -> None:
        entry = (score, -self._seen)
        self._seen += 1
        if flagged:
            heapreplace(self._heap, entry)
        elif len(self._heap) < self.n:
            heappush(self._heap, entry)
        if len(self._heap) == self.n:
            self._value = self._heap[0][0]

    def _listed(self) -> list[tuple[float, int]]:
        return sorted(self._heap, reverse=True) if self._begun else []

    _fields: ClassVar[Fields] = {"positions": "k int >=0", "scores": "k", "seen": int}

    def _state(self) -> dict[str, Any]:
        return {"positions": self.positions, "scores": self.scores, "seen": self._seen}

    def _restore(self, state: dict[str, Any], record: Record) -> None:
        self._seen, scores, positions = state["seen"], state["scores"], state["positions"]
        if len(scores) > self.n:
            raise record.error("scores", f"at most n = {self.n} numbers")
        if len(np.unique(positions)) < len(positions) or (positions >= self._seen).any():
            raise record.error("positions", f"different numbers below {self._seen}")
        order = np.lexsort((-positions, scores))  # an ordered list is a heap
        self._heap = list(zip(scores[order].tolist(), (-positions[order]).tolist(), strict=True))
        if len(self._heap) == self.n:
            self._value = self._heap[0][0]
