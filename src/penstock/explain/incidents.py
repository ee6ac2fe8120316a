"""Put events of one cause together as incidents: when each was, of which kind, and which sensors were behind it.

`_incident_parts.py` decides which flagged rows have one cause, `_spans.py` from when to when it was and of which kind,
`_sensor_conditions.py` what each sensor did.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from penstock._messages import counted, listed, quoted
from penstock._types import IndexArray
from penstock.columns import InputRole
from penstock.columns.roles import DRIVER
from penstock.explain._incident_parts import LEVEL, IncidentPart, Series, merge_parts, split_event, walk
from penstock.explain._sensor_conditions import (
    AT_ZERO,
    CLEARLY,
    STRONG,
    SWAPPED,
    History,
    IncidentSensor,
    condition_in_words,
    has_failed,
    in_clause,
    name_conditions,
    strong_sensors,
)
from penstock.explain._spans import (
    Circumstance,
    Elsewhere,
    find_circumstances,
    find_runs,
    in_seldom_use,
    is_new_state,
    switched_at,
    while_switched,
)
from penstock.explain.events import USUAL_STEPS, EventClock, Events
from penstock.explain.situations import NORMAL, Label, Pattern, is_alike, likeness, strongest

_MOST_SIMILAR = 3
RELATIONS, NEW_STATE = "relations broken", "new state"
_FEW_OTHERS = 6  # sensors that may be out on average because one sensor is wrong
_SEVERAL = 3  # strong sensors: no single sensor is wrong
_LATE = 0.25  # what a sensor loses in the ranking if it leaves its range only at the end of the incident
_BOTH_WAYS = 0.25  # of the rows on the other side
_NAMED_ANYWAY = 3  # sensors of an incident in which none left its range
_SPANNED = 8  # so many strong sensors decide from when to when an incident was


@dataclass(frozen=True, eq=False)
class Incident:
    """Flagged rows of one cause.

    Attributes
    ----------
    number, rank : int
        In order of the rows, and by the highest score; both from 1.
    start, end : int
        The first and the last row in which one of its strong sensors is off.
    runs : tuple of (int, int)
        The first and last row of each run of such rows: one, unless it was interrupted.
    rows : array of int
        Its flagged rows; every flagged row belongs to one incident.
    peak : int
        The flagged row with the highest score.
    peak_score : float
    sensors : tuple of IncidentSensor
        Those that left their range, the one to look at first in front. If none did, the three with most evidence.
    source : str
        "sensor", "machine" or "unclear", where sensors contradict each other; "state" where they agree with each other,
        but are where they never were: unusual operation, such as a flood, a test or a setting.
    reason : str
        Why, as a sentence.
    similar : tuple of (int, float)
        Earlier incidents with a similar pattern: their numbers and the similarity, at most 1; the most similar first.
    pattern : mapping
        The highest evidence of each sensor that was out of what is usual, negative below what was expected.
    kind : str
        "relations broken" if sensors contradict each other, "new state" if they agree where they never were.
    moved_first : tuple of int
        The columns of the strong sensors that left their range first, the one to look at first in front; empty if none
        did. Strong are sensors with at least 0.4 of the largest mean evidence: others may be drawn along.
    circumstances : tuple of Circumstance
        Settings, states and drivers that moved with it, in order of time.
    known : Label or None
        What people said of an earlier one that it is like: the model keeps it.

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
    runs: tuple[tuple[int, int], ...]
    rows: IndexArray
    peak: int
    peak_score: float
    sensors: tuple[IncidentSensor, ...]
    source: str
    reason: str
    similar: tuple[tuple[int, float], ...]
    pattern: Pattern
    kind: str = RELATIONS
    moved_first: tuple[int, ...] = ()
    circumstances: tuple[Circumstance, ...] = ()
    known: Label | None = None

    @property
    def is_known_normal(self) -> bool:
        """Whether it is like a situation that people called rare but normal."""
        return self.known is not None and self.known.reason == NORMAL

    @property
    def wrong_sensors(self) -> tuple[IncidentSensor, ...]:
        """The sensor that alone is wrong, or two that are swapped; none if it is the machine, or not clear."""
        first = self.sensors[0]
        swapped = (sensor for sensor in self.sensors if sensor.condition == f"{SWAPPED} {first.name}")
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
    fitted_apart: bool = False,
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
    fitted_apart : whether the ranges of the roles are those of rows of another table, which was fitted to.

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
        fitted_apart=fitted_apart,
    )
    parts = [part for event in range(1, len(events) + 1) for part in split_event(series, events.rows_of(event))]
    parts.sort(key=lambda part: int(part.rows[0]))
    merged = merge_parts(series, parts)
    peaks = [int(part.rows[series.scores[part.rows].argmax()]) for part in merged]
    ranks = 1 + np.argsort(np.argsort([-series.scores[peak] for peak in peaks], kind="stable"))
    outside = np.ones(len(series.scores), dtype=np.bool_)
    for part in merged:
        outside[part.start : part.end + 1] = False
    elsewhere = Elsewhere(series, outside)
    history = History(elsewhere)
    found: list[Incident] = []
    for number, part in enumerate(merged):
        rows = part.rows
        pattern = _pattern(series, rows)
        alike = [(one.number, likeness(pattern, one.pattern)) for one in found if is_alike(pattern, one.pattern)]
        before = int(merged[number - 1].rows[-1]) if number else -1
        runs, ranked = _rank_sensors(elsewhere, part, before)
        start, end = runs[0][0], runs[-1][1]
        sensors = name_conditions(history, rows, end, ranked)
        named = {sensor.name for sensor in sensors}
        circumstances = tuple(each for each in find_circumstances(elsewhere, start, end) if each.name not in named)
        unusual = _unusual_operation(sensors, elsewhere, runs, circumstances)
        if found and _is_aftermath(series, found[-1], sensors, start, peaks[number]):
            unusual = ": it follows such operation directly, and is weaker"
        source, reason = _assess_source(sensors, series)
        if unusual:
            source = "state"
            reason = f"Unusual operation{unusual}."
        found.append(
            Incident(
                number=number + 1,
                rank=int(ranks[number]),
                start=start,
                end=end,
                runs=tuple(runs),
                rows=rows,
                peak=peaks[number],
                peak_score=float(series.scores[peaks[number]]),
                sensors=sensors,
                source=source,
                reason=reason,
                similar=tuple(sorted(alike, key=lambda each: -each[1])[:_MOST_SIMILAR]),
                pattern=pattern,
                kind=NEW_STATE if source == "state" else RELATIONS,
                moved_first=_moved_first(sensors),
                circumstances=circumstances,
            )
        )
    return tuple(found)


