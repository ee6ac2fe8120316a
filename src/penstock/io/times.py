"""Read times: find out from a sample how they are written, and read them in that way from then on.

In: a column of a table, or the times of a stream as they are written. Out: times, and the `TimeReader` that says how
they were read. It is kept in models, states and stores, so that every later reader of the same source reads the same.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import zoneinfo
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from penstock._messages import counted, listed, option, quoted
from penstock._types import BoolArray, FloatArray
from penstock.io._align_kernels import spread_rows
from penstock.io._daylight import without_second_hours
from penstock.io._layout import is_missing
from penstock.io._time_texts import (
    NAIVE,
    IntArray,
    TextTimes,
    Times,
    is_clock_alone,
    read_alike,
    read_times,
    with_dates,
    year_first_format,
)
from penstock.io.table import ReadLog, TableError

EARLIEST, LATEST = np.datetime64("1900-01-01", "us"), np.datetime64("2200-01-01", "us")
COUNT = "seconds from a start of their own"
_DAY = 86_400e6  # in microseconds
# Dates written without separators, and how many digits they have.
_DIGITS = {
    "dates as 20241231": 8, "times as 202412311345": 12, "times as 20241231134500": 14,
    "times as 2412311345": 10, "times as 241231134500": 12,
}  # fmt: skip
_SHORT_DIGITS = ("times as 2412311345", "times as 241231134500")  # with a year of two digits, from 2019 on:
# as seconds since 1970, such numbers would be of 2030 and later, and as milliseconds of about 1990
# Unit: the numbers by whose size it is recognised, that of 1970, microseconds of one, and whether it is in UTC. The
# first that fits is taken: by those since 1970 the ones above would be of the seventies, of about 1990, and of 2061.
_EPOCHS = {
    "ticks of 100 ns since the year 1": (6.21e17, 6.7e17, 621_355_968e9, 0.1, False),  # .NET
    "ticks of 100 ns since 1601": (1.15e17, 1.6e17, 116_444_736e9, 0.1, True),  # Windows
    "seconds since 1904": (2.9e9, 6e9, 2_082_844_800.0, 1e6, True),  # LabVIEW, from 1995 on
    "days as MATLAB counts them": (7e5, 8e5, 719_529.0, _DAY, False),
    "seconds since 1970": (1e8, 1e10, 0.0, 1e6, True),
    "milliseconds since 1970": (1e11, 1e13, 0.0, 1e3, True),
    "microseconds since 1970": (1e14, 1e16, 0.0, 1.0, True),
    "nanoseconds since 1970": (1e17, 1e19, 0.0, 1e-3, True),
    "days as Excel counts them": (20_000.0, 80_000.0, 25_569.0, _DAY, False),  # 1954 to 2119
}
UNITS = (*_DIGITS, *_EPOCHS, COUNT)
_LONGEST_FORMAT = 200  # characters: the time that strptime takes grows with their square
_LONGEST_NUMBER = 40  # characters
_LONGEST_COUNT = 1e11  # seconds from a start of their own: 3,000 years
_SAMPLE = 100  # values that show what a column holds
_ENOUGH = 0.5  # of the values of a sample are times
_NEARLY_ALL = 0.9
_MISREAD = 0.05  # of the dates: if more cannot be read in the known order of day and month, it is not theirs
_NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d{1,3})?", re.ASCII)
_SHORT_YEAR = re.compile(r"\d\d([-/.])\d\d\1\d\d(?!\d)")
_DURATION_UNITS = {
    Fraction(1, 1000): ("ms", "millisecond", "milliseconds"),
    Fraction(1): ("s", "sec", "second", "seconds"),
    Fraction(60): ("min", "mins", "minute", "minutes"),
    Fraction(3600): ("h", "hr", "hrs", "hour", "hours"),
    Fraction(86_400): ("d", "day", "days"),
    Fraction(7 * 86_400): ("w", "week", "weeks"),
}
_SECONDS = {word: seconds for seconds, words in _DURATION_UNITS.items() for word in words}
_DURATION = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([^\W\d_]+)\s*")
_LONGEST_DURATION = 100  # characters
_MOST_DAYS = 100_000
_WHOLE_TIME = re.compile(r"(\d{9,10}|.*\d:\d\d:\d\d)(|\D.*)")  # up to the seconds, and what follows
_MILLIS = re.compile(r"\d{1,3}")
_ISO = re.compile(r"(19|20|21)\d\d-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?")


@dataclass(frozen=True)
class TimeReader:
    """How the times of a source are written.

    Parameters
    ----------
    unit : str
        Of times that are numbers, one of `UNITS`; "" if they are texts.
    format : str, optional
        How texts are written, as strptime takes it, if the user said it; None: each in a way that is known.
    day_first : bool, optional
        Whether 1/2/2024 is in February; None if there are no such dates.
    zoned : bool, optional
        Whether they have an offset from UTC; None if that is not known.
    zone : str, optional
        The zone of those that have none.
    shared : pair of int, optional
        Where stamps are coarser than rows: how many rows share a stamp, and the microseconds from one to the next.

    Examples
    --------
    >>> reader = TimeReader.learn(["31.1.2024 10:00", "1.2.2024 10:00"])
    >>> reader.day_first, reader.text(reader.seconds(["5.2.2024 12:30"])[0])
    (True, '2024-02-05T12:30:00')
    >>> TimeReader.learn(["45292,5", "45293,5"]).unit
    'days as Excel counts them'
    >>> TimeReader.learn(["soon", "later"]) is None
    True
    """

    unit: str = ""
    format: str | None = None
    day_first: bool | None = None
    zoned: bool | None = None
    zone: str | None = None
    shared: tuple[int, int] | None = None

    @classmethod
    def learn(
        cls, values: Sequence[Any], options: TimeOptions | None = None, log: ReadLog | None = None
    ) -> TimeReader | None:
        """Return the reader of times, from a sample of them as they are written; None if they are no times.

        Numbers that are no dates count seconds from a start of their own. If nothing tells the day from the month, the
        `log` has a note of it.
        """
        options = options or TimeOptions()
        column = _as_column(values)
        read = column_times(column, options)
        if log is not None:
            log.notes = [note for note in log.notes if note.kind != "ambiguous dates"]
            about = ReadLog(log.source)
            read.note("time", about)
            log.notes += [note for note in about.notes if note.kind == "ambiguous dates"]
        if read.share >= _ENOUGH:
            return read.reader(options)
        counts = column.dtype.kind == "f" and bool((column.abs() < _LONGEST_COUNT).any())
        return cls(COUNT) if counts else None

    @property
    def dated(self) -> bool:
        """Whether times say on which day they are."""
        return self.unit != COUNT

    @property
    def is_epoch(self) -> bool:
        """Whether times are numbers that count from 1970 on."""
        return self.unit.endswith("since 1970")

    def seconds(self, values: Sequence[Any], after: float = -math.inf) -> FloatArray:
        """Return times in seconds since 1970, or since a start of their own.

        Parameters
        ----------
        values : sequence
            As they are written.
        after : float
            The time before the first of them. Where clocks are set back, it tells the two hours of one name apart.

        Returns
        -------
        ndarray
            In UTC, or as they are written if there is no zone. NaN where a time is missing, cannot be read in this way,
            or lies outside 1900 to 2200 (a count: beyond 3,000 years).
        """
        if not self.dated:
            counts = _numbers(values)
            return np.where(np.abs(counts) < _LONGEST_COUNT, counts, np.nan)
        times, offsets = self.read(values)
        aware = offsets != NAIVE
        if self.zone is not None:
            times = _to_utc(times, aware, self.zone, after)
        elif self.zoned is not None:
            times = np.where(aware == self.zoned, times, np.datetime64("NaT"))
        stamps = np.where(_in_bounds(times), times.astype(np.int64), np.iinfo(np.int64).min)
        stamps = self.placed(stamps, round(after * 1e6) if math.isfinite(after) else None)
        found: FloatArray = np.where(_in_bounds(times), stamps / 1e6, np.nan)
        return found

    def placed(self, stamps: IntArray, before: int | None = None) -> IntArray:
        """Return the times of rows that follow each other, by their stamps and that of the row before, in microseconds.

        Rows that share a stamp stand between it and the next, and those of an hour that comes twice at its end.
        """
        if not len(stamps):
            return stamps
        if not self.is_utc:
            last = before
            if before is not None and self.shared is not None:
                last = before - (before - int(stamps[0])) % self.shared[1]  # its stamp
            stamps = without_second_hours(stamps, last)
        if self.shared is None:
            return stamps
        return spread_rows(stamps, *self.shared, np.iinfo(np.int64).min if before is None else before)

    def index(self, seconds: FloatArray) -> pd.DatetimeIndex:
        """Return times in seconds as an index, in the zone if there is one; NaT where one is not known."""
        known = np.isfinite(seconds)
        ticks = np.round(np.where(known, seconds, 0.0) * 1e6).astype(np.int64).astype("M8[us]")
        index = pd.DatetimeIndex(np.where(known, ticks, np.datetime64("NaT")))
        if self.zone is not None:
            return index.tz_localize("UTC").tz_convert(as_zone(self.zone))
        return index.tz_localize("UTC") if self.is_utc else index

    def text(self, seconds: float) -> str | None:
        """Return a time in seconds as people write it; None if it has no date."""
        if not self.dated:
            return None
        if self.zone is not None:
            return str(self.index(np.array([seconds]))[0].isoformat())
        whole = math.floor(seconds)
        part = f"{seconds - whole:.6f}".rstrip("0").rstrip(".")[1:] if seconds != whole else ""
        return f"{np.datetime64(whole, 's')}{part}{'Z' if self.is_utc else ''}"

    @property
    def is_utc(self) -> bool:
        """Whether times are known in UTC, rather than as a clock on a wall shows them."""
        return self.zone is not None or bool(self.zoned)

    def why_not(self, value: Any) -> str:
        """Say why a time cannot be read."""
        if self.zoned is not None and np.isfinite(replace(self, zoned=None).seconds([value])[0]):
            has, others = ("no", "have one") if self.zoned else ("an", "have none")
            return f"its time {quoted(value, 40)} has {has} offset from UTC, and the first ones {others}"
        how = self.unit or (f"written as {quoted(self.format)}" if self.format else "")
        if not how and self.day_first is not None:
            how = f"with the {'day' if self.day_first else 'month'} first"
        how = f" ({how}, as the first ones)" if how else ""
        bounds = "is not between 1900 and 2200" if self.dated else "is too far from it"
        return f"its time {quoted(value, 40)} cannot be read{how}, or {bounds}"

    def state(self) -> dict[str, Any]:
        """Return plain values, for `restore`."""
        shared = {} if self.shared is None else {"shared": list(self.shared)}
        return {name: value for name, value in asdict(self).items() if name != "shared"} | shared

    @classmethod
    def restore(cls, state: Any) -> TimeReader:
        """Return the reader whose `state()` this is; ValueError, TypeError or LookupError if it is none."""
        if not isinstance(state, dict) or {*state, "shared"} != cls.__dataclass_fields__.keys():
            raise ValueError("this does not say how times are read")
        kinds: dict[str, tuple[type, ...]] = {
            "unit": (str,), "format": (str, type(None)), "day_first": (bool, type(None)),
            "zoned": (bool, type(None)), "zone": (str, type(None)),
        }  # fmt: skip
        often, apart = shared = tuple(state.get("shared", (2, 2)))
        sound = all(type(number) is int for number in shared) and 2 <= often <= apart <= _DAY
        if not sound or not all(isinstance(state[name], kind) for name, kind in kinds.items()):
            raise TypeError("what is said of times is of the wrong kind")
        if state["unit"] not in ("", *UNITS):
            raise ValueError("times are in a unit that is not known")
        TimeOptions(zone=as_zone(state["zone"]), format=state["format"])
        return cls(**{**state, "shared": shared if "shared" in state else None})

    def read(self, values: Sequence[Any]) -> tuple[Times, IntArray]:
        """Return times, NaT where one cannot be read, and their offsets from UTC in minutes, `NAIVE` without one."""
        if self.unit:
            times, offset = _from_numbers(_numbers(values), self.unit)
            return times, np.full(len(times), offset)
        texts = ["" if value is None else str(value) for value in values]
        if self.format is None and all(map(_ISO.fullmatch, texts)):  # quick, also for a single row
            try:
                return np.array(texts, dtype="M8[us]"), np.full(len(texts), NAIVE)
            except ValueError:  # such as 30 February
                pass
        read = _from_texts(texts, len(texts), self.day_first, self.format)
        assert read.times is not None
        assert read.offsets is not None
        return read.times, read.offsets


@dataclass(frozen=True)
class TimeOptions:
    """What the user, or a model, says of the time."""

    columns: tuple[str, ...] = ()  # none to find it, two for date and time of day
    zone: dt.tzinfo | None = None  # of stamps without one, and to show others in
    day_first: bool | None = None  # whether 1/2/2024 is in February; None to decide from the column
    format: str | None = None  # how stamps are written, as strptime takes it; None to find out
    known: TimeReader | None = None  # how they were read before: decides where the values do not

    def __post_init__(self) -> None:
        if self.format is not None:
            try:
                if not isinstance(self.format, str) or "%" not in self.format:
                    raise ValueError("there is no % in it")
                if len(self.format) > _LONGEST_FORMAT:
                    raise ValueError(f"it has {len(self.format):,} characters, at most {_LONGEST_FORMAT} are read")
                directives = set(re.findall("%(.)", self.format))
                if "d" in directives and directives.isdisjoint("YyG"):
                    raise ValueError("it has a day but no year, so that 29 February cannot be read")
                pd.to_datetime(pd.Series(["x"]), format=self.format, errors="coerce", utc=True)
            except (ValueError, TypeError, re.error) as error:
                raise TableError(
                    f"{option('time_format')} {quoted(self.format)} is not a format of time ({error}). Write it like "
                    f"'%d/%m/%Y %H:%M'."
                ) from None
        if len(self.columns) > 2:
            raise TableError(f"time must name one column, or two for date and time of day; got {listed(self.columns)}.")


@dataclass(frozen=True)
class ColumnTimes:
    """Times as they were read, and how: `text` from text, `unit` of numbers, `typed` if they were times already."""

    share: float  # of the values that are there
    times: Times | None = None
    offsets: IntArray | None = None
    typed: pd.DatetimeIndex | None = None
    text: TextTimes | None = None
    unit: str = ""
    format: str | None = None
    year_first: bool = False  # as the order of the rows suggests
    carried: int = 0  # times of day without a date, which have that of a row above

    def reader(self, options: TimeOptions) -> TimeReader:
        """Return how they were read."""
        zoned: bool | None = None
        if self.typed is not None:
            zoned = self.typed.tz is not None
        elif self.times is not None and self.offsets is not None:
            aware = self.offsets[~np.isnat(self.times)] != NAIVE
            zoned = bool(aware.all()) if len(aware) else None
        day_first = None if self.text is None else self.text.day_first
        zone = None if options.zone is None else str(options.zone)
        shared = None if options.known is None else options.known.shared
        return TimeReader(self.unit, self.format, day_first, zoned, zone, shared)

    def with_millis(self, millis: pd.Series[Any]) -> ColumnTimes:
        """Return the times with milliseconds that stand in a column of their own."""
        ticks = millis.to_numpy(dtype=np.float64, na_value=np.nan)
        added = np.where(np.isnan(ticks), np.timedelta64("NaT", "ms"), np.nan_to_num(ticks).astype("m8[ms]"))
        if self.typed is not None:
            return replace(self, typed=self.typed + pd.TimedeltaIndex(added))
        assert self.times is not None
        return replace(self, times=self.times + added.astype("m8[us]"))

    @property
    def are_whole_seconds(self) -> bool:
        """Whether no time has a part of a second."""
        times = self.typed
        if times is None:
            assert self.times is not None
            times = pd.DatetimeIndex(self.times)
        return bool((times.dropna().as_unit("us").asi8 % 1_000_000 == 0).all())

    def index(self, zone: dt.tzinfo | None, name: str, log: ReadLog) -> pd.DatetimeIndex:
        """Return the times as an index, in a zone if there is one; those outside 1900 to 2200 are missing."""
        if self.typed is not None:
            return _in_zone(self._bounded(self.typed, name, log), zone, name, log)
        assert self.times is not None
        assert self.offsets is not None
        times = self._bounded(pd.DatetimeIndex(self.times), name, log).to_numpy()
        return _with_zone(times, self.offsets, zone, name, log)

    def _bounded(self, index: pd.DatetimeIndex, name: str, log: ReadLog) -> pd.DatetimeIndex:
        plain = index if index.tz is None else index.tz_convert(None)
        outside = np.asarray(index.notna()) & ~_in_bounds(plain.to_numpy())
        if not outside.any():
            return index
        said = f"{counted(int(outside.sum()), 'time')} in column {quoted(name)} before 1900 or after 2200 taken as"
        log.add("times out of bounds", f"{said} missing.", int(outside.sum()), (name,), changed=True)
        return pd.DatetimeIndex(index.where(~outside))

    def note(self, name: str, log: ReadLog) -> None:
        """Note what was decided about the time."""
        column, read = f"column {quoted(name)}", self.text
        if self.unit:
            log.add("time from numbers", f"Column {quoted(name)} was read as {self.unit}.", 1, (name,))
        if self.carried:
            said = f"{counted(self.carried, 'time')} in {column} without a date: the date of the last row that has one"
            log.add("dates carried on", f"{said} is taken.", self.carried, (name,), changed=True)
        if self.year_first:
            said = f"Dates in {column} were read with the year first; {option('day_first', True)} or"
            said = f"{said} {option('day_first', False)} changes it."
            log.add("ambiguous dates", said, len(self.times) if self.times is not None else 0, (name,))
        if read is None:
            return
        if read.day_first is not None and read.decided_by != "you":
            order, second = ("day first", "month") if read.day_first else ("month first", "day")
            other = option("day_first", not read.day_first)
            why = {
                "values": "as days above 12 show",
                "model": "as when the model was fitted",
                "order": f"as the order of the rows suggests, though the {second} could be first; {other} changes it",
                "custom": f"though nothing tells the day from the month; {other} changes it",
            }[read.decided_by]
            kind = "day and month" if read.decided_by in ("values", "model") else "ambiguous dates"
            log.add(kind, f"Dates in {column} were read with the {order}, {why}.", len(read.times), (name,))
        if read.contradictions:
            said = f"{counted(read.contradictions, 'date')} in {column} taken as missing, as day and month would have"
            said = f"{said} to be the other way round."
            log.add("contradictory dates", said, read.contradictions, (name,), changed=True)
        if len(read.ways) > 1:
            shown = ", ".join(quoted(way) for way in list(read.ways.values())[:3])
            said = f"Times in {column} are written in {len(read.ways)} ways (with 0 for any number: {shown})."
            log.add("mixed time formats", said, len(read.ways), (name,))
        if read.shortened:
            said = f"{counted(read.shortened, 'time')} in {column} cut to microseconds."
            log.add("shortened times", said, read.shortened, (name,), changed=True)


def column_times(column: pd.Series[Any], options: TimeOptions) -> ColumnTimes:
    """Read a column of times, numbers or texts."""
    there, kind, form = int(column.notna().sum()), column.dtype.kind, options.format
    if kind == "M":
        return ColumnTimes(1.0 if there else 0.0, typed=pd.DatetimeIndex(column))
    if not there or kind in "bcm":
        return ColumnTimes(0.0)
    numbers = _numbers_of(column) if form is None else None
    if numbers is not None:
        return _times_of_numbers(numbers, there, options)
    alike = read_alike(column) if form is None and isinstance(column.dtype, pd.StringDtype) else None
    if alike is not None:  # no text is missing, and none needs another look
        return ColumnTimes(1.0, alike.times, alike.offsets, text=alike)
    texts = as_texts(column)
    if kind in "iuf" and form is not None:  # read as numbers, which lose zeros at the front
        length = len(dt.datetime(2000, 12, 31, 23, 59, 59, 999_999).strftime(form))
        texts = [text and text.zfill(length) for text in texts]
    elif form is None and sum(map(is_clock_alone, texts[:_SAMPLE])) > len(texts[:_SAMPLE]) / 2:
        dated = with_dates(texts)
        if dated is not None:
            return replace(_decided_texts(dated[0], there, options), carried=dated[1])
    return _decided_texts(texts, there, options)


def _numbers_of(column: pd.Series[Any]) -> FloatArray | None:
    """Return a column as numbers, if they are, or if nearly all spell numbers that may be times: days with a comma."""
    if column.dtype.kind in "iuf":
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    first = column.iloc[int(np.argmax(column.notna()))]
    spelled = _as_column(as_texts(column)) if _NUMBER.fullmatch(str(first).strip()) else column
    return spelled.to_numpy() if spelled.dtype.kind == "f" and _unit_of(spelled.to_numpy()) is not None else None


def _times_of_numbers(numbers: FloatArray, there: int, options: TimeOptions) -> ColumnTimes:
    unit = _unit_of(numbers, options.known)
    if unit is None:
        return ColumnTimes(0.0)
    times, offset = _from_numbers(numbers, unit)
    share = float((~np.isnat(times)).sum()) / there
    return ColumnTimes(share, times, np.full(len(numbers), offset), unit=unit)


def paired_times(date: pd.Series[Any], clock: pd.Series[Any], options: TimeOptions) -> ColumnTimes:
    """Read two columns, of dates and of times of day; a date may stand in the first row of each day alone."""
    days, hours = as_texts(date), as_texts(clock)
    if clock.dtype.kind in "iuf":  # 93000 is 9:30, or 930 if none is above 2400
        length = 6 if clock.max() > 2400 else 4
        of_hours = clock.max() <= 24 and bool((clock.dropna().diff().abs() == 1).any())  # and not 24 minutes past 0
        hours = [hour and (f"{hour}:00" if of_hours else hour.zfill(length)) for hour in hours]
    if options.format is None and any(hour and not day for day, hour in zip(days, hours, strict=True)):
        dated = with_dates(hours, days)
        if dated is not None:
            there = int(clock.notna().sum())
            return replace(_decided_texts(dated[0], there, options), carried=dated[1])
    texts = [joined_time(day, hour) for day, hour in zip(days, hours, strict=True)]
    return _decided_texts(texts, int((date.notna() & clock.notna()).sum()), options)


def times_of_parts(parts: Mapping[str, pd.Series[Any]]) -> ColumnTimes:
    """Read times of which year, month and day, or the day of the year, and what follows have columns of their own.

    >>> parts = pd.DataFrame({"year": [2024, 2024], "doy": [60, 366], "hhmm": [30, 2400]})
    >>> times_of_parts(dict(parts)).typed.strftime("%d.%m. %H:%M").tolist()
    ['29.02. 00:30', '01.01. 00:00']
    """
    numbers = {name: pd.to_numeric(column, errors="coerce") for name, column in parts.items()}
    date = {name: numbers.get(name, 1) for name in ("year", "month", "day")}
    start = pd.to_datetime(pd.DataFrame(date, index=numbers["year"].index), errors="coerce")
    hours = numbers.get("hour", numbers["hhmm"] // 100 if "hhmm" in numbers else 0)
    minutes = numbers.get("minute", numbers["hhmm"] % 100 if "hhmm" in numbers else 0)
    seconds = 3600 * hours + 60 * minutes + numbers.get("second", 0) + 86_400 * (numbers.get("doy", 1) - 1)
    times = pd.DatetimeIndex(start + pd.to_timedelta(pd.Series(seconds, index=start.index), unit="s")).as_unit("us")
    return ColumnTimes(np.count_nonzero(times.notna()) / max(1, len(times)), typed=times)


def joined_time(day: str, hour: str) -> str:
    """Return a date, which may say midnight, and a time of day as one text; "" if one of them is missing.

    Or a whole time and its milliseconds.

    >>> joined_time("5.3.2024", "10:30"), joined_time("5.3.2024 10:30:05", "7"), joined_time("1709633405", "70")
    ('5.3.2024 10:30', '5.3.2024 10:30:05.007', '1709633405.070')
    """
    if not day or not hour:
        return ""
    whole = _WHOLE_TIME.fullmatch(day.strip())
    if whole is not None and _MILLIS.fullmatch(hour.strip()):
        return f"{whole[1]}.{hour.strip():0>3}{whole[2]}"
    return f"{day.removesuffix('00:00:00').rstrip(' T')} {hour}"


def _decided_texts(texts: list[str], there: int, options: TimeOptions) -> ColumnTimes:
    """Read texts; where they do not tell the day from the month, what is known of their source does."""
    reader = options.known
    if reader is not None and reader.format is not None and options.format is None and options.day_first is None:
        read = _from_texts(texts, there, None, reader.format)
        if read.share >= _ENOUGH:
            return read
    read = _from_texts(texts, there, options.day_first, options.format)
    year_first = None if read.text is None or options.day_first is not None else _year_first(texts, there, read)
    if year_first is not None:
        return year_first
    known = None if options.known is None else options.known.day_first
    if read.text is None or known is None or read.text.decided_by in ("", "you"):
        return read
    if read.text.day_first == known:
        if read.text.decided_by != "values":
            read.text.decided_by = "model"
        return read
    other = _from_texts(texts, there, known, None)
    assert other.text is not None
    if other.text.contradictions > _MISREAD * there:  # as days above 12 show
        return read
    other.text.decided_by = "model"
    return other


def _year_first(texts: list[str], there: int, read: ColumnTimes) -> ColumnTimes | None:
    """Return times whose year has two digits and comes first (25-03-31), if that fits all and the order of rows best.

    Where the order tells nothing, the latest times that are not to come are taken: records are mostly of these years.
    """
    first = next(filter(None, texts), "")
    if read.times is None or not _SHORT_YEAR.match(first):
        return None
    form = year_first_format(first)
    other = None if form is None else _from_texts(texts, there, None, form)
    if other is None or other.times is None or other.share < 1:
        return None
    of_both = [each[~np.isnat(each)].astype(np.int64) for each in (read.times, other.times)]
    if len(of_both[0]) == len(of_both[1]):
        steps = [np.diff(each) for each in of_both]
        disorder = [(int((each < 0).sum()), int(np.abs(each).max(initial=0))) for each in steps]
        latest = [int(each.max()) for each in of_both]
        now = int(np.datetime64("now", "us").astype(np.int64))
        later = latest[0] < latest[1] <= now or latest[1] <= now < latest[0]
        if disorder[1] > disorder[0] or (disorder[1] == disorder[0] and not later):
            return None
    return replace(other, year_first=True)


def _from_texts(texts: list[str], there: int, day_first: bool | None, form: str | None) -> ColumnTimes:
    """Read texts, of which so many are `there`: by a format, or each in the way it is written."""
    if form is None:
        read = read_times(texts, day_first)
        times, offsets = read.times, read.offsets
    else:
        zoned, read = "%z" in form or "%Z" in form, None
        parsed = pd.to_datetime(pd.Series(texts, dtype="object"), format=form, errors="coerce", utc=zoned)
        times = parsed.dt.tz_localize(None).to_numpy(dtype="M8[us]")
        offsets = np.full(len(texts), 0 if zoned else NAIVE)
    share = float((~np.isnat(times)).sum()) / max(1, there)
    return ColumnTimes(share, times, offsets, text=read, format=form)


def as_texts(column: pd.Series[Any]) -> list[str]:
    """Return the values of a column as texts, "" for those that are missing."""
    values, missing = column.tolist(), column.isna()
    if not missing.any() and (isinstance(column.dtype, pd.StringDtype) or pd.api.types.infer_dtype(column) == "string"):
        return values
    if column.dtype.kind in "iuf":  # such as 20241231
        return ["" if value != value else f"{value:.0f}" for value in values]  # noqa: PLR0124
    return ["" if absent else str(value) for value, absent in zip(values, missing, strict=True)]


def _as_column(values: Sequence[Any]) -> pd.Series[Any]:
    """Return the times of a stream as a column of numbers, if nearly all that are there are numbers, or of texts."""
    texts = [None if value is None or is_missing(str(value)) else str(value).strip() for value in values]
    numbers, there = _numbers(values), sum(text is not None for text in texts)
    if there and np.isfinite(numbers).sum() >= _NEARLY_ALL * there:
        return pd.Series(numbers, dtype=np.float64)
    return pd.Series(texts, dtype="object")


def _numbers(values: Sequence[Any]) -> FloatArray:
    """Return the numbers that times spell, NaN where one does not, or is infinite."""
    found = np.full(len(values), np.nan)
    for place, value in enumerate(values):
        if isinstance(value, int | float) and not isinstance(value, bool):
            text = "" if isinstance(value, int) and abs(value) >= 10**19 else repr(value)
        else:
            text = "" if value is None else str(value).strip()
        if len(text) <= _LONGEST_NUMBER and _NUMBER.fullmatch(text):
            found[place] = float(text.replace(",", "."))
    found[np.isinf(found)] = np.nan
    return found


def _unit_of(numbers: FloatArray, known: TimeReader | None = None) -> str | None:
    """Return the unit of times that are numbers: the one that is known if it fits, else by their size.

    >>> [_unit_of(np.array([number])) for number in (1704067200.5, 45292.5, 20241231.0, 202401031530.0, 1.0)]
    ... # doctest: +NORMALIZE_WHITESPACE
    ['seconds since 1970', 'days as Excel counts them', 'dates as 20241231', 'times as 202412311345', None]
    >>> _unit_of(np.array([2412312355.0, 2501010000.0])), _unit_of(np.array([2412312355.0, 2412312360.0]))
    ('times as 2412311345', 'seconds since 1970')
    """
    there = numbers[np.isfinite(numbers)]
    if not len(there):
        return None
    if known is not None and known.unit and known.dated:
        times, _ = _from_numbers(there, known.unit)
        if _in_bounds(times).all():
            return known.unit
    smallest, largest = float(there.min()), float(there.max())
    if bool((there == np.floor(there)).all()):
        for unit, digits in _DIGITS.items():
            is_short = unit in _SHORT_DIGITS
            years = 10 ** (digits - (2 if is_short else 4))
            if (19 if is_short else 1900) * years <= smallest and largest < (100 if is_short else 2101) * years:
                # As milliseconds, numbers of twelve digits would be of 1976: dates, if each of them is one.
                times, _ = _from_numbers(there, unit)
                if digits not in (10, 12) or not np.isnat(times).any():
                    return unit
    fitting = (unit for unit, (low, high, *_) in _EPOCHS.items() if low <= smallest and largest < high)
    return next(fitting, None)


def _from_numbers(numbers: FloatArray, unit: str) -> tuple[Times, int]:
    """Return times (NaT where there is none, or a number is far too large), and their offset: 0 for UTC, or NAIVE.

    >>> times, _ = _from_numbers(np.array([1704067200.0, np.nan, 1704067260.5, 1e300]), "seconds since 1970")
    >>> times.astype("M8[ms]").astype(str).tolist()
    ['2024-01-01T00:00:00.000', 'NaT', '2024-01-01T00:01:00.500', 'NaT']
    >>> _from_numbers(np.array([20241231.0, 20250101.0]), "dates as 20241231")[0].astype("M8[D]").astype(str).tolist()
    ['2024-12-31', '2025-01-01']
    """
    if unit in _DIGITS:
        whole = np.isfinite(numbers) & (numbers == np.floor(numbers)) & (np.abs(numbers) < 1e15)
        texts = [f"{number:.0f}" if usable else "" for number, usable in zip(numbers, whole, strict=True)]
        century = "20" if unit in _SHORT_DIGITS else ""
        return read_times([century + text if len(text) == _DIGITS[unit] else "" for text in texts]).times, NAIVE
    *_, of_1970, microseconds, is_utc = _EPOCHS[unit]
    return _since_1970(numbers - of_1970, microseconds), 0 if is_utc else NAIVE


def _since_1970(numbers: FloatArray, microseconds: float) -> Times:
    """Return the times of numbers of a unit, of so many microseconds.

    Whole units and their fraction are multiplied apart: their product in one would be wrong by some microseconds.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        there = np.abs(numbers) * microseconds < 1e17  # 3,000 years, and no NaN
    filled = np.where(there, numbers, 0.0)
    if microseconds < 1:
        ticks = np.round(filled * microseconds).astype(np.int64)
    else:
        units = np.floor(filled)
        ticks = units.astype(np.int64) * int(microseconds)
        ticks += np.round((filled - units) * microseconds).astype(np.int64)
    times = ticks.astype("M8[us]")
    times[~there] = np.datetime64("NaT")
    return times


