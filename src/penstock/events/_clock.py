"""Rows on a clock: whole ticks of the time stamps, or the positions of the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from penstock._types import IndexArray

Length = pd.Timedelta | int  # of time, or a number of rows

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_LONGEST = 2**63 - 1
USUAL_STEPS = 6


@dataclass(frozen=True, eq=False)
class Clock:
    """Where n rows are in time, or in the table if `time` is None."""

    n: int
    time: pd.DatetimeIndex | None

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
        return np.asarray(apart > np.uint64(self.width(length)))

    def usual_length(self) -> Length:
        """Six times the median of the steps that are not 0; without time, six rows."""
        if self.time is None:
            return USUAL_STEPS
        steps = np.diff(self.time.asi8.view(np.uint64))
        steps = steps[steps > 0]
        if not len(steps):
            return pd.Timedelta(0)
        middle = [(len(steps) - 1) // 2, len(steps) // 2]
        two = np.partition(steps, middle)[middle]
        ticks = USUAL_STEPS // 2 * sum(map(int, two))
        return pd.Timedelta(np.timedelta64(min(ticks, _LONGEST), self.time.unit))


def clock_of(time: pd.DatetimeIndex | None, n: int) -> Clock:
    """A clock for n rows; raise unless there is one time stamp for each, in ascending order."""
    if time is not None and len(time) != n:
        raise ValueError(f"There are {len(time):,} time stamps for {n:,} rows.")
    if time is not None and (time.hasnans or not time.is_monotonic_increasing):
        raise ValueError("The time stamps must be in ascending order, without missing ones.")
    return Clock(n, time)


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
