"""Scores over time with the threshold and the events, and a calendar of the days with findings."""

from __future__ import annotations

import calendar
from types import SimpleNamespace as Record

import numpy as np
import pandas as pd

from penstock._messages import counted
from penstock._types import IndexArray
from penstock.detection import Findings
from penstock.report.axis import Axis, Packed, finite, pack_numbers, pack_places, thin_out
from penstock.report.words import day

MOST_POINTS = 20_000
LEVELS = 5
_MOST_MONTHS = 24  # shown with those that have no findings; of a longer time only months with findings
_MOST_SHOWN = 60
_NAMES = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip  # not the locale's

Day = tuple[int, int, int]


def timeline_data(findings: Findings, axis: Axis, events: pd.DataFrame) -> Packed:
    """Pack what the script needs to draw the scores: at most about `MOST_POINTS` of them, with every peak.

    A stretch ends where the sampling has a gap, or rows were not judged: no line is drawn across.
    """
    rows = np.flatnonzero(np.isfinite(findings.scores))
    new = (np.diff(rows, prepend=-2) > 1) | (np.diff(np.cumsum(axis.begins)[rows], prepend=-1) != 0)
    stretches: IndexArray = (np.cumsum(new) - 1).astype(np.intp)
    kept = thin_out(findings.scores[rows], stretches, axis.places[rows], MOST_POINTS)
    shown = rows[kept]
    of_row = findings.grouped.of_row[shown]
    marked = np.flatnonzero(of_row)
    first, last = (axis.places[each].tolist() for each in (findings.grouped.first_rows, findings.grouped.last_rows))
    return {
        "places": pack_places(axis.places[shown]),
        "rows": len(findings.scores),
        "extent": [float(axis.places[0]), float(axis.places[-1])] if len(axis.places) else [0.0, 1.0],
        "scores": pack_numbers(findings.scores[shown]),
        "begins": np.flatnonzero(np.diff(stretches[kept], prepend=-1)).tolist(),
        "marked": [marked.tolist(), of_row[marked].tolist()],
        "threshold": finite(findings.threshold),
        "thinned": len(shown) < len(rows),
        "events": [
            [number, first[number - 1], last[number - 1], rank]
            for number, rank in zip(events.index.tolist(), events["rank"].tolist(), strict=True)
        ],
    }


def make_calendar(findings: Findings) -> Record | None:
    """Format the months from the first row to the last; None without time stamps.

    Each day has how many findings fall on it, its shade (0 for none), a tooltip, and the event to go to. `shades` says
    what each shade from 1 on stands for, `left_out` which months are not shown.
    """
    time = findings.table.time
    if time is None or not len(time):
        return None
    with_readings = {(d.year, d.month, d.day) for d in pd.DatetimeIndex(time.tz_localize(None).normalize().unique())}
    stamps, counts = pd.DatetimeIndex(findings.days.index), findings.days["rows"].tolist()
    found = {(d.year, d.month, d.day): int(count) for d, count in zip(stamps, counts, strict=True)}
    events = _events_of_days(findings)
    limits = shade_limits(max(found.values(), default=0))
    months, left_out = _months(sorted({key[:2] for key in with_readings}), sorted({key[:2] for key in found}))
    shown = []
    for year, month in months:
        weeks = [
            [_day((year, month, number), found, events, with_readings, limits) if number else None for number in week]
            for week in calendar.Calendar().monthdayscalendar(year, month)
        ]
        rows = sum(each.rows for week in weeks for each in week if each)
        shown.append(Record(name=f"{_NAMES[month - 1]} {year}", weeks=weeks, rows=rows))
    ends = [limit - 1 for limit in limits[1:]]
    shades = [f"{low}" if low == high else f"{low}–{high}" for low, high in zip(limits, ends, strict=False)]
    return Record(months=shown, shades=[*shades, f"{limits[-1]} or more"] if limits else [], left_out=left_out)


def shade_limits(most: int) -> list[int]:
    """Return the least number of findings of each shade, in equal ratios up to the most.

    >>> shade_limits(30), shade_limits(2), shade_limits(0)
    ([1, 2, 4, 8, 16], [1, 2], [])
    """
    return sorted({int(np.ceil(most ** (shade / LEVELS) - 1e-9)) for shade in range(LEVELS)}) if most else []


def _day(
    key: Day, found: dict[Day, int], events: dict[Day, list[int]], with_readings: set[Day], limits: list[int]
) -> Record:
    rows, name, event = found.get(key, 0), day(pd.Timestamp(*key)), None
    tip = f"{name}: " + ("no findings" if key in with_readings else "no readings")
    if rows:
        numbers = events[key]
        shown = ", ".join(str(number) for number in sorted(numbers)[:6]) + (" …" if len(numbers) > 6 else "")
        tip = f"{name}: {counted(rows, 'finding')}, event{'s' if len(numbers) > 1 else ''} {shown}"
        event = numbers[0]
    level = int(np.searchsorted(limits, rows, side="right"))
    return Record(number=key[2], rows=rows, level=level, tip=tip, event=event, has_readings=key in with_readings)


def _events_of_days(findings: Findings) -> dict[Day, list[int]]:
    """The events of each day, the most severe first."""
    assert findings.table.time is not None
    rows = np.flatnonzero(findings.flags)
    days, ranks = findings.table.time[rows].tz_localize(None), findings.events["rank"]
    keys = zip(days.year, days.month, days.day, findings.grouped.of_row[rows], strict=True)
    result: dict[Day, list[int]] = {}
    for year, month, number, event in sorted(set(keys), key=lambda each: int(ranks.loc[each[3]])):
        result.setdefault((int(year), int(month), int(number)), []).append(int(event))
    return result


def _months(recorded: list[tuple[int, int]], with_findings: list[tuple[int, int]]) -> tuple[list[tuple[int, int]], str]:
    if len(recorded) <= _MOST_MONTHS:
        return recorded, ""
    n_without = len(recorded) - len(with_findings)
    words = f"{counted(n_without, 'month')} without findings {'is' if n_without == 1 else 'are'} not shown."
    if len(with_findings) > _MOST_SHOWN:
        words += f" Shown are the last {_MOST_SHOWN} of {len(with_findings):,} months with findings."
    return with_findings[-_MOST_SHOWN:], words
