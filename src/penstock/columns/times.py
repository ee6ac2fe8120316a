"""Time stamps, such as `2024-05-31`, as users write them."""

from __future__ import annotations

import datetime as dt
import re

import numpy as np
import pandas as pd

from penstock._messages import quoted
from penstock._types import BoolArray
from penstock.io import TimeReader

# The year first: of other dates it is not known which number is the day. A month, a day, or an instant.
_STAMP = re.compile(r"(?P<month>\d{4}-\d\d)|(?:\d{4}-\d\d-\d\d|\d{8}|\d{4}-?W\d\d-?\d)(?P<clock>[ T].*)?")
_FIRST, _LAST = np.datetime64("0001-01-03", "us"), np.datetime64("9999-11-01", "us")  # which every zone can show


def order_to_stamp(time: pd.DatetimeIndex, text: str) -> tuple[BoolArray, BoolArray]:
    """Return which times are before a time stamp, and which after it.

    A day or a month stands for all of it, so that `time <= '2024-05'` ends with the 31st. A stamp without a zone is in
    that of the table.

    >>> time = pd.DatetimeIndex(["2024-04-30 12:00", "2024-05-31 12:00", "2024-06-01"])
    >>> before, after = order_to_stamp(time, "2024-05")
    >>> before.tolist(), after.tolist()
    ([True, False, False], [False, False, True])
    """
    text = text.strip()
    found = _STAMP.fullmatch(text)
    is_month = found is not None and found["month"] is not None
    written = [f"{text}-01" if is_month else text]
    reader = TimeReader.learn(written)
    if found is None or reader is None or not reader.dated:
        raise ValueError(
            f"{quoted(text)} is no time stamp. Write the year first, as in '2024-05-31' or '2024-05-31 14:30'."
        )
    moment = reader.read(written)[0][0]
    start = pd.Timestamp(min(max(moment, _FIRST), _LAST))  # 9999-12-31 is written for "always"
    if reader.zoned:
        start = start.tz_localize(dt.UTC)
    first = _in_zone(start, time, text)
    if found["clock"]:
        return np.asarray(time < first), np.asarray(time > first)
    stop = start + (pd.offsets.MonthBegin() if is_month else pd.Timedelta(days=1))
    return np.asarray(time < first), np.asarray(time >= _in_zone(stop, time, text))


def _in_zone(stamp: pd.Timestamp, time: pd.DatetimeIndex, text: str) -> pd.Timestamp:
    if time.tz is None and stamp.tzinfo is not None:
        raise ValueError(f"The time stamp {quoted(text)} has a zone, but those of the table have none.")
    if time.tz is None or stamp.tzinfo is not None:
        return stamp
    return stamp.tz_localize(time.tz, ambiguous=True, nonexistent="shift_forward")
