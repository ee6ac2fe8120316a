"""Findings held against the truth of a simulated plant."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from penstock.simulate.hydropower import SimulatedPlant


def found_events(plant: SimulatedPlant, times: pd.DatetimeIndex) -> pd.DataFrame:
    """How many of these time stamps fall into each event: event, day, kind, is_fault, rows (of it), found.

    >>> from penstock.simulate import simulate_hydropower
    >>> plant = simulate_hydropower()
    >>> found = found_events(plant, plant.table.index[plant.is_anomalous])
    >>> bool((found["found"] == found["rows"])[found["is_fault"]].all()), int(found["found"].sum())
    (True, 227)
    """
    stamps = pd.DatetimeIndex(plant.table.index)
    events = plant.events
    spans = list(_spans(plant))
    return pd.DataFrame(
        {
            "day": events["start"].dt.date,
            "kind": events["kind"],
            "is_fault": events["is_fault"],
            "rows": [_count(stamps, start, end) for start, end in spans],
            "found": [_count(times, start, end) for start, end in spans],
        }
    ).set_axis(pd.Index(events["event"], name="event"))


def found_days(plant: SimulatedPlant, times: pd.DatetimeIndex) -> pd.Series[int]:
    """How many of these time stamps fall on each day of the plant that has an event; an event may last into the next.

    >>> from penstock.simulate import simulate_hydropower
    >>> plant = simulate_hydropower()
    >>> str(found_days(plant, plant.table.index[plant.is_anomalous]).index[0])
    '2015-07-04'
    """
    days = sorted({day.date() for start, end in _spans(plant) for day in pd.date_range(start.normalize(), end)})
    counts = pd.Series(times.date).value_counts()
    return pd.Series([int(counts.get(day, 0)) for day in days], index=pd.Index(days, name="day"))


def _spans(plant: SimulatedPlant) -> Iterable[tuple[pd.Timestamp, pd.Timestamp]]:
    return zip(plant.events["start"], plant.events["end"], strict=True)


def _count(times: pd.DatetimeIndex, start: pd.Timestamp, end: pd.Timestamp) -> int:
    return int(((times >= start) & (times <= end)).sum())
