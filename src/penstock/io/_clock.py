"""Find the column of time stamps in a table, or the two of date and time of day, and read it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from penstock._messages import in_columns, listed, option, quoted
from penstock.io._time_texts import is_clock_alone
from penstock.io.table import ReadLog, TableError
from penstock.io.times import (
    ColumnTimes,
    TimeOptions,
    TimeReader,
    as_texts,
    column_times,
    joined_time,
    paired_times,
    times_of_parts,
)

# The most specific first. A column of such a name still has to hold times.
_TIME_NAMES = (
    "timestamp", "time stamp", "datetime", "date time", "date and time", "zeitstempel", "datum zeit", "datum uhrzeit",
    "fecha hora", "fecha y hora", "horodatage", "data ora", "datumtijd", "utc time", "local time", "utc", "sample time",
    "log time", "measured at", "recorded at", "created at", "unix time",
    "unixtime", "epoch", "time", "date", "zeit", "datum", "fecha", "tijd", "tid", "ts", "when", "t", "uhrzeit",
    "hora", "heure", "elapsed", "elapsed time", "relative time", "x value",
    "t stamp", "tstamp", "datenum", "source timestamp", "sourcetimestamp", "server timestamp", "servertimestamp",
)  # fmt: skip
_DATE_NAMES = ("date", "datum", "fecha", "day", "data", "dato", "date utc")
_CLOCK_NAMES = ("time", "zeit", "uhrzeit", "hora", "heure", "ora", "tijd", "tid", "clock", "time of day", "time utc")
_MILLIS_NAMES = (
    "ms", "msec", "msecs", "millis", "millisec", "millisecs", "millisecond", "milliseconds", "millisekunde",
    "millisekunden", "milliseconde", "millisecondes", "milisegundo", "milisegundos", "millisecondo", "millisecondi",
    "millitm", "time ms", "zeit ms",
)  # fmt: skip
_HOUR_NAMES = ("hour", "hr", "hh", "he", "hour ending", "hourending", "stunde", "std", "ore")
# Columns that are parts of a date, or of a time of day.
_PARTS = {
    "year": ("year", "yr", "yyyy", "yy", "jahr", "année", "annee", "año", "ano", "anno"),
    "month": ("month", "mon", "mo", "mm", "monat", "mois", "mes", "mese"),
    "day": ("day", "dd", "dom", "tag", "jour", "día", "dia", "giorno"),
    "doy": ("doy", "day of year", "dayofyear", "jday", "julian day", "julianday", "yday"),
    "hour": ("hour", "hr", "hh", "stunde", "heure", "hora", "ora"),
    "minute": ("minute", "min", "mi", "mm", "minuto"),
    "second": ("second", "sec", "ss", "sekunde", "seconde", "segundo", "secondo"),
    "hhmm": ("hhmm", "hour minute", "time"),
}
_LIMITS = {
    "year": (1900, 2200), "month": (1, 12), "day": (1, 31), "doy": (1, 366), "hour": (0, 24), "hhmm": (0, 2400),
}  # fmt: skip
# The parts of a time at the begin of each row, as loggers write them without a header; the shortest that ascends is it.
_LEADING = tuple(
    tuple(parts.split())[:count]
    for parts, shortest in (("year month day hour minute second", 3), ("year doy hhmm second", 2))
    for count in range(shortest, len(parts.split()) + 1)
)
_SAMPLE = 100  # values that show what a column holds
_MOST_NAMES = 4096  # that are kept in their plain form: several stages ask for it
_FEWEST_ROWS, _FEWEST_DIGITS, _MOST_SHAPES = 20, 4, 20  # of a column that may be a time in a way that is not known
_MOST_BEFORE = 6  # columns among which a date and a time of day are looked for by what they hold
_ENOUGH = 0.5  # share of values that have to be times in a column that is named as the time, or named like a time
_NEARLY_ALL = 0.9  # and in a column that is not


@dataclass(frozen=True)
class TableClock:
    """The stamps of a table (NaT where one is missing), the name they go by, and the columns that are used up."""

    times: pd.DatetimeIndex | None  # None if there is no time
    name: str | None
    columns: tuple[str, ...]  # without times, those that look like a time but do not say when
    reader: TimeReader | None = None  # how they were read


def find_clock(frame: pd.DataFrame, options: TimeOptions, taken: Collection[str], log: ReadLog) -> TableClock:
    """Find and read the time of a table; `taken` are columns that are something else."""
    form = options.format

    def clock(read: ColumnTimes, *columns: str) -> TableClock:
        millis = _millis_beside(frame, columns[0], read, taken) if len(columns) == 1 else None
        if millis is not None:
            read, columns = read.with_millis(frame[millis]), (*columns, millis)
        name = " + ".join(columns)
        read.note(name, log)
        return TableClock(read.index(options.zone, name, log), name, columns, read.reader(options))

    if options.columns:
        first, *others = (frame[name] for name in options.columns)
        read = paired_times(first, others[0], options) if others else column_times(first, options)
        if read.share >= _ENOUGH:
            return clock(read, *options.columns)
        how = f" as {quoted(form)}" if form else ""
        raise TableError(
            f"{log.source}: column {quoted(options.columns[0])} was named as the time, but "
            f"{_first_unread(frame[options.columns[0]], read)}, and only {read.share:.0%} of it can be read as "
            f"times{how}. Name another column, or say how times are written ({option('time_format')})."
        )
    kinds = _kinds(frame)
    free = [name for name in frame.columns if name not in taken]
    typed = [name for name in free if kinds[name] == "M" and frame[name].notna().any()]
    if typed:
        name = next(iter(_named_like_time(typed)), typed[0])
        return clock(column_times(frame[name], options), name)
    several, columns = _read_several(frame, free, options)
    if several.share >= _ENOUGH:
        return clock(several, *columns)
    named = _named_like_time(free)
    for name in [*named, *(name for name in free if name not in named)]:
        text = kinds[name] not in "iufbcmM"
        is_named, may_be = name in named, text or name == frame.columns[0]
        if not is_named and not (may_be and _may_be_unnamed_time(frame[name], form)):
            continue
        read = column_times(frame[name], options)
        if read.share >= (_ENOUGH if is_named else _NEARLY_ALL):
            if not is_named:
                log.add("time found", f"Column {quoted(name)} is taken as the time.", 1, (name,))
            return clock(read, name)
    if form is not None:
        name = (named or free or list(frame.columns))[0]
        raise TableError(
            f"{log.source} has no column of times written as {quoted(form)} ({option('time_format')}); in column "
            f"{quoted(name)} {_first_unread(frame[name], column_times(frame[name], options))}. Name the column as "
            f"time, or correct the format."
        )
    leading = _leading_parts(frame[free])
    if not leading:
        return _no_clock(frame, named, log)
    used = tuple(leading.values())
    said = f"The time was put together of {in_columns(used)}, taken as {listed(leading)}."
    log.add("time found", said, len(used), used)
    return clock(times_of_parts({part: frame[name] for part, name in leading.items()}), *used)


def _kinds(frame: pd.DataFrame) -> dict[Any, str]:
    return {name: kind.kind for name, kind in frame.dtypes.items()}


def _read_several(frame: pd.DataFrame, free: list[str], options: TimeOptions) -> tuple[ColumnTimes, tuple[str, ...]]:
    """Read a time that has a column for the date and one for the time of day, or one for each part of both."""
    pair = _date_and_clock(free) or _date_beside_clock(frame, free)
    if pair and (
        options.format or (seems_time(frame[pair[0]]) and seems_clock_alone(frame[pair[1]], beside_date=True))
    ):
        return paired_times(frame[pair[0]], frame[pair[1]], options), pair
    if pair and options.format is None and all(frame[name].dtype.kind in "iuf" for name in pair):
        day, part = frame[pair[0]], frame[pair[1]]  # as Excel has them: whole days, and the part of a day
        if (day == np.floor(day)).all() and part.between(0, 1, inclusive="left").all() and part.max() > 0:
            return column_times(day + part, options), pair
    parts = _parts_of_times(frame, free) if options.format is None else {}
    if not parts:
        return ColumnTimes(0.0), ()
    return times_of_parts({part: frame[name] for part, name in parts.items()}), tuple(parts.values())


def is_millis_name(name: str) -> bool:
    return plain_name(name) in _MILLIS_NAMES


def _millis_beside(frame: pd.DataFrame, time: str, read: ColumnTimes, taken: Collection[str]) -> str | None:
    """Return the column of milliseconds that belong to whole seconds in another column."""
    names = [name for name in frame.columns if name not in taken and is_millis_name(name)]
    if len(names) != 1 or names[0] == time or frame[names[0]].dtype.kind not in "iuf":
        return None
    numbers, texts = frame[names[0]].dropna(), as_texts(frame[time].dropna().iloc[:1])
    written = read.typed is not None or (texts and joined_time(texts[0], "0").endswith(".000"))
    whole = bool(((numbers >= 0) & (numbers < 1000) & (numbers == np.floor(numbers))).all())
    return names[0] if written and whole and len(numbers) and read.are_whole_seconds else None


def _leading_parts(frame: pd.DataFrame) -> dict[str, str]:
    """Return the first columns that are the parts of times which ascend, without a name or with that of the part.

    The number of a table may come before them, as in the arrays of Campbell loggers.
    """
    kinds = _kinds(frame)
    names = list(itertools.takewhile(lambda name: kinds[name] in "iu", frame.columns[:8]))
    for first in (0, 1):
        if first and (not names or frame[names[0]].nunique() > 1):
            break
        for parts in _LEADING:
            found = dict(zip(parts, names[first:], strict=False))
            words = {part: (*_PARTS[part], "column") for part in found}
            named = all(re.sub(r" \d+$", "", plain_name(name)) in words[part] for part, name in found.items())
            if len(found) == len(parts) and named and _are_within_limits(frame, found):
                times = times_of_parts({part: frame[name] for part, name in found.items()}).typed
                if times is not None and len(times) > 2 and (np.diff(times.asi8) > 0).mean() >= _NEARLY_ALL:
                    return found
    return {}


def _are_within_limits(frame: pd.DataFrame, parts: dict[str, str]) -> bool:
    within = all(frame[name].dropna().between(*_LIMITS.get(part, (0, 60))).all() for part, name in parts.items())
    return within and ("hhmm" not in parts or bool((frame[parts["hhmm"]] % 100 < 60).all()))


def _may_be_unnamed_time(column: pd.Series[Any], form: str | None) -> bool:
    """Return whether this is text that begins with times, or numbers that count up as seconds since 1970 would."""
    if column.dtype.kind in "bcmM" or not seems_time(column, form):
        return False
    if column.dtype.kind not in "iuf" or form is not None:
        return True
    return float(column.iloc[0]) > 9e8 and _counts_up(column)


def _no_clock(frame: pd.DataFrame, named: list[str], log: ReadLog) -> TableClock:
    """Note why no column is the time; those that only count up or hold times of day are no measurements either."""
    counting = [name for name in named if _counts_up(frame[name])]
    clocks = [name for name in named if name not in counting and seems_clock_alone(frame[name])]
    for names, what in ((counting, "counts up but does not say from when"), (clocks, "has times of day but no date")):
        if names:
            said = f"Left out: {in_columns(names)}, which {what}. The rows stay in their order"
            said = f"{said} ({option('ordered', True)} if they are evenly spaced)."
            log.add("time without date", said, len(names), tuple(names), changed=True)
    for name in named:
        if name not in counting and name not in clocks and frame[name].notna().any():
            why = _first_unread(frame[name], column_times(frame[name], TimeOptions()))
            said = f"Column {quoted(name)} is named like a time but was not read as one: {why}. If it is the time, its"
            log.add("not a time", f"{said} format can be set ({option('time_format')}).", 1, (name,))
    known = {*named, *(column for note in log.notes if note.kind == "not a time" for column in note.columns)}
    like = next((name for name in frame.columns if name not in known and _is_like_time(frame, name)), None)
    if like is not None and len(known) == 0:
        said = f"No column was read as the time. If it is {quoted(like)}, with values such as"
        said = f"{said} {quoted(frame[like].iloc[0])}, say how it is written ({option('time_format')}) or name the"
        log.add("not a time", f"{said} column ({option('time')}).", 1, (like,))
    return TableClock(None, None, (*counting, *clocks))


def _is_like_time(frame: pd.DataFrame, name: str) -> bool:
    """Return whether a column may be a time that is not known: different texts of few shapes, in some order.

    Or a first column of numbers that rise in even steps, other than those that number the rows.
    """
    column = frame[name].dropna()
    if len(column) < max(_FEWEST_ROWS, 0.9 * len(frame)):
        return False
    if column.dtype.kind in "iuf":
        steps = np.diff(column.to_numpy(dtype=np.float64))
        even = bool((steps > 0).all()) and bool(np.ptp(steps) <= 0.02 * np.abs(steps).max())
        return name == frame.columns[0] and even and steps[0] != 1
    if pd.api.types.infer_dtype(column) != "string" or column.nunique() < 0.9 * len(column):
        return False
    texts = column.astype(str)
    digits = texts.str.count(r"\d")
    if (digits < _FEWEST_DIGITS).any() or texts.str.replace(r"\d+", "0", regex=True).nunique() > _MOST_SHAPES:
        return False
    return bool((texts.to_numpy()[1:] >= texts.to_numpy()[:-1]).mean() > _NEARLY_ALL)


def _counts_up(column: pd.Series[Any]) -> bool:
    if column.dtype.kind not in "iuf" or len(column) < 3:
        return False
    numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
    return bool((numbers[1:] > numbers[:-1]).all())


@lru_cache(maxsize=_MOST_NAMES)
def plain_name(name: str) -> str:
    """Return a name without case, unit and punctuation.

    >>> plain_name("Time_Stamp [UTC]"), plain_name("Datum/Uhrzeit")
    ('time stamp', 'datum uhrzeit')
    """
    without_unit = re.sub(r"[(\[][^()\[\]]*[)\]]", " ", name.casefold())
    return " ".join(re.sub(r"[_\-/.,:&]+", " ", without_unit).split())


def is_time_name(name: str) -> bool:
    return _time_name(name) in _TIME_NAMES


def _time_name(name: str) -> str:
    """Return the plain name of a time without its unit: "time ms" is "time"."""
    return re.sub(r"(?<=.) (?:s|ms|us|ns|utc|gmt|local|unix|epoch)$", "", plain_name(name))


def _named_like_time(names: Iterable[str]) -> list[str]:
    """Return the columns with the name of a time, the most specific first."""
    known = [name for name in names if is_time_name(name)]
    return sorted(known, key=lambda name: _TIME_NAMES.index(_time_name(name)))


def _date_and_clock(names: Iterable[str]) -> tuple[str, str] | None:
    plain: dict[str, str] = {}
    for name in names:
        plain.setdefault(plain_name(name), name)
    dates = [plain[name] for name in _DATE_NAMES if name in plain]
    clocks = [plain[name] for name in (*_CLOCK_NAMES, *_HOUR_NAMES) if name in plain]
    return (dates[0], clocks[0]) if dates and clocks else None


def _date_beside_clock(frame: pd.DataFrame, names: list[str]) -> tuple[str, str] | None:
    """Return a column of dates and the one after it, of times of day, whatever they are called."""
    for date, clock in pairwise(names[:_MOST_BEFORE]):
        if frame[date].dtype.kind in "iufbcmM" or not seems_clock_alone(frame[clock]) or not seems_time(frame[date]):
            continue
        written = as_texts(frame[clock].iloc[:_SAMPLE])
        if not any(re.fullmatch(r"\d+\.\d+", text.strip()) for text in written):  # 10.30 may be a number
            times = column_times(frame[date].dropna().iloc[:_SAMPLE], TimeOptions()).times
            if times is not None and (times[~np.isnat(times)] == times[~np.isnat(times)].astype("M8[D]")).all():
                return date, clock
    return None


def _parts_of_times(frame: pd.DataFrame, names: Iterable[str]) -> dict[str, str]:
    """Return the columns of whole numbers that are year, month, day, hour and so on; none without a whole date."""
    kinds = _kinds(frame)
    plain = {plain_name(name): name for name in names if kinds[name] in "iuf"}
    found = {part: plain[word] for part, words in _PARTS.items() for word in words if word in plain}
    if "hour" in found:
        found.pop("hhmm", None)
    if "doy" in found:
        found.pop("month", None)
        found.pop("day", None)
    if "year" not in found or ("doy" not in found and not {"month", "day"} <= found.keys()):
        return {}
    return found if _are_within_limits(frame, found) else {}


def seems_time(column: pd.Series[Any], form: str | None = None) -> bool:
    sample = column.dropna().iloc[:_SAMPLE]
    return len(sample) > 0 and column_times(sample, TimeOptions(format=form)).share >= 0.9


def seems_dated(frame: pd.DataFrame) -> bool:
    """Return whether the first rows of a table have a time with a date."""
    return find_clock(frame.iloc[:_SAMPLE], TimeOptions(), (), ReadLog("")).times is not None


def seems_clock_alone(column: pd.Series[Any], *, beside_date: bool = False) -> bool:
    """Return whether the first values are times of day; beside a date, also those written without signs, as 93000."""
    if column.dtype.kind in "iufbcmM" and not beside_date:
        return False
    sample = column.dropna().iloc[:_SAMPLE]
    if len(sample) and sample.dtype.kind in "iuf" and beside_date:
        numbers = column.dropna().to_numpy(dtype=np.float64)
        fits = (numbers >= 0) & (numbers <= 240_000) & (numbers == np.floor(numbers)) & (numbers % 100 < 60)
        return bool(fits.all()) and (numbers.max() <= 2400 or bool((numbers // 100 % 100 < 60).all()))
    if not len(sample) or sample.dtype.kind in "iufbcmM":
        return False
    return sum(map(is_clock_alone, as_texts(sample))) >= 0.9 * len(sample)


def _first_unread(column: pd.Series[Any], read: ColumnTimes) -> str:
    unread = column.notna().to_numpy()
    if read.times is not None:
        unread = unread & np.isnat(read.times)
    row = int(np.argmax(unread))
    return f"row {row:,} (counted from 0) holds {quoted(column.iloc[row])}" if unread.any() else "it is empty"
