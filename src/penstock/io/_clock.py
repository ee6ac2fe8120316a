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
# name, smallest and largest value, in microseconds: 1973 to 2286, so that no two overlap
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
_ENOUGH = 0.5  # of the values of a column that is named, or named like a time, have to be times
_NEARLY_ALL = 0.9  # of one that is not


@dataclass(frozen=True)
class TimeOptions:
    """Which column is the time (none: find it; two: date and time of day), in which zone, and is the day first?

    format : how stamps are written, as strptime takes it; None to find out.
    """

    columns: tuple[str, ...] = ()
    zone: dt.tzinfo | None = None
    day_first: bool | None = None
    format: str | None = None

    def __post_init__(self) -> None:
        if self.format is not None:
            _check_format(self.format)
        if len(self.columns) > 2:
            raise TableError(f"time must name one column, or two for date and time of day; got {listed(self.columns)}.")


@dataclass(frozen=True)
class Clock:
    """The stamps of a table (NaT where one is missing), the name they go by, and the columns that are used up.

    times is None if there is no time; then `columns` are those that look like one but do not say when.
    day_first : how dates such as 1/2/2024 were read; None if there are none.
    """

    times: pd.DatetimeIndex | None
    name: str | None
    columns: tuple[str, ...]
    day_first: bool | None = None


def find_clock(frame: pd.DataFrame, options: TimeOptions, taken: Collection[str], notebook: Notebook) -> Clock:
    """Find and read the time of a table; `taken` are columns that are something else."""
    if options.columns:
        return _named_clock(frame, options, notebook)
    kinds = {name: kind.kind for name, kind in frame.dtypes.items()}
    free = [name for name in frame.columns if name not in taken]
    typed = [name for name in free if kinds[name] == "M" and frame[name].notna().any()]
    if typed:
        name = next(iter(columns_named_like_time(typed)), typed[0])
        return _clock(column_times(frame[name], options.day_first), name, (name,), options, notebook)
    pair = date_and_clock(free)
    if pair and (options.format or (seems_time(frame[pair[0]]) and seems_clock_alone(frame[pair[1]]))):
        read = paired_times(frame[pair[0]], frame[pair[1]], options.day_first, options.format)
        if read.share >= _ENOUGH:
            return _clock(read, " + ".join(pair), pair, options, notebook)
    named = columns_named_like_time(free)
    for name in named:
        read = column_times(frame[name], options.day_first, options.format)
        if read.share >= _ENOUGH:
            return _clock(read, name, (name,), options, notebook)
    for name in free:
        text = kinds[name] not in "iufbcmM"
        if name not in named and (text or name == frame.columns[0]) and _may_be_unnamed_time(frame[name], options):
            read = column_times(frame[name], options.day_first, options.format)
            if read.share >= _NEARLY_ALL:
                notebook.add("time found", f"Column {quoted(name)} is taken as the time.", 1, (name,))
                return _clock(read, name, (name,), options, notebook)
    if options.format is not None:
        name = (named or free or list(frame.columns))[0]
        read = column_times(frame[name], form=options.format)
        raise TableError(
            f"{notebook.source} has no column of times written as {quoted(options.format)} (given as time_format); in "
            f"column {quoted(name)} {first_unread(frame[name], read)}. Name the column as time, or correct the format."
        )
    return _no_clock(frame, named, notebook)


def _named_clock(frame: pd.DataFrame, options: TimeOptions, notebook: Notebook) -> Clock:
    columns = options.columns
    if len(columns) == 1:
        read = column_times(frame[columns[0]], options.day_first, options.format)
    else:
        read = paired_times(frame[columns[0]], frame[columns[1]], options.day_first, options.format)
    if read.share < _ENOUGH:
        how = f" as {quoted(options.format)}" if options.format else ""
        raise TableError(
            f"{notebook.source}: column {quoted(columns[0])} was named as the time, but "
            f"{first_unread(frame[columns[0]], read)}, and only {read.share:.0%} of it can be read as times{how}. "
            f"Name another column, or say with time_format how times are written."
        )
    return _clock(read, " + ".join(columns), columns, options, notebook)


def _check_format(form: str) -> None:
    """Raise unless strptime takes this, as pandas does."""
    try:
        if not isinstance(form, str) or "%" not in form:
            raise ValueError("there is no % in it")
        pd.to_datetime(pd.Series(["x"]), format=form, errors="coerce", utc=True)
    except (ValueError, TypeError, re.error) as error:
        raise TableError(
            f"time_format {quoted(form)} is not a format of time ({error}). Write it like '%d/%m/%Y %H:%M'."
        ) from None


