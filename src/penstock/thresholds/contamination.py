"""All scores at once -> a threshold: above it, a row is called anomalous."""

from __future__ import annotations

from numbers import Real
from typing import Literal

import numpy as np

from penstock._types import FloatArray
from penstock.thresholds.base import Threshold

Contamination = float | Literal["auto"] | Threshold


def score_threshold(scores: FloatArray, contamination: Contamination = "auto") -> float:
    """The threshold t for which rows with a score above t are flagged.

    Parameters
    ----------
    scores : array of shape (n,)
        Finite; high means anomalous.
    contamination : "auto", float in (0, 0.5] or Threshold
        - "auto": mean + 3 standard deviations of the scores that are not flagged, the habit of the paper's authors,
          repeated until the flagged rows no longer change. Where that flags nobody although scores differ (it never can
          among ten rows), the highest score is flagged: docs/decisions/0006-auto-threshold.md.
        - a share: that share of the rows, rounded to the nearest whole number and at least one, is flagged; the
          threshold is midway between the last flagged score and the next. Equal scores share a verdict, so that ties
          at the cut lead to fewer flags, never to more.
        - a `Threshold`: what its `calibrate` makes of the scores, in the order of the rows; it is not changed.

    Examples
    --------
    >>> import numpy as np
    >>> score_threshold(np.array([0.0, 1.0, 2.0, 5.0]), contamination=0.25)
    3.5
    >>> score_threshold(np.array([1.0] * 20 + [9.0]))
    1.0
    >>> from penstock.thresholds import TopN
    >>> score_threshold(np.array([0.0, 1.0, 2.0, 5.0]), TopN(2))
    1.5
    """
    check_contamination(contamination)
    if isinstance(contamination, Threshold):
        return contamination.calibrate(scores)
    if contamination == "auto":
        threshold = _three_sigma(scores)
        return threshold if scores.max() > threshold or scores.min() == scores.max() else _below_highest(scores)
    flagged = max(1, int(np.floor(float(contamination) * len(scores) + 0.5)))
    if flagged >= len(scores):
        raise ValueError(f"A threshold needs at least two scores; got {len(scores)}.")
    low, high = np.sort(np.partition(scores, [-flagged - 1, -flagged])[[-flagged - 1, -flagged]])
    return midway(float(low), float(high))


def check_contamination(contamination: object) -> None:
    """Raise a ValueError unless it is "auto", a number in (0, 0.5] or a Threshold with parameters within bounds."""
    if isinstance(contamination, str) and contamination == "auto":
        return
    if isinstance(contamination, Threshold):
        contamination._check_parameters()
        return
    number = isinstance(contamination, Real) and not isinstance(contamination, bool)
    if not number or not 0 < float(contamination) <= 0.5:  # type: ignore[arg-type]
        raise ValueError(
            f"contamination must be 'auto' or a number in (0, 0.5], but is {contamination!r}. An object of "
            "penstock.thresholds, such as TopN(20), is welcome too."
        )


def midway(low: float, high: float) -> float:
    """Midway, or `low` itself where rounding leaves nothing between the two."""
    middle = low * 0.5 + high * 0.5
    return middle if low <= middle < high else low


def _below_highest(scores: FloatArray) -> float:
    highest = scores.max()
    return midway(float(scores[scores < highest].max()), float(highest))


def _three_sigma(scores: FloatArray) -> float:
    """Each round flags at least what the one before did, because mean and spread shrink: it ends within n rounds."""
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