def _is_aftermath(series: Series, last: Incident, sensors: tuple[IncidentSensor, ...], start: int, peak: int) -> bool:
    """Return whether it only follows unusual operation: at most six rows after it, weaker, no sensor failed."""
    near = start - last.end - 1 <= USUAL_STEPS and series.segment[start] == series.segment[last.end]
    weaker = series.scores[peak] < last.peak_score
    return bool(last.kind == NEW_STATE and near and weaker and not any(map(has_failed, strong_sensors(sensors))))


def _pattern(series: Series, rows: IndexArray) -> dict[str, float]:
    """Return the highest evidence of each sensor that is out in some rows, with the sign of reading − expected then."""
    evidence = series.evidence[rows]
    highest = evidence.argmax(axis=0)
    columns = np.flatnonzero(evidence.max(axis=0) >= LEVEL)
    at = rows[highest[columns]]
    below = series.readings[at, columns] < series.expected[at, columns]
    values = np.where(below, -1.0, 1.0) * series.evidence[at, columns]
    return strongest({series.names[column]: float(value) for column, value in zip(columns, values, strict=True)})


def incident_table(incidents: Sequence[Incident], time: pd.DatetimeIndex | None = None) -> pd.DataFrame:
    """Return one row per incident, in order of the rows.

    incidents : from `find_incidents`.
    time : of all n rows. None: start, end and peak are row numbers, and the duration is the number of rows spanned.

    The index "incident" is the number; columns are start, end, duration (from start to end), runs (the start and end of
    each), rows (flagged ones), peak, peak_score, rank; kind; first_sensor (the one to look at first), first_out (the
    first of `Incident.moved_first`, "" if there is none), condition (of the first sensor, "possibly …" where it is not
    certain), sensors (how many left their range), source, reason, circumstances (as texts), similar (numbers of earlier
    incidents), known (what people said of a situation that it is like, "" if nothing).
    """
    spans = np.array([(one.start, one.end, one.peak) for one in incidents], dtype=np.intp).reshape(-1, 3)
    first, last, peak = spans.T
    clock = EventClock(0, time, np.zeros(0, np.intp))
    names = [{sensor.column: sensor.name for sensor in one.sensors} for one in incidents]
    columns: dict[str, Any] = {
        "start": clock.stamps(first),
        "end": clock.stamps(last),
        "duration": clock.between(first, last),
        "runs": [tuple(tuple(clock.stamps(np.array(run, np.intp)).tolist()) for run in one.runs) for one in incidents],
        "rows": np.array([len(one.rows) for one in incidents], np.int64),
        "peak": clock.stamps(peak),
        "peak_score": np.array([one.peak_score for one in incidents], np.float64),
        "rank": np.array([one.rank for one in incidents], np.int64),
        "kind": [one.kind for one in incidents],
        "first_sensor": [one.sensors[0].name for one in incidents],
        "first_out": [
            next((known[column] for column in one.moved_first), "") for one, known in zip(incidents, names, strict=True)
        ],
        "condition": [condition_in_words(one.sensors[0]) for one in incidents],
        "sensors": np.array([sum(sensor.onset >= 0 for sensor in one.sensors) for one in incidents], np.int64),
        "source": [one.source for one in incidents],
        "reason": [one.reason for one in incidents],
        "circumstances": [tuple(f"{each.name} {each.text}" for each in one.circumstances) for one in incidents],
        "similar": [tuple(number for number, _ in one.similar) for one in incidents],
        "known": ["" if one.known is None else one.known.in_words() for one in incidents],
    }
    return pd.DataFrame(columns, index=pd.RangeIndex(1, len(incidents) + 1, name="incident"))


