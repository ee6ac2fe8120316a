"""Find the column of time stamps and read it, whatever it holds: texts, numbers or times, with or without a zone."""

from __future__ import annotations

import datetime as dt
import re
import zoneinfo
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from penstock._messages import counted, in_columns, listed, quoted
from penstock._types import FloatArray
from penstock.io._time_texts import NAIVE, IntArray, TextTimes, is_clock_alone, read_times
from penstock.io.table import Notebook, TableError

# The most specific first. A column of such a name still has to hold times.
_TIME_NAMES = (
    "timestamp", "time stamp", "datetime", "date time", "date and time", "zeitstempel", "datum zeit", "datum uhrzeit",
    "fecha hora", "fecha y hora", "horodatage", "data ora", "datumtijd", "time utc", "utc time", "timestamp utc",
    "date utc", "local time", "utc", "sample time", "log time", "measured at", "recorded at", "created at", "unix time",
    "unixtime", "epoch", "time", "date", "zeit", "datum", "fecha", "tijd", "tid", "ts", "when", "t", "uhrzeit",
    "hora", "heure",
)  # fmt: skip
_DATE_NAMES = ("date", "datum", "fecha", "day", "data", "dato", "date utc")
_CLOCK_NAMES = ("time", "zeit", "uhrzeit", "hora", "heure", "ora", "tijd", "tid", "clock", "time of day", "time utc")
# Name, smallest and largest value, microseconds of one unit: 1973 to 2286, so that no two overlap.
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
_SAMPLE = 100  # values that show what a column holds
_ENOUGH = 0.5  # share of values that have to be times in a column that is named as the time, or named like a time
_NEARLY_ALL = 0.9  # and in a column that is not
_LONGEST_FORMAT = 200  # characters: the time that strptime takes grows with their square


@dataclass(frozen=True)
class TimeOptions:
    """How the time is read."""

    columns: tuple[str, ...] = ()  # none to find it, two for date and time of day
    zone: dt.tzinfo | None = None  # of stamps without one, and to show others in
    day_first: bool | None = None  # whether 1/2/2024 is in February; None to decide from the column
    format: str | None = None  # how stamps are written, as strptime takes it; None to find out

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
                    f"time_format {quoted(self.format)} is not a format of time ({error}). Write it like "
                    f"'%d/%m/%Y %H:%M'."
                ) from None
        if len(self.columns) > 2:
            raise TableError(f"time must name one column, or two for date and time of day; got {listed(self.columns)}.")


@dataclass(frozen=True)
class Clock:
    """The stamps of a table (NaT where one is missing), the name they go by, and the columns that are used up."""

    times: pd.DatetimeIndex | None  # None if there is no time
    name: str | None
    columns: tuple[str, ...]  # without times, those that look like a time but do not say when
    day_first: bool | None = None  # how dates such as 1/2/2024 were read; None if there are none


def find_clock(frame: pd.DataFrame, options: TimeOptions, taken: Collection[str], notebook: Notebook) -> Clock:
    """Find and read the time of a table; `taken` are columns that are something else."""
    day_first, form = options.day_first, options.format

    def clock(read: ColumnTimes, *columns: str) -> Clock:
        name = " + ".join(columns)
        read.note(name, notebook)
        order = None if read.text is None else read.text.day_first
        return Clock(read.index(options.zone, name, notebook), name, columns, order)

    if options.columns:
        first, *others = (frame[name] for name in options.columns)
        read = _paired_times(first, others[0], day_first, form) if others else column_times(first, day_first, form)
        if read.share >= _ENOUGH:
            return clock(read, *options.columns)
        how = f" as {quoted(form)}" if form else ""
        raise TableError(
            f"{notebook.source}: column {quoted(options.columns[0])} was named as the time, but "
            f"{_first_unread(frame[options.columns[0]], read)}, and only {read.share:.0%} of it can be read as "
            f"times{how}. Name another column, or say with time_format how times are written."
        )
    kinds = {name: kind.kind for name, kind in frame.dtypes.items()}
    free = [name for name in frame.columns if name not in taken]
    typed = [name for name in free if kinds[name] == "M" and frame[name].notna().any()]
    if typed:
        name = next(iter(_named_like_time(typed)), typed[0])
        return clock(column_times(frame[name]), name)
    pair = _date_and_clock(free)
    if pair and (form or (seems_time(frame[pair[0]]) and _seems_clock_alone(frame[pair[1]]))):
        read = _paired_times(frame[pair[0]], frame[pair[1]], day_first, form)
        if read.share >= _ENOUGH:
            return clock(read, *pair)
    named = _named_like_time(free)
    for name in named:
        read = column_times(frame[name], day_first, form)
        if read.share >= _ENOUGH:
            return clock(read, name)
    for name in free:
        text = kinds[name] not in "iufbcmM"
        if name not in named and (text or name == frame.columns[0]) and _may_be_unnamed_time(frame[name], form):
            read = column_times(frame[name], day_first, form)
            if read.share >= _NEARLY_ALL:
                notebook.add("time found", f"Column {quoted(name)} is taken as the time.", 1, (name,))
                return clock(read, name)
    if form is not None:
        name = (named or free or list(frame.columns))[0]
        raise TableError(
            f"{notebook.source} has no column of times written as {quoted(form)} (given as time_format); in column "
            f"{quoted(name)} {_first_unread(frame[name], column_times(frame[name], form=form))}. Name the column as "
            f"time, or correct the format."
        )
    return _no_clock(frame, named, notebook)


