"""The ways in which people write a time, read off the text with each number as 0."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

_MONTHS = {
    month: number
    for number, months in enumerate(
        ("jan", "feb", "mar,mär,mrz,mae", "apr", "may,mai", "jun", "jul", "aug", "sep", "oct,okt", "nov", "dec,dez"),
        start=1,
    )
    for month in months.split(",")
}
_WEEKDAY = r"(?:(?:mon?|tue?|wed?|thu?|fri?|sat?|sun?|di|mi|do|fr|sa|so)[a-z]*\.?,? )?"
_MONTH = r"(?P<month>[a-zä]{3,9})"
_DATE = (
    r"(?:0(?P<sign>[-./])\s?0(?P=sign)\s?0"  # 31.12.2024, 2024-12-31, 12/31/24
    rf"|0[-. ]{{0,2}}{_MONTH}[-., ]{{0,2}}0"  # 31-Dec-2024
    rf"|{_MONTH.replace('month', 'month_first')}\.? 0(?:st|nd|rd|th)?,? 0"  # Dec 31, 2024
    r"|(?P<compact>0))"  # 20241231
)
_CLOCK = r"(?:0(?P<colon>[:.])0(?:(?P=colon)0(?:[.,:]0)?)?|(?P<compact_clock>0))"
_HALF = r"(?:\s?(?P<half>[ap])\.?m\.?)?"
_ZONE = r"(?:\s?(?P<zone>z|utc|gmt|(?:utc|gmt)?(?P<offset>[+-])0(?::0)?)(?:\s?\[[a-z_/]+\])?)?"
_STAMP = re.compile(rf"{_WEEKDAY}(?P<date>{_DATE})(?:(?P<gap>t|,?\s+|_|-|:)(?P<clock>{_CLOCK}){_HALF}{_ZONE})?")
_CLOCK_FIRST = re.compile(
    rf"(?P<clock>0:0(?::0(?:[.,]0)?)?){_HALF}(?P<gap>,?\s+){_WEEKDAY}(?P<date>{_DATE})(?P<zone>)(?P<offset>)"
)
_CLOCK_ALONE = re.compile(rf"(?P<clock>0:0(?::0(?:[.,]0)?)?){_HALF}{_ZONE}")


@dataclass(frozen=True)
class Format:
    """Which number of a stamp is what. A date has one number (compact), two (and a month's name) or three."""

    date_numbers: int
    sign: str  # between the three numbers of a date
    month: int | None
    month_comes_first: bool
    clock_numbers: int
    half: str  # "a", "p" or ""
    zone: str  # "" for none, "utc", "+" or "-"
    zone_numbers: int
    hour_alone: bool = False  # a clock of one number may be an hour, as in 2024-12-31 13
    clock_first: bool = False  # the numbers of the clock come before those of the date

    @property
    def way(self) -> Format:
        """The same for stamps that differ only in month, half of the day or sign of the offset."""
        zone = self.zone and "+"
        return replace(self, month=self.month and 1, half=self.half and "a", zone=zone, zone_numbers=0)


def find_format(skeleton: str) -> Format | None:
    """How a stamp is written; None if it is none.

    >>> found = find_format("0.0.0 0:0:0")
    >>> found.date_numbers, found.clock_numbers, found.sign
    (3, 3, '.')
    >>> find_format("dec 0, 0 0:0 pm").half, find_format("0-0-0t0:0:0.0+0:0").zone, find_format("pump 0")
    ('p', '+', None)
    """
    clock_first = _CLOCK_FIRST.fullmatch(skeleton)
    found = clock_first or _STAMP.fullmatch(skeleton)
    if found is None:
        return None
    name = found["month"] or found["month_first"]
    if name is not None and name[:3] not in _MONTHS:
        return None
    zone = found["zone"] or ""
    return Format(
        date_numbers=found["date"].count("0"),
        sign=found["sign"] or "",
        month=_MONTHS[name[:3]] if name else None,
        month_comes_first=found["month_first"] is not None,
        clock_numbers=(found["clock"] or "").count("0"),
        half=found["half"] or "",
        zone=found["offset"] or ("utc" if zone else ""),
        zone_numbers=zone.count("0"),
        hour_alone=found.groupdict().get("compact_clock") is not None and found["gap"].strip(" ,") in ("", "t"),
        clock_first=clock_first is not None,
    )


def is_clock_alone(skeleton: str) -> bool:
    """Whether this is a time of day without a date."""
    return _CLOCK_ALONE.fullmatch(skeleton) is not None