def _may_be_unnamed_time(column: pd.Series[Any], options: TimeOptions) -> bool:
    """Text that begins with times, or numbers that count up as seconds (or less) since 1970 would."""
    if column.dtype.kind in "bcmM" or not seems_time(column, options.format):
        return False
    if column.dtype.kind not in "iuf" or options.format is not None:
        return True
    return float(column.iloc[0]) > 9e8 and _counts_up(column)


def _clock(read: ColumnTimes, name: str, columns: tuple[str, ...], options: TimeOptions, notebook: Notebook) -> Clock:
    read.note(name, notebook)
    day_first = None if read.text is None else read.text.day_first
    return Clock(read.index(options.zone, name, notebook), name, columns, day_first)


def _no_clock(frame: pd.DataFrame, named: list[str], notebook: Notebook) -> Clock:
    """No column says when; those that only count up or tell the time of day are no measurements either."""
    counting = [name for name in named if _counts_up(frame[name])]
    clocks = [name for name in named if name not in counting and seems_clock_alone(frame[name])]
    for names, what in ((counting, "counts up but does not say from when"), (clocks, "has times of day but no date")):
        if names:
            notebook.add(
                "time without date",
                f"Left out: {in_columns(names)}, which {what}. The rows stay in their order.",
                len(names),
                tuple(names),
                changed=True,
            )
    for name in named:
        if name not in counting and name not in clocks and frame[name].notna().any():
            notebook.add(
                "not a time",
                f"Column {quoted(name)} is named like a time but was not read as one: "
                f"{first_unread(frame[name], column_times(frame[name]))}. If it is the time, its format can be "
                f"set.",
                1,
                (name,),
            )
    return Clock(None, None, (*counting, *clocks))


def _counts_up(column: pd.Series[Any]) -> bool:
    if column.dtype.kind not in "iuf" or len(column) < 3:
        return False
    numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
    return bool((numbers[1:] > numbers[:-1]).all())


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
        if self.typed is not None:
            return in_zone(self.typed, zone, name, notebook)
        assert self.times is not None
        assert self.offsets is not None
        return with_zone(self.times, self.offsets, zone, name, notebook)

    def note(self, name: str, notebook: Notebook) -> None:
        """Say what was decided about the time."""
        if self.meaning:
            notebook.add("time from numbers", f"Column {quoted(name)} was read as {self.meaning}.", 1, (name,))
        if self.text is not None:
            _note_text(self.text, name, notebook)


def column_times(column: pd.Series[Any], day_first: bool | None = None, form: str | None = None) -> ColumnTimes:
    """Read a column of times, numbers or texts; `form` is how they are written, as strptime takes it."""
    there = int(column.notna().sum())
    if column.dtype.kind == "M":
        return ColumnTimes(1.0 if there else 0.0, typed=pd.DatetimeIndex(column))
    if not there or column.dtype.kind in "bcm":
        return ColumnTimes(0.0)
    if form is not None:
        return _as_told(_as_texts(column), form, there, whole=column.dtype.kind in "iuf")
    if column.dtype.kind in "iuf":
        numeric = read_numeric_times(column.to_numpy(dtype=np.float64, na_value=np.nan))
        if numeric is None:
            return ColumnTimes(0.0)
        offsets = np.full(len(column), 0 if numeric.utc else NAIVE)
        share = float((~np.isnat(numeric.times)).sum()) / there
        return ColumnTimes(share, numeric.times, offsets, meaning=numeric.meaning)
    return _from_texts(_as_texts(column), there, day_first)


def paired_times(
    date: pd.Series[Any], clock: pd.Series[Any], day_first: bool | None = None, form: str | None = None
) -> ColumnTimes:
    """Read dates and times of day in two columns."""
    days = [text.removesuffix("00:00:00").rstrip(" T") for text in _as_texts(date)]
    hours = _as_texts(clock)
    texts = [f"{day} {hour}" if day and hour else "" for day, hour in zip(days, hours, strict=True)]
    there = int((date.notna() & clock.notna()).sum())
    return _from_texts(texts, there, day_first) if form is None else _as_told(texts, form, there)


def seems_time(column: pd.Series[Any], form: str | None = None) -> bool:
    """Whether the first values are times."""
    sample = column.dropna().iloc[:_SAMPLE]
    return len(sample) > 0 and column_times(sample, form=form).share >= 0.9


def seems_clock_alone(column: pd.Series[Any]) -> bool:
    """Whether the first values are times of day."""
    sample = column.dropna().iloc[:_SAMPLE]
    if not len(sample) or sample.dtype.kind in "iufbcmM":
        return False
    return sum(map(is_clock_alone, _as_texts(sample))) >= 0.9 * len(sample)