def _may_be_unnamed_time(column: pd.Series[Any], form: str | None) -> bool:
    """Return whether this is text that begins with times, or numbers that count up as seconds since 1970 would."""
    if column.dtype.kind in "bcmM" or not seems_time(column, form):
        return False
    if column.dtype.kind not in "iuf" or form is not None:
        return True
    return float(column.iloc[0]) > 9e8 and _counts_up(column)


def _no_clock(frame: pd.DataFrame, named: list[str], notebook: Notebook) -> Clock:
    """Note why no column is the time; those that only count up or hold times of day are no measurements either."""
    counting = [name for name in named if _counts_up(frame[name])]
    clocks = [name for name in named if name not in counting and _seems_clock_alone(frame[name])]
    for names, what in ((counting, "counts up but does not say from when"), (clocks, "has times of day but no date")):
        if names:
            said = f"Left out: {in_columns(names)}, which {what}. The rows stay in their order."
            notebook.add("time without date", said, len(names), tuple(names), changed=True)
    for name in named:
        if name not in counting and name not in clocks and frame[name].notna().any():
            why = _first_unread(frame[name], column_times(frame[name]))
            said = f"Column {quoted(name)} is named like a time but was not read as one: {why}. If it is the time, its"
            notebook.add("not a time", f"{said} format can be set.", 1, (name,))
    return Clock(None, None, (*counting, *clocks))


def _counts_up(column: pd.Series[Any]) -> bool:
    if column.dtype.kind not in "iuf" or len(column) < 3:
        return False
    numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
    return bool((numbers[1:] > numbers[:-1]).all())


def plain_name(name: str) -> str:
    """Return a name without case, unit and punctuation.

    >>> plain_name("Time_Stamp [UTC]"), plain_name("Datum/Uhrzeit")
    ('time stamp', 'datum uhrzeit')
    """
    without_unit = re.sub(r"[(\[].*?[)\]]", " ", name.casefold())
    return " ".join(re.sub(r"[_\-/.,:&]+", " ", without_unit).split())


def is_time_name(name: str) -> bool:
    """Return whether a column is called as times are."""
    return plain_name(name) in _TIME_NAMES


def _named_like_time(names: Iterable[str]) -> list[str]:
    """Return the columns with the name of a time, the most specific first."""
    known = [name for name in names if is_time_name(name)]
    return sorted(known, key=lambda name: _TIME_NAMES.index(plain_name(name)))


def _date_and_clock(names: Iterable[str]) -> tuple[str, str] | None:
    """Return a pair of columns with the names of a date and a time of day."""
    plain: dict[str, str] = {}
    for name in names:
        plain.setdefault(plain_name(name), name)
    dates = [plain[name] for name in _DATE_NAMES if name in plain]
    clocks = [plain[name] for name in _CLOCK_NAMES if name in plain]
    return (dates[0], clocks[0]) if dates and clocks else None


