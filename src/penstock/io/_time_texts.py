"""Time stamps in text → times: each way of writing at once, and day or month first decided for the whole column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.io._time_formats import Format, find_format, is_clock_alone
from penstock.io._time_tokens import Alike, IntArray, group_alike

NAIVE = -10_000  # stands for "no offset" among offsets in minutes
_NO_OFFSET = -9_999  # an offset that does not exist
_LARGEST_OFFSET = 18 * 60
_DAY = 86_400
_MOST_WAYS = 2_000  # of writing, in one column; more is no column of times


@dataclass
class TextTimes:
    """Times of a column: NaT where there is none. `times` is UTC where a stamp has an offset (in minutes), else local.

    day_first : how dates such as 1/2/2024 were read, or None if there are none; `decided_by` "values" (a number above
    12), "order" of the rows, "custom" or "you".
    """

    times: NDArray[np.datetime64]
    offsets: IntArray
    clock_alone: int = 0
    day_first: bool | None = None
    decided_by: str = ""
    contradictions: int = 0
    shortened: int = 0  # stamps with a fraction finer than microseconds
    ways: dict[Format, str] = field(default_factory=dict)  # of writing, and an example with 0 for any number


@dataclass(frozen=True)
class _Dates:
    """Rows with year, and month and day, or, where `open`, with two numbers of which either may be the month."""

    rows: IntArray
    year: IntArray
    first: IntArray
    second: IntArray
    open: bool
    sign: str = ""


def read_times(texts: Sequence[str], day_first: bool | None = None) -> TextTimes:
    """Read time stamps, whichever way each is written.

    >>> read = read_times(["12/31/2024 1:45 PM", "1/2/2025 0:00", "soon"])
    >>> read.times.astype("M8[m]").tolist()[:2], bool(np.isnat(read.times[2])), read.day_first, read.decided_by
    ([datetime.datetime(2024, 12, 31, 13, 45), datetime.datetime(2025, 1, 2, 0, 0)], True, False, 'values')
    """
    result = TextTimes(np.full(len(texts), "NaT", dtype="M8[us]"), np.full(len(texts), NAIVE, dtype=np.int64))
    dates: list[_Dates] = []
    ticks = np.zeros(len(texts), dtype=np.int64)  # microseconds of the day; outside a day where they make no sense
    for number, alike in enumerate(group_alike(texts)):
        if number >= _MOST_WAYS:
            break
        form = find_format(alike.skeleton)
        if form is None:
            result.clock_alone += len(alike.rows) if is_clock_alone(alike.skeleton) else 0
            continue
        result.ways.setdefault(form.way, alike.skeleton)
        ordered = _date_first(alike, form)
        dates += _dates(ordered, form)
        offsets = _offsets(ordered, form)
        ticks[alike.rows] = np.where(offsets == _NO_OFFSET, -1, _ticks(ordered, form))
        result.shortened += _too_fine(ordered, form)
        result.offsets[alike.rows] = offsets
    _settle_order(result, dates, ticks, day_first)
    return result


def _date_first(alike: Alike, form: Format) -> Alike:
    """The same with the numbers of the date before those of the clock."""
    if not form.clock_first:
        return alike
    numbers, digits = (np.roll(each, form.date_numbers, axis=1) for each in (alike.numbers, alike.digits))
    return replace(alike, numbers=numbers, digits=digits)


def _dates(alike: Alike, form: Format) -> list[_Dates]:
    numbers, digits, rows = alike.numbers, alike.digits, alike.rows
    if form.date_numbers == 1:
        return [_compact_dates(rows, numbers[:, 0], digits[:, 0])]
    if form.month is not None:
        month = np.full(len(rows), form.month)
        year_first = (digits[:, 0] == 4) & (not form.month_comes_first)
        year = np.where(year_first, numbers[:, 0], _full_year(numbers[:, 1], digits[:, 1]))
        return [_Dates(rows, year, month, np.where(year_first, numbers[:, 1], numbers[:, 0]), open=False)]
    with_year_first = digits[:, 0] == 4
    first: Any = with_year_first
    other: Any = ~with_year_first
    if with_year_first.all() or other.all():  # no need to copy
        first, other = (slice(None), slice(0)) if with_year_first.all() else (slice(0), slice(None))
    return [
        _Dates(rows[first], numbers[first, 0], numbers[first, 1], numbers[first, 2], open=False),
        _Dates(
            rows[other],
            _full_year(numbers[other, 2], digits[other, 2]),
            numbers[other, 0],
            numbers[other, 1],
            open=True,
            sign=form.sign,
        ),
    ]


def _compact_dates(rows: IntArray, number: IntArray, digits: IntArray) -> _Dates:
    """20241231, or 202412311345 and 20241231134500, whose clock `_ticks` reads."""
    date = np.select([digits == 8, digits == 12, digits == 14], [number, number // 10**4, number // 10**6], default=0)
    return _Dates(rows, date // 10_000, date // 100 % 100, date % 100, open=False)


def _full_year(year: IntArray, digits: IntArray) -> IntArray:
    """Two digits are 1970 to 2069; other lengths than two and four are no year."""
    return np.select([digits == 4, digits == 2], [year, np.where(year < 70, 2000 + year, 1900 + year)], default=0)


def _ticks(alike: Alike, form: Format) -> IntArray:
    """Microseconds since midnight; −1 if there is no such time of day."""
    clock = alike.numbers[:, form.date_numbers : form.date_numbers + form.clock_numbers]
    digits = alike.digits[:, form.date_numbers : form.date_numbers + form.clock_numbers]
    nothing = np.zeros(len(alike.rows), dtype=np.int64)
    hour, minute, second = (clock[:, n] if form.clock_numbers > max(n, 1) else nothing for n in range(3))
    if form.clock_numbers == 1:  # 134500, 1345 or 13
        lengths = [digits[:, 0] == 6, digits[:, 0] == 4, (digits[:, 0] <= 2) & form.hour_alone]
        hhmmss = np.select(lengths, [clock[:, 0], 100 * clock[:, 0], 10_000 * clock[:, 0]], default=10**7)
        hour, minute, second = hhmmss // 10_000, hhmmss // 100 % 100, hhmmss % 100
    elif form.clock_numbers == 0 and form.date_numbers == 1:
        whole, length = alike.numbers[:, 0], alike.digits[:, 0]
        hhmmss = np.select([length == 14, length == 12], [whole % 10**6, whole % 10**4 * 100], default=0)
        hour, minute, second = hhmmss // 10_000, hhmmss // 100 % 100, hhmmss % 100
    if form.half:
        hour = np.where(hour <= 12, hour % 12 + (12 if form.half == "p" else 0), hour)
    fraction = _microseconds(clock[:, 3], digits[:, 3]) if form.clock_numbers == 4 else nothing
    seconds = 3600 * hour + 60 * minute + second
    fine = (minute < 60) & (second <= 60) & (seconds <= _DAY)  # 24:00 is the next day's 0:00
    return np.where(fine, 1_000_000 * seconds + fraction, -1)


def _microseconds(number: IntArray, digits: IntArray) -> IntArray:
    power: IntArray = 10 ** np.abs(6 - digits).clip(max=18)
    return np.where(digits <= 6, number * power, number // power)


def _too_fine(alike: Alike, form: Format) -> int:
    if form.clock_numbers < 4:
        return 0
    place = form.date_numbers + 3
    beyond = (alike.digits[:, place] - 6).clip(min=0, max=18)
    return int((alike.numbers[:, place] % 10**beyond != 0).sum())


def _offsets(alike: Alike, form: Format) -> IntArray:
    if form.zone in ("", "utc"):
        return np.full(len(alike.rows), 0 if form.zone else NAIVE)
    zone = alike.numbers[:, form.date_numbers + form.clock_numbers :]
    digits = alike.digits[:, form.date_numbers + form.clock_numbers]
    if form.zone_numbers == 2:
        minutes = 60 * zone[:, 0] + zone[:, 1]
    else:
        minutes = np.where(digits > 2, zone[:, 0] // 100 * 60 + zone[:, 0] % 100, 60 * zone[:, 0])
    signed = -minutes if form.zone == "-" else minutes
    return np.where((minutes >= 0) & (minutes <= _LARGEST_OFFSET), signed, _NO_OFFSET)


def _settle_order(result: TextTimes, dates: list[_Dates], ticks: IntArray, day_first: bool | None) -> None:
    """Fill in the times, with the order of day and month that fits the whole column."""
    unsettled = [part for part in dates if part.open and len(part.rows)]
    for part in dates:
        if not part.open:
            result.times[part.rows] = _times(part.year, part.first, part.second, ticks[part.rows])
    if unsettled:
        _settle(result, unsettled, ticks, day_first)
    aware = result.offsets != NAIVE
    if aware.any():
        result.times[aware] -= result.offsets[aware].astype("m8[m]")


def _settle(result: TextTimes, unsettled: list[_Dates], ticks: IntArray, day_first: bool | None) -> None:
    days_first = any((part.first > 12).any() for part in unsettled)
    days_second = any((part.second > 12).any() for part in unsettled)
    if day_first is None and days_first != days_second:  # the usual case: no need to try both
        result.day_first, result.decided_by = days_first, "values"
        result.times = _with_order(result.times, unsettled, ticks, days_first)
        return
    by_day, by_month = (_with_order(result.times, unsettled, ticks, first) for first in (True, False))
    result.day_first, result.decided_by = _decide(by_day, by_month, unsettled, day_first)
    chosen, other = (by_day, by_month) if result.day_first else (by_month, by_day)
    result.contradictions = int((np.isnat(chosen) & ~np.isnat(other)).sum())
    result.times = chosen


def _with_order(
    times: NDArray[np.datetime64], unsettled: list[_Dates], ticks: IntArray, day_first: bool
) -> NDArray[np.datetime64]:
    filled = times.copy()
    for part in unsettled:
        month, day = (part.second, part.first) if day_first else (part.first, part.second)
        filled[part.rows] = _times(part.year, month, day, ticks[part.rows])
    return filled


def _decide(
    by_day: NDArray[np.datetime64],
    by_month: NDArray[np.datetime64],
    unsettled: list[_Dates],
    day_first: bool | None,
) -> tuple[bool, str]:
    if day_first is not None:
        return day_first, "you"
    misses = [int(np.isnat(times).sum()) for times in (by_day, by_month)]
    if misses[0] != misses[1]:
        return misses[0] < misses[1], "values"
    disorder = [_disorder(times) for times in (by_day, by_month)]
    if disorder[0] != disorder[1]:
        return disorder[0] < disorder[1], "order"
    return any(part.sign != "/" for part in unsettled), "custom"


def _disorder(times: NDArray[np.datetime64]) -> tuple[int, int]:
    """How many steps go backwards, and the largest step: dates read the wrong way jump by months."""
    steps = np.diff(times[~np.isnat(times)]).astype(np.int64)
    return int((steps < 0).sum()), int(np.abs(steps).max(initial=0))


def _times(year: IntArray, month: IntArray, day: IntArray, ticks: IntArray) -> NDArray[np.datetime64]:
    """Times of the calendar, NaT for those that are not in it."""
    fine = (year >= 1) & (year <= 9999) & (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31) & (ticks >= 0)
    months = np.where(fine, 12 * (year - 1970) + month - 1, 0).astype("M8[M]")
    days = months.astype("M8[D]") + (np.where(fine, day, 1) - 1).astype("m8[D]")
    fine &= days.astype("M8[M]") == months
    times: NDArray[np.datetime64] = days.astype("M8[us]") + np.where(fine, ticks, 0).astype("m8[us]")
    times[~fine] = np.datetime64("NaT")
    return times
