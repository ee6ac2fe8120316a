"""The values of a column, whatever they are, as times."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from penstock._messages import counted, quoted
from penstock.io._notes import Notebook
from penstock.io._numeric_times import read_numeric_times
from penstock.io._time_formats import is_clock_alone
from penstock.io._time_texts import NAIVE, TextTimes, read_times
from penstock.io._time_tokens import IntArray, group_alike
from penstock.io._zones import in_zone, with_zone

_SAMPLE = 100


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
    groups = list(group_alike(_as_texts(sample)))
    return sum(len(alike.rows) for alike in groups if is_clock_alone(alike.skeleton)) >= 0.9 * len(sample)


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