@dataclass(frozen=True)
class ColumnTimes:
    """Times as they were read, and how: `text` from text, `meaning` of numbers, `typed` if they were times already."""

    share: float  # of the values that are there
    times: NDArray[np.datetime64] | None = None
    offsets: IntArray | None = None
    typed: pd.DatetimeIndex | None = None
    text: TextTimes | None = None
    meaning: str = ""

    def index(self, zone: dt.tzinfo | None, name: str, notebook: Notebook) -> pd.DatetimeIndex:
        """Return the times as an index, in a zone if there is one."""
        if self.typed is not None:
            return _in_zone(self.typed, zone, name, notebook)
        assert self.times is not None
        assert self.offsets is not None
        return _with_zone(self.times, self.offsets, zone, name, notebook)

    def note(self, name: str, notebook: Notebook) -> None:
        """Note what was decided about the time."""
        column, read = f"column {quoted(name)}", self.text
        if self.meaning:
            notebook.add("time from numbers", f"Column {quoted(name)} was read as {self.meaning}.", 1, (name,))
        if read is None:
            return
        if read.day_first is not None and read.decided_by != "you":
            order = "day first" if read.day_first else "month first"
            why = {
                "values": "as days above 12 show",
                "order": "as the order of the rows suggests, though both would be dates; which comes first can be set",
                "custom": "though nothing tells the day from the month; which comes first can be set",
            }[read.decided_by]
            kind = "day and month" if read.decided_by == "values" else "ambiguous dates"
            notebook.add(kind, f"Dates in {column} were read with the {order}, {why}.", len(read.times), (name,))
        if read.contradictions:
            said = f"{counted(read.contradictions, 'date')} in {column} taken as missing, as day and month would have"
            said = f"{said} to be the other way round."
            notebook.add("contradictory dates", said, read.contradictions, (name,), changed=True)
        if len(read.ways) > 1:
            shown = ", ".join(quoted(way) for way in list(read.ways.values())[:3])
            said = f"Times in {column} are written in {len(read.ways)} ways (with 0 for any number: {shown})."
            notebook.add("mixed time formats", said, len(read.ways), (name,))
        if read.shortened:
            said = f"{counted(read.shortened, 'time')} in {column} cut to microseconds."
            notebook.add("shortened times", said, read.shortened, (name,), changed=True)


def column_times(column: pd.Series[Any], day_first: bool | None = None, form: str | None = None) -> ColumnTimes:
    """Read a column of times, numbers or texts; `form` is how they are written, as strptime takes it."""
    there, kind = int(column.notna().sum()), column.dtype.kind
    if kind == "M":
        return ColumnTimes(1.0 if there else 0.0, typed=pd.DatetimeIndex(column))
    if not there or kind in "bcm":
        return ColumnTimes(0.0)
    if kind in "iuf" and form is None:
        numeric = _numeric_times(column.to_numpy(dtype=np.float64, na_value=np.nan))
        if numeric is None:
            return ColumnTimes(0.0)
        times, meaning, offset = numeric
        share = float((~np.isnat(times)).sum()) / there
        return ColumnTimes(share, times, np.full(len(column), offset), meaning=meaning)
    texts = _as_texts(column)
    if kind in "iuf" and form is not None:  # read as numbers, which lose zeros at the front
        length = len(dt.datetime(2000, 12, 31, 23, 59, 59, 999_999).strftime(form))
        texts = [text and text.zfill(length) for text in texts]
    return _from_texts(texts, there, day_first, form)


def _paired_times(
    date: pd.Series[Any], clock: pd.Series[Any], day_first: bool | None = None, form: str | None = None
) -> ColumnTimes:
    days = [text.removesuffix("00:00:00").rstrip(" T") for text in _as_texts(date)]
    texts = [f"{day} {hour}" if day and hour else "" for day, hour in zip(days, _as_texts(clock), strict=True)]
    return _from_texts(texts, int((date.notna() & clock.notna()).sum()), day_first, form)


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
    return ColumnTimes(float((~np.isnat(times)).sum()) / max(1, there), times, offsets, text=read)


def seems_time(column: pd.Series[Any], form: str | None = None) -> bool:
    sample = column.dropna().iloc[:_SAMPLE]
    return len(sample) > 0 and column_times(sample, form=form).share >= 0.9


def _seems_clock_alone(column: pd.Series[Any]) -> bool:
    """Return whether the first values are times of day."""
    sample = column.dropna().iloc[:_SAMPLE]
    if not len(sample) or sample.dtype.kind in "iufbcmM":
        return False
    return sum(map(is_clock_alone, _as_texts(sample))) >= 0.9 * len(sample)


def _as_texts(column: pd.Series[Any]) -> list[str]:
    values, missing = column.tolist(), column.isna()
    if not missing.any() and (isinstance(column.dtype, pd.StringDtype) or pd.api.types.infer_dtype(column) == "string"):
        return values
    if column.dtype.kind in "iuf":  # such as 20241231
        return ["" if value != value else f"{value:.0f}" for value in values]  # noqa: PLR0124
    return ["" if absent else str(value) for value, absent in zip(values, missing, strict=True)]


