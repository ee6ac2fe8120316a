"""Summer time in local stamps without a zone: where clocks are set, and rows of an hour that comes twice."""

from __future__ import annotations

import datetime as dt
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import pandas as pd
from numpy.typing import NDArray

# One zone for each rule of summer time that is, or lately was, in use; the first that fits is named.
ZONES = (
    "Europe/Berlin", "Europe/London", "Europe/Athens", "America/New_York", "America/Chicago", "America/Denver",
    "America/Los_Angeles", "Australia/Sydney", "America/Santiago", "America/Sao_Paulo", "Asia/Tehran", "Asia/Jerusalem",
    "Africa/Cairo", "Pacific/Auckland", "America/Mexico_City", "Atlantic/Azores", "America/Havana", "Asia/Beirut",
    "Asia/Amman", "Africa/Casablanca",
)  # fmt: skip
_HOUR = 3_600_000_000  # microseconds


def change_of_clocks(at: pd.Timestamp, name: str) -> float:
    """Return by how much clocks are set forward at a local time, which is left out then; below 0: it comes twice."""
    try:
        zone, moment = ZoneInfo(name), at.to_pydatetime(warn=False)
    except ZoneInfoNotFoundError:  # a system without it
        return 0.0
    first, second = (moment.replace(tzinfo=zone, fold=fold).utcoffset() or dt.timedelta() for fold in (0, 1))
    return (second - first).total_seconds()


@lru_cache(maxsize=64)
def _comes_twice(hour: int) -> bool:
    """Return whether an hour, counted from 1970 on, comes twice in some zone."""
    return any(change_of_clocks(pd.Timestamp(hour * _HOUR, unit="us"), zone) < 0 for zone in ZONES)


def without_second_hours(stamps: NDArray[np.int64], before: int | None = None) -> NDArray[np.int64]:
    """Return local stamps in microseconds, as rows came, without a step back where clocks are set back.

    Rows of an hour that comes twice have the last stamp of its first time, when it comes the second time: they stay in
    their order, and the next hour goes on. Other steps back stay.

    before : the stamp of the row before the first.

    >>> texts = ["2024-10-27 02:30", "2024-10-27 02:50", "2024-10-27 02:10", "2024-10-27 03:00"]
    >>> found = without_second_hours(np.array(texts, dtype="M8[us]").astype(np.int64))
    >>> found.astype("M8[us]").astype("M8[m]").astype(str).tolist()
    ['2024-10-27T02:30', '2024-10-27T02:50', '2024-10-27T02:50', '2024-10-27T03:00']
    """
    newest = np.maximum.accumulate(stamps if before is None else np.maximum(stamps, before))
    back = (stamps < newest) & (stamps > newest - _HOUR)  # and not missing
    if not back.any():
        return stamps
    hours = np.unique(stamps[back] // _HOUR)
    twice = hours[[_comes_twice(hour) for hour in hours.tolist()]] if len(hours) < 100 else hours[:0]
    # Both stamps are of that hour: a row that is late is of the one before.
    again = back & np.isin(stamps // _HOUR, twice) & (newest // _HOUR == stamps // _HOUR)
    return np.where(again, newest, stamps)
