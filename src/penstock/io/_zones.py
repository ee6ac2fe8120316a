"""Time stamps and their zones: kept where they agree, UTC where they do not, yours where you name one."""

from __future__ import annotations

import datetime as dt
import zoneinfo

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from penstock._messages import counted, quoted
from penstock.io._errors import TableError
from penstock.io._notes import Notebook
from penstock.io._time_texts import NAIVE
from penstock.io._time_tokens import IntArray


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