def _as_texts(column: pd.Series[Any]) -> list[str]:
    values = column.tolist()
    missing = column.isna()
    if not missing.any() and (isinstance(column.dtype, pd.StringDtype) or pd.api.types.infer_dtype(column) == "string"):
        return values
    if column.dtype.kind in "iuf":  # 20241231 of a pair
        return ["" if value != value else f"{value:.0f}" for value in values]  # noqa: PLR0124
    return ["" if absent else str(value) for value, absent in zip(values, missing, strict=True)]


def _from_texts(texts: list[str], there: int, day_first: bool | None) -> ColumnTimes:
    read = read_times(texts, day_first)
    share = float((~np.isnat(read.times)).sum()) / max(1, there)
    return ColumnTimes(share, read.times, read.offsets, text=read)


def _as_told(texts: list[str], form: str, there: int, whole: bool = False) -> ColumnTimes:
    """Times written in the way that was told; `whole` if they were read as numbers, which lose zeros at the front."""
    if whole:
        length = len(dt.datetime(2000, 12, 31, 23, 59, 59, 999_999).strftime(form))
        texts = [text and text.zfill(length) for text in texts]
    zoned = "%z" in form or "%Z" in form
    times = pd.to_datetime(pd.Series(texts, dtype="object"), format=form, errors="coerce", utc=zoned)
    stamps = times.dt.tz_localize(None).to_numpy(dtype="M8[us]")
    share = float((~np.isnat(stamps)).sum()) / max(1, there)
    return ColumnTimes(share, stamps, np.full(len(texts), 0 if zoned else NAIVE))


def first_unread(column: pd.Series[Any], read: ColumnTimes) -> str:
    """Which value could not be read as a time."""
    unread = column.notna().to_numpy()
    if read.times is not None:
        unread = unread & np.isnat(read.times)
    row = int(np.argmax(unread))
    return f"row {row:,} (counted from 0) holds {quoted(column.iloc[row])}" if unread.any() else "it is empty"


def _note_text(read: TextTimes, name: str, notebook: Notebook) -> None:
    if read.day_first is not None and read.decided_by != "you":
        order = "day first" if read.day_first else "month first"
        why = {
            "values": "as days above 12 show",
            "order": "as the order of the rows suggests, though both would be dates; which comes first can be set",
            "custom": "though nothing tells the day from the month; which comes first can be set",
        }[read.decided_by]
        kind = "day and month" if read.decided_by == "values" else "ambiguous dates"
        notebook.add(
            kind, f"Dates in column {quoted(name)} were read with the {order}, {why}.", len(read.times), (name,)
        )
    if read.contradictions:
        notebook.add(
            "contradictory dates",
            f"{counted(read.contradictions, 'date')} in column {quoted(name)} taken as missing, as day and month would "
            f"have to be the other way round.",
            read.contradictions,
            (name,),
            changed=True,
        )
    if len(read.ways) > 1:
        shown = ", ".join(quoted(way) for way in list(read.ways.values())[:3])
        notebook.add(
            "mixed time formats",
            f"Times in column {quoted(name)} are written in {len(read.ways)} ways (with 0 for any number: {shown}).",
            len(read.ways),
            (name,),
        )
    if read.shortened:
        notebook.add(
            "shortened times",
            f"{counted(read.shortened, 'time')} in column {quoted(name)} cut to microseconds.",
            read.shortened,
            (name,),
            changed=True,
        )


@dataclass(frozen=True)
class NumericTimes:
    """Times, NaT where there is none; `meaning` of the numbers, and whether they are in UTC."""

    times: NDArray[np.datetime64]
    meaning: str
    utc: bool


