"""Put events of one cause together as incidents: when each began, which sensors were behind it, and what they did.

The one idea: a sensor is *out* in a row if its evidence is at least 1, the edge of what is usual. What lies above 1,
averaged over the flagged rows, says which sensors an event is about; two events share a cause as far as these agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from penstock._messages import counted, listed, quoted
from penstock._types import FloatArray, IndexArray
from penstock.explain.events import USUAL_STEPS, Clock, Events

BoolArray = NDArray[np.bool_]
LEVEL = 1.0  # evidence at the edge of what is usual
_FEWEST_ROWS = 3  # flagged rows on each side of a split
_WINDOW = 24  # flagged rows before and after a split that are compared
_ROUNDING = 1e-6  # sums of evidence below this are rounding
_EQUAL = 1e-9  # cosines closer than this are equal: a row without excess makes no difference
_OTHER_SENSORS = 0.2  # patterns with a smaller cosine are of other sensors
_SAME_SENSORS = 0.7  # patterns with at least this cosine are of the same sensors
_STAYS = 0.5  # a sensor stays out if it keeps this share of its excess
_LEADING = 0.7  # of the largest mean evidence: sensors that decide on start and end
_FOLLOWING = 0.4  # of the largest mean evidence: sensors below may be drawn along by the first, which explains them
_CLEARLY = 2.0  # mean evidence of a sensor that is clearly wrong
_FEW_OTHERS = 6  # sensors that may be out on average because one sensor is wrong
_LATE = 0.25  # what a sensor loses in the ranking if it leaves its range only at the end of the incident
_MOST_SIMILAR = 3
_SWAPPED = "swapped with"
_NAMED_ANYWAY = 3  # sensors of an incident in which none left its range
_CHECKED = 8  # so many sensors of an incident are checked for conditions


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
        than usual", "outside its range" (of all rows without incidents), or "" if none of these was recognised.
    certain : bool
        Whether the condition is beyond doubt; if not, say "possibly".
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


@dataclass(frozen=True, eq=False)
class _Series:
    """The checked input: n rows, p sensors; `segment` numbers the stretches between starts."""

    scores: FloatArray
    evidence: FloatArray
    expected: FloatArray
    readings: FloatArray
    segment: IndexArray
    names: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class _Part:
    """Flagged rows, the sums of their evidence and of what lies above the level (p,), and from where to where."""

    rows: IndexArray
    evidence: FloatArray
    excess: FloatArray
    start: int
    end: int


def find_incidents(
    events: Events,
    scores: ArrayLike,
    evidence: ArrayLike,
    expected: ArrayLike,
    readings: ArrayLike,
    starts: ArrayLike,
    names: Sequence[str],
) -> tuple[Incident, ...]:
    """Put events together that have one cause, split those whose cause changes, and describe the sensors of each.

    Parameters
    ----------
    events : Events
        Of the flagged rows, from `group_events`.
    scores : array of shape (n,)
        High is anomalous. NaN only where a row is not flagged.
    evidence : array of shape (n, p)
        How far each sensor is from what is usual, 1 at its edge; 0 for settings, and where there is no reading.
    expected, readings : array of shape (n, p)
        What each sensor should have read, and what it read. NaN where there is none.
    starts : array of bool of shape (n,)
        Where the history begins anew (a gap, another run). No incident crosses such a row.
    names : sequence of str
        Of the p sensors.

    Returns
    -------
    tuple of Incident
        In order of their first flagged rows. Every flagged row belongs to exactly one.

    Examples
    --------
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
    series = _check_series(events, scores, evidence, expected, readings, starts, names)
    parts = [part for event in range(1, len(events) + 1) for part in _split(series, events.rows_of(event))]
    parts.sort(key=lambda part: int(part.rows[0]))
    merged = _merge(series, parts)
    peaks = [int(part.rows[series.scores[part.rows].argmax()]) for part in merged]
    order = np.argsort([-series.scores[peak] for peak in peaks], kind="stable")
    ranks = np.empty(len(merged), dtype=np.intp)
    ranks[order] = np.arange(1, len(merged) + 1)
    history = _History(series, merged)
    patterns = [_pattern(series, part) for part in merged]
    similar = _similar(patterns)
    found = []
    for number, part in enumerate(merged):
        sensors = _name_conditions(history, part, _rank_sensors(series, part))
        source, reason = _judge_source(sensors, len(series.names))
        found.append(
            Incident(
                number=number + 1,
                rank=int(ranks[number]),
                start=part.start,
                end=part.end,
                rows=part.rows,
                peak=peaks[number],
                peak_score=float(series.scores[peaks[number]]),
                sensors=sensors,
                source=source,
                reason=reason,
                similar=similar[number],
                pattern=patterns[number],
            )
        )
    return tuple(found)


