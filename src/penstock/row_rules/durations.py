"""Durations as people write them."""

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
_MOST_CHARACTERS = 100
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
    while part := _PART.match(text, at) if len(text) <= _MOST_CHARACTERS else None:
        seconds += Fraction(part.group(1)) * _seconds(part.group(2), text)
        at = part.end()
    if not at or at < len(text):
        raise ValueError(
            f"{quoted(text)} is no duration. Write a number and its unit, such as '30 min', '2 h' or '1 d'."
        )
    if seconds > _MOST_DAYS * 86_400:
        raise ValueError(f"The duration {quoted(text)} is longer than {_MOST_DAYS:,} days.")
    return pd.Timedelta(microseconds=round(seconds * 1_000_000))


def _seconds(unit: str, text: str) -> Fraction:
    found = _SECONDS.get(unit.lower())
    if found is None:
        hint = " Write min for minutes." if unit in ("m", "M") else ""
        raise ValueError(f"{quoted(text)} has an unknown unit {quoted(unit)}; known are ms, s, min, h, d and w.{hint}")
    return found
