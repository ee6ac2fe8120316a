"""Durations, such as `30 min`, as users write them."""

from __future__ import annotations

import re
from fractions import Fraction

import pandas as pd

from penstock._messages import quoted

_UNITS = {
    Fraction(1, 1000): ("ms", "millisecond", "milliseconds"),
    Fraction(1): ("s", "sec", "second", "seconds"),
    Fraction(60): ("min", "mins", "minute", "minutes"),
    Fraction(3600): ("h", "hr", "hrs", "hour", "hours"),
    Fraction(86_400): ("d", "day", "days"),
    Fraction(7 * 86_400): ("w", "week", "weeks"),
}
_SECONDS = {word: seconds for seconds, words in _UNITS.items() for word in words}
_PART = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([^\W\d_]+)\s*")
_LONGEST_DURATION = 100  # characters
_MOST_DAYS = 100_000


def parse_duration(text: str) -> pd.Timedelta:
    """Read a duration: a number and its unit (ms, s, min, h, d, w), or several of them.

    >>> parse_duration("90 s"), parse_duration("1h30min"), parse_duration("1.5 days")
    (Timedelta('0 days 00:01:30'), Timedelta('0 days 01:30:00'), Timedelta('1 days 12:00:00'))
    >>> parse_duration("30")
    Traceback (most recent call last):
    ValueError: '30' is no duration. Write a number and its unit, such as '30 min', '2 h' or '1 d'.
    """
    seconds, at = Fraction(0), 0
    while part := _PART.match(text, at) if len(text) <= _LONGEST_DURATION else None:
        number, unit = part.groups()
        if unit.lower() not in _SECONDS:
            hint = " Write min for minutes." if unit in ("m", "M") else ""
            known = "known are ms, s, min, h, d and w"
            raise ValueError(f"{quoted(text)} has an unknown unit {quoted(unit)}; {known}.{hint}")
        seconds += Fraction(number) * _SECONDS[unit.lower()]
        at = part.end()
    if not at or at < len(text):
        raise ValueError(
            f"{quoted(text)} is no duration. Write a number and its unit, such as '30 min', '2 h' or '1 d'."
        )
    if seconds > _MOST_DAYS * 86_400:
        raise ValueError(f"The duration {quoted(text)} is longer than {_MOST_DAYS:,} days.")
    return pd.Timedelta(microseconds=round(seconds * 1_000_000))