def _in_bounds(times: NDArray[np.datetime64]) -> BoolArray:
    """Return which times are there and lie within 1900 to 2200."""
    return np.asarray((times >= EARLIEST) & (times < LATEST))


def as_zone(timezone: str | dt.tzinfo | None) -> dt.tzinfo | None:
    """Return a time zone by its name; TableError if there is none."""
    if timezone is None or isinstance(timezone, dt.tzinfo):
        return timezone
    try:
        return zoneinfo.ZoneInfo(timezone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, TypeError, OSError):
        raise TableError(
            f"There is no time zone {quoted(timezone)}. Use a name such as 'Europe/Berlin', 'Asia/Tokyo' or 'UTC'."
        ) from None


def _to_utc(times: Times, aware: BoolArray, zone: str, after: float) -> Times:
    """Return times in UTC, local ones of this zone.

    A stamp that occurs twice is the later of the two if the earlier would go back in time.
    """
    local = pd.DatetimeIndex(np.where(aware, np.datetime64("NaT"), times))
    first, second = _both_hours(local, as_zone(zone))
    found = np.where(aware, times, first.tz_convert("UTC").tz_localize(None).to_numpy().astype("M8[us]"))
    later = second.tz_convert("UTC").tz_localize(None).to_numpy().astype("M8[us]")
    twice = ~aware & (found != later) & ~np.isnat(times)
    if twice.any():
        newest = np.datetime64("NaT") if not math.isfinite(after) else np.datetime64(round(after * 1e6), "us")
        for place in range(len(found)):
            if twice[place] and found[place] < newest <= later[place]:
                found[place] = later[place]
            newest = newest if np.isnat(found[place]) else found[place]
    return found


