"""The first screen: the verdict, the table of incidents, the plant over time, days, and known faults.

Records for the template are namespaces: their fields are named where they are made, and read in `report.html` alone.
"""

from __future__ import annotations

import calendar
from collections.abc import Sequence
from types import SimpleNamespace as Record
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from penstock._messages import counted
from penstock.detection import Findings
from penstock.detection.modes import CHANGING, OTHER, UNKNOWN
from penstock.report.axis import Axis, Packed, finite
from penstock.report.cases import Case, days_in, days_of, when_and_where, word_for_cases
from penstock.report.words import day, duration, span, when

LEVELS = 5
_MOST_MONTHS = 24  # shown with those that have no findings; of a longer time only months with findings
_MOST_SHOWN = 60
_MOST_RUNS = 1_500  # of one lane
_NAMES = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip  # not the locale's


def overview_data(findings: Findings, axis: Axis, cases: Sequence[Case]) -> Packed:
    """Pack what is drawn over the whole time with the score: incidents, gaps, and rows of bands below the chart."""
    places = axis.places
    return {
        "extent": [float(places[0]), float(places[-1])] if len(places) else [0.0, 1.0],
        "step": axis.step,
        "rows": len(findings.scores),
        "threshold": finite(findings.threshold),
        "cases": [[case.number, float(places[case.start]), float(places[case.end]), case.rank] for case in cases],
        "gaps": [[low, high, duration(pd.Timedelta(milliseconds=length))] for low, high, length in axis.gaps],
        "lanes": [{"name": name, "bands": _runs(axis, names, texts, name)} for name, texts, names in _lanes(findings)],
    }


def _lanes(findings: Findings) -> list[tuple[str, list[str], NDArray[np.intp]]]:
    """Return rows of bands: a name, the texts in it, and for each row of the table which of them, −1 for none."""
    n = len(findings.scores)
    lanes = []
    known = known_faults(findings)
    if known:
        of_row = np.full(n, -1)
        for place, (low, high) in enumerate(known):
            of_row[low : high + 1] = place
        lanes.append(("faults", [f"{place}" for place in range(1, len(known) + 1)], of_row))
    if findings.table.group is not None:
        codes, names = pd.factorize(findings.table.group)
        lanes.append((str(findings.table.group.name), [str(name) for name in names], codes))
    if len(findings.rows.parts) > 1 or len(np.unique(findings.rows.modes)) > 1:
        modes, of_row = np.unique(findings.rows.modes, return_inverse=True)
        lanes.append(("mode", [str(mode) for mode in modes], of_row))
    if 0 < findings.rows.fitted.sum() < n and not findings.assessment.self_scored:
        lanes.append(("fitted to", [""], np.where(findings.rows.fitted, 0, -1)))
    return lanes


def _runs(axis: Axis, of_row: NDArray[np.intp], texts: Sequence[str], lane: str) -> list[list[Any]]:
    """Bands: from, to, text, and a number for its colour (−1: none of the modes); of very many the longest ones."""
    new = np.concatenate([[True], (np.diff(of_row) != 0) | (axis.begins[1:] & (lane != "faults"))])
    first = np.flatnonzero(new)
    last = np.append(first[1:], len(of_row)) - 1
    lengths = axis.places[last] - axis.places[first]
    chosen = np.flatnonzero(of_row[first] >= 0)
    if len(chosen) > _MOST_RUNS:
        chosen = np.sort(chosen[np.argsort(-lengths[chosen], kind="stable")[:_MOST_RUNS]])
    no_mode = {OTHER, UNKNOWN, CHANGING}
    return [
        [
            float(axis.places[first[k]]),
            float(axis.places[last[k]]),
            texts[of_row[first[k]]],
            -1 if lane == "mode" and texts[of_row[first[k]]] in no_mode else int(of_row[first[k]]),
        ]
        for k in chosen
    ]


def known_faults(findings: Findings) -> list[tuple[int, int]]:
    """Return the first and last row of each known fault; none without a label."""
    known = findings.assessment.agreement
    if known is None:
        return []
    last = known.first_rows + known.faults["rows"].to_numpy() - 1
    return list(zip(known.first_rows.tolist(), last.tolist(), strict=True))