def read_numeric_times(numbers: FloatArray) -> NumericTimes | None:
    """What the numbers mean is told by their size; None if they are no times.

    >>> found = read_numeric_times(np.array([1704067200.0, np.nan, 1704067260.5]))
    >>> found.meaning, found.times.astype("M8[ms]").astype(str).tolist()
    ('seconds since 1970', ['2024-01-01T00:00:00.000', 'NaT', '2024-01-01T00:01:00.500'])
    >>> read_numeric_times(np.array([20241231.0, 20250101.0])).times.astype("M8[D]").astype(str).tolist()
    ['2024-12-31', '2025-01-01']
    >>> read_numeric_times(np.array([0.0, 1.0, 2.0])) is None
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
            return NumericTimes(read_times(texts).times, meaning, utc=False)
    for meaning, low, high, microseconds in _EPOCHS:
        if low <= smallest and largest < high:
            return NumericTimes(_since(np.datetime64(0, "us"), numbers, microseconds), meaning, utc=True)
    if _EXCEL_DAYS[0] <= smallest and largest <= _EXCEL_DAYS[1]:
        return NumericTimes(_since(_EXCEL_START, numbers, 86_400e6), "days as Excel counts them", utc=False)
    return None


def _since(start: np.datetime64, numbers: FloatArray, microseconds: float) -> NDArray[np.datetime64]:
    """Whole units and their fraction apart: their product in one would be wrong by some microseconds."""
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
    """The zone of this name."""
    if timezone is None or isinstance(timezone, dt.tzinfo):
        return timezone
    try:
        return zoneinfo.ZoneInfo(timezone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, TypeError, OSError):
        raise TableError(
            f"There is no time zone {quoted(timezone)}. Use a name such as 'Europe/Berlin', 'Asia/Tokyo' or 'UTC'."
        ) from None


def with_zone(
    times: NDArray[np.datetime64], offsets: IntArray, zone: dt.tzinfo | None, column: str, notebook: Notebook
) -> pd.DatetimeIndex:
    """Times as an index: local times as they are (or in `zone`), times with an offset in that offset (or in `zone`)."""
    there = ~np.isnat(times)
    aware = offsets[there] != NAIVE
    if aware.any() and not aware.all():
        raise TableError(
            f"{notebook.source}: of the time stamps in column {quoted(column)}, {int(aware.sum()):,} have an offset "
            f"from UTC and {int((~aware).sum()):,} have none. Give all of them one, or none."
        )
    if not aware.any():
        return in_zone(pd.DatetimeIndex(times), zone, column, notebook)
    index = pd.DatetimeIndex(times).tz_localize("UTC")
    if zone is not None:
        return index.tz_convert(zone)
    different, counts = np.unique(offsets[there], return_counts=True)
    if len(different) == 1:
        minutes = int(different[0])
        return index.tz_convert(dt.timezone(dt.timedelta(minutes=minutes)) if minutes else dt.UTC)
    shown = ", ".join(f"{_written(minutes)} ({count:,})" for minutes, count in zip(different[:4], counts, strict=False))
    notebook.add(
        "mixed offsets",
        f"The time stamps in column {quoted(column)} have {len(different)} offsets from UTC: {shown}. They are now in "
        f"UTC; another zone can be set.",
        len(different),
        (column,),
        changed=True,
    )
    return index


def in_zone(index: pd.DatetimeIndex, zone: dt.tzinfo | None, column: str, notebook: Notebook) -> pd.DatetimeIndex:
    """Local times in a zone, or in none; what daylight saving makes of them is noted."""
    if zone is None:
        return index
    if index.tz is not None:
        return index.tz_convert(zone)
    first = index.tz_localize(zone, ambiguous=np.ones(len(index), dtype=bool), nonexistent="shift_forward")
    second = index.tz_localize(zone, ambiguous=np.zeros(len(index), dtype=bool), nonexistent="shift_forward")
    there = index.notna()
    skipped = int(((first.tz_localize(None) != index) & there).sum())
    if skipped:
        notebook.add(
            "times that do not exist",
            f"{counted(skipped, 'time stamp')} in column {quoted(column)} moved to the end of an hour that is left out "
            f"in {zone}, where clocks are set forward. Check that this is the zone.",
            skipped,
            (column,),
            changed=True,
        )
    twice = np.asarray((first != second) & there)
    if not twice.any():
        return first
    later, settled = _second_pass(index, twice)
    _note_repeats(int(twice.sum()), settled, zone, column, notebook)
    return index.tz_localize(zone, ambiguous=~later, nonexistent="shift_forward")


def _second_pass(index: pd.DatetimeIndex, twice: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], bool]:
    """Which stamps of an hour that comes twice belong to its second time: those after a step back, day by day.

    The second value is whether there was such a step in each hour.
    """
    newest_first = (np.diff(index.asi8) < 0).sum() > len(index) / 2
    rows = np.flatnonzero(twice)[::-1] if newest_first else np.flatnonzero(twice)
    stamps = index[rows]
    days = stamps.normalize().asi8
    back = np.concatenate(([False], (np.diff(stamps.asi8) < 0) & (np.diff(days) == 0)))
    steps = pd.Series(back).groupby(days).cumsum()
    later = np.zeros(len(index), dtype=bool)
    later[rows] = steps.to_numpy() > 0
    return later, bool((steps.groupby(days).max() > 0).all())


def _note_repeats(count: int, settled: bool, zone: dt.tzinfo, column: str, notebook: Notebook) -> None:
    how = "told apart by their order" if settled else "where the order does not tell, they were taken as the first time"
    notebook.add(
        "daylight saving",
        f"{counted(count, 'time stamp')} in column {quoted(column)} in an hour that comes twice in {zone}: {how}.",
        count,
        (column,),
        changed=not settled,
    )


def _written(minutes: int) -> str:
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"
