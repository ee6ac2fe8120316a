"""Put events of one cause together as incidents: when each began, which sensors were behind it, and what they did.

`_incident_parts.py` decides which flagged rows have one cause.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from penstock._messages import counted, listed, quoted
from penstock._types import FloatArray, IndexArray
from penstock.columns import InputRole
from penstock.explain._incident_parts import (
    FEWEST_ROWS,
    LEVEL,
    SAME_SENSORS,
    Part,
    Series,
    cosine,
    merge_parts,
    split_event,
    walk,
)
from penstock.explain.events import Clock, Events

_MOST_SIMILAR = 3
_FOLLOWING = 0.4  # of the largest mean evidence: sensors below may be drawn along by the first, which explains them
_CLEARLY = 2.0  # mean evidence of a sensor that is clearly wrong
_FEW_OTHERS = 6  # sensors that may be out on average because one sensor is wrong
_LATE = 0.25  # what a sensor loses in the ranking if it leaves its range only at the end of the incident
_SWAPPED = "swapped with"
_NAMED_ANYWAY = 3  # sensors of an incident in which none left its range
_CHECKED = 8  # so many sensors of an incident are checked for conditions
_FEWEST_READINGS = 30  # elsewhere, to say what is usual
_MANY_ROWS = 5  # unchanged readings in a row that can be called frozen


@dataclass(frozen=True)
class IncidentSensor:
    """What one sensor did in an incident.

    Attributes
    ----------
    column : int
        Its number among the sensors.
    name : str
    onset : int
        The row in which it left its range, −1 if it did not.
    mean_evidence, peak_evidence : float
        Over the flagged rows of the incident; 1 is the edge of what is usual.
    direction : str
        "above" or "below" what was expected, "above and below" if it went both ways.
    condition : str
        "at zero", "at the end of its range", "frozen", "frozen outside its range", "swapped with NAME", "much noisier
        than usual", "outside its range" (of all rows without incidents), or "" if none of these was recognised. Of a
        state "switched on", "switched from 1 to 2", or "off where it usually is on" and the like; of a column that
        never moved in the rows learnt from "moved for the first time".
    certain : bool
        Whether the condition is beyond doubt; if not, say "possibly".

    Examples
    --------
    >>> import penstock
    >>> first = penstock.detect(penstock.datasets.load_plant().table).incidents[0].sensors[0]
    >>> first.name, first.peak_evidence >= first.mean_evidence
    ('unit2_guide_vane_opening', True)
    """

    column: int
    name: str
    onset: int
    mean_evidence: float
    peak_evidence: float
    direction: str
    condition: str = ""
    certain: bool = False


@dataclass(frozen=True, eq=False)
class Incident:
    """Flagged rows of one cause.

    Attributes
    ----------
    number, rank : int
        In order of the rows, and by the highest score; both from 1.
    start, end : int
        From the row in which the first of its sensors left its range to the row in which the last one came back.
    rows : array of int
        Its flagged rows; every flagged row belongs to one incident.
    peak : int
        The flagged row with the highest score.
    peak_score : float
    sensors : tuple of IncidentSensor
        Those that left their range, the one to look at first in front. If none did, the three with most evidence.
    source : str
        "sensor", "machine", "state" (no single sensor left its range) or "unclear".
    reason : str
        Why, as a sentence.
    similar : tuple of (int, float)
        Earlier incidents with a similar pattern: their numbers and the similarity, at most 1; the most similar first.
    pattern : array of shape (p,)
        Mean evidence beyond the edge of what is usual, negative below what was expected.

    Examples
    --------
    >>> import penstock
    >>> incident = penstock.detect(penstock.datasets.load_plant().table).incidents[0]
    >>> incident.number, incident.source, incident.start <= incident.peak <= incident.end
    (1, 'machine', True)
    """

    number: int
    rank: int
    start: int
    end: int
    rows: IndexArray
    peak: int
    peak_score: float
    sensors: tuple[IncidentSensor, ...]
    source: str
    reason: str
    similar: tuple[tuple[int, float], ...]
    pattern: FloatArray

    @property
    def wrong_sensors(self) -> tuple[IncidentSensor, ...]:
        """The sensor that alone is wrong, or two that are swapped; none if it is the machine, or not clear."""
        first = self.sensors[0]
        swapped = (sensor for sensor in self.sensors if sensor.condition == f"{_SWAPPED} {first.name}")
        return (first, *swapped) if self.source == "sensor" else ()


def find_incidents(
    events: Events,
    scores: ArrayLike,
    evidence: ArrayLike,
    expected: ArrayLike,
    readings: ArrayLike,
    starts: ArrayLike,
    names: Sequence[str],
    units: Sequence[str] = (),
    roles: Sequence[InputRole] = (),
) -> tuple[Incident, ...]:
    """Put events together that have one cause, split those whose cause changes, and describe the sensors of each.

    events : of the flagged rows, from `group_events`.
    scores : (n,) high is anomalous. NaN only where a row is not flagged.
    evidence : (n, p) how far each sensor is from what is usual, 1 at its edge; 0 for settings, and where there is no
        reading.
    expected, readings : (n, p) what each sensor should have read, and what it read. NaN where there is none.
    starts : (n,) where a new history begins (a gap, another run). No incident crosses such a row.
    names : of the p sensors.
    units : of the p sensors, "" where one is not known. Sensors of different units are never said to be swapped.
    roles : of the p sensors. What a state does is said in its own words, and it is never said to be a wrong sensor.

    Incidents are in order of their first flagged rows. Every flagged row belongs to exactly one.
    """
    series = Series(
        scores=np.asarray(scores, dtype=np.float64),
        evidence=np.asarray(evidence, dtype=np.float64),
        expected=np.asarray(expected, dtype=np.float64),
        readings=np.asarray(readings, dtype=np.float64),
        segment=np.cumsum(starts).astype(np.intp),
        names=tuple(map(str, names)),
        units=tuple(units) or ("",) * len(names),
        roles=tuple(roles) or (InputRole(),) * len(names),
    )
    parts = [part for event in range(1, len(events) + 1) for part in split_event(series, events.rows_of(event))]
    parts.sort(key=lambda part: int(part.rows[0]))
    merged = merge_parts(series, parts)
    peaks = [int(part.rows[series.scores[part.rows].argmax()]) for part in merged]
    ranks = 1 + np.argsort(np.argsort([-series.scores[peak] for peak in peaks], kind="stable"))
    history = _History(series, merged)
    patterns = np.zeros((len(merged), len(series.names)))  # mean excess with the sign of reading − expected
    found = []
    for number, part in enumerate(merged):
        rows = part.rows
        signs = np.nan_to_num(np.sign(series.readings[rows] - series.expected[rows]))
        patterns[number] = (np.maximum(series.evidence[rows] - LEVEL, 0.0) * signs).mean(axis=0)
        cosines = np.nan_to_num(cosine(patterns[:number], patterns[number]))
        best = [int(k) for k in np.argsort(-cosines, kind="stable")[:_MOST_SIMILAR] if cosines[k] >= SAME_SENSORS]
        sensors = _name_conditions(history, part, _rank_sensors(series, part))
        source, reason = _judge_source(sensors, series)
        found.append(
            Incident(
                number=number + 1,
                rank=int(ranks[number]),
                start=part.start,
                end=part.end,
                rows=rows,
                peak=peaks[number],
                peak_score=float(series.scores[peaks[number]]),
                sensors=sensors,
                source=source,
                reason=reason,
                similar=tuple((k + 1, min(float(cosines[k]), 1.0)) for k in best),
                pattern=patterns[number],
            )
        )
    return tuple(found)


def incident_table(incidents: Sequence[Incident], time: pd.DatetimeIndex | None = None) -> pd.DataFrame:
    """Return one row per incident, in order of the rows.

    incidents : from `find_incidents`.
    time : of all n rows. None: start, end and peak are row numbers, and the duration is the number of rows spanned.

    The index "incident" is the number; columns are start, end, duration, rows (flagged ones), peak, peak_score, rank;
    first_sensor (the one to look at first), first_out (of its strong sensors the one that left its range first, "" if
    none did), condition (of the first sensor, "possibly …" where it is not certain), sensors (how many left their
    range), source, reason, similar (numbers of earlier incidents).
    """
    spans = np.array([(one.start, one.end, one.peak) for one in incidents], dtype=np.intp).reshape(-1, 3)
    first, last, peak = spans.T
    clock = Clock(0, time, np.zeros(0, np.intp))
    columns: dict[str, Any] = {
        "start": clock.stamps(first),
        "end": clock.stamps(last),
        "duration": clock.between(first, last),
        "rows": np.array([len(one.rows) for one in incidents], np.int64),
        "peak": clock.stamps(peak),
        "peak_score": np.array([one.peak_score for one in incidents], np.float64),
        "rank": np.array([one.rank for one in incidents], np.int64),
        "first_sensor": [one.sensors[0].name for one in incidents],
        "first_out": [_first_out(one.sensors) for one in incidents],
        "condition": [condition_in_words(one.sensors[0]) for one in incidents],
        "sensors": np.array([sum(sensor.onset >= 0 for sensor in one.sensors) for one in incidents], np.int64),
        "source": [one.source for one in incidents],
        "reason": [one.reason for one in incidents],
        "similar": [tuple(number for number, _ in one.similar) for one in incidents],
    }
    return pd.DataFrame(columns, index=pd.RangeIndex(1, len(incidents) + 1, name="incident"))


def condition_in_words(sensor: IncidentSensor) -> str:
    """Return the condition of a sensor, with "possibly" in front where it is not certain; "" if none was recognised."""
    return sensor.condition if sensor.certain or not sensor.condition else f"possibly {sensor.condition}"


def _strong(sensors: tuple[IncidentSensor, ...]) -> list[IncidentSensor]:
    """Return the sensors that are out on average and not merely drawn along; at least the first, if it is ever out."""
    least = max(LEVEL, _FOLLOWING * max(sensor.mean_evidence for sensor in sensors))
    return [sensor for sensor in sensors if sensor.mean_evidence >= least] or [
        sensor for sensor in sensors[:1] if sensor.onset >= 0
    ]


def _first_out(sensors: tuple[IncidentSensor, ...]) -> str:
    """Return the strong sensor that left its range first; of several the one ranked first."""
    strong = _strong(sensors)
    return min(strong, key=lambda sensor: sensor.onset).name if strong else ""


def _rank_sensors(series: Series, part: Part) -> list[IncidentSensor]:
    """Return the sensors that left their range by mean evidence × (1 − onset / 4), onset from 0 to 1 of the incident.

    If none did, the three with most evidence. Ties are in order of the names.
    """
    evidence = series.evidence[part.rows]
    # A sensor left its range where it was out without a break before the first flagged row in which it is out.
    out = evidence >= LEVEL
    first = np.where(out.any(axis=0), part.rows[out.argmax(axis=0)], -1)
    onsets = first.copy()
    for row in np.unique(first[first >= 0]):
        sensors = np.flatnonzero(first == row)
        onsets[sensors] = walk(series, sensors, int(row), part.start - 1, -1)
    means, peaks = evidence.mean(axis=0), evidence.max(axis=0)
    signs = np.nan_to_num(np.sign(series.readings[part.rows] - series.expected[part.rows]))
    lean = (evidence * signs).mean(axis=0)
    late = np.where(onsets < 0, 1.0, (onsets - part.start) / (part.end - part.start + 1))
    keys = means * (1 - _LATE * late)
    left = [j for j in range(len(means)) if onsets[j] >= 0]
    order = sorted(left or range(len(means)), key=lambda j: (-keys[j], series.names[j]))
    return [
        IncidentSensor(
            column=j,
            name=series.names[j],
            onset=int(onsets[j]),
            mean_evidence=float(means[j]),
            peak_evidence=float(peaks[j]),
            direction="above and below" if abs(lean[j]) <= 0.5 * means[j] else "above" if lean[j] > 0 else "below",
        )
        for j in (order if left else order[:_NAMED_ANYWAY])
    ]


@dataclass(frozen=True)
class _Usual:
    """Of one sensor: its range; the share of zeros; how many readings are at each end; the longest run of rows with one
    reading; the median distance from what is expected; the usual step of that distance from row to row.
    """

    low: float
    high: float
    zeros: float
    at_low: int
    at_high: int
    unchanged: int
    difference: float
    step: float


class _History:
    """What sensors do in rows that belong to no incident; worked out once for each sensor that is asked for."""

    def __init__(self, series: Series, parts: list[Part]) -> None:
        self.series = series
        self.elsewhere = np.ones(len(series.scores), dtype=np.bool_)
        for part in parts:
            self.elsewhere[part.start : part.end + 1] = False
        self._known: dict[int, _Usual | None] = {}

    def of(self, column: int) -> _Usual | None:
        """Return what is usual for a sensor, None if there are too few readings to say."""
        if column not in self._known:
            self._known[column] = self._learn(column)
        return self._known[column]

    def during(self, part: Part, sensor: IncidentSensor) -> tuple[FloatArray, FloatArray]:
        """Return what a sensor read, and should have read, from its onset to the end of the incident."""
        rows = slice(sensor.onset, part.end + 1)
        return self.series.readings[rows, sensor.column], self.series.expected[rows, sensor.column]

    def _learn(self, column: int) -> _Usual | None:
        values = np.where(self.elsewhere, self.series.readings[:, column], np.nan)
        residuals = values - self.series.expected[:, column]
        known, differences = values[np.isfinite(values)], np.abs(residuals[np.isfinite(residuals)])
        inside = np.diff(self.series.segment) == 0
        steps = np.abs(np.diff(residuals)[inside])
        steps = steps[np.isfinite(steps)]
        if len(known) < _FEWEST_READINGS or len(steps) < _FEWEST_READINGS:
            return None
        low, high = float(known.min()), float(known.max())
        return _Usual(
            low=low,
            high=high,
            zeros=float((known == 0).mean()),
            at_low=int((known == low).sum()),
            at_high=int((known == high).sum()),
            unchanged=_longest_run(values, self.series.segment)[0],
            difference=float(np.median(differences)),
            step=float(np.quantile(steps, 0.95)) / 1.96,  # the standard deviation, for a normal distribution
        )


def _longest_run(values: FloatArray, segment: IndexArray | None = None) -> tuple[int, int]:
    """Return the length of the longest run of equal readings in one history and where it begins; NaN ends a run."""
    if not np.isfinite(values).any():
        return 0, 0
    with np.errstate(invalid="ignore"):
        breaks = np.diff(values) != 0  # a step to or from NaN is NaN, which is not 0
    if segment is not None:
        breaks |= np.diff(segment) != 0
    begins = np.concatenate([[0], 1 + np.flatnonzero(breaks)])
    lengths = np.where(np.isfinite(values[begins]), np.diff(begins, append=len(values)), 0)
    longest = int(lengths.argmax())
    return int(lengths[longest]), int(begins[longest])


def _name_conditions(history: _History, part: Part, sensors: list[IncidentSensor]) -> tuple[IncidentSensor, ...]:
    """Return the sensors with the conditions that are recognised; the first eight that left their range are checked.

    A strong sensor that is certainly at zero or frozen comes first: it explains why others are away from what is
    expected of them.
    """
    checked = [sensor for sensor in sensors[:_CHECKED] if sensor.onset >= 0]
    swapped = _swapped(history.series, part, _strong(tuple(sensors)))
    named = []
    for sensor in checked:
        usual = history.of(sensor.column)
        condition, certain = swapped.get(sensor.column, ("", False))
        if not history.series.roles[sensor.column].is_reading:
            condition, certain = _state_condition(history, part, sensor), True
        elif usual is not None:
            values, expected = history.during(part, sensor)
            constant = _constant_condition(usual, values, expected)
            condition, certain = constant if constant[0] else (condition, certain)
            if not condition:
                condition, certain = _moving_condition(usual, values, expected)
        named.append(replace(sensor, condition=condition, certain=certain))
    every = (*named, *sensors[len(checked) :])
    strong = _strong(every)
    return tuple(sorted(every, key=lambda sensor: not (sensor in strong and _has_failed(sensor))))


def _state_condition(history: _History, part: Part, sensor: IncidentSensor) -> str:
    """Say what a state did: it switched as the incident began, or is at another level than usual at such times.

    Of a column that never moved in the rows learnt from, that it moved.
    """
    series, role = history.series, history.series.roles[sensor.column]
    if not role.levels:
        return "moved for the first time"
    first = int(np.flatnonzero(series.segment == series.segment[sensor.onset])[0])
    earlier = series.readings[first : sensor.onset, sensor.column]
    values, expected = history.during(part, sensor)
    earlier, values = earlier[np.isfinite(earlier)], values[np.isfinite(values)]
    if not len(values):
        return ""
    if len(earlier) and earlier[-1] != values[0]:
        after = role.in_words(float(values[0]))
        return f"switched {after}" if after in ("on", "off") else f"switched from {earlier[-1]:g} to {values[0]:g}"
    levels, counts = np.unique(values, return_counts=True)
    now = float(levels[counts.argmax()])
    known = expected[np.isfinite(expected)]
    usual = float(role.plausible(np.array([known.mean()]))[0]) if len(known) else now
    return role.in_words(now) if usual == now else f"{role.in_words(now)} where it usually is {role.in_words(usual)}"


def in_clause(sensor: IncidentSensor) -> str:
    """Return what a state did as the rest of a sentence: "switched on", "is off where it usually is on"."""
    return sensor.condition if sensor.condition.startswith(("switched", "moved")) else f"is {sensor.condition}"


def _has_failed(sensor: IncidentSensor) -> bool:
    return sensor.certain and sensor.condition.startswith(("at zero", "frozen"))


def _constant_condition(usual: _Usual, values: FloatArray, expected: FloatArray) -> tuple[str, bool]:
    """Recognise a sensor that reads one value: at zero, at the end of its range, frozen; and whether it is certain.

    The value must fill at least half of the rows from the sensor's onset to the end of the incident. A frozen sensor
    must read one value for longer than it ever did elsewhere, or while others say that it should move; it is certain
    if both hold, or if it is longer and outside of the range.
    """
    length, begin = _longest_run(values)
    if length < FEWEST_ROWS or 2 * length < len(values):
        return "", False
    value, wanted = float(values[begin]), expected[begin : begin + length]
    if value == 0 and usual.zeros < 0.2:
        return "at zero", usual.zeros < 0.01
    for end, count, beyond in ((usual.low, usual.at_low, wanted < value), (usual.high, usual.at_high, wanted > value)):
        known, needed = count >= _MANY_ROWS, bool(beyond.mean() > 0.5)
        if value == end and (known or needed):
            return "at the end of its range", known and needed
    wanted = wanted[np.isfinite(wanted)]
    longer, moves = length > usual.unchanged, len(wanted) > 0 and bool(np.ptp(wanted) > 5 * usual.difference)
    if length < _MANY_ROWS or not (longer or moves):
        return "", False
    inside = usual.low <= value <= usual.high
    return ("frozen", longer and moves) if inside else ("frozen outside its range", longer)


def _moving_condition(usual: _Usual, values: FloatArray, expected: FloatArray) -> tuple[str, bool]:
    """Recognise a sensor that is much noisier than usual or leaves the range of all other rows; and how certainly."""
    residuals = values - expected
    steps = np.diff(residuals)
    steps, residuals = steps[np.isfinite(steps)], residuals[np.isfinite(residuals)]
    if len(steps) >= _MANY_ROWS and usual.step > 0:
        times = float(np.median(np.abs(steps))) / 0.6745 / usual.step  # a single jump does not count
        restless = (steps**2).mean() > residuals.var()  # twice the variance for noise, little of it for a drift
        if restless and times > 3:
            return "much noisier than usual", times > 6
    outside = (values < usual.low) | (values > usual.high)
    if outside.any():
        beyond = np.nanmax(np.maximum(usual.low - values, values - usual.high))
        return "outside its range", bool(outside.sum() >= FEWEST_ROWS and beyond > 0.05 * (usual.high - usual.low))
    return "", False


def _swapped(series: Series, part: Part, strong: list[IncidentSensor]) -> dict[int, tuple[str, bool]]:
    """Return the condition of two sensors that read what is expected of each other, by their columns.

    They must be the only strong ones, and each be at most half as far from what is expected of the other as the other
    is itself; certain if it is at most a quarter. Sensors of different units, where these are known, are not compared.
    """
    if len(strong) != 2 or min(sensor.mean_evidence for sensor in strong) < _CLEARLY:
        return {}
    columns = np.array([sensor.column for sensor in strong], dtype=np.intp)
    if not all(series.roles[column].is_reading for column in columns):
        return {}
    if len({series.units[column] for column in columns} - {""}) > 1:
        return {}
    readings, expected = series.readings[np.ix_(part.rows, columns)], series.expected[np.ix_(part.rows, columns)]
    known = np.isfinite(readings + expected).all(axis=1)
    own = np.abs(readings - expected)[known].sum(axis=0)
    other = np.abs(readings[:, ::-1] - expected)[known].sum(axis=0)
    if known.sum() < FEWEST_ROWS or (other > 0.5 * own).any():
        return {}
    certain = bool((other <= 0.25 * own).all())
    one, two = strong
    return {one.column: (f"{_SWAPPED} {two.name}", certain), two.column: (f"{_SWAPPED} {one.name}", certain)}


def _judge_source(sensors: tuple[IncidentSensor, ...], series: Series) -> tuple[str, str]:
    """Say whether one sensor contradicts all others or the machine is behind an incident, and why.

    A sensor that is wrong also draws the others away from what is expected of them, but less than itself. A state, or a
    column that never moved before, is no wrong sensor: whether it was meant to switch cannot be known.
    """
    first, strong, p = sensors[0], _strong(sensors), len(series.names)
    name, words = quoted(first.name), condition_in_words(first)
    failed = [sensor for sensor in strong if _has_failed(sensor)]
    others = sum(sensor.mean_evidence >= LEVEL for sensor in sensors) - len(strong)
    source = "unclear"
    if not strong:
        source, reason = "state", "No single sensor left its range: the state of the machine as a whole is unusual."
    elif p == 1:
        reason = "There is only one sensor: whether it or the machine is at fault cannot be known."
    elif len(failed) > 1:
        more = listed(sensor.name for sensor in failed[1:])
        source, reason = "sensor", f"Probably the sensors: {name} is {words}; also see {more}."
    elif failed:
        source, reason = "sensor", f"Probably the sensor: {name} is {words}."
    elif first.condition.startswith(_SWAPPED):
        source, reason = "sensor", f"Probably the sensors: {name} is {words}."
    elif len(strong) >= 3:
        how = f"{len(strong)} sensors clearly left their range, {quoted(_first_out(sensors))} first"
        source, reason = "machine", f"Probably the machine: {how}."
    elif len(strong) == 1 and not series.roles[first.column].is_reading and first.condition:
        reason = f"{name} {in_clause(first)}, which the other readings do not explain."
    elif len(strong) == 1 and first.mean_evidence >= _CLEARLY and others <= _FEW_OTHERS:
        how = f" ({words})" if words else ""
        source, reason = "sensor", f"Probably the sensor: only {name}{how} clearly contradicts the others."
    else:
        names = listed(sensor.name for sensor in strong)
        less = f" and, less clearly, {counted(others, 'other sensor')}" if others > 0 else ""
        reason = f"Not clear whether a sensor or the machine: {names}{less} left the usual range."
    return source, reason
