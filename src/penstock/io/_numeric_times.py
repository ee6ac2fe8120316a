"""Times that are written as one number."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock._types import FloatArray
from penstock.io._time_texts import read_times

# name, smallest and largest value, in microseconds: 1973 to 2286, so that no two overlap
_EPOCHS = (
    ("seconds since 1970", 1e8, 1e10, 1e6),
    ("milliseconds since 1970", 1e11, 1e13, 1e3),
    ("microseconds since 1970", 1e14, 1e16, 1.0),
    ("nanoseconds since 1970", 1e17, 1e19, 1e-3),
)
_EXCEL_DAYS = (20_000, 80_000)  # 1954 to 2119
_EXCEL_START = np.datetime64("1899-12-30", "us")
_DATES = (
    ("dates as 20241231", 19_000_101, 21_001_231),
    ("times as 20241231134500", 19_000_101 * 10**6, 21_001_231 * 10**6),
)


@dataclass(frozen=True)
class NumericTimes:
    """Times, NaT where there is none; `meaning` of the numbers, and whether they are in UTC."""

    times: NDArray[np.datetime64]
    meaning: str
    utc: bool


def read_numeric_times(numbers: FloatArray) -> NumericTimes | None:
    """What the numbers mean is told by their size; None if they are no times.

    >>> found = read_numeric_times(np.array([1704067200.0, np.nan, 1704067260.5]))
    >>> found.meaning, found.times.astype("M8[ms]").astype(str).tolist()
    ('seconds since 1970', ['2024-01-01T00:00:00.000', 'NaT', '2024-01-01T00:01:00.500'])
    >>> read_numeric_times(np.array([20241231.0, 20250101.0])).times.astype("M8[D]").astype(str).tolist()
    ['2024-12-31', '2025-01-01']
    >>> read_numeric_times(np.array([0.0, 1.0, 2.0])) is None
    True
    """
    there = np.isfinite(numbers)
    if not there.any():
        return None
    smallest, largest = float(numbers[there].min()), float(numbers[there].max())
    whole = bool((numbers[there] == np.floor(numbers[there])).all())
    for meaning, earliest, latest in _DATES:
        if whole and earliest <= smallest and largest <= latest:
            texts = [f"{number:.0f}" if present else "" for number, present in zip(numbers, there, strict=True)]
            return NumericTimes(read_times(texts).times, meaning, utc=False)
    for meaning, low, high, microseconds in _EPOCHS:
        if low <= smallest and largest < high:
            return NumericTimes(_since(np.datetime64(0, "us"), numbers, microseconds), meaning, utc=True)
    if _EXCEL_DAYS[0] <= smallest and largest <= _EXCEL_DAYS[1]:
        return NumericTimes(_since(_EXCEL_START, numbers, 86_400e6), "days as Excel counts them", utc=False)
    return None


def _since(start: np.datetime64, numbers: FloatArray, microseconds: float) -> NDArray[np.datetime64]:
    """Whole units and their fraction apart: their product in one would be wrong by some microseconds."""
    there = np.isfinite(numbers)
    filled = np.where(there, numbers, 0.0)
    if microseconds < 1:
        ticks = np.round(filled * microseconds).astype(np.int64)
    else:
        units = np.floor(filled)
        ticks = units.astype(np.int64) * int(microseconds)
        ticks += np.round((filled - units) * microseconds).astype(np.int64)
    times = start + ticks.astype("m8[us]")
    times[~there] = np.datetime64("NaT")
    return times
