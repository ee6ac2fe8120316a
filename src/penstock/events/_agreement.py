"""What was flagged against what is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from penstock._types import FloatArray, IndexArray
from penstock.events._clock import Clock, Length, checked_arrays, checked_length, clock_of
from penstock.ranking import precision_at_n

_HORIZON = pd.Timedelta(hours=24)
_EARLIEST = -(2**63)


@dataclass(frozen=True, eq=False)
class Agreement:
    """How scores and flags agree with known faults.

    n_known, n_judged : rows of known faults, and rows with a score.
    n_ranked, precision_at_n : the share of known rows among the N highest scores, where N is the number of known rows
        that have a score. NaN if all of those with a score are known, or none.
    faults : one row per known fault, numbered from 1: start, end, rows, flagged (rows flagged inside), first_alarm (the
        first flagged row from `horizon` before the start to the end, but after the previous fault), lead (from the
        first alarm to the start: positive if it came before), found, judged (whether any row inside has a score: else
        nobody could find it). Without time, start, end, first_alarm and lead count rows.
    horizon : as used.
    first_rows : where each fault starts in the table.
    """

    n_known: int
    n_judged: int
    n_ranked: int
    precision_at_n: float
    faults: pd.DataFrame
    horizon: Length
    first_rows: IndexArray

    @property
    def n_inside(self) -> int:
        """Of the judged faults, those with a flagged row inside; the other found ones had an earlier alarm alone."""
        return int((self.faults["judged"] & (self.faults["flagged"] > 0)).sum())

    @property
    def n_found(self) -> int:
        """How many of the judged faults had an alarm."""
        return int((self.faults["found"] & self.faults["judged"]).sum())

    @property
    def n_judged_faults(self) -> int:
        """How many faults have a row with a score, so that they could be found."""
        return int(self.faults["judged"].sum())


def agreement(
    known: ArrayLike,
    flags: ArrayLike,
    scores: ArrayLike,
    time: pd.DatetimeIndex | None,
    *,
    horizon: Length | None = None,
    gap: Length | None = None,
    groups: ArrayLike | None = None,
) -> Agreement:
    """Compare flags and scores with known faults.

    Parameters
    ----------
    known, flags, scores : one a row
        A score may be NaN: the row is not judged then.
    time : DatetimeIndex or None
        In ascending order; None: the positions of the rows count.
    horizon : Timedelta, int (rows) or None
        How long before a fault an alarm counts as a warning. None: 24 hours; without time, 0 rows.
    gap : Timedelta, int (rows) or None
        Known rows in a row are one fault, unless they are farther than this apart. None: as in `group_events`; with
        groups they are one fault however far apart, as a run has holes but is one.
    groups : one a row, optional
        As in `group_events`: no fault spans two, nor does an alarm in one count for a fault in another.

    Examples
    --------
    >>> time = pd.date_range("2024-05-01", periods=8, freq="h")
    >>> known = [False, False, False, True, True, False, False, True]
    >>> flags = [False, True, False, False, True, False, False, False]
    >>> found = agreement(known, flags, [1.0, 7.0, 1.0, 2.0, 8.0, 1.0, 1.0, 6.0], time)
    >>> found.faults[["rows", "flagged", "lead", "found"]]
           rows  flagged            lead  found
    fault
    1         2        1 0 days 02:00:00   True
    2         1        0             NaT  False
    >>> found.n_known, round(found.precision_at_n, 3)
    (3, 0.667)
    """
    (truth, flagged, values), n = checked_arrays(known=known, flags=flags, scores=scores)
    clock = clock_of(time, n, groups)
    before = checked_length(horizon, 0 if time is None else _HORIZON, clock, "horizon")
    usual = n if groups is not None else clock.usual_length() if gap is None else 0
    apart = checked_length(gap, usual, clock, "gap")
    first, last = _stretches(truth, clock, apart)
    judged = ~np.isnan(values)
    faults = _faults(first, last, flagged, _windows(first, last, clock, before), clock)
    until = np.append(0, np.cumsum(judged))
    faults["judged"] = until[last + 1] > until[first]
    precision = _precision(truth[judged], values[judged])
    return Agreement(int(truth.sum()), int(judged.sum()), int(truth[judged].sum()), precision, faults, before, first)


def _precision(truth: NDArray[np.bool_], scores: FloatArray) -> float:
    return precision_at_n(truth, scores) if 0 < int(truth.sum()) < len(truth) else float("nan")


def _stretches(truth: NDArray[np.bool_], clock: Clock, gap: Length) -> tuple[IndexArray, IndexArray]:
    """The first and last row of each fault: known rows that follow each other at most `gap` apart."""
    rows = np.flatnonzero(truth)
    parted = (np.diff(rows) > 1) | clock.steps_above(rows, gap)
    ends = np.flatnonzero(parted)
    if not len(rows):
        return rows, rows
    return rows[np.append(0, ends + 1)], rows[np.append(ends, len(rows) - 1)]


def _windows(first: IndexArray, last: IndexArray, clock: Clock, horizon: Length) -> IndexArray:
    """The first row at which an alarm counts for each fault."""
    ticks, width = clock.ticks(horizon), clock.width(horizon)
    starts = ticks[first]
    opening = np.where(starts < _EARLIEST + width, _EARLIEST, starts - width)  # never below what int64 holds
    after_previous = np.append(0, last[:-1] + 1)[: len(first)]
    return np.asarray(np.maximum(clock.first_from(ticks, opening, first), after_previous))


def _faults(
    first: IndexArray, last: IndexArray, flagged: NDArray[np.bool_], opening: IndexArray, clock: Clock
) -> pd.DataFrame:
    alarms = np.append(np.flatnonzero(flagged), len(flagged))
    alarm = alarms[np.searchsorted(alarms, opening)]  # the next alarm from each opening on
    found = alarm <= last
    until = np.append(0, np.cumsum(flagged))
    columns: dict[str, Any] = {
        "start": clock.stamps(first),
        "end": clock.stamps(last),
        "rows": (last - first + 1).astype(np.int64),
        "flagged": until[last + 1] - until[first],
    }
    numbers = pd.RangeIndex(1, len(first) + 1, name="fault")
    table = pd.DataFrame(columns, index=numbers)
    nearest = np.where(found, alarm, first)  # any row will do where there is no alarm
    lead: Any = first - nearest if clock.time is None else clock.time[first] - clock.time[nearest]
    kind = "Int64" if clock.time is None else None  # whole numbers that may be missing
    for name, values in (("first_alarm", clock.stamps(nearest)), ("lead", lead)):
        table[name] = pd.Series(values, index=numbers, dtype=kind).where(found)
    return table.assign(found=found)