def _moved_first(sensors: tuple[IncidentSensor, ...]) -> tuple[int, ...]:
    strong = strong_sensors(sensors)
    first = min((sensor.onset for sensor in strong), default=-1)
    return tuple(sensor.column for sensor in strong if sensor.onset == first)


def _rank_sensors(
    elsewhere: Elsewhere, part: IncidentPart, before: int
) -> tuple[list[tuple[int, int]], list[IncidentSensor]]:
    """Return the runs of an incident, and its sensors by mean evidence × (1 − onset / 4), onset from 0 to 1 of it.

    They are those that left their range; if none did, the three with most evidence. Ties are in order of the names.
    A sensor left its range in the first row in which its reading is off. Where it never is, but has the evidence, in
    the first row in which the evidence is out without a break up to the first flagged row in which it is.
    """
    series = elsewhere.series
    evidence = elsewhere.series.evidence[part.rows]
    out = evidence >= LEVEL
    first = np.where(out.any(axis=0), part.rows[out.argmax(axis=0)], -1)
    means = evidence.mean(axis=0)
    peaks = evidence.max(axis=0)
    left = np.flatnonzero(first >= 0)
    strong = left[np.argsort(-means[left], kind="stable")][:_SPANNED]
    strong = strong[means[strong] >= max(LEVEL, STRONG * means.max())] if len(strong) else strong
    runs = find_runs(elsewhere, part, strong if len(strong) else left, before)
    start, end = runs[0][0], runs[-1][1]
    rows = _rows_of(runs)
    onsets = np.full(len(means), -1)
    directions = {}
    for j in left.tolist() or range(len(means)):
        off = elsewhere.off(j, rows) > 1.0
        directions[j] = _direction(series, j, rows[off] if off.any() else part.rows)
        if first[j] >= 0:
            (onset,) = walk(series, np.array([j]), int(first[j]), part.start - 1, -1)
            onsets[j] = rows[off.argmax()] if off.any() else min(max(int(onset), start), end)
    late = np.where(onsets < 0, 1.0, (onsets - start) / (end - start + 1))
    keys = means * (1 - _LATE * late)
    order = sorted(directions, key=lambda j: (-keys[j], series.names[j]))
    return runs, [
        IncidentSensor(
            column=j,
            name=series.names[j],
            onset=int(onsets[j]),
            mean_evidence=float(means[j]),
            peak_evidence=float(peaks[j]),
            direction=directions[j],
        )
        for j in (order if len(left) else order[:_NAMED_ANYWAY])
    ]


def _rows_of(runs: Sequence[tuple[int, int]]) -> IndexArray:
    return np.concatenate([np.arange(first, last + 1) for first, last in runs])


