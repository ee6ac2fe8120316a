"""The incidents of findings, or their events where a method has no incidents, for the page: words, charts, heat map.

The one idea: a `Case` is either, with its sensors in the order in which they left their usual range, so that the page
is the same for every method.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace as Record
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from penstock._messages import counted
from penstock._types import IndexArray
from penstock.certainty import about_figure
from penstock.columns import InputRole
from penstock.detection import Explanation, Findings, Shift, state_in_words
from penstock.explain import Condition, Incident, IncidentSensor
from penstock.report.axis import Packed
from penstock.report.words import (
    NO_NUMBER,
    by_chance,
    duration,
    how_long,
    how_sure,
    listed,
    name_tag,
    number,
    numbers,
    percent,
    span,
    unit_beside,
    when,
    with_unit,
)

MOST_CHARTS = 8
MOST_LISTED = 500  # cases, the most severe
_MOST_NAMED = 12  # sensors after those with charts
_SHORT_SOURCES = {
    "sensor": "the sensor",
    "machine": "the machine",
    "state": "unusual operation",
    "unclear": "not clear",
}
_SIGNS = {">": "above", "<=": "at most"}
_SHORT_RULE = 3  # conditions
_AREA = re.compile(r"[_./:\s\-]")
_MOST_AREAS, _MOST_ALONE = 30, 0.5


@dataclass(frozen=True)
class CaseSensor:
    """One sensor of a case; `onset` is the row in which it left its range, −1 if that is not known.

    actual, expected : what it read, and should have read, in the row `worst`, where these differ most on the side that
        `direction` names.
    strength : in words, how far it was from the usual.
    """

    column: int
    name: str
    onset: int
    direction: str
    condition: str
    worst: int
    actual: float
    expected: float
    strength: str


@dataclass(frozen=True, eq=False)
class Case:
    """An incident, or an event of a method without incidents.

    start, end, peak : positions of rows.
    rows : positions of the flagged rows.
    sensors : the one to look at first in front.
    record : its row in `incident_table` or `events`.
    event : the event that its peak belongs to.
    explanation : of that event; None where it is not explained, or is of several incidents.
    """

    number: int
    rank: int
    start: int
    end: int
    peak: int
    rows: IndexArray
    sensors: tuple[CaseSensor, ...]
    record: dict[Any, Any]
    event: int
    explanation: Explanation | None
    incident: Incident | None

    @property
    def moved_first(self) -> tuple[CaseSensor, ...]:
        """The sensors that left their range first: those of `Incident.moved_first`; none for an event."""
        columns = () if self.incident is None else self.incident.moved_first
        return tuple(sensor for sensor in self.sensors if sensor.column in columns)

    @property
    def in_order(self) -> list[CaseSensor]:
        """The sensors that the charts show: those that moved first, then the first ones, by the time of that."""
        out = [sensor for sensor in self.sensors if sensor.onset >= 0]
        if self.incident is None or not out:
            return list(self.sensors[:MOST_CHARTS])
        first = self.moved_first[: MOST_CHARTS - 1]
        chosen = list({sensor.column: sensor for sensor in (out[0], *first, *out)}.values())[:MOST_CHARTS]
        return sorted(chosen, key=lambda sensor: (sensor not in first, sensor.onset))


def cases_of(findings: Findings) -> list[Case]:
    """Return at most `MOST_LISTED` cases, the most severe first."""
    if findings.assessment.by_sensor:
        found = [_of_incident(findings, incident) for incident in findings.incidents]
    else:
        found = [_of_event(findings, event) for event in findings.events.sort_values("rank").index[:MOST_LISTED]]
    return sorted(found, key=lambda case: case.rank)[:MOST_LISTED]


def word_for_cases(findings: Findings) -> str:
    """Return what cases are called: "incident" or "event"."""
    return "event" if not findings.assessment.by_sensor else "incident"


def _of_incident(findings: Findings, incident: Incident) -> Case:
    event = int(findings.rows.grouped.of_row[incident.peak])
    alone = np.isin(np.flatnonzero(findings.rows.grouped.of_row == event), incident.rows).all()
    return Case(
        number=incident.number,
        rank=incident.rank,
        start=incident.start,
        end=incident.end,
        peak=incident.peak,
        rows=incident.rows,
        sensors=tuple(_sensor_of_incident(findings, incident, sensor) for sensor in incident.sensors),
        record=findings.incident_table.loc[incident.number].to_dict(),
        event=event,
        explanation=findings.explained.events.get(event) if alone else None,
        incident=incident,
    )


def _sensor_of_incident(findings: Findings, incident: Incident, sensor: IncidentSensor) -> CaseSensor:
    values, expected = findings.inputs.values.to_numpy(), findings.inputs.expected.to_numpy()
    rows = np.concatenate([np.arange(first, last + 1) for first, last in incident.runs])
    condition = sensor.condition if sensor.certain or not sensor.condition else f"possibly {sensor.condition}"
    apart = values[rows, sensor.column] - expected[rows, sensor.column]
    apart = {"above": apart, "below": -apart}.get(sensor.direction, np.abs(apart))
    worst = int(rows[int(np.nanargmax(apart))] if np.isfinite(apart).any() else rows[0])
    times = number(round(sensor.mean_evidence, 1))
    return CaseSensor(
        column=sensor.column,
        name=sensor.name,
        onset=sensor.onset,
        direction=sensor.direction,
        condition=condition,
        worst=worst,
        actual=float(values[worst, sensor.column]),
        expected=float(expected[worst, sensor.column]),
        strength=f"{times} × the usual limit",
    )


def _of_event(findings: Findings, event: int) -> Case:
    record = findings.events.loc[event].to_dict()
    why = findings.explained.events.get(event)
    variables = [] if why is None else why.variables.to_dict("records")
    return Case(
        number=event,
        rank=int(record["rank"]),
        start=int(findings.rows.grouped.first_rows[event - 1]),
        end=int(findings.rows.grouped.last_rows[event - 1]),
        peak=int(record["peak_row"]),
        rows=np.flatnonzero(findings.rows.grouped.of_row == event),
        sensors=tuple(
            CaseSensor(
                column=findings.inputs.names.index(row["variable"]),
                name=row["variable"],
                onset=-1,
                direction=row["direction"],
                condition="",
                worst=int(row["position"]),
                actual=float(row["actual"]),
                expected=float(row["expected"]),
                strength=f"{percent(row['share'])} of it",
            )
            for row in variables
        ),
        record=record,
        event=event,
        explanation=why,
        incident=None,
    )


class Areas:
    """The part of the plant that a sensor is of, by the first word of its name.

    There are areas only if at least two of these words stand for several sensors each, and most sensors share one.

    >>> areas = Areas(["unit1_flow", "unit1_head", "unit2_flow", "unit2_head", "weather"])
    >>> areas.names, areas.of("unit1_flow"), areas.of("weather"), Areas(["flow", "head"]).names
    (['unit1', 'unit2'], 'unit1', '', [])
    """

    def __init__(self, names: Sequence[str]) -> None:
        counts = Counter(self._first_word(name) for name in names)
        shared = sorted(word for word, count in counts.items() if word and count > 1)
        alone = sum(count for word, count in counts.items() if word not in shared)
        useful = 2 <= len(shared) <= _MOST_AREAS and alone <= _MOST_ALONE * len(names)
        self.names = shared if useful else []

    def of(self, name: str) -> str:
        word = self._first_word(name)
        return word if word in self.names else ""

    @staticmethod
    def _first_word(name: str) -> str:
        parts = _AREA.split(name.strip(), maxsplit=1)
        return parts[0] if len(parts) > 1 else ""


def place_in_words(findings: Findings, row: int) -> str:
    """Return the time of a row, or its number in the source."""
    time = findings.table.time
    return when(findings.table.values.index[row] if time is None else time[row])


def when_and_where(record: dict[Any, Any]) -> str:
    """Format from when to when it was, and in which group, if there are groups."""
    when_ = span(record["start"], record["end"])
    return Markup("{}: {}").format(name_tag(record["group"]), when_) if "group" in record else when_


def length_in_words(record: dict[Any, Any]) -> str:
    return how_long(record["start"], record["end"], record["duration"], record.get("runs", ()))


def later(findings: Findings, first: int, row: int) -> str:
    """Format how long after a row another one is: "+10 min", or "" for the same row."""
    if row <= first:
        return ""
    time = findings.table.time
    return f"+{duration(row - first if time is None else time[row] - time[first])}"


def sureness(findings: Findings, case: Case) -> tuple[str, str]:
    """Return how sure a case is, in a word or two, and how that is known."""
    expected = case.record["expected_by_chance"]
    if case.incident is not None:
        return how_sure(expected, case.incident.kind, case.record["known"]), by_chance(expected)
    return (
        (f"rank {case.rank}", "")
        if findings.assessment.chance_unknown
        else (about_figure(expected), by_chance(expected))
    )


def make_row(findings: Findings, case: Case, areas: Areas) -> Record:
    """Format a line in the table of the first screen."""
    first = case.sensors[0] if case.sensors else None
    sure, how = sureness(findings, case)
    start, end = case.record["start"], case.record["end"]
    early = next(iter(case.moved_first), None)
    return Record(
        number=case.number,
        group=name_tag(case.record["group"]) if "group" in case.record else "",
        when=when(start),
        whole=span(start, end),
        duration=length_in_words(case.record),
        sure=sure,
        how=how,
        is_sure=sure == "near certain",
        first=name_tag(first.name) if first else "",
        condition=first.condition if first else "",
        early=name_tag(early.name) if early and first and first not in case.moved_first else "",
        others=[name_tag(sensor.name) for sensor in case.sensors[1:3]] if case.incident is None else [],
        area=", ".join(dict.fromkeys(filter(None, (areas.of(s.name) for s in case.in_order[:3])))),
        source=_SHORT_SOURCES[case.record["source"]] if case.incident is not None else "",
        mode=str(findings.rows.modes[case.peak]),
    )


def days_of(findings: Findings, case: Case) -> list[str]:
    """Return the days, in ISO 8601, on which a case has flagged rows; none without time."""
    if findings.table.time is None:
        return []
    return days_in(findings.table.time[case.rows])


def days_in(time: pd.DatetimeIndex) -> list[str]:
    return list(time.tz_localize(None).normalize().unique().strftime("%Y-%m-%d"))


def filter_data(findings: Findings, cases: Sequence[Case], areas: Areas) -> list[Packed]:
    """Pack what incidents are filtered by: how sure, areas, sensors (by their columns), mode, days."""
    found = []
    for case in cases:
        out = [sensor for sensor in case.sensors if case.incident is None or sensor.onset >= 0] or case.sensors[:3]
        found.append(
            {
                "number": case.number,
                "sure": sureness(findings, case)[0] == "near certain",
                "areas": sorted({areas.of(sensor.name) for sensor in out} - {""}),
                "sensors": [sensor.column for sensor in out],
                "mode": str(findings.rows.modes[case.peak]),
                "days": days_of(findings, case),
            }
        )
    return found


def make_article(findings: Findings, case: Case, known: Sequence[tuple[int, int]]) -> Record:
    """Format a case that is opened: a sentence, its sensors in order, and what else is known.

    `known` are the rows of known faults, from the first to the last of each.
    """
    why, shown = case.explanation, case.in_order
    first_onset = next((sensor.onset for sensor in case.moved_first), case.start)
    lines = [_line(findings, sensor, first_onset) for sensor in shown]
    rest = [sensor for sensor in case.sensors if sensor.column not in {each.column for each in shown}]
    rest = sorted((each for each in rest if each.onset >= 0), key=lambda each: each.onset)
    more = [name_tag(sensor.name) + _after(findings, first_onset, sensor) for sensor in rest]
    rule, counts = _rule(why) if why is not None else ("", "")
    sure, how = sureness(findings, case)
    others = set[int]()  # an incident names earlier ones that are similar; later ones name it
    for incident in findings.incidents if case.incident is not None else ():
        similar = {number for number, _ in incident.similar}
        if incident.number == case.number:
            others |= similar
        elif case.number in similar:
            others.add(incident.number)
    overlap = [place for place, (low, high) in enumerate(known, 1) if low <= case.end and high >= case.start]
    return Record(
        number=case.number,
        when=when_and_where(case.record),
        duration=length_in_words(case.record),
        sentence=_sentence(findings, case, shown, first_onset),
        reason=case.incident.reason if case.incident is not None else "",
        sure=sure,
        how=how,
        mode=str(findings.rows.modes[case.peak]),
        about=_about(findings, case),
        lines=lines,
        began=place_in_words(findings, first_onset),
        n_first=len([sensor for sensor in shown if sensor in case.moved_first]),
        more=more[:_MOST_NAMED],
        n_more=max(0, len(more) - _MOST_NAMED),
        settings=_settings_in_words(findings, case),
        rule=rule,
        rule_counts=counts,
        similar=sorted(others),
        known=overlap,
        neighbors=None if case.incident is not None else _neighbors(findings, case),
    )


def _settings_in_words(findings: Findings, case: Case) -> list[Markup]:
    """Say which settings, states and drivers moved with a case, and when."""
    if case.incident is not None:
        return [
            Markup("{} {} ({})").format(name_tag(each.name), each.text, place_in_words(findings, each.row))
            for each in case.incident.circumstances
        ]
    why = case.explanation
    if why is None:
        return []
    return [_setting(row, why.states.get(row["variable"])) for row in why.settings.to_dict("records")]


def shift_in_words(findings: Findings, shift: Shift) -> Markup:
    """Format a tag that differs from the good period throughout in a line: by how much, since when, how often."""
    by = with_unit(shift.by, unit_beside(shift.name, shift.unit))
    sign = "+" if shift.by > 0 else ""
    since = place_in_words(findings, shift.since)
    return Markup("{}: {}{} since {}, in {} of the rows").format(
        name_tag(shift.name), sign, by, since, percent(shift.share)
    )


def stretch_in_words(record: dict[Any, Any]) -> Markup:
    """Format a stretch that is no incident in a line: when, how long, and the sensor that is farthest off."""
    chance = by_chance(record["expected_by_chance"])
    return Markup("{} ({}): {}{}").format(
        when_and_where(record),
        length_in_words(record),
        name_tag(record["first_sensor"]),
        f"; {chance}" if chance else "",
    )


def _line(findings: Findings, sensor: CaseSensor, first_onset: int) -> Record:
    unit = findings.inputs.units[sensor.name]
    actual, expected = numbers([sensor.actual, sensor.expected])
    difference = number(sensor.actual - sensor.expected)
    difference = f"+{difference}" if sensor.actual > sensor.expected else difference
    role = findings.inputs.choice.role_of(sensor.name)
    direction = sensor.direction
    if role.levels and not findings.inputs.rebuilt:
        actual, expected = role.in_words(sensor.actual), role.in_words(sensor.expected)
        difference = direction = ""
    return Record(
        column=sensor.column,
        name=name_tag(sensor.name),
        unit=unit,
        unit_beside=unit_beside(sensor.name, unit),
        onset=place_in_words(findings, sensor.onset) if sensor.onset >= 0 else "",
        after=later(findings, first_onset, sensor.onset) if sensor.onset >= 0 else "",
        condition=sensor.condition,
        direction=direction,
        actual=actual,
        expected=expected,
        difference=difference,
        worst=place_in_words(findings, sensor.worst),
        strength=sensor.strength,
    )


def _sentence(findings: Findings, case: Case, shown: Sequence[CaseSensor], first_onset: int) -> Markup:
    """Say in operators' words what the first sensor did, and what moved before and after it."""
    if not case.sensors:
        return Markup("The readings as a whole are unusual; this method does not say which sensor is behind it.")
    first = case.sensors[0]
    unit = unit_beside(first.name, findings.inputs.units[first.name])
    wanted = "the model rebuilds" if findings.inputs.rebuilt else "expected was"
    role = findings.inputs.choice.role_of(first.name)
    if role.levels and not findings.inputs.rebuilt:
        text = _of_state(findings, first, role)
    else:
        readings = numbers([first.actual, first.expected])
        actual, expected = (text if text == NO_NUMBER else f"{text} {unit}".rstrip() for text in readings)
        text = Markup("{} read {} where {} {}").format(name_tag(first.name), actual, wanted, expected)
        if first.condition:
            text += Markup(" ({})").format(name_tag(first.condition))
    if case.incident is None:
        also = [name_tag(sensor.name) for sensor in case.sensors[1:3]]
        return text + (Markup("; also off: {}.").format(listed(also)) if also else Markup("."))
    out = [sensor for sensor in shown if sensor.onset >= 0 and sensor.column != first.column]
    early = [sensor for sensor in out if sensor.onset < first.onset][:2]
    same = [sensor for sensor in out if sensor.onset == first.onset][:2]
    after = [sensor for sensor in out if sensor.onset > first.onset][:2]
    if early:
        names = [Markup("{} at {}").format(name_tag(s.name), place_in_words(findings, s.onset)) for s in early]
        text += Markup(". Earlier: {}").format(listed(names))
    if same:
        text += Markup(". At the same time: {}").format(listed([name_tag(sensor.name) for sensor in same]))
    if after:
        names = [name_tag(sensor.name) + _after(findings, first_onset, sensor) for sensor in after]
        text += Markup(". Then: {}").format(listed(names))
    others = sum(sensor.onset >= 0 for sensor in case.sensors) - len({*early, *same, *after}) - 1
    if others > 0:
        text += f". {counted(others, 'other sensor')} left {'its' if others == 1 else 'their'} usual range too"
    return text + "."


