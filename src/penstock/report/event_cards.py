"""The table of events, the details below each, and the readings around it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from penstock._messages import counted
from penstock._types import IndexArray
from penstock.detection import Explanation, Findings
from penstock.explain import Condition
from penstock.report.axis import Axis, Packed, event_span, pack_curve, pack_places, thin_out
from penstock.report.words import duration, listed, name_tag, number, numbers, percent, shown_name, span, when

_NAMED = 3
_SIGNS = {">": "above", "<=": "at most"}


@dataclass(frozen=True)
class Cell:
    """What is shown, and what it is sorted by."""

    text: str
    key: float


@dataclass(frozen=True)
class EventCard:
    """A line in the table of events, and what opens below it (None if there are too many to explain all)."""

    number: int
    rank: int
    when: Cell
    duration: Cell
    rows: Cell
    peak: Cell
    rarity: Cell | None
    mode: str
    worst: tuple[Markup, ...]
    why: EventDetail | None
    printed: bool


@dataclass(frozen=True)
class EventDetail:
    variables: list[dict[str, Any]]
    settings: list[str]
    neighbors: list[dict[str, str]]
    distance: str
    comparison: list[dict[str, Any]]
    rule: Markup
    rule_counts: str
    peak: str
    about: str
    seen_as: str


def event_card(findings: Findings, number_: int, peak: str, *, printed: bool) -> EventCard:
    """One event for the page. `peak` is its highest score in words; `printed`: its details go on paper too."""
    event, why = event_record(findings, number_), findings.explanations.get(number_)
    rank, rows = int(event["rank"]), int(event["rows"])
    length = "one row" if rows == 1 else duration(event["duration"])
    return EventCard(
        number=number_,
        rank=rank,
        when=Cell(when_and_where(event), float(findings.grouped.first_rows[number_ - 1])),
        duration=Cell(length, _seconds(event["duration"])),
        rows=Cell(f"{rows:,}", rows),
        peak=Cell(peak, float(event["peak_score"])),
        rarity=_rarity(findings, number_, event),
        mode=str(findings.modes[int(event["peak_row"])]),
        worst=tuple(name_tag(name) for name in (why.variables["variable"].tolist()[:_NAMED] if why else [])),
        why=None if why is None else _detail(findings, why, event, peak),
        printed=printed,
    )


def _rarity(findings: Findings, number_: int, event: dict[Any, Any]) -> Cell | None:
    """How many normal rows score as high as the peak, or the rank of that."""
    if findings.contributions is None:
        return None
    key = event["rank"] if findings.rates is None else event["false_alarm_rate"]
    return Cell(findings.rarity["figure"].loc[number_], float(key))


def when_and_where(event: dict[Any, Any]) -> str:
    """From its start to its end, and in which group, if there are groups."""
    when_ = span(event["start"], event["end"])
    return Markup("{}: {}").format(name_tag(event["group"]), when_) if "group" in event else when_


def event_record(findings: Findings, number: int) -> dict[Any, Any]:
    """A row of the table of events, by its columns."""
    return findings.events.iloc[number - 1].to_dict()


def _detail(findings: Findings, why: Explanation, event: dict[Any, Any], peak: str) -> EventDetail:
    rule, counts = _rule(why)
    return EventDetail(
        variables=[_variable(findings, row) for row in why.variables.to_dict("records")],
        settings=list(why.settings_text),
        neighbors=_neighbors(why.neighbors),
        distance="Distance along the tree" if why.along_tree else "Distance",
        comparison=_comparison(findings, why),
        rule=rule,
        rule_counts=counts,
        peak=when(event["peak"]),
        about=_about(findings, event, peak, why.rarity),
        seen_as=why.seen_as,
    )


def _variable(findings: Findings, row: dict[Any, Any]) -> dict[str, Any]:
    """A line of the table of variables; a share of 100 % is a full bar."""
    position = int(row["position"])
    actual, expected = numbers([row["actual"], row["expected"]])
    time = findings.table.time
    return {
        "name": name_tag(row["variable"]),
        "unit": row["unit"],
        "actual": actual,
        "expected": expected,
        "difference": _signed(row["difference"]),
        "share": percent(row["share"]),
        "width": f"{100 * row['share']:.1f}",
        "direction": row["direction"],
        "when": when(time[position] if time is not None else findings.table.values.index[position]),
    }


def _neighbors(neighbors: pd.DataFrame) -> list[dict[str, str]]:
    times = neighbors["time" if "time" in neighbors else "row"]
    columns = zip(times, numbers(neighbors["distance"]), numbers(neighbors["score"]), strict=True)
    return [{"when": when(time), "distance": distance, "score": score} for time, distance, score in columns]


def _comparison(findings: Findings, why: Explanation) -> list[dict[str, Any]]:
    """Variable, unit, and the cells: actual, expected, and each neighbour."""
    return [
        {"name": name_tag(str(name)), "unit": findings.units.get(str(name), ""), "cells": numbers(values.tolist())}
        for name, values in zip(why.comparison.index, why.comparison.to_numpy(dtype=float), strict=True)
    ]


def _rule(why: Explanation) -> tuple[Markup, str]:
    """The conditions in words, and how often they are right."""
    if why.rule is None:
        return Markup("No simple rule separates this event from normal rows."), ""
    rule = why.rule
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
    """The conditions on one variable.

    >>> print(in_words([Condition("flow", ">", 3.0, "m³/s")]))
    <bdi class="name">flow</bdi> above 3 m³/s
    >>> print(in_words([Condition("flow", "<=", 5.0, "m³/s"), Condition("flow", ">", 3.0, "m³/s")]))
    <bdi class="name">flow</bdi> above 3 and at most 5 m³/s
    """
    ordered = sorted(conditions, key=lambda each: each.operator, reverse=True)
    words = [f"{_SIGNS[each.operator]} {number(each.value)}" for each in ordered]
    unit = f" {ordered[-1].unit}" if ordered[-1].unit else ""
    return Markup("{} {}{}").format(name_tag(ordered[0].variable), " and ".join(words), unit)


def _seconds(length: Any) -> float:
    return length.total_seconds() if isinstance(length, pd.Timedelta) else float(length)


def _about(findings: Findings, event: dict[Any, Any], peak: str, rarity: str) -> str:
    """How severe it was, and when it was worst."""
    position = int(event["peak_row"])
    severity = f", {event['severity']:,.1f} times the threshold" if pd.notna(event.get("severity")) else ""
    seen = float(findings.seen[position])
    partly = f", with {percent(seen)} of the readings there" if seen < 1 else ""
    rare = f" {rarity[0].upper()}{rarity[1:]}." if rarity else ""
    return f"The score was highest at {when(event['peak'])}: {peak}{severity}{partly}.{rare}"


def _signed(value: float) -> str:
    text = number(value)
    return f"+{text}" if value > 0 else text


MOST_CHARTS = 6
_CONTEXT = 18  # rows before and after an event, at least
_MOST_CONTEXT = 500
_PLAIN = 240  # rows drawn one by one; of more, the lowest and highest in each span
_REACH = 3.0  # context ends where the sampling has a hole so many times as long as the context should be


def event_chart_data(findings: Findings, axis: Axis, event: int, variables: Sequence[str]) -> Packed:
    """One chart for each of the first `MOST_CHARTS` variables, over the same rows."""
    names = list(variables[:MOST_CHARTS])
    columns = [findings.names.index(name) for name in names]
    window = event_window(findings, axis, event)
    actual = findings.values.to_numpy()[window.start : window.stop, columns]
    expected = findings.expected.to_numpy()[window.start : window.stop, columns]
    kept = _kept(actual, axis, window)
    rows = window.start + kept
    first, last = int(findings.grouped.first_rows[event - 1]), int(findings.grouped.last_rows[event - 1])
    of_row = findings.grouped.of_row[rows]
    return {
        "places": pack_places(axis.places[rows]),
        "begins": _begins(axis, rows),
        "span": [float(axis.places[first]), float(axis.places[last])],
        "marked": np.flatnonzero(of_row == event).tolist(),
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
    """The rows of an event with as many before and after it, at least `_CONTEXT`, unless they are far away in time."""
    span = event_span(findings, event)
    context = min(max(_CONTEXT, span.stop - span.start), _MOST_CONTEXT)
    group = findings.table.span_of(span.start)
    low, high = max(group.start, span.start - context), min(group.stop, span.stop + context)
    if axis.step > 0:
        reach = _REACH * axis.step * context
        low = max(low, int(np.searchsorted(axis.places, axis.places[span.start] - reach)))
        high = min(high, int(np.searchsorted(axis.places, axis.places[span.stop - 1] + reach, side="right")))
    return slice(low, high)


def _kept(actual: np.ndarray[tuple[int, int], np.dtype[np.float64]], axis: Axis, window: slice) -> IndexArray:
    """Which rows of the window are drawn: those in which any of the variables has a peak."""
    length = window.stop - window.start
    if length <= _PLAIN:
        return np.arange(length, dtype=np.intp)
    stretches = np.cumsum(axis.begins[window]).astype(np.intp)
    places = axis.places[window]
    each = max(40, _PLAIN // max(1, actual.shape[1]))
    kept = [thin_out(np.nan_to_num(column), stretches, places, each) for column in actual.T]
    return np.unique(np.concatenate(kept)).astype(np.intp)


def _begins(axis: Axis, rows: IndexArray) -> list[int]:
    gaps = np.cumsum(axis.begins[rows[0] : rows[-1] + 1])[rows - rows[0]]
    found: list[int] = np.flatnonzero(np.diff(gaps, prepend=-1)).tolist()
    return found
