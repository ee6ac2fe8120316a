"""Put events of one cause together as incidents: when each began, which sensors were behind it, and what they did.

`_incident_parts.py` decides which flagged rows have one cause, `_incident_sensors.py` what the sensors did.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from penstock._types import FloatArray, IndexArray
from penstock.explain._incident_parts import LEVEL, SAME_SENSORS, check_series, cosine, merge_parts, split_event
from penstock.explain._incident_sensors import (
    History,
    IncidentSensor,
    condition_in_words,
    first_out,
    judge_source,
    name_conditions,
    rank_sensors,
)
from penstock.explain.events import Clock, Events

_MOST_SIMILAR = 3


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


def find_incidents(
    events: Events,
    scores: ArrayLike,
    evidence: ArrayLike,
    expected: ArrayLike,
    readings: ArrayLike,
    starts: ArrayLike,
    names: Sequence[str],
    units: Sequence[str] = (),
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

    Incidents are in order of their first flagged rows. Every flagged row belongs to exactly one.

    >>> from penstock.explain import group_events
    >>> evidence, expected = np.zeros((60, 3)), np.tile(np.sin(np.arange(60.0))[:, None], (1, 3))
    >>> readings = expected.copy()
    >>> evidence[20:32, 1], readings[20:32, 1] = 5.0, expected[19, 1]
    >>> scores = evidence.max(axis=1)
    >>> events = group_events(scores > 2, scores, None)
    >>> found = find_incidents(events, scores, evidence, expected, readings, np.arange(60) == 0, ["a", "b", "c"])
    >>> found[0].start, found[0].end, found[0].sensors[0].name, found[0].sensors[0].condition
    (20, 31, 'b', 'frozen')
    >>> found[0].reason
    "Probably the sensor: 'b' is frozen."
    """
    series = check_series(events, scores, evidence, expected, readings, starts, names, units)
    parts = [part for event in range(1, len(events) + 1) for part in split_event(series, events.rows_of(event))]
    parts.sort(key=lambda part: int(part.rows[0]))
    merged = merge_parts(series, parts)
    peaks = [int(part.rows[series.scores[part.rows].argmax()]) for part in merged]
    ranks = 1 + np.argsort(np.argsort([-series.scores[peak] for peak in peaks], kind="stable"))
    history = History(series, merged)
    patterns = np.zeros((len(merged), len(series.names)))  # mean excess with the sign of reading − expected
    found = []
    for number, part in enumerate(merged):
        rows = part.rows
        signs = np.nan_to_num(np.sign(series.readings[rows] - series.expected[rows]))
        patterns[number] = (np.maximum(series.evidence[rows] - LEVEL, 0.0) * signs).mean(axis=0)
        cosines = np.nan_to_num(cosine(patterns[:number], patterns[number]))
        best = [int(k) for k in np.argsort(-cosines, kind="stable")[:_MOST_SIMILAR] if cosines[k] >= SAME_SENSORS]
        sensors = name_conditions(history, part, rank_sensors(series, part))
        source, reason = judge_source(sensors, len(series.names))
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

    >>> from penstock.explain import group_events
    >>> evidence, readings = np.zeros((20, 2)), np.zeros((20, 2))
    >>> evidence[5:9, 0] = readings[5:9, 0] = 3.0
    >>> events = group_events(evidence[:, 0] > 2, evidence[:, 0], None)
    >>> starts = np.arange(20) == 0
    >>> found = find_incidents(events, evidence[:, 0], evidence, np.zeros((20, 2)), readings, starts, ["a", "b"])
    >>> incident_table(found)[["start", "end", "rows", "first_sensor", "source"]]
              start  end  rows first_sensor  source
    incident
    1             5    8     4            a  sensor
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
        "first_out": [first_out(one.sensors) for one in incidents],
        "condition": [condition_in_words(one.sensors[0]) for one in incidents],
        "sensors": np.array([sum(sensor.onset >= 0 for sensor in one.sensors) for one in incidents], np.int64),
        "source": [one.source for one in incidents],
        "reason": [one.reason for one in incidents],
        "similar": [tuple(number for number, _ in one.similar) for one in incidents],
    }
    return pd.DataFrame(columns, index=pd.RangeIndex(1, len(incidents) + 1, name="incident"))
