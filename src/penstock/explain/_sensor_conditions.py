"""Say what a sensor of an incident did: frozen, at zero, swapped with another, noisy; what a state switched to."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from penstock._types import FloatArray, IndexArray
from penstock.explain._incident_parts import FEWEST_ROWS, LEVEL, Series
from penstock.explain._spans import FEWEST_READINGS, Elsewhere

AT_ZERO, SWAPPED = "at zero", "swapped with"
CLEARLY = 2.0  # mean evidence of a sensor that is clearly wrong
STRONG = 0.4  # of the largest mean evidence: sensors below may be drawn along by the first, which explains them
_CHECKED = 8  # so many sensors of an incident are checked for conditions
_MANY_ROWS = 5  # unchanged readings in a row that can be called frozen
_MOVES = 0.2  # of its usual steps: a sensor with less stands still


@dataclass(frozen=True)
class IncidentSensor:
    """What one sensor did in an incident.

    Attributes
    ----------
    column : int
        Its number among the sensors.
    name : str
    onset : int
        The row in which it left its range: the first of the incident in which its reading is off. −1 if it did not.
    mean_evidence, peak_evidence : float
        Over the flagged rows of the incident; 1 is the edge of what is usual.
    direction : str
        "above" or "below" what was expected, by the median over the rows in which it is off; "above and below" if at
        least a quarter of these are on the other side.
    condition : str
        "at zero", "at the end of its range", "frozen", "frozen outside its range", "swapped with NAME", "much noisier
        than usual", "outside its range" (of all rows without incidents), or "" if none of these was recognised. Of a
        state "switched on", "switched from 1 to 2", or "off where it usually is on" and the like; of a column that
        never moved in the rows fitted to "moved for the first time".
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


def strong_sensors(sensors: tuple[IncidentSensor, ...]) -> list[IncidentSensor]:
    """Return the sensors that are out on average and not merely drawn along; at least the first, if it is ever out."""
    least = max(LEVEL, STRONG * max(sensor.mean_evidence for sensor in sensors))
    return [sensor for sensor in sensors if sensor.mean_evidence >= least] or [
        sensor for sensor in sensors[:1] if sensor.onset >= 0
    ]


def condition_in_words(sensor: IncidentSensor) -> str:
    """Return the condition of a sensor, with "possibly" in front where it is not certain; "" if none was recognised."""
    return sensor.condition if sensor.certain or not sensor.condition else f"possibly {sensor.condition}"


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


