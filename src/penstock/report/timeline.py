"""Scores over time with the threshold and the events, and a calendar of the days with findings."""

from __future__ import annotations

import calendar
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from penstock._messages import counted
from penstock._types import IndexArray
from penstock.detection import Findings
from penstock.report.axis import Axis, Packed, finite, pack_numbers, pack_places, thin_out
from penstock.report.words import day

MOST_POINTS = 20_000


def timeline_data(findings: Findings, axis: Axis, events: pd.DataFrame) -> Packed:
    """What the script needs to draw the scores: at most about `MOST_POINTS` of them, with every peak.

    A stretch ends where the sampling has a gap, or rows were not judged: no line is drawn across.
    """
    rows = np.flatnonzero(np.isfinite(findings.scores))
    stretches = _stretches(rows, axis)
    kept = thin_out(findings.scores[rows], stretches, axis.places[rows], MOST_POINTS)
    shown = rows[kept]
    of_row = findings.grouped.of_row[shown]
    marked = np.flatnonzero(of_row)
    return {
        "places": pack_places(axis.places[shown]),
        "rows": len(findings.scores),
        "extent": [float(axis.places[0]), float(axis.places[-1])] if len(axis.places) else [0.0, 1.0],
        "scores": pack_numbers(findings.scores[shown]),
        "begins": np.flatnonzero(np.diff(stretches[kept], prepend=-1)).tolist(),
        "marked": [marked.tolist(), of_row[marked].tolist()],
        "threshold": finite(findings.threshold),
        "thinned": len(shown) < len(rows),
        "events": [_event(findings, axis, int(number)) for number in events.index],
    }


def _stretches(rows: IndexArray, axis: Axis) -> IndexArray:
    """The number of the stretch of each of these rows: a new one after a gap in time, or after rows left out."""
    after = np.diff(rows, prepend=-2) > 1
    gaps = np.cumsum(axis.begins)[rows]
    new = after | (np.diff(gaps, prepend=-1) != 0)
    result: IndexArray = (np.cumsum(new) - 1).astype(np.intp)
    return result


def _event(findings: Findings, axis: Axis, number: int) -> list[float]:
    """Number, first place, last place, rank."""
    first, last = (int(rows[number - 1]) for rows in (findings.grouped.first_rows, findings.grouped.last_rows))
    return [number, float(axis.places[first]), float(axis.places[last]), int(findings.events["rank"].loc[number])]


LEVELS = 5
_MOST_MONTHS = 24  # shown with those that have no findings; of a longer time only months with findings
_MOST_SHOWN = 60
_NAMES = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]  # not the locale's


@dataclass(frozen=True)
class Day:
    """A day: how many findings, its shade (0 for none), what a tooltip says, and the event to go to."""

    number: int
    rows: int
    level: int
    tip: str
    event: int | None
    has_readings: bool


@dataclass(frozen=True)
class Month:
    name: str
    weeks: tuple[tuple[Day | None, ...], ...]
    rows: int


@dataclass(frozen=True)
class Calendar:
    """`shades`: what each shade from 1 on stands for; `left_out`: months that are not shown."""

    months: tuple[Month, ...]
    shades: tuple[str, ...]
    left_out: str


def make_calendar(findings: Findings) -> Calendar | None:
    """The months from the first row to the last; None without time stamps."""
    time = findings.table.time
    if time is None or not len(time):
        return None
    with_readings = {(d.year, d.month, d.day) for d in pd.DatetimeIndex(time.tz_localize(None).normalize().unique())}
    found = {(d.year, d.month, d.day): row for d, row in findings.days.iterrows()}  # type: ignore[attr-defined]
    events = _events_of_days(findings)
    limits = shade_limits(max((int(row["rows"]) for row in found.values()), default=0))
    months, left_out = _months(sorted({key[:2] for key in with_readings}), {key[:2] for key in found})
    shown = []
    for year, month in months:
        weeks = []
        for week in calendar.Calendar().monthdayscalendar(year, month):
            keys = [(year, month, number) if number else None for number in week]
            weeks.append(
                tuple(
                    None if key is None else _day(key, int(found[key]["rows"]) if key in found else 0,
                    events.get(key, []), key in with_readings, limits)
                    for key in keys
                )
            )  # fmt: skip
        total = sum(each.rows for week in weeks for each in week if each)
        shown.append(Month(f"{_NAMES[month - 1]} {year}", tuple(weeks), total))
    return Calendar(tuple(shown), _shades(limits), left_out)


def shade_limits(most: int) -> list[int]:
    """The least number of findings of each shade, in equal ratios up to the most.

    >>> shade_limits(30), shade_limits(2), shade_limits(0)
    ([1, 2, 4, 8, 16], [1, 2], [])
    """
    return sorted({int(np.ceil(most ** (shade / LEVELS) - 1e-9)) for shade in range(LEVELS)}) if most else []


def _shades(limits: list[int]) -> tuple[str, ...]:
    ends = [limit - 1 for limit in limits[1:]]
    ranges = [f"{low}" if low == high else f"{low}–{high}" for low, high in zip(limits, ends, strict=False)]
    return (*ranges, f"{limits[-1]} or more") if limits else ()


def _day(key: tuple[int, int, int], rows: int, events: list[int], has_readings: bool, limits: list[int]) -> Day:
    level = int(np.searchsorted(limits, rows, side="right")) if rows else 0
    name = day(pd.Timestamp(*key))
    if not rows:
        tip = f"{name}: " + ("no findings" if has_readings else "no readings")
        return Day(key[2], 0, 0, tip, None, has_readings)
    numbers = ", ".join(str(event) for event in sorted(events)[:6]) + (" …" if len(events) > 6 else "")
    tip = f"{name}: {counted(rows, 'finding')}, event{'s' if len(events) > 1 else ''} {numbers}"
    return Day(key[2], rows, level, tip, events[0], True)


def _events_of_days(findings: Findings) -> dict[tuple[int, int, int], list[int]]:
    """The events of each day, the most severe first."""
    assert findings.table.time is not None
    rows = np.flatnonzero(findings.flags)
    days = findings.table.time[rows].tz_localize(None)
    events = findings.grouped.of_row[rows]
    keys = zip(days.year, days.month, days.day, events, strict=True)
    ranks = findings.events["rank"]
    result: dict[tuple[int, int, int], list[int]] = {}
    for year, month, number, event in sorted(set(keys), key=lambda each: int(ranks.loc[each[3]])):
        result.setdefault((int(year), int(month), int(number)), []).append(int(event))
    return result


def _months(
    recorded: list[tuple[int, int]], with_findings: Iterable[tuple[int, int]]
) -> tuple[list[tuple[int, int]], str]:
    if len(recorded) <= _MOST_MONTHS:
        return recorded, ""
    months = sorted(with_findings)
    n_without = len(recorded) - len(months)
    words = f"{counted(n_without, 'month')} without findings {'is' if n_without == 1 else 'are'} not shown."
    if len(months) > _MOST_SHOWN:
        words += f" Shown are the last {_MOST_SHOWN} of {len(months):,} months with findings."
    return months[-_MOST_SHOWN:], words