def incident_table(incidents: Sequence[Incident], time: pd.DatetimeIndex | None = None) -> pd.DataFrame:
    """Return one row per incident, in order of the rows.

    Parameters
    ----------
    incidents : sequence of Incident
        From `find_incidents`.
    time : DatetimeIndex, optional
        Of all n rows. None: start, end and peak are row numbers, and the duration is the number of rows spanned.

    Returns
    -------
    DataFrame
        Index "incident" (the number); start, end, duration, rows (flagged ones), peak, peak_score, rank; first_sensor
        (the one to look at first), first_out (of its strong sensors the one that left its range first, "" if none did),
        condition (of the first sensor, "possibly …" where it is not certain), sensors (how many left their range),
        source, reason, similar (numbers of earlier incidents).

    Examples
    --------
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
    first, last, peak = (np.array([getattr(one, name) for one in incidents], np.intp) for name in _SPAN)
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


_SPAN = ("start", "end", "peak")


def condition_in_words(sensor: IncidentSensor) -> str:
    """Return the condition of a sensor, with "possibly" in front of it where it is not certain.

    Parameters
    ----------
    sensor : IncidentSensor
        Of an incident.

    Returns
    -------
    str
        "" if no condition was recognised.

    Examples
    --------
    >>> condition_in_words(IncidentSensor(0, "flow", 7, 2.0, 3.0, "above", "frozen", False))
    'possibly frozen'
    """
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


def _check_series(
    events: Events, scores: Any, evidence: Any, expected: Any, readings: Any, starts: Any, names: Sequence[str]
) -> _Series:
    """Return the input as arrays; raise if shapes differ, or evidence is missing or negative."""
    tables = {"evidence": evidence, "expected": expected, "readings": readings}
    tables = {name: np.asarray(values, dtype=np.float64) for name, values in tables.items()}
    values, begins = np.asarray(scores, dtype=np.float64), np.asarray(starts, dtype=np.bool_)
    n, p = len(events.of_row), len(names)
    for name, array in (*tables.items(), ("scores", values), ("starts", begins)):
        wanted = (n, p) if name in tables else (n,)
        if array.shape != wanted:
            raise ValueError(f"{name} has shape {array.shape}; the events and the names ask for {wanted}.")
    if p == 0:
        raise ValueError("There is no sensor: names is empty.")
    if not ((tables["evidence"] >= 0) & (tables["evidence"] < np.inf)).all():
        raise ValueError("evidence must be finite and not negative: 0 where a sensor is not judged or has no reading.")
    wrong = np.flatnonzero((events.of_row > 0) & np.isnan(values))
    if len(wrong):
        raise ValueError(f"Row {wrong[0]} is flagged, but its score is NaN.")
    return _Series(values, segment=np.cumsum(begins).astype(np.intp), names=tuple(map(str, names)), **tables)


def _split(series: _Series, rows: IndexArray) -> list[_Part]:
    """Split the flagged rows of one event where the history begins anew, and where the cause changes."""
    parts: list[_Part] = []
    for some in np.split(rows, 1 + np.flatnonzero(np.diff(series.segment[rows]))):
        excess = np.maximum(series.evidence[some] - LEVEL, 0.0)
        cuts = _changes_of_cause(excess)
        for own, above in zip(np.split(some, cuts), np.split(excess, cuts), strict=True):
            sums = series.evidence[own].sum(axis=0), above.sum(axis=0)
            parts.append(_Part(own, *sums, int(own[0]), int(own[-1])))
    return parts


def _changes_of_cause(excess: FloatArray) -> list[int]:
    """Return before which rows of the excess (m, p) the cause changes: up to 24 rows before against 24 rows from it on.

    Of neighbouring rows the first with the smallest cosine counts; parts have at least three rows.
    """
    m = len(excess)
    rows = np.arange(_FEWEST_ROWS, m - _FEWEST_ROWS + 1)
    if not len(rows):
        return []
    sums = np.concatenate([np.zeros((1, excess.shape[1])), np.cumsum(excess, axis=0)])
    first, last = np.maximum(rows - _WINDOW, 0), np.minimum(rows + _WINDOW, m)
    before, after = sums[rows] - sums[first], sums[last] - sums[rows]
    before[before < _ROUNDING] = 0.0
    after[after < _ROUNDING] = 0.0
    before /= (rows - first)[:, None]
    after /= (last - rows)[:, None]
    changes, cosines = np.flatnonzero(_cause_changes(before, after)), _cosine(before, after)
    cuts: list[int] = []
    for near in np.split(changes, 1 + np.flatnonzero(np.diff(changes) > 1)):
        if len(near):
            cut = int(rows[near[cosines[near] <= cosines[near].min() + _EQUAL][0]])
            if cut >= (cuts or [0])[-1] + _FEWEST_ROWS:
                cuts.append(cut)
    return cuts


def _cause_changes(one: FloatArray, other: FloatArray) -> Any:
    """Say whether two patterns (…, p) of mean excess have different causes: other sensors, and none of the old stays.

    The strongest sensor of either must have lost half of its excess in the other: a fault that spreads from one sensor
    to many is one cause. A pattern of zeros has no sensors, and so no other cause.
    """
    kept = np.maximum(_kept_of_strongest(one, other), _kept_of_strongest(other, one))
    return (_cosine(one, other) < _OTHER_SENSORS) & (kept < _STAYS)


def _kept_of_strongest(one: FloatArray, other: FloatArray) -> Any:
    strongest = one.argmax(axis=-1)[..., None]
    of_one, of_other = (np.take_along_axis(values, strongest, -1)[..., 0] for values in (one, other))
    return of_other / np.where(of_one > 0, of_one, 1.0)


def _cosine(one: FloatArray, other: FloatArray) -> Any:
    """Return the cosine of patterns (…, p), NaN if one is all 0."""
    lengths = np.sqrt((one**2).sum(axis=-1)) * np.sqrt((other**2).sum(axis=-1))
    return (one * other).sum(axis=-1) / np.where(lengths > 0, lengths, np.nan)


def _merge(series: _Series, parts: list[_Part]) -> list[_Part]:
    """Merge neighbours that touch in time unless their causes differ, or follow each other with the same sensors."""
    done: list[_Part] = []
    for number, part in enumerate(parts):
        following = int(parts[number + 1].rows[0]) if number + 1 < len(parts) else len(series.scores)
        current = _with_span(series, part, int(done[-1].rows[-1]) if done else -1, following)
        while done and _have_one_cause(series, done[-1], current):
            last = done.pop()
            both = _Part(
                np.concatenate([last.rows, current.rows]),
                last.evidence + current.evidence,
                last.excess + current.excess,
                last.start,
                current.end,
            )
            current = _with_span(series, both, int(done[-1].rows[-1]) if done else -1, following)
        done.append(current)
    return done


def _have_one_cause(series: _Series, one: _Part, other: _Part) -> bool:
    """Compare an incident with the next: no farther apart than the longer of them lasts, or six rows."""
    if series.segment[one.rows[0]] != series.segment[other.rows[0]]:
        return False
    patterns = one.excess / len(one.rows), other.excess / len(other.rows)
    apart = other.start - one.end - 1
    if apart <= 0:
        return not _cosine(*patterns) < _OTHER_SENSORS
    longer = max(one.end - one.start, other.end - other.start) + 1
    return bool(apart <= max(USUAL_STEPS, longer) and _cosine(*patterns) >= _SAME_SENSORS)


def _with_span(series: _Series, part: _Part, before: int, after: int) -> _Part:
    """Return the part with the rows in which its leading sensors leave their range and come back.

    The span holds no flagged row of a neighbour: it lies between the rows `before` and `after`.
    """
    leading = _leading(part)
    first, last = int(part.rows[0]), int(part.rows[-1])
    start = _walk(series, leading, first, before, -1).min(initial=first)
    end = _walk(series, leading, last, after, 1).max(initial=last)
    return replace(part, start=int(start), end=int(end))


def _leading(part: _Part) -> IndexArray:
    """Return the sensors that are out on average over the flagged rows; if there are none, those that are ever out."""
    mean = part.evidence / len(part.rows)
    leading = np.flatnonzero((mean >= LEVEL) & (mean >= _LEADING * mean.max()))
    return leading if len(leading) else np.flatnonzero(part.excess > 0)


def _walk(series: _Series, sensors: IndexArray, row: int, limit: int, step: int) -> IndexArray:
    """Return the farthest row that each sensor reaches from `row` while it is out, in one history, short of `limit`.

    Sensors that are not out in `row` stay there. Rows are looked at in blocks that double, so that the cost is that of
    the distance walked.
    """
    reached = np.full(len(sensors), row, dtype=np.intp)
    walking = np.arange(len(sensors))
    position, block = row, 16
    while len(walking) and position != limit:
        stop = position + step * block
        stop = max(stop, limit, -1) if step < 0 else min(stop, limit)
        rows = np.arange(position, stop, step)
        out = (series.evidence[np.ix_(rows, sensors[walking])] >= LEVEL) & (
            series.segment[rows] == series.segment[row]
        )[:, None]
        steps = np.where(out.all(axis=0), len(rows), out.argmin(axis=0))
        reached[walking] = np.where(steps > 0, position + step * (steps - 1), reached[walking])
        walking = walking[steps == len(rows)]
        position, block = stop, 2 * block
    return reached


def _pattern(series: _Series, part: _Part) -> FloatArray:
    """Return the mean excess of the evidence over the flagged rows with the sign of reading − expected."""
    rows = part.rows
    signs = np.nan_to_num(np.sign(series.readings[rows] - series.expected[rows]))
    pattern: FloatArray = (np.maximum(series.evidence[rows] - LEVEL, 0.0) * signs).mean(axis=0)
    return pattern


def _similar(patterns: list[FloatArray]) -> list[tuple[tuple[int, float], ...]]:
    """Return for each pattern the earlier ones of the same sensors in the same directions, the most similar first."""
    found: list[tuple[tuple[int, float], ...]] = []
    P = np.array(patterns)
    for number in range(len(P)):
        cosines = np.nan_to_num(_cosine(P[:number], P[number]))
        best = [int(k) for k in np.argsort(-cosines, kind="stable")[:_MOST_SIMILAR] if cosines[k] >= _SAME_SENSORS]
        found.append(tuple((k + 1, min(float(cosines[k]), 1.0)) for k in best))
    return found


def _onsets(series: _Series, part: _Part) -> IndexArray:
    """Return the row in which each sensor left its range, not before the part starts; −1 if it did not.

    That is back from the first flagged row in which it is out, as long as it is out.
    """
    out = series.evidence[part.rows] >= LEVEL
    first = np.where(out.any(axis=0), part.rows[out.argmax(axis=0)], -1)
    onsets = first.copy()
    for row in np.unique(first[first >= 0]):
        sensors = np.flatnonzero(first == row)
        onsets[sensors] = _walk(series, sensors, int(row), part.start - 1, -1)
    return onsets


def _rank_sensors(series: _Series, part: _Part) -> list[IncidentSensor]:
    """Return the sensors that left their range by mean evidence × (1 − onset / 4), onset from 0 to 1 of the incident.

    If none did, the three with most evidence. Ties are in order of the names.
    """
    evidence, onsets = series.evidence[part.rows], _onsets(series, part)
    means, peaks = evidence.mean(axis=0), evidence.max(axis=0)
    signs = np.nan_to_num(np.sign(series.readings[part.rows] - series.expected[part.rows]))
    lean = (evidence * signs).mean(axis=0)
    late = np.where(onsets < 0, 1.0, (onsets - part.start) / (part.end - part.start + 1))
    keys = means * (1 - _LATE * late)
    out = [j for j in range(len(means)) if onsets[j] >= 0]
    order = sorted(out or range(len(means)), key=lambda j: (-keys[j], series.names[j]))
    return [
        IncidentSensor(
            column=j,
            name=series.names[j],
            onset=int(onsets[j]),
            mean_evidence=float(means[j]),
            peak_evidence=float(peaks[j]),
            direction=_direction(float(lean[j]), float(means[j])),
        )
        for j in (order if out else order[:_NAMED_ANYWAY])
    ]


def _direction(lean: float, mean: float) -> str:
    if abs(lean) <= 0.5 * mean:
        return "above and below"
    return "above" if lean > 0 else "below"


class _History:
    """What sensors do in rows that belong to no incident; worked out once for each sensor that is asked for."""

    def __init__(self, series: _Series, parts: list[_Part]) -> None:
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

    def during(self, part: _Part, sensor: IncidentSensor) -> tuple[FloatArray, FloatArray]:
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


_FEWEST_READINGS = 30  # elsewhere, to say what is usual
_MANY_ROWS = 5  # unchanged readings in a row that can be called frozen


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


def _name_conditions(history: _History, part: _Part, sensors: list[IncidentSensor]) -> tuple[IncidentSensor, ...]:
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
        if usual is not None:
            values, expected = history.during(part, sensor)
            constant = _constant_condition(usual, values, expected)
            condition, certain = constant if constant[0] else (condition, certain)
            if not condition:
                condition, certain = _moving_condition(usual, values, expected)
        named.append(replace(sensor, condition=condition, certain=certain))
    every = (*named, *sensors[len(checked) :])
    strong = _strong(every)
    return tuple(sorted(every, key=lambda sensor: not (sensor in strong and _has_failed(sensor))))


def _has_failed(sensor: IncidentSensor) -> bool:
    return sensor.certain and sensor.condition.startswith(("at zero", "frozen"))


def _constant_condition(usual: _Usual, values: FloatArray, expected: FloatArray) -> tuple[str, bool]:
    """Recognise a sensor that reads one value: at zero, at the end of its range, frozen; and whether it is certain.

    The value must fill at least half of the rows from the sensor's onset to the end of the incident. A frozen sensor
    must read one value for longer than it ever did elsewhere, or while others say that it should move; it is certain
    if both hold, or if it is longer and outside of the range.
    """
    length, begin = _longest_run(values)
    if length < _FEWEST_ROWS or 2 * length < len(values):
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
        return "outside its range", bool(outside.sum() >= _FEWEST_ROWS and beyond > 0.05 * (usual.high - usual.low))
    return "", False


def _swapped(series: _Series, part: _Part, strong: list[IncidentSensor]) -> dict[int, tuple[str, bool]]:
    """Return the condition of two sensors that read what is expected of each other, by their columns.

    They must be the only strong ones, and each be at most half as far from what is expected of the other as the other
    is itself; certain if it is at most a quarter.
    """
    if len(strong) != 2 or min(sensor.mean_evidence for sensor in strong) < _CLEARLY:
        return {}
    columns = np.array([sensor.column for sensor in strong], dtype=np.intp)
    readings, expected = series.readings[np.ix_(part.rows, columns)], series.expected[np.ix_(part.rows, columns)]
    known = np.isfinite(readings + expected).all(axis=1)
    own = np.abs(readings - expected)[known].sum(axis=0)
    other = np.abs(readings[:, ::-1] - expected)[known].sum(axis=0)
    if known.sum() < _FEWEST_ROWS or (other > 0.5 * own).any():
        return {}
    certain = bool((other <= 0.25 * own).all())
    one, two = strong
    return {one.column: (f"{_SWAPPED} {two.name}", certain), two.column: (f"{_SWAPPED} {one.name}", certain)}


def _judge_source(sensors: tuple[IncidentSensor, ...], p: int) -> tuple[str, str]:
    """Say whether one sensor contradicts all others or the machine is behind an incident, and why.

    A sensor that is wrong also draws the others away from what is expected of them, but less than itself.
    """
    first, strong = sensors[0], _strong(sensors)
    name, words = quoted(first.name), condition_in_words(first)
    failed = [sensor for sensor in strong if _has_failed(sensor)]
    others = sum(sensor.mean_evidence >= LEVEL for sensor in sensors) - len(strong)
    source = "unclear"
    if not strong:
        source, reason = "state", "No single sensor left its range: the state of the machine as a whole is unusual."
    elif p == 1:
        reason = "There is only one sensor: whether it or the machine is at fault cannot be told."
    elif len(failed) > 1:
        more = listed(sensor.name for sensor in failed[1:])
        source, reason = "sensor", f"Probably the sensors: {name} is {words}; also see {more}."
    elif failed:
        source, reason = "sensor", f"Probably the sensor: {name} is {words}."
    elif first.condition.startswith(_SWAPPED):
        source, reason = "sensor", f"Probably the sensors: {name} is {words}."
    elif len(strong) >= 3:
        how = f"{len(strong)} sensors left their range, {quoted(_first_out(sensors))} first"
        source, reason = "machine", f"Probably the machine: {how}."
    elif len(strong) == 1 and first.mean_evidence >= _CLEARLY and others <= _FEW_OTHERS:
        told = f" ({words})" if words else ""
        source, reason = "sensor", f"Probably the sensor: only {name}{told} clearly contradicts the others."
    else:
        names = listed(sensor.name for sensor in strong)
        less = f" and, less clearly, {counted(others, 'other sensor')}" if others > 0 else ""
        reason = f"Not clear whether a sensor or the machine: {names}{less} left the usual range."
    return source, reason
