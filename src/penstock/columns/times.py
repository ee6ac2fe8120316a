"""Time stamps, such as `2024-05-31`, as users write them."""

from __future__ import annotations

import datetime as dt
import re

import numpy as np
import pandas as pd

from penstock._messages import quoted
from penstock._types import BoolArray

_MONTH = re.compile(r"[0-9]{4}-[0-9]{2}")
_WEEK = re.compile(r"[0-9]{4}-?W[0-9]{2}(?!-?[0-9])")  # without a day, where Python would take its Monday
_FIRST, _LAST = dt.datetime(1, 1, 3), dt.datetime(9999, 11, 1)


def order_to_stamp(time: pd.DatetimeIndex, text: str) -> tuple[BoolArray, BoolArray]:
    """Return which times are before a time stamp, and which after it.

    A day or a month stands for all of it, so that `time <= '2024-05'` ends with the 31st. A stamp without a zone is in
    that of the table.

    >>> time = pd.DatetimeIndex(["2024-04-30 12:00", "2024-05-31 12:00", "2024-06-01"])
    >>> before, after = order_to_stamp(time, "2024-05")
    >>> before.tolist(), after.tolist()
    ([True, False, False], [False, False, True])
    """
    try:
        start, stop = _span(text.strip())
    except ValueError:
        raise ValueError(
            f"{quoted(text)} is no time stamp. Write the year first, as in '2024-05-31' or '2024-05-31 14:30'."
        ) from None
    first = _in_zone(start, time, text)
    after = time > first if stop is None else time >= _in_zone(stop, time, text)
    return np.asarray(time < first), np.asarray(after)


def _span(text: str) -> tuple[dt.datetime, dt.datetime | None]:
    """Return the start of what a text names, and where the day or month is over; None for an instant."""
    if _WEEK.match(text):
        raise ValueError("a week is no day")
    if _MONTH.fullmatch(text):
        start = _within_reach(dt.datetime.fromisoformat(f"{text}-01"))
        return start, (start + dt.timedelta(days=31)).replace(day=1)
    start = _within_reach(dt.datetime.fromisoformat(text))
    try:
        dt.date.fromisoformat(text)
    except ValueError:
        return start, None
    return start, start + dt.timedelta(days=1)


def _within_reach(stamp: dt.datetime) -> dt.datetime:
    """Return the stamp, or the last (first) that every zone can still show: 9999-12-31 is written for "always"."""
    return min(max(stamp.replace(tzinfo=None), _FIRST), _LAST).replace(tzinfo=stamp.tzinfo)


def _in_zone(stamp: dt.datetime, time: pd.DatetimeIndex, text: str) -> pd.Timestamp:
    if time.tz is None and stamp.tzinfo is not None:
        raise ValueError(f"The time stamp {quoted(text)} has a zone, but those of the table have none.")
    if time.tz is None or stamp.tzinfo is not None:
        return pd.Timestamp(stamp)
    return pd.Timestamp(stamp).tz_localize(time.tz, ambiguous=True, nonexistent="shift_forward")