def _of_state(findings: Findings, sensor: CaseSensor, role: InputRole) -> Markup:
    """Say what a state did: "pump switched on at 4 Mar 2015, 12:30", "pump is off where it usually is on"."""
    words = sensor.condition
    if words.startswith("switched"):
        return Markup("{} {} at {}").format(name_tag(sensor.name), words, place_in_words(findings, sensor.onset))
    if not words:
        now, usual = role.in_words(sensor.actual), role.in_words(sensor.expected)
        words = now if now == usual else f"{now} where it usually is {usual}"
    return Markup("{} is {}").format(name_tag(sensor.name), words)


def _after(findings: Findings, first: int, sensor: CaseSensor) -> str:
    """How long after the first one a sensor moved, in brackets; "" for the same row."""
    words = later(findings, first, sensor.onset)
    return f" ({words})" if words else ""


def _setting(row: dict[Any, Any], state: InputRole | None) -> Markup:
    if state is not None:
        return Markup("{}: {}").format(name_tag(row["variable"]), state_in_words(row, state))
    before, after = numbers([row["before"], row["after"]])
    unit = unit_beside(row["variable"], row["unit"])
    return Markup("{}: {} → {}{}").format(name_tag(row["variable"]), before, after, f" {unit}" if unit else "")


def _about(findings: Findings, case: Case) -> str:
    """How high the score was, and when."""
    why = case.explanation
    seen = float(findings.rows.seen[case.peak])
    partly = f", with {percent(seen)} of the readings there" if seen < 1 else ""
    text = (
        f"The score was highest at {place_in_words(findings, case.peak)}: {number(float(findings.scores[case.peak]))}"
    )
    text += f"{partly}."
    if why is not None and why.seen_as:
        text += f" It was {why.seen_as}."
    return text