class History:
    """What sensors do in rows that belong to no incident; worked out once for each sensor that is asked for."""

    def __init__(self, elsewhere: Elsewhere) -> None:
        self.series, self.elsewhere = elsewhere.series, elsewhere
        self._known: dict[int, _Usual | None] = {}

    def of(self, column: int) -> _Usual | None:
        """Return what is usual for a sensor, None if there are too few readings to say."""
        if column not in self._known:
            self._known[column] = self._summarize(column)
        return self._known[column]

    def during(self, end: int, sensor: IncidentSensor) -> tuple[FloatArray, FloatArray]:
        """Return what a sensor read, and should have read, from its onset to the end of the incident."""
        rows = slice(sensor.onset, end + 1)
        return self.series.readings[rows, sensor.column], self.series.expected[rows, sensor.column]

    def others_move(self, column: int, first: int, length: int) -> bool:
        """Return whether at least half of the other sensors that usually move do so in some rows.

        A sensor moves if its steps are, on average, at least a fifth of its usual ones.
        """
        columns = [j for j, role in enumerate(self.series.roles) if role.is_reading and j != column]
        inside = np.abs(np.diff(self.series.readings[first : first + length, columns], axis=0))
        usual = self.elsewhere.mean_steps[columns]
        known = np.isfinite(inside)
        steps = np.where(known, inside, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
        movable = np.isfinite(usual) & (usual > 0) & known.any(axis=0)
        return bool(movable.any() and (steps >= _MOVES * usual)[movable].mean() >= 0.5)

    def _summarize(self, column: int) -> _Usual | None:
        values = np.where(self.elsewhere.rows, self.series.readings[:, column], np.nan)
        residuals = values - self.series.expected[:, column]
        known = values[np.isfinite(values)]
        differences = np.abs(residuals[np.isfinite(residuals)])
        inside = np.diff(self.series.segment) == 0
        steps = np.abs(np.diff(residuals)[inside])
        steps = steps[np.isfinite(steps)]
        if len(known) < FEWEST_READINGS or len(steps) < FEWEST_READINGS:
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


def name_conditions(
    history: History, rows: IndexArray, end: int, sensors: list[IncidentSensor]
) -> tuple[IncidentSensor, ...]:
    """Return the sensors with the conditions that are recognised; the first eight that left their range are checked.

    A strong sensor that is certainly at zero or frozen comes first: it explains why others are away from what is
    expected of them.
    """
    checked = [sensor for sensor in sensors[:_CHECKED] if sensor.onset >= 0]
    swapped = _swapped(history.series, rows, strong_sensors(tuple(sensors)))
    named = []
    for sensor in checked:
        usual = history.of(sensor.column)
        condition, certain = swapped.get(sensor.column, ("", False))
        if not history.series.roles[sensor.column].is_reading:
            condition = _state_condition(history, end, sensor)
            certain = True
        elif usual is not None:
            values, expected = history.during(end, sensor)
            constant = _constant_condition(history, usual, sensor, values, expected)
            condition, certain = constant if constant[0] else (condition, certain)
            if not condition:
                condition, certain = _moving_condition(usual, values, expected)
        named.append(replace(sensor, condition=condition, certain=certain))
    every = (*named, *sensors[len(checked) :])
    strong = strong_sensors(every)
    return tuple(sorted(every, key=lambda sensor: not (sensor in strong and has_failed(sensor))))


def _state_condition(history: History, end: int, sensor: IncidentSensor) -> str:
    """Say what a state did: it switched as the incident began, or is at another level than usual at such times.

    Of a column that never moved in the rows fitted to, that it moved.
    """
    series = history.series
    role = history.series.roles[sensor.column]
    if not role.levels:
        return "moved for the first time"
    first = int(np.flatnonzero(series.segment == series.segment[sensor.onset])[0])
    earlier = series.readings[first : sensor.onset, sensor.column]
    values, expected = history.during(end, sensor)
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


def has_failed(sensor: IncidentSensor) -> bool:
    return sensor.certain and sensor.condition.startswith((AT_ZERO, "frozen"))


def _constant_condition(
    history: History, usual: _Usual, sensor: IncidentSensor, values: FloatArray, expected: FloatArray
) -> tuple[str, bool]:
    """Recognise a sensor that reads one value: at zero, at the end of its range, frozen; and whether it is certain.

    The value must fill at least half of the rows from the sensor's onset to the end of the incident. A frozen sensor
    must read one value while other sensors move, and for longer than it ever did elsewhere, or where the others say
    that it should move; it is certain if both hold, or if it is longer and outside of the range.
    """
    length, begin = _longest_run(values)
    if length < FEWEST_ROWS or 2 * length < len(values):
        return "", False
    value = float(values[begin])
    wanted = expected[begin : begin + length]
    if value == 0 and usual.zeros < 0.2:
        return AT_ZERO, usual.zeros < 0.01
    for end, count, beyond in ((usual.low, usual.at_low, wanted < value), (usual.high, usual.at_high, wanted > value)):
        known = count >= _MANY_ROWS
        needed = bool(beyond.mean() > 0.5)
        if value == end and (known or needed):
            return "at the end of its range", known and needed
    wanted = wanted[np.isfinite(wanted)]
    longer = length > usual.unchanged
    moves = len(wanted) > 0 and bool(np.ptp(wanted) > 5 * usual.difference)
    if length < _MANY_ROWS or not (longer or moves):
        return "", False
    if not history.others_move(sensor.column, sensor.onset + begin, length):
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


def _swapped(series: Series, rows: IndexArray, strong: list[IncidentSensor]) -> dict[int, tuple[str, bool]]:
    """Return the condition of two sensors that read what is expected of each other, by their columns.

    They must be the only strong ones, and each be at most half as far from what is expected of the other as the other
    is itself; certain if it is at most a quarter. Sensors of different units, where these are known, are not compared.
    """
    if len(strong) != 2 or min(sensor.mean_evidence for sensor in strong) < CLEARLY:
        return {}
    columns = np.array([sensor.column for sensor in strong], dtype=np.intp)
    if not all(series.roles[column].is_reading for column in columns):
        return {}
    if len({series.units[column] for column in columns} - {""}) > 1:
        return {}
    readings, expected = series.readings[np.ix_(rows, columns)], series.expected[np.ix_(rows, columns)]
    known = np.isfinite(readings + expected).all(axis=1)
    own = np.abs(readings - expected)[known].sum(axis=0)
    other = np.abs(readings[:, ::-1] - expected)[known].sum(axis=0)
    if known.sum() < FEWEST_ROWS or (other > 0.5 * own).any():
        return {}
    certain = bool((other <= 0.25 * own).all())
    one, two = strong
    return {one.column: (f"{SWAPPED} {two.name}", certain), two.column: (f"{SWAPPED} {one.name}", certain)}
