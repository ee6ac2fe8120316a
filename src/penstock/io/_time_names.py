"""Names that say that a column holds the time."""

from __future__ import annotations

import re
from collections.abc import Iterable

# The surest first. A column of such a name still has to hold times.
TIME_NAMES = (
    "timestamp", "time stamp", "datetime", "date time", "date and time", "zeitstempel", "datum zeit", "datum uhrzeit",
    "fecha hora", "fecha y hora", "horodatage", "data ora", "datumtijd", "time utc", "utc time", "timestamp utc",
    "date utc", "local time", "utc", "sample time", "log time", "measured at", "recorded at", "created at", "unix time",
    "unixtime", "epoch", "time", "date", "zeit", "datum", "fecha", "tijd", "tid", "ts", "when", "t", "uhrzeit",
    "hora", "heure",
)  # fmt: skip
_DATE_NAMES = ("date", "datum", "fecha", "day", "data", "dato", "date utc")
_CLOCK_NAMES = ("time", "zeit", "uhrzeit", "hora", "heure", "ora", "tijd", "tid", "clock", "time of day", "time utc")


def plain_name(name: str) -> str:
    """A name without case, unit and punctuation.

    >>> plain_name("Time_Stamp [UTC]"), plain_name("Datum/Uhrzeit")
    ('time stamp', 'datum uhrzeit')
    """
    without_unit = re.sub(r"[(\[].*?[)\]]", " ", name.casefold())
    return " ".join(re.sub(r"[_\-/.,:&]+", " ", without_unit).split())


def columns_named_like_time(names: Iterable[str]) -> list[str]:
    """Columns whose name says time, the surest first.

    >>> columns_named_like_time(["flow", "Date", "TimeStamp"])
    ['TimeStamp', 'Date']
    """
    ranks = {known: rank for rank, known in enumerate(TIME_NAMES)}
    found = [(ranks[plain_name(name)], name) for name in names if plain_name(name) in ranks]
    return [name for _, name in sorted(found, key=lambda entry: entry[0])]


def date_and_clock(names: Iterable[str]) -> tuple[str, str] | None:
    """A pair of columns whose names say date and time of day."""
    plain: dict[str, str] = {}
    for name in names:
        plain.setdefault(plain_name(name), name)
    dates = [plain[name] for name in _DATE_NAMES if name in plain]
    clocks = [plain[name] for name in _CLOCK_NAMES if name in plain]
    return (dates[0], clocks[0]) if dates and clocks else None
