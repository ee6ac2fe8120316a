"""Thresholds that people can read."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal

import numpy as np
from numpy.typing import NDArray

from penstock._types import FloatArray

_DIGITS = 17  # are enough for any float


def round_between(low: float, high: float) -> float:
    """The number with the fewest significant digits that separates x <= low from x >= high, the nearest to the middle.

    At least `low` and less than `high`, because what equals a threshold lies below it. 0 if that is about the middle.

    >>> round_between(3.02, 3.23), round_between(118.7, 141.0), round_between(0.0, 1.0), round_between(1.0, 2.0)
    (3.1, 130.0, 0.5, 1.0)
    >>> round_between(-3.2, 3.9)
    0.0
    """
    middle = low / 2 + high / 2
    if low <= 0 < high and abs(middle) < (high / 2 - low / 2) / 5:
        return 0.0
    exact = Decimal(middle)
    for digits in range(1, _DIGITS + 1):
        candidates = [
            float(Context(prec=digits, rounding=way).plus(exact))
            for way in (ROUND_HALF_EVEN, ROUND_FLOOR, ROUND_CEILING)
        ]
        inside = [value for value in candidates if low <= value < high]
        if inside:
            return min(inside, key=lambda value: (abs(value - middle), value))
    return low


def gap_around(column: FloatArray, threshold: float, among: NDArray[np.bool_]) -> tuple[float, float]:
    """The largest reading <= threshold and the smallest above it among some rows; ∓infinity where there is none.

    >>> gap_around(np.array([1.0, 2.0, np.nan, 7.0]), 3.0, np.array([True, True, True, True]))
    (2.0, 7.0)
    """
    seen = column[among & np.isfinite(column)]
    above = seen > threshold
    return float(seen[~above].max(initial=-np.inf)), float(seen[above].min(initial=np.inf))