def _neighbors(findings: Findings, case: Case) -> Record | None:
    """Return the nearest normal rows and the worst row of a case, from its explanation."""
    why = case.explanation
    if why is None or not len(why.neighbors) or not len(why.comparison):
        return None
    near, compared = why.neighbors, why.comparison
    rows = zip(compared.index, compared.to_numpy(dtype=float), strict=True)
    return Record(
        when=[when(time) for time in near["time" if "time" in near else "row"]],
        scores=numbers(near["score"]),
        distances=numbers(near["distance"]),
        peak=place_in_words(findings, case.peak),
        score=number(float(findings.scores[case.peak])),
        lines=[(name_tag(name), findings.inputs.units[name], numbers(values.tolist())) for name, values in rows],
    )


def _rule(why: Explanation) -> tuple[Markup, str]:
    """The conditions in words if there are few, and how often they are right."""
    rule = why.rule
    if rule is None or len(rule.conditions) > _SHORT_RULE:
        return Markup(""), ""
    of_variable: dict[str, list[Condition]] = {}
    for condition in rule.conditions:
        of_variable.setdefault(condition.variable, []).append(condition)
    hits = f"{rule.hits:,} of {rule.event_rows:,} rows"
    if rule.hits == rule.event_rows:
        hits = "the one row" if rule.hits == 1 else f"all {rule.hits:,} rows"
    wrong = "none" if not rule.false_hits else f"{rule.false_hits:,}"
    counts = f"True for {hits} of it, and for {wrong} of the {counted(rule.normal_rows, 'normal row')}."
    return listed([in_words(conditions) for conditions in of_variable.values()]), counts


def in_words(conditions: Sequence[Condition]) -> Markup:
    """Format the conditions on one variable.

    >>> print(in_words([Condition("flow", "<=", 5.0, "m³/s"), Condition("flow", ">", 3.0, "m³/s")]))
    <bdi class="name">flow</bdi> above 3 and at most 5 m³/s
    """
    ordered = sorted(conditions, key=lambda each: each.operator, reverse=True)
    words = [f"{_SIGNS[each.operator]} {number(each.value)}" for each in ordered]
    unit = unit_beside(ordered[0].variable, ordered[-1].unit)
    return Markup("{} {}{}").format(name_tag(ordered[0].variable), " and ".join(words), f" {unit}" if unit else "")