def period(findings: Findings) -> str:
    """Format the time from the first row to the last: days, unless all is on one day; "" without time."""
    time = findings.table.time
    if time is None or not len(time):
        return ""
    start = time.min()
    end = time.max()
    first, last = day(start), day(end)
    return span(start, end) if first == last else f"{first} – {last}"


def fault_line(number: int, row: dict[Any, Any]) -> Record:
    """A known fault; `kind` is the class of what `alarm` says: a finding inside it, only an earlier alarm, or none."""
    alarm, kind = ("✗ none", "no") if row["scored"] else ("not scored", "early")
    if row["found"]:
        alarm, kind = ("✓ inside", "yes") if row["flagged"] else ("before it only", "early")
    return Record(
        number=number,
        when=when_and_where(row),
        rows=f"{row['rows']:,}",
        flagged=f"{row['flagged']:,}",
        alarm=alarm,
        kind=kind,
        first_alarm=when(row["first_alarm"]) if row["found"] else "",
        lead=_lead_time(row["lead"]) if row["found"] else "",
    )


def _lead_time(lead: Any) -> str:
    """How long before the fault the first alarm came.

    >>> _lead_time(pd.Timedelta(hours=2)), _lead_time(pd.Timedelta(hours=-1)), _lead_time(0), _lead_time(3)
    ('2 h before', '1 h after it began', 'as it began', '3 rows before')
    """
    zero = pd.Timedelta(0) if isinstance(lead, pd.Timedelta) else 0
    if lead == zero:
        return "as it began"
    return f"{duration(lead)} before" if lead > zero else f"{duration(-lead)} after it began"


def make_calendar(findings: Findings, cases: Sequence[Case]) -> Record | None:
    """Format the months from the first row to the last; None without time stamps.

    Each day has how many findings fall on it, its shade (0 for none), a tooltip, and the incidents, the most severe
    first. `shades` says what each shade from 1 on stands for, `left_out` which months are not shown.
    """
    time = findings.table.time
    if time is None or not len(time):
        return None
    with_readings = set(days_in(time))
    found = {f"{day:%Y-%m-%d}": int(count) for day, count in findings.rows.days["rows"].items()}
    of_days: dict[str, list[int]] = {}
    for case in cases:
        for iso in days_of(findings, case):
            of_days.setdefault(iso, []).append(case.number)
    noun = word_for_cases(findings)
    limits = shade_limits(max(found.values(), default=0))
    months, left_out = _months(sorted({iso[:7] for iso in with_readings}), sorted({iso[:7] for iso in found}))

    def make_day(iso: str) -> Record:
        rows = found.get(iso, 0)
        name = day(pd.Timestamp(iso))
        numbers = of_days.get(iso, [])
        tip = f"{name}: " + ("nothing found" if iso in with_readings else "no readings")
        if rows:
            shown = ", ".join(map(str, sorted(numbers)[:6])) + (" …" if len(numbers) > 6 else "")
            nouns = f"{noun}s" if len(numbers) > 1 else noun
            which = f", {nouns} {shown}" if numbers else ""
            tip = f"{name}: {counted(rows, 'finding')}{which}"
        return Record(
            number=int(iso[8:]),
            iso=iso,
            rows=rows,
            level=int(np.searchsorted(limits, rows, side="right")),
            tip=tip,
            cases=numbers,
            has_readings=iso in with_readings,
        )

    shown = []
    for iso in months:
        year, month = map(int, iso.split("-"))
        dates = calendar.Calendar().monthdayscalendar(year, month)
        weeks = [[make_day(f"{iso}-{number:02}") if number else None for number in week] for week in dates]
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


def _months(recorded: list[str], with_findings: list[str]) -> tuple[list[str], str]:
    """Return the months that are shown, as in "2024-05", and a sentence on those that are not."""
    if len(recorded) <= _MOST_MONTHS:
        return recorded, ""
    n_without = len(recorded) - len(with_findings)
    words = f"{counted(n_without, 'month')} without findings {'is' if n_without == 1 else 'are'} not shown."
    if len(with_findings) > _MOST_SHOWN:
        words += f" Shown are the last {_MOST_SHOWN} of {len(with_findings):,} months with findings."
    return with_findings[-_MOST_SHOWN:], words
