"""Which column is the time, and its stamps."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from penstock._messages import in_columns, listed, quoted
from penstock.io._column_times import (
    ColumnTimes,
    column_times,
    first_unread,
    paired_times,
    seems_clock_alone,
    seems_time,
)
from penstock.io._errors import TableError
from penstock.io._notes import Notebook
from penstock.io._time_names import columns_named_like_time, date_and_clock

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
    """

    times: pd.DatetimeIndex | None
    name: str | None
    columns: tuple[str, ...]


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
            f"column {quoted(name)} {first_unread(frame[name], read)}. Name the column as time, or mend the format."
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
    return Clock(read.index(options.zone, name, notebook), name, columns)


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