def _direction(series: Series, column: int, rows: IndexArray) -> str:
    """Say on which side of what is expected a sensor is, by the median over some rows; both if it changes sides."""
    apart = series.readings[rows, column] - series.expected[rows, column]
    apart = apart[np.isfinite(apart)]
    above, below = int((apart > 0).sum()), int((apart < 0).sum())
    if min(above, below) >= _BOTH_WAYS * max(len(apart), 1):
        return "above and below"
    return "above" if above >= below else "below"


def _assess_source(sensors: tuple[IncidentSensor, ...], series: Series) -> tuple[str, str]:
    """Say whether one sensor contradicts the others, or the machine is behind it; why.

    A sensor that is wrong also draws the others away from what is expected of them, but less than itself. A state, or a
    column that never moved before, is no wrong sensor: whether it was meant to switch cannot be known.
    """
    strong = strong_sensors(sensors)
    first = sensors[0]
    name = quoted(first.name)
    words = condition_in_words(first)
    if len(series.names) == 1:
        return "unclear", "There is only one sensor: whether it or the machine is at fault cannot be known."
    failed = [sensor for sensor in strong if has_failed(sensor)]
    if failed or first.condition.startswith(SWAPPED):
        several = len(failed) > 1 or not failed
        more = f"; also see {listed(sensor.name for sensor in failed[1:])}" if len(failed) > 1 else ""
        return "sensor", f"Probably the sensor{'s' if several else ''}: {name} is {words}{more}."
    if len(strong) >= _SEVERAL:
        earliest = min(strong, key=lambda sensor: sensor.onset).name
        how = f"{len(strong)} sensors clearly left their range, {quoted(earliest)} first"
        return "machine", f"Probably the machine: {how}."
    others = _number_out(sensors) - len(strong)
    if len(strong) == 1 and not series.roles[first.column].is_reading and first.condition:
        return "unclear", f"{name} {in_clause(first)}, which the other readings do not explain."
    if len(strong) == 1 and first.mean_evidence >= CLEARLY and others <= _FEW_OTHERS:
        how = f" ({words})" if words else ""
        return "sensor", f"Probably the sensor: only {name}{how} clearly contradicts the others."
    names = listed(sensor.name for sensor in strong)
    less = f" and, less clearly, {counted(others, 'other sensor')}" if others > 0 else ""
    return "unclear", f"Not clear whether a sensor or the machine: {names}{less} left the usual range."


def _unusual_operation(
    sensors: tuple[IncidentSensor, ...],
    elsewhere: Elsewhere,
    runs: Sequence[tuple[int, int]],
    circumstances: Sequence[Circumstance],
) -> str:
    """Return why an incident is unusual operation, to be read after these words; "" if it is not."""
    series = elsewhere.series
    strong = strong_sensors(sensors)
    start, end = runs[0][0], runs[-1][1]
    since = "".join(f" since {quoted(each.name)} {each.text}" for each in circumstances[:1])
    if not strong:
        return f"{since}: no sensor contradicts the others, but the plant as a whole is where it never was"
    failed = [sensor for sensor in strong if has_failed(sensor)]
    stopped = len(failed) > 1 and bool(switched_at(elsewhere, start))  # several at zero: a machine was switched off
    if any(not (stopped and sensor.condition == AT_ZERO) for sensor in failed):
        return ""
    drivers = [name for name, role in zip(series.names, series.roles, strict=True) if role.role == DRIVER]
    driven = any(each.name in drivers for each in circumstances)
    is_state, new = is_new_state(elsewhere, _rows_of(runs), driven)
    if is_state and not sensors[0].condition.startswith(SWAPPED):
        if driven:
            return f"{since}: {new} sensors are where they never were"
        return f"{since}: the sensors agree with each other, but {new} of them are where they never were"
    chosen = in_seldom_use(elsewhere, start, end)
    # Where few sensors are out, one may be wrong, which is only seen while its machine runs.
    if not chosen and (len(strong) >= _SEVERAL or _number_out(sensors) > _FEW_OTHERS):
        chosen = while_switched(elsewhere, start, end)
    return f": {chosen}" if chosen else ""


def _number_out(sensors: Sequence[IncidentSensor]) -> int:
    return sum(sensor.mean_evidence >= LEVEL for sensor in sensors)