def _both_hours(index: pd.DatetimeIndex, zone: dt.tzinfo | None) -> tuple[pd.DatetimeIndex, pd.DatetimeIndex]:
    """Return local times in a zone; those that occur twice as the earlier, and as the later."""
    first, second = (
        index.tz_localize(zone, ambiguous=np.full(len(index), is_first), nonexistent="shift_forward")
        for is_first in (True, False)
    )
    return first, second


def _with_zone(times: Times, offsets: IntArray, zone: dt.tzinfo | None, column: str, log: ReadLog) -> pd.DatetimeIndex:
    """Return times as an index: local times as they are, times with an offset in that offset; or both in `zone`."""
    there = ~np.isnat(times)
    aware = offsets[there] != NAIVE
    if aware.any() and not aware.all():
        raise TableError(
            f"{log.source}: of the time stamps in column {quoted(column)}, {int(aware.sum()):,} have an offset "
            f"from UTC and {int((~aware).sum()):,} have none. Give all of them one, or none."
        )
    if not aware.any():
        return _in_zone(pd.DatetimeIndex(times), zone, column, log)
    index = pd.DatetimeIndex(times).tz_localize("UTC")
    if zone is not None:
        return index.tz_convert(zone)
    different, counts = np.unique(offsets[there], return_counts=True)
    if len(different) == 1:
        minutes = int(different[0])
        return index.tz_convert(dt.timezone(dt.timedelta(minutes=minutes)) if minutes else dt.UTC)
    written = [f"{'-' if each < 0 else '+'}{abs(each) // 60:02d}:{abs(each) % 60:02d}" for each in different[:4]]
    shown = ", ".join(f"{offset} ({count:,})" for offset, count in zip(written, counts, strict=False))
    said = f"The time stamps in column {quoted(column)} have {len(different)} offsets from UTC: {shown}. They are now"
    said = f"{said} in UTC; another zone can be set ({option('timezone')})."
    log.add("mixed offsets", said, len(different), (column,), changed=True)
    return index