def _first_unread(column: pd.Series[Any], read: ColumnTimes) -> str:
    """Say which value could not be read as a time."""
    unread = column.notna().to_numpy()
    if read.times is not None:
        unread = unread & np.isnat(read.times)
    row = int(np.argmax(unread))
    return f"row {row:,} (counted from 0) holds {quoted(column.iloc[row])}" if unread.any() else "it is empty"


def _numeric_times(numbers: FloatArray) -> tuple[NDArray[np.datetime64], str, int] | None:
    """Return times (NaT for NaN), what the numbers mean, judged by their size, and the offset: 0 for UTC, or NAIVE.

    >>> times, meaning, _ = _numeric_times(np.array([1704067200.0, np.nan, 1704067260.5]))
    >>> meaning, times.astype("M8[ms]").astype(str).tolist()
    ('seconds since 1970', ['2024-01-01T00:00:00.000', 'NaT', '2024-01-01T00:01:00.500'])
    >>> _numeric_times(np.array([20241231.0, 20250101.0]))[0].astype("M8[D]").astype(str).tolist()
    ['2024-12-31', '2025-01-01']
    >>> _numeric_times(np.array([0.0, 1.0, 2.0])) is None
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
            return read_times(texts).times, meaning, NAIVE
    for meaning, low, high, microseconds in _EPOCHS:
        if low <= smallest and largest < high:
            return _since(np.datetime64(0, "us"), numbers, microseconds), meaning, 0
    if _EXCEL_DAYS[0] <= smallest and largest <= _EXCEL_DAYS[1]:
        return _since(_EXCEL_START, numbers, 86_400e6), "days as Excel counts them", NAIVE
    return None


def _since(start: np.datetime64, numbers: FloatArray, microseconds: float) -> NDArray[np.datetime64]:
    """Add numbers of a unit, of so many microseconds, to a start.

    Whole units and their fraction are multiplied apart: their product in one would be wrong by some microseconds.
    """
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


def as_zone(timezone: str | dt.tzinfo | None) -> dt.tzinfo | None:
    if timezone is None or isinstance(timezone, dt.tzinfo):
        return timezone
    try:
        return zoneinfo.ZoneInfo(timezone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, TypeError, OSError):
        raise TableError(
            f"There is no time zone {quoted(timezone)}. Use a name such as 'Europe/Berlin', 'Asia/Tokyo' or 'UTC'."
        ) from None


def _with_zone(
    times: NDArray[np.datetime64], offsets: IntArray, zone: dt.tzinfo | None, column: str, notebook: Notebook
) -> pd.DatetimeIndex:
    """Return times as an index: local times as they are, times with an offset in that offset; or both in `zone`."""
    there = ~np.isnat(times)
    aware = offsets[there] != NAIVE
    if aware.any() and not aware.all():
        raise TableError(
            f"{notebook.source}: of the time stamps in column {quoted(column)}, {int(aware.sum()):,} have an offset "
            f"from UTC and {int((~aware).sum()):,} have none. Give all of them one, or none."
        )
    if not aware.any():
        return _in_zone(pd.DatetimeIndex(times), zone, column, notebook)
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
    notebook.add("mixed offsets", f"{said} in UTC; another zone can be set.", len(different), (column,), changed=True)
    return index


def _in_zone(index: pd.DatetimeIndex, zone: dt.tzinfo | None, column: str, notebook: Notebook) -> pd.DatetimeIndex:
    """Put local times into a zone, if there is one, and note what daylight saving does to them."""
    if zone is None:
        return index
    if index.tz is not None:
        return index.tz_convert(zone)
    first, second = (
        index.tz_localize(zone, ambiguous=np.full(len(index), is_first), nonexistent="shift_forward")
        for is_first in (True, False)
    )
    there = index.notna()
    skipped = int(((first.tz_localize(None) != index) & there).sum())
    if skipped:
        said = f"{counted(skipped, 'time stamp')} in column {quoted(column)} moved to the end of an hour that is left"
        said = f"{said} out in {zone}, where clocks are set forward. Check that this is the zone."
        notebook.add("times that do not exist", said, skipped, (column,), changed=True)
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
    notebook.add("daylight saving", said, len(rows), (column,), changed=not settled)
    return index.tz_localize(zone, ambiguous=~later, nonexistent="shift_forward")
