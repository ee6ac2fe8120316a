"""Rows on a clock: whole ticks of the time stamps, or the positions of the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from penstock._types import IndexArray

Length = pd.Timedelta | int  # of time, or a number of rows

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_LONGEST = 2**63 - 1
USUAL_STEPS = 6


@dataclass(frozen=True, eq=False)
class Clock:
    """Where n rows are in time, or in the table if `time` is None.

    starts : where each group of rows begins; nothing is joined across.
    """

    n: int
    time: pd.DatetimeIndex | None
    starts: IndexArray

    def stamps(self, rows: IndexArray) -> Any:
        """The time stamps of some rows, or the rows themselves."""
        return rows.astype(np.int64) if self.time is None else self.time[rows]

    def between(self, first: IndexArray, last: IndexArray) -> Any:
        """From one row to another each: a duration, or the number of rows with both ends."""
        return (last - first + 1).astype(np.int64) if self.time is None else self.time[last] - self.time[first]

    def ticks(self, length: Length) -> NDArray[np.int64]:
        """Positions of all rows, in the units in which `width` measures this length."""
        if self.time is None or not isinstance(length, pd.Timedelta):
            return np.arange(self.n, dtype=np.int64)
        return np.asarray(self.time.asi8, dtype=np.int64)

    def width(self, length: Length) -> int:
        """A length in whole ticks."""
        if self.time is None or not isinstance(length, pd.Timedelta):
            return int(length)  # type: ignore[arg-type]
        unit, count = np.datetime_data(length.to_timedelta64().dtype)
        value = int(length.to_timedelta64().astype(np.int64)) * count
        return min(value * _PER_SECOND[self.time.unit] // _PER_SECOND[unit], _LONGEST)

    def steps_above(self, rows: IndexArray, length: Length) -> NDArray[np.bool_]:
        """Whether each of these rows (in ascending order), but the first, is farther than a length from the one before.

        Differences are unsigned, so that even the first and the last stamp that there are do not overflow.
        """
        apart = np.diff(self.ticks(length)[rows].view(np.uint64))
        return np.asarray((apart > np.uint64(self.width(length))) | (np.diff(self.group_of(rows)) != 0))

    def group_of(self, rows: IndexArray) -> IndexArray:
        """The number of the group of each of these rows."""
        return np.searchsorted(self.starts, rows, side="right")

    def first_from(self, ticks: NDArray[np.int64], wanted: NDArray[np.int64], rows: IndexArray) -> IndexArray:
        """Of each of some rows, the first row of its group whose tick is not before a wanted one."""
        found, groups = np.zeros(len(rows), dtype=np.intp), self.group_of(rows)
        for group in np.unique(groups):
            start, stop = np.append(self.starts, self.n)[group - 1 : group + 1]
            mine = groups == group
            found[mine] = start + np.searchsorted(ticks[start:stop], wanted[mine], side="left")
        return found

    def usual_length(self) -> Length:
        """Six times the median of the steps that are not 0, within groups; without time, six rows."""
        if self.time is None:
            return USUAL_STEPS
        steps = np.diff(self.time.asi8.view(np.uint64))
        steps[self.starts[1:] - 1] = 0
        steps = steps[steps > 0]
        if not len(steps):
            return pd.Timedelta(0)
        middle = [(len(steps) - 1) // 2, len(steps) // 2]
        two = np.partition(steps, middle)[middle]
        ticks = USUAL_STEPS // 2 * sum(map(int, two))
        return pd.Timedelta(np.timedelta64(min(ticks, _LONGEST), self.time.unit))


def clock_of(time: pd.DatetimeIndex | None, n: int, groups: ArrayLike | None = None) -> Clock:
    """A clock for n rows; raise unless there is one time stamp for each, in ascending order (in each group)."""
    if time is not None and len(time) != n:
        raise ValueError(f"There are {len(time):,} time stamps for {n:,} rows.")
    starts = _starts(groups, n)
    if time is not None:
        falls = 1 + np.flatnonzero(time.asi8[1:] < time.asi8[:-1])
        if time.hasnans or not np.isin(falls, starts).all():
            raise ValueError("The time stamps must be in ascending order, without missing ones.")
    return Clock(n, time, starts)


def _starts(groups: ArrayLike | None, n: int) -> IndexArray:
    """Where each group begins; raise unless there is a group for each row, and rows of a group are together."""
    if groups is None:
        return np.zeros(min(n, 1), dtype=np.intp)
    codes, names = pd.factorize(np.asarray(groups))
    starts = np.flatnonzero(np.diff(codes, prepend=-1))
    if len(codes) != n or len(starts) != len(names):
        raise ValueError(f"There must be a group for each of {n:,} rows, and rows of a group must be together.")
    return starts


def checked_length(length: Length | None, usual: Length, clock: Clock, name: str) -> Length:
    """The length given or the usual one; raise if it is negative, or a duration where there is no time."""
    if length is None:
        return usual
    if isinstance(length, pd.Timedelta):
        if clock.time is None:
            raise ValueError(f"{name} is a duration, {length}, but there is no time. Give a number of rows.")
    elif isinstance(length, bool) or not isinstance(length, int | np.integer):
        raise ValueError(f"{name} must be a pandas Timedelta or a whole number of rows; got {length!r}.")
    if clock.width(length) < 0:
        raise ValueError(f"{name} must not be negative; got {length}.")
    return length if isinstance(length, pd.Timedelta) else int(length)


def checked_arrays(**arrays: Any) -> tuple[list[NDArray[Any]], int]:
    """Flags (bool) and `scores` (float) as arrays of one length, and that length."""
    kinds = {name: np.float64 if name == "scores" else np.bool_ for name in arrays}
    found = [_as_kind(name, values, kinds[name]) for name, values in arrays.items()]
    if len({array.shape for array in found}) > 1 or found[0].ndim != 1:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in zip(arrays, found, strict=True))
        raise ValueError(f"All must have one length; got {shapes}.")
    return found, len(found[0])


def _as_kind(name: str, values: Any, kind: Any) -> NDArray[Any]:
    array = np.asarray(values)
    if kind is np.bool_ and array.dtype.kind != "b" and not np.isin(array, (0, 1)).all():
        raise ValueError(f"{name} must hold True and False only.")
    return array.astype(kind)