def _in_zone(index: pd.DatetimeIndex, zone: dt.tzinfo | None, column: str, log: ReadLog) -> pd.DatetimeIndex:
    """Put local times into a zone, if there is one, and note what daylight saving does to them."""
    if zone is None:
        return index
    if index.tz is not None:
        return index.tz_convert(zone)
    first, second = _both_hours(index, zone)
    there = index.notna()
    skipped = int(((first.tz_localize(None) != index) & there).sum())
    if skipped:
        said = f"{counted(skipped, 'time stamp')} in column {quoted(column)} moved to the end of an hour that is left"
        said = f"{said} out in {zone}, where clocks are set forward. Check that this is the zone."
        log.add("times that do not exist", said, skipped, (column,), changed=True)
    twice = np.asarray((first != second) & there)
    if not twice.any():
        return first
    # In an hour that comes twice, stamps after a step back, on the same day, are of its second time.
    newest_first = (np.diff(index.asi8) < 0).sum() > len(index) / 2
    rows = np.flatnonzero(twice)[::-1] if newest_first else np.flatnonzero(twice)
    days = index[rows].normalize().asi8
    back = np.concatenate(([False], (np.diff(index[rows].asi8) < 0) & (np.diff(days) == 0)))
    steps = pd.Series(back).groupby(days).cumsum()
    later = np.zeros(len(index), dtype=bool)
    later[rows] = steps.to_numpy() > 0
    settled = bool((steps.groupby(days).max() > 0).all())
    how = (
        "distinguished by their order"
        if settled
        else "where the order does not tell, they were taken as the first time"
    )
    said = (
        f"{counted(len(rows), 'time stamp')} in column {quoted(column)} in an hour that comes twice in {zone}: {how}."
    )
    log.add("daylight saving", said, len(rows), (column,), changed=not settled, doubt=not settled)
    return index.tz_localize(zone, ambiguous=~later, nonexistent="shift_forward")


def parse_duration(text: str) -> pd.Timedelta:
    """Read a duration: a number and its unit (ms, s, min, h, d, w), or several of them.

    >>> parse_duration("90 s"), parse_duration("1h30min"), parse_duration("1.5 days")
    (Timedelta('0 days 00:01:30'), Timedelta('0 days 01:30:00'), Timedelta('1 days 12:00:00'))
    >>> parse_duration("30")
    Traceback (most recent call last):
    ValueError: '30' is no duration. Write a number and its unit, such as '30 min', '2 h' or '1 d'.
    """
    seconds, at = Fraction(0), 0
    while part := _DURATION.match(text, at) if len(text) <= _LONGEST_DURATION else None:
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
