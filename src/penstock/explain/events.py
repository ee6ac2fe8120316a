"""Flagged rows → events, and the calendar days that they fall on.

Flags, scores and times come in, `Events` go out. Times are those of a table that was read: within 1900 to 2200.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from penstock._types import BoolArray, FloatArray, IndexArray

Length = pd.Timedelta | int  # of time, or a number of rows

_LONGEST = 2**63 - 1
USUAL_STEPS = 6


@dataclass(frozen=True, eq=False)
class EventClock:
    """Where n rows are in time, or in the table if `time` is None."""

    n: int
    time: pd.DatetimeIndex | None
    starts: IndexArray  # where each group of rows begins; nothing is joined across

    def stamps(self, rows: IndexArray) -> Any:
        """Return the time stamps of some rows, or the rows themselves."""
        return rows.astype(np.int64) if self.time is None else self.time[rows]

    def between(self, first: IndexArray, last: IndexArray) -> Any:
        """Return how far it is from each row to another: a duration, or the number of rows with both ends."""
        return (last - first + 1).astype(np.int64) if self.time is None else self.time[last] - self.time[first]

    def ticks(self, length: Length) -> NDArray[np.int64]:
        """Return positions of all rows, in the units in which `width` measures this length: nanoseconds or rows."""
        if self.time is None or not isinstance(length, pd.Timedelta):
            return np.arange(self.n, dtype=np.int64)
        return np.asarray(self.time.as_unit("ns").asi8, dtype=np.int64)

    def width(self, length: Length) -> int:
        if isinstance(length, pd.Timedelta):
            return min(round(length.total_seconds() * 1e9), _LONGEST)
        return int(length)

    def steps_above(self, rows: IndexArray, length: Length) -> BoolArray:
        """Return whether each of these rows (ascending) but the first is farther than a length from the one before."""
        apart = np.diff(self.ticks(length)[rows].view(np.uint64))  # unsigned: 300 years of nanoseconds do not overflow
        return np.asarray((apart > np.uint64(self.width(length))) | (np.diff(self.group_of(rows)) != 0))

    def group_of(self, rows: IndexArray) -> IndexArray:
        """Return the number of the group of each of these rows."""
        return np.searchsorted(self.starts, rows, side="right")

    def first_from(self, ticks: NDArray[np.int64], wanted: NDArray[np.int64], rows: IndexArray) -> IndexArray:
        """Return for each of some rows the first row of its group whose tick is not before a wanted one."""
        found = np.zeros(len(rows), dtype=np.intp)
        groups = self.group_of(rows)
        for group in np.unique(groups):
            start, stop = np.append(self.starts, self.n)[group - 1 : group + 1]
            mine = groups == group
            found[mine] = start + np.searchsorted(ticks[start:stop], wanted[mine], side="left")
        return found

    def usual_length(self) -> Length:
        """Return six times the median of the steps that are not 0, within groups; without time, six rows."""
        if self.time is None:
            return USUAL_STEPS
        steps = np.diff(self.time.as_unit("ns").asi8)
        steps[self.starts[1:] - 1] = 0
        steps = steps[steps > 0]
        return pd.Timedelta(round(USUAL_STEPS * float(np.median(steps))) if len(steps) else 0, "ns")


def clock_of(time: pd.DatetimeIndex | None, n: int, groups: ArrayLike | None = None) -> EventClock:
    """Return a clock for n rows; raise unless there is one time stamp for each, in ascending order (in each group)."""
    if time is not None and len(time) != n:
        raise ValueError(f"There are {len(time):,} time stamps for {n:,} rows.")
    starts = np.zeros(min(n, 1), dtype=np.intp)
    if groups is not None:
        codes, names = pd.factorize(np.asarray(groups))
        starts = np.flatnonzero(np.diff(codes, prepend=-1))
        if len(codes) != n or len(starts) != len(names):
            raise ValueError(f"There must be a group for each of {n:,} rows, and rows of a group must be together.")
    if time is not None:
        falls = 1 + np.flatnonzero(time.asi8[1:] < time.asi8[:-1])
        if time.hasnans or not np.isin(falls, starts).all():
            raise ValueError("The time stamps must be in ascending order, without missing ones.")
    return EventClock(n, time, starts)


def _checked_gap(gap: Length | None, clock: EventClock) -> Length:
    """Return the gap given or the usual one; raise if it is negative, or a duration where there is no time."""
    if gap is None:
        return clock.usual_length()
    if isinstance(gap, pd.Timedelta):
        if clock.time is None:
            raise ValueError(f"gap is a duration, {gap}, but there is no time. Give a number of rows.")
    elif isinstance(gap, bool) or not isinstance(gap, int | np.integer):
        raise ValueError(f"gap must be a pandas Timedelta or a whole number of rows; got {gap!r}.")
    if clock.width(gap) < 0:
        raise ValueError(f"gap must not be negative; got {gap}.")
    return gap if isinstance(gap, pd.Timedelta) else int(gap)


@dataclass(frozen=True, eq=False)
class Events:
    """Flagged rows that belong together.

    table : a row per event, numbered from 1 in order of the rows: start, end, duration (from the first to the last
        flagged row; without time, the number of rows spanned), rows (flagged ones), peak (when the score was highest),
        peak_row, peak_score, mean_score (of the flagged rows), rank (1 for the highest peak score; of equal ones the
        earlier first).
    """

    table: pd.DataFrame
    of_row: IndexArray  # the event of each row, 0 for rows that are not flagged
    first_rows: IndexArray  # where each event starts in the table
    last_rows: IndexArray  # where it ends
    gap: Length  # as used

    def __len__(self) -> int:
        return len(self.table)

    def rows_of(self, event: int) -> IndexArray:
        """Return the positions of the flagged rows of an event."""
        span = self.span_of(event)
        return np.asarray(span.start + np.flatnonzero(self.of_row[span] == event))

    def span_of(self, event: int) -> slice:
        """Return all rows from the first flagged one of an event to the last."""
        return slice(int(self.first_rows[event - 1]), int(self.last_rows[event - 1]) + 1)


def group_events(
    flags: ArrayLike,
    scores: ArrayLike,
    time: pd.DatetimeIndex | None,
    *,
    gap: Length | None = None,
    groups: ArrayLike | None = None,
) -> Events:
    """Join flagged rows that are at most `gap` apart.

    flags, scores : the score of a flagged row must be a number; that of another may be NaN.
    time : in ascending order; stamps may be equal. None: the positions of the rows count.
    gap : None: six times the median step in time (of steps that are not 0), or six rows without time.
    groups : which run, unit or machine a row is of. Rows of a group are together; `time` ascends within each, and no
        event spans two.
    """
    values = np.asarray(scores, dtype=np.float64)
    clock = clock_of(time, len(values), groups)
    length = _checked_gap(gap, clock)
    rows = np.flatnonzero(flags)
    starts = np.concatenate([np.zeros(min(len(rows), 1), np.intp), 1 + np.flatnonzero(clock.steps_above(rows, length))])
    counts = np.diff(starts, append=len(rows))
    of_row = np.zeros(len(values), dtype=np.intp)
    of_row[rows] = np.repeat(np.arange(1, len(starts) + 1), counts)
    first, last = rows[starts], rows[starts + counts - 1]
    columns: dict[str, Any] = {
        "start": clock.stamps(first),
        "end": clock.stamps(last),
        "duration": clock.between(first, last),
        "rows": counts.astype(np.int64),
        **_figures(values[rows], rows, starts, counts, clock),
    }
    numbers = pd.RangeIndex(1, len(starts) + 1, name="event")
    return Events(pd.DataFrame(columns, index=numbers), of_row, first, last, length)


def _figures(
    scores: FloatArray, rows: IndexArray, starts: IndexArray, counts: IndexArray, clock: EventClock
) -> dict[str, Any]:
    """Return what the scores of the flagged rows say of each event."""
    highest = np.maximum.reduceat(scores, starts)
    at_peak = np.flatnonzero(scores == np.repeat(highest, counts))
    event_of = np.repeat(np.arange(len(starts)), counts)[at_peak]
    peaks = rows[at_peak[np.diff(event_of, prepend=-1) > 0]]  # of each event the first
    ranks = np.empty(len(starts), dtype=np.int64)
    ranks[np.argsort(-highest, kind="stable")] = np.arange(1, len(starts) + 1)
    with np.errstate(over="ignore", invalid="ignore"):  # a mean of ∞ and −∞ is NaN
        means = np.add.reduceat(scores / np.repeat(counts, counts), starts)
    return {
        "peak": clock.stamps(peaks),
        "peak_row": peaks.astype(np.int64),
        "peak_score": highest,
        "mean_score": means,
        "rank": ranks,
    }


def event_days(flags: ArrayLike, scores: ArrayLike, time: pd.DatetimeIndex | None, of_row: IndexArray) -> pd.DataFrame:
    """Return one row for each calendar day with a flagged row, in order.

    The days are those of the time stamps' own zone, and are midnights without a zone; none without time. Columns: rows
    (flagged ones), events (how many different), highest (score), first and last (time of a flagged row).
    """
    if time is None:
        return pd.DataFrame(columns=["rows", "events", "highest", "first", "last"], index=pd.Index([], name="day"))
    flagged = np.asarray(flags, dtype=np.bool_)
    stamps = time[flagged]
    rows = pd.DataFrame(
        {
            "day": stamps.tz_localize(None).normalize(),
            "event": np.asarray(of_row)[flagged],
            "score": np.asarray(scores, dtype=np.float64)[flagged],
            "stamp": stamps,
        }
    )
    days = rows.groupby("day", sort=True)
    return pd.DataFrame(
        {
            "rows": days.size(),
            "events": days["event"].nunique(),
            "highest": days["score"].max(),
            "first": days["stamp"].min(),
            "last": days["stamp"].max(),
        }
    )
