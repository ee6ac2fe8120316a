"""Flagged rows → events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from penstock._types import FloatArray, IndexArray
from penstock.events._clock import Clock, Length, checked_arrays, checked_length, clock_of


@dataclass(frozen=True, eq=False)
class Events:
    """Flagged rows that belong together.

    table : one row per event, numbered from 1 in order of the rows: start, end, duration (from the first to the last
        flagged row; without time, the number of rows spanned), rows (flagged ones), peak (when the score was highest),
        peak_row, peak_score, mean_score (of the flagged rows), severity (peak score / threshold, NaN without a positive
        threshold), rank (1 for the highest peak score; of equal ones the earlier first).
    of_row : the event of each row, 0 for rows that are not flagged.
    first_rows, last_rows : where each event starts and ends in the table.
    gap : as used, a duration or a number of rows.
    """

    table: pd.DataFrame
    of_row: IndexArray
    first_rows: IndexArray
    last_rows: IndexArray
    gap: Length

    def __len__(self) -> int:
        return len(self.table)

    def rows_of(self, event: int) -> IndexArray:
        """The positions of the flagged rows of an event."""
        span = self.span_of(event)
        return np.asarray(span.start + np.flatnonzero(self.of_row[span] == event))

    def span_of(self, event: int) -> slice:
        """All rows from the first flagged one of an event to the last."""
        if not 1 <= event <= len(self):
            raise ValueError(f"There is no event {event}; they are numbered from 1 to {len(self)}.")
        return slice(int(self.first_rows[event - 1]), int(self.last_rows[event - 1]) + 1)


def group_events(
    flags: ArrayLike,
    scores: ArrayLike,
    time: pd.DatetimeIndex | None,
    *,
    gap: Length | None = None,
    threshold: float | None = None,
    groups: ArrayLike | None = None,
) -> Events:
    """Join flagged rows that are at most `gap` apart.

    Parameters
    ----------
    flags, scores : one a row
        The score of a flagged row must be a number; that of another may be NaN.
    time : DatetimeIndex or None
        In ascending order; stamps may be equal. None: the positions of the rows count.
    gap : Timedelta, int (rows) or None
        None: six times the median step in time (of steps that are not 0), or six rows without time.
    threshold : float, optional
        What the scores were compared with, for the severity.
    groups : one a row, optional
        Which run, unit or machine a row is of. Rows of a group are together; `time` ascends within each, and no event
        spans two.

    Examples
    --------
    >>> time = pd.date_range("2024-05-01", periods=9, freq="10min")
    >>> flags = [False, True, True, False, True, False, False, False, True]
    >>> scores = [0.1, 2.0, 3.0, 0.9, 1.5, 0.2, float("nan"), 0.3, 6.0]
    >>> events = group_events(flags, scores, time, gap=pd.Timedelta("20min"), threshold=1.0)
    >>> events.table[["start", "rows", "peak_score", "severity", "rank"]]
                        start  rows  peak_score  severity  rank
    event
    1     2024-05-01 00:10:00     3         3.0       3.0     2
    2     2024-05-01 01:20:00     1         6.0       6.0     1
    >>> events.of_row.tolist(), events.rows_of(1).tolist(), events.span_of(1)
    ([0, 1, 1, 0, 1, 0, 0, 0, 2], [1, 2, 4], slice(1, 5, None))
    """
    (flagged, values), n = checked_arrays(flags=flags, scores=scores)
    wrong = np.flatnonzero(flagged & np.isnan(values))
    if len(wrong):
        raise ValueError(f"Row {wrong[0]} is flagged, but its score is NaN.")
    clock = clock_of(time, n, groups)
    length = checked_length(gap, clock.usual_length() if gap is None else 0, clock, "gap")
    rows = np.flatnonzero(flagged)
    starts = np.concatenate([np.zeros(min(len(rows), 1), np.intp), 1 + np.flatnonzero(clock.steps_above(rows, length))])
    counts = np.diff(starts, append=len(rows))
    of_row = np.zeros(n, dtype=np.intp)
    of_row[rows] = np.repeat(np.arange(1, len(starts) + 1), counts)
    first, last = rows[starts], rows[starts + counts - 1]
    columns: dict[str, Any] = {
        "start": clock.stamps(first),
        "end": clock.stamps(last),
        "duration": clock.between(first, last),
        "rows": counts.astype(np.int64),
        **_figures(values[rows], rows, starts, counts, clock, threshold),
    }
    numbers = pd.RangeIndex(1, len(starts) + 1, name="event")
    return Events(pd.DataFrame(columns, index=numbers), of_row, first, last, length)


def _figures(
    scores: FloatArray, rows: IndexArray, starts: IndexArray, counts: IndexArray, clock: Clock, threshold: float | None
) -> dict[str, Any]:
    """What the scores of the flagged rows say of each event."""
    highest = np.maximum.reduceat(scores, starts)
    peaks = rows[_first_of_each(scores == np.repeat(highest, counts), np.repeat(np.arange(len(starts)), counts))]
    ranks = np.empty(len(starts), dtype=np.int64)
    ranks[np.argsort(-highest, kind="stable")] = np.arange(1, len(starts) + 1)
    usable = threshold is not None and 0 < threshold < np.inf
    with np.errstate(over="ignore", invalid="ignore"):  # a mean of ∞ and −∞ is NaN
        means = np.add.reduceat(scores / np.repeat(counts, counts), starts)
        severity = highest / (threshold if usable else np.nan)
    return {
        "peak": clock.stamps(peaks),
        "peak_row": peaks.astype(np.int64),
        "peak_score": highest,
        "mean_score": means,
        "severity": severity,
        "rank": ranks,
    }


def _first_of_each(mask: NDArray[np.bool_], groups: IndexArray) -> IndexArray:
    """Where a condition first holds in each group; groups are in ascending order, and it holds somewhere in each."""
    where = np.flatnonzero(mask)
    return where[np.diff(groups[where], prepend=-1) > 0]
