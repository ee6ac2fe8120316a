"""Flagged rows by calendar day."""

from __future__ import annotations

import pandas as pd
from numpy.typing import ArrayLike

from penstock._types import IndexArray
from penstock.events._clock import checked_arrays


def event_days(flags: ArrayLike, scores: ArrayLike, time: pd.DatetimeIndex | None, of_row: IndexArray) -> pd.DataFrame:
    """One row for each calendar day with a flagged row, in order.

    The days are those of the time stamps' own zone, and are midnights without a zone. Columns: rows (flagged ones),
    events (how many different), highest (score), first and last (time of a flagged row).

    >>> time = pd.DatetimeIndex(["2024-05-01 09:00", "2024-05-01 23:50", "2024-05-02 00:00", "2024-05-04 12:00"])
    >>> event_days([True] * 4, [1.0, 5.0, 3.0, 2.0], time, [1, 2, 2, 3])[["rows", "events", "highest"]]
                rows  events  highest
    day
    2024-05-01     2       2      5.0
    2024-05-02     1       1      3.0
    2024-05-04     1       1      2.0
    """
    (flagged, values), n = checked_arrays(flags=flags, scores=scores)
    if time is None:
        raise ValueError("There is no time, and without it there are no days.")
    if len(time) != n:
        raise ValueError(f"There are {len(time):,} time stamps for {n:,} rows.")
    stamps = time[flagged]
    rows = pd.DataFrame(
        {
            "day": stamps.tz_localize(None).normalize(),
            "event": pd.Series(of_row).to_numpy()[flagged],
            "score": values[flagged],
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
