"""Runs of missing and of equal values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from penstock._types import FloatArray

_USUAL_SHARE = 0.95  # of the values outside the longest run are in runs that count as usual
_FARTHER = 10  # times the usual run
_SHORTEST = 20  # rows that are worth a remark
_FEWEST_LEVELS = 20  # different values: a set point has fewer, and may stay where it is
_SELDOM = 0.02  # share of the other values
_FEWEST_RUNS = 10  # a history to compare with
_SELDOM_CHANGED = 0.05  # of its steps: a setting has fewer changes
_MOVING = 0.5  # of the steps apart from its usual values are changes, and of all changes are there: a reading


@dataclass(frozen=True)
class Stretch:
    """Some rows in a row: where they start, and how many they are."""

    start: int
    length: int


def longest_true(mask: NDArray[np.bool_]) -> Stretch:
    """The longest stretch in which a condition holds.

    >>> longest_true(np.array([True, False, True, True, False]))
    Stretch(start=2, length=2)
    """
    if not mask.any():
        return Stretch(0, 0)
    edges = np.flatnonzero(np.diff(mask.astype(np.int8), prepend=0, append=0))
    starts, stops = edges[::2], edges[1::2]
    longest = int(np.argmax(stops - starts))
    return Stretch(int(starts[longest]), int(stops[longest] - starts[longest]))


@dataclass(frozen=True)
class EqualRuns:
    """The longest run of equal values (among those present), the length usual for the others, and how many runs.

    elsewhere : the share of the other values that are equal to those of the longest run.
    """

    longest: Stretch
    usual: int
    count: int
    elsewhere: float

    def stood_still(self, n_distinct: int) -> bool:
        """Whether the longest run stands out from the column's own history.

        A level that it often has, such as no flow while the pump is off, is no standstill, nor is a set point's.
        """
        has_history = self.count > _FEWEST_RUNS and n_distinct >= _FEWEST_LEVELS
        stands_out = self.longest.length >= max(_SHORTEST, _FARTHER * self.usual)
        return has_history and stands_out and self.elsewhere <= _SELDOM


def equal_runs(values: FloatArray) -> EqualRuns:
    """Runs of equal values.

    >>> runs = equal_runs(np.array([1.0, 2.0, 2.0, 2.0, 3.0, 4.0, 4.0]))
    >>> runs.longest, runs.usual, runs.count
    (Stretch(start=1, length=3), 2, 4)
    """
    last = np.append(np.flatnonzero(values[1:] != values[:-1]), len(values) - 1)
    lengths = np.diff(last, prepend=-1)
    longest = int(np.argmax(lengths))
    stretch = Stretch(int(last[longest] - lengths[longest] + 1), int(lengths[longest]))
    rows_by_length = np.bincount(lengths) * np.arange(stretch.length + 1)
    rows_by_length[-1] -= stretch.length
    up_to = np.cumsum(rows_by_length)
    usual = int(np.searchsorted(up_to, _USUAL_SHARE * up_to[-1])) if up_to[-1] else 0
    others = len(values) - stretch.length
    equal = int(np.count_nonzero(values == values[stretch.start])) - stretch.length
    return EqualRuns(stretch, usual, len(lengths), equal / others if others else 0.0)


def is_setting(values: FloatArray) -> bool:
    """Whether values change seldom, and rather by going from one usual value to another than by moving apart from them.

    Usual are the most frequent values that make up 95 % of all. A reading that is mostly 0 changes while it is not.

    >>> limit, leak = np.repeat([5.0, 7.0, 5.0], 100), np.zeros(300)
    >>> leak[150:160] = np.arange(1, 11)
    >>> is_setting(limit), is_setting(leak), is_setting(np.full(300, 5.0))
    (True, False, False)
    """
    changed = values[1:] != values[:-1]
    n_changes = np.count_nonzero(changed)
    if not 0 < n_changes < _SELDOM_CHANGED * len(changed):
        return False
    levels, counts = np.unique(values, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    usual = levels[order[: 1 + np.searchsorted(np.cumsum(counts[order]), _USUAL_SHARE * len(values))]]
    apart = ~np.isin(values, usual)
    steps = apart[1:] | apart[:-1]
    moves = np.count_nonzero(changed & steps)
    return bool(moves < _MOVING * n_changes or moves < _MOVING * np.count_nonzero(steps))


def time_across(time: pd.DatetimeIndex | None, stretch: Stretch) -> pd.Timedelta | None:
    """The time from the row before a stretch to the row after it, or to the ends of the table."""
    if time is None or not stretch.length:
        return None
    before = max(stretch.start - 1, 0)
    after = min(stretch.start + stretch.length, len(time) - 1)
    across: Any = time[after] - time[before]
    return pd.Timedelta(across)
