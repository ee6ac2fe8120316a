"""The table of events, the details below each, and the readings around it."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace as Record
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from penstock._messages import counted
from penstock._types import FloatArray, IndexArray
from penstock.detection import Explanation, Findings
from penstock.explain import Condition, Incident
from penstock.report.axis import Axis, Packed, event_span, pack_curve, pack_places, thin_out
from penstock.report.words import (
    duration,
    how_sure,
    listed,
    name_tag,
    number,
    numbers,
    percent,
    shown_name,
    span,
    when,
)

_NAMED = 3
_SIGNS = {">": "above", "<=": "at most"}
MOST_CHARTS = 6
_MOST_SENSORS = 10  # of an incident
_CONTEXT = 18  # rows before and after an event, at least
_MOST_CONTEXT = 500
_PLAIN = 240  # rows drawn one by one; of more, the lowest and highest in each span
_REACH = 3.0  # context ends where the sampling has a hole so many times as long as the context should be


def event_card(findings: Findings, number_: int, peak: str, *, printed: bool) -> Record:
    """Format a line in the table of events, and what opens below it if the event is explained.

    A cell has its `text`, and the `key` that it is sorted by.

    Parameters
    ----------
    findings : Findings
    number_ : int
        Of the event.
    peak : str
        Its highest score in words.
    printed : bool
        Whether its details go on paper too.
    """
    event, why = event_record(findings, number_), findings.explanations.get(number_)
    rows, length = int(event["rows"]), event["duration"]
    seconds = length.total_seconds() if isinstance(length, pd.Timedelta) else float(length)
    rarity, figure = None, findings.rarity["figure"].loc[number_]
    if figure:
        rates = (event[name] for name in ("expected_by_chance", "false_alarm_rate") if name in event)
        rarity = Record(text=figure, key=float(next(rates, event["rank"])))
    return Record(
        number=number_,
        rank=int(event["rank"]),
        when=Record(text=when_and_where(event), key=float(findings.grouped.first_rows[number_ - 1])),
        duration=Record(text="one row" if rows == 1 else duration(length), key=seconds),
        rows=Record(text=f"{rows:,}", key=rows),
        peak=Record(text=peak, key=float(event["peak_score"])),
        rarity=rarity,
        mode=str(findings.modes[int(event["peak_row"])]),
        worst=[name_tag(name) for name in (why.variables["variable"].tolist()[:_NAMED] if why else [])],
        why=None if why is None else _detail(findings, why, event, peak),
        printed=printed,
    )


def when_and_where(event: dict[Any, Any]) -> str:
    """Format from when to when it was, and in which group, if there are groups."""
    when_ = span(event["start"], event["end"])
    return Markup("{}: {}").format(name_tag(event["group"]), when_) if "group" in event else when_


def event_record(findings: Findings, number: int) -> dict[Any, Any]:
    """Return a row of the table of events, by its columns."""
    return findings.events.iloc[number - 1].to_dict()


def _detail(findings: Findings, why: Explanation, event: dict[Any, Any], peak: str) -> Record:
    near, compared = why.neighbors, why.comparison
    times = near["time" if "time" in near else "row"]
    neighbors = zip(times, numbers(near["distance"]), numbers(near["score"]), strict=True)
    comparison = zip(compared.index, compared.to_numpy(dtype=float), strict=True)
    rule, counts = _rule(why)
    return Record(
        variables=[_variable(findings, row) for row in why.variables.to_dict("records")],
        settings=why.settings_text,
        neighbors=[{"when": when(time), "distance": apart, "score": score} for time, apart, score in neighbors],
        distance="Distance along the tree" if why.along_tree else "Distance",
        comparison=[  # actual, expected, and each neighbour
            {"name": name_tag(name), "unit": findings.units.get(name, ""), "cells": numbers(values.tolist())}
            for name, values in comparison
        ],
        rule=rule,
        rule_counts=counts,
        peak=when(event["peak"]),
        about=_about(findings, event, peak, why.rarity),
        seen_as=why.seen_as,
        incidents=[
            _incident(findings, incident)
            for incident in findings.incidents
            if (findings.grouped.of_row[incident.rows] == why.event).any()
        ],
    )


def _incident(findings: Findings, incident: Incident) -> Record:
    """The sensors of an incident that say most of it, in the order in which they left their range."""
    time, numbers_ = findings.table.time, findings.table.values.index
    some = [sensor for sensor in incident.sensors[:_MOST_SENSORS] if sensor.onset >= 0]
    lines = [
        Record(
            name=name_tag(sensor.name),
            onset=when(time[sensor.onset] if time is not None else numbers_[sensor.onset]),
            direction=sensor.direction,
            evidence=number(sensor.mean_evidence),
            condition=name_tag(("" if sensor.certain else "possibly ") + sensor.condition) if sensor.condition else "",
        )
        for sensor in sorted(some, key=lambda sensor: sensor.onset)
    ]
    row = findings.incident_table.loc[incident.number].to_dict()
    return Record(
        number=incident.number,
        when=when_and_where(row),
        sure=how_sure(row["expected_by_chance"]),
        reason=incident.reason,
        sensors=lines,
        more=sum(sensor.onset >= 0 for sensor in incident.sensors) - len(lines),
        similar=", ".join(str(each) for each, _ in incident.similar),
    )


def _variable(findings: Findings, row: dict[Any, Any]) -> dict[str, Any]:
    """A line of the table of variables; a share of 100 % is a full bar."""
    position, time = int(row["position"]), findings.table.time
    actual, expected = numbers([row["actual"], row["expected"]])
    difference = number(row["difference"])
    return {
        "name": name_tag(row["variable"]),
        "unit": row["unit"],
        "actual": actual,
        "expected": expected,
        "difference": f"+{difference}" if row["difference"] > 0 else difference,
        "share": percent(row["share"]),
        "width": f"{100 * row['share']:.1f}",
        "direction": row["direction"],
        "when": when(time[position] if time is not None else findings.table.values.index[position]),
    }


def _rule(why: Explanation) -> tuple[Markup, str]:
    """The conditions in words, and how often they are right."""
    rule = why.rule
    if rule is None:
        return Markup("No simple rule separates this event from normal rows."), ""
    of_variable: dict[str, list[Condition]] = {}
    for condition in rule.conditions:
        of_variable.setdefault(condition.variable, []).append(condition)
    hits = f"{rule.hits:,} of {rule.event_rows:,} rows"
    if rule.hits == rule.event_rows:
        hits = "the one row" if rule.hits == 1 else f"all {rule.hits:,} rows"
    wrong = "none" if not rule.false_hits else f"{rule.false_hits:,}"
    counts = f"True for {hits} of the event, and for {wrong} of the {counted(rule.normal_rows, 'normal row')}."
    return listed([in_words(conditions) for conditions in of_variable.values()]), counts


def in_words(conditions: Sequence[Condition]) -> Markup:
    """Format the conditions on one variable.

    >>> print(in_words([Condition("flow", "<=", 5.0, "m³/s"), Condition("flow", ">", 3.0, "m³/s")]))
    <bdi class="name">flow</bdi> above 3 and at most 5 m³/s
    """
    ordered = sorted(conditions, key=lambda each: each.operator, reverse=True)
    words = [f"{_SIGNS[each.operator]} {number(each.value)}" for each in ordered]
    unit = f" {ordered[-1].unit}" if ordered[-1].unit else ""
    return Markup("{} {}{}").format(name_tag(ordered[0].variable), " and ".join(words), unit)


def _about(findings: Findings, event: dict[Any, Any], peak: str, rarity: str) -> str:
    """How severe it was, and when it was worst."""
    severity = f", {event['severity']:,.1f} times the threshold" if pd.notna(event.get("severity")) else ""
    seen = float(findings.seen[int(event["peak_row"])])
    partly = f", with {percent(seen)} of the readings there" if seen < 1 else ""
    rare = f" {rarity[0].upper()}{rarity[1:]}." if rarity else ""
    return f"The score was highest at {when(event['peak'])}: {peak}{severity}{partly}.{rare}"


def event_chart_data(findings: Findings, axis: Axis, event: int, variables: Sequence[str]) -> Packed:
    """Pack a chart for each of the first `MOST_CHARTS` variables, actual against expected, over the same rows."""
    names = list(variables[:MOST_CHARTS])
    columns = [findings.names.index(name) for name in names]
    window = event_window(findings, axis, event)
    actual, expected = (
        table.to_numpy()[window.start : window.stop, columns] for table in (findings.values, findings.expected)
    )
    kept = _kept(actual, axis, window)
    rows = window.start + kept
    span_ = event_span(findings, event)
    gaps = np.cumsum(axis.begins[rows[0] : rows[-1] + 1])[rows - rows[0]]
    return {
        "places": pack_places(axis.places[rows]),
        "begins": np.flatnonzero(np.diff(gaps, prepend=-1)).tolist(),
        "span": [float(axis.places[span_.start]), float(axis.places[span_.stop - 1])],
        "marked": np.flatnonzero(findings.grouped.of_row[rows] == event).tolist(),
        "charts": [
            {
                "name": shown_name(name),
                "unit": findings.units.get(name, ""),
                "range": float(findings.ranges[column]),
                "actual": pack_curve(actual[kept, place]),
                "expected": pack_curve(expected[kept, place]),
            }
            for place, (name, column) in enumerate(zip(names, columns, strict=True))
        ],
    }


def event_window(findings: Findings, axis: Axis, event: int) -> slice:
    """Return the rows of an event with as many before and after it, unless they are far away in time."""
    span_ = event_span(findings, event)
    context = min(max(_CONTEXT, span_.stop - span_.start), _MOST_CONTEXT)
    group = findings.table.span_of(span_.start)
    low, high = max(group.start, span_.start - context), min(group.stop, span_.stop + context)
    if axis.step > 0:
        reach = _REACH * axis.step * context
        low = max(low, int(np.searchsorted(axis.places, axis.places[span_.start] - reach)))
        high = min(high, int(np.searchsorted(axis.places, axis.places[span_.stop - 1] + reach, side="right")))
    return slice(low, high)


def _kept(actual: FloatArray, axis: Axis, window: slice) -> IndexArray:
    """Which rows of the window are drawn: those in which any of the variables has a peak."""
    length = window.stop - window.start
    if length <= _PLAIN:
        return np.arange(length, dtype=np.intp)
    stretches = np.cumsum(axis.begins[window]).astype(np.intp)
    each = max(40, _PLAIN // max(1, actual.shape[1]))
    kept = [thin_out(np.nan_to_num(column), stretches, axis.places[window], each) for column in actual.T]
    return np.unique(np.concatenate(kept)).astype(np.intp)
