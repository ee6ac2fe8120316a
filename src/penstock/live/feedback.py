"""What people said of alarms, and what follows from it: pure data and functions, apart from the model.

Labels are kept in a record that only grows: a label, or its withdrawal. They name assets, periods and patterns of
sensors, nothing inside a model, so that they hold after a refit. docs/alarms.md says what each reason does.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.live.alarms import Alarm, AlarmSensor, Sensor, Verdict

REAL_DEFECT, SENSOR_DEFECT, MAINTENANCE = "real defect", "sensor defect", "maintenance"
SET_POINT, FALSE_ALARM = "set-point change", "false alarm"
REASONS = (REAL_DEFECT, SENSOR_DEFECT, SET_POINT, MAINTENANCE, FALSE_ALARM)
NOT_LEARNT = (REAL_DEFECT, SENSOR_DEFECT, MAINTENANCE)  # periods to leave out when a model is fitted again

NEAR = (0.9, 0.95, 0.98, 0.99)  # cosine from which on a situation is like that of a false alarm, the widest first
ALIKE = 0.8  # cosine from which on an alarm looks like an earlier one
MOST_SHARE = 0.05  # of the normal rows may have a raised threshold
_MARGIN = 0.1
_FEWEST_NORMAL, _MOST_NORMAL = 100, 1000  # rows

Pattern = Mapping[str, float]


@dataclass(frozen=True)
class Label:
    """What a person said of an alarm.

    reason : one of `REASONS`.
    at, since, until : when it was said, and of which period, in seconds.
    pattern : evidence by sensor, with the sign of the deviation, of sensors outside what is usual.
    deviations : measured minus expected where the evidence was highest, by sensor.
    score, threshold : the highest score of the alarm, and the threshold then: their ratio holds for other models, too.
    withdrawn_by, withdrawn_at : who took it back, and when; "" and None if it holds.
    """

    id: str
    alarm: str
    asset: str
    reason: str
    who: str
    at: float
    since: float
    until: float
    pattern: Pattern
    deviations: Pattern = field(default_factory=dict)
    score: float | None = None
    threshold: float | None = None
    comment: str = ""
    withdrawn_by: str = ""
    withdrawn_at: float | None = None

    @property
    def holds(self) -> bool:
        """Whether it was not taken back."""
        return self.withdrawn_at is None

    def raised(self, threshold: float) -> float:
        """Return the threshold that its alarm would not have reached by 10 % of what it was above its own."""
        if self.score is None or self.threshold is None:
            return threshold
        scale = abs(threshold / self.threshold) if self.threshold and threshold else 1.0
        return threshold + (1 + _MARGIN) * (self.score - self.threshold) * scale

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON and `from_dict`."""
        return {**vars(self), "pattern": dict(self.pattern), "deviations": dict(self.deviations)}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Label:
        """Return the label of `as_dict`; ValueError, TypeError or LookupError if it is none."""
        label = cls(**{**record, "withdrawn_by": record.get("withdrawn_by") or ""})
        _check(label)
        return label


def label_alarm(alarm: Alarm, reason: str, who: str, at: float, comment: str = "") -> Label:
    """Label an alarm with one of `REASONS`; if it is active, its period ends `at` these seconds of the data's clock.

    >>> from penstock.live.alarms import AlarmState
    >>> alarm = Alarm("unit1-3", "unit1", "alarm", "oil high", AlarmState(True), 60.0, 360.0, 420.0, changes=4)
    >>> label_alarm(alarm, "false alarm", "Ada", 600.0).id
    'unit1-3~4'
    """
    until = alarm.ended if alarm.ended is not None else max(at, alarm.last)
    pattern = pattern_of(alarm.sensors)
    deviations = {each.name: each.residual for each in alarm.sensors if each.residual and each.name in pattern}
    label = Label(
        f"{alarm.id}~{alarm.changes}", alarm.id, alarm.asset, reason, who, at, alarm.since, until, pattern, deviations,
        alarm.score, alarm.threshold, comment,
    )  # fmt: skip
    _check(label)
    return label


def _check(label: Label) -> None:
    if label.reason not in REASONS:
        raise ValueError(f"The reason must be one of {', '.join(REASONS)}; got {label.reason!r:.80}.")
    if not label.who.strip():
        raise ValueError("A label needs the name of the person who gives it.")
    numbers = [label.at, label.since, label.until, *label.pattern.values(), *label.deviations.values()]
    numbers += [value for value in (label.score, label.threshold) if value is not None]
    if not all(math.isfinite(float(value)) for value in numbers):
        raise ValueError(f"The times and numbers of label {label.id!r:.80} must be finite numbers.")


def labels_of(records: Iterable[Mapping[str, Any]]) -> list[Label]:
    """Return the labels of a record that only grows, in their order, those that were taken back too.

    A record is {"kind": "label", …} as of `Label.as_dict`, where the kind may be left out, or {"kind": "withdrawn",
    "id": …, "who": …, "at": …}.

    >>> label = Label("a~1", "a", "unit1", "maintenance", "Ada", 9.0, 0.0, 5.0, {})
    >>> taken_back = {"kind": "withdrawn", "id": "a~1", "who": "Bob", "at": 12.0}
    >>> [each.holds for each in labels_of([{"kind": "label", **label.as_dict()}, taken_back])]
    [False]
    """
    found: dict[str, Label] = {}
    for record in records:
        kind = record.get("kind", "label")
        if kind == "label":
            label = Label.from_dict({name: value for name, value in record.items() if name != "kind"})
            if label.id in found:
                raise ValueError(f"There are two labels {label.id!r:.80}.")
            found[label.id] = label
        elif kind == "withdrawn":
            if record["id"] not in found or not found[record["id"]].holds:
                raise ValueError(f"There is no label {record['id']!r:.80} to take back.")
            found[record["id"]] = replace(
                found[record["id"]], withdrawn_by=str(record["who"]), withdrawn_at=float(record["at"])
            )
        else:
            raise ValueError(f"kind must be label or withdrawn; got {kind!r:.80}.")
    return list(found.values())


def pattern_of(sensors: Iterable[Sensor | AlarmSensor]) -> dict[str, float]:
    """Return the evidence of sensors outside what is usual, negative where less was measured than expected.

    >>> pattern_of([Sensor("oil", 3.0, 4.5), Sensor("flow", 2.0, -0.1), Sensor("head", 1.0), Sensor("load", 0.9)])
    {'oil': 3.0, 'flow': -2.0, 'head': 1.0}
    """
    return {each.name: math.copysign(each.evidence, each.residual or 1.0) for each in sensors if each.evidence >= 1}


def similarity(one: Pattern, other: Pattern) -> float:
    """Return the cosine of two patterns; 0 if one of them is empty.

    >>> similarity({"oil": 3.0}, {"oil": 3.0, "flow": 4.0}), similarity({"oil": 3.0}, {"oil": -1.0})
    (0.6, -1.0)
    """
    lengths = math.hypot(*one.values()) * math.hypot(*other.values())
    return sum(value * other.get(name, 0.0) for name, value in one.items()) / lengths if lengths else 0.0


def likeness(sensors: Iterable[Sensor], label: Label) -> float:
    """Return the cosine of a row and a label.

    Evidence outlasts what caused it: where a sensor deviates by less than half as much as then, its sign says nothing,
    and is taken to be the same.
    """
    pattern = pattern_of(sensors)
    for sensor in sensors:
        then = label.deviations.get(sensor.name, 0.0)
        if sensor.name in pattern and abs(sensor.residual or 0.0) < 0.5 * abs(then):
            pattern[sensor.name] = math.copysign(sensor.evidence, then)
    return similarity(pattern, label.pattern)


def excluded_periods(labels: Iterable[Label]) -> list[tuple[float, float]]:
    """Return the periods that a model must not learn from, in order and without overlaps.

    >>> def label(reason, since, until):
    ...     return Label(f"{since}", "a", "unit1", reason, "Ada", 99.0, since, until, {})
    >>> excluded_periods([label("maintenance", 3, 5), label("real defect", 4, 7), label("false alarm", 20, 30)])
    [(3, 7)]
    """
    spans = sorted((label.since, label.until) for label in labels if label.holds and label.reason in NOT_LEARNT)
    joined: list[tuple[float, float]] = []
    for since, until in spans:
        if joined and since <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(until, joined[-1][1]))
        else:
            joined.append((since, until))
    return joined


def looks_like(alarm: Alarm, labels: Iterable[Label]) -> tuple[Label, float] | None:
    """Return the labelled defect that an alarm looks most like, and the cosine; None if it looks like none.

    Labels of real defects and sensor defects of the same asset count, except those of the alarm itself.
    """
    pattern = pattern_of(alarm.sensors)
    known = [
        (similarity(pattern, label.pattern), label)
        for label in labels
        if label.holds and label.reason in (REAL_DEFECT, SENSOR_DEFECT) and label.asset == alarm.asset
        and label.alarm != alarm.id
    ]  # fmt: skip
    best = max(known, key=lambda pair: (pair[0], pair[1].at), default=None)
    return None if best is None or best[0] < ALIKE else (best[1], best[0])


@dataclass(frozen=True)
class Effect:
    """What a false alarm does: from which cosine on thresholds are raised (None: nowhere); `share`: of normal rows."""

    label: Label
    near: float | None
    share: float


class Feedback:
    """Raise thresholds where people said that an alarm was false.

    A threshold is raised for rows whose pattern of evidence is like that of the false alarm (cosine of `NEAR`), by
    110 % of what the alarm was above its threshold, in proportion to the threshold. All labels together raise it for at
    most `MOST_SHARE` of the normal rows: a label for which that would be more gets a narrower limit, or has no effect.
    There is no effect before 100 normal rows are known. Without a label, or after it was taken back, verdicts are as
    before.

    >>> from penstock.live.alarms import AlarmSensor, AlarmState
    >>> oil = AlarmSensor("oil", 3.0, 4.5, 61.5, 0.0, None)
    >>> alarm = Alarm("a-1", "a", "alarm", "oil", AlarmState(True), 0, 0, 0, score=5.0, threshold=4.0, sensors=(oil,))
    >>> feedback = Feedback([label_alarm(alarm, "false alarm", "Ada", 600.0)])
    >>> for row in range(100):
    ...     _ = feedback.apply(Verdict("a", 60.0 * row, 0.0, 4.0))
    >>> feedback.apply(Verdict("a", 6060.0, 5.2, 4.0, sensors=(Sensor("oil", 3.1, 4.4),))).threshold
    5.1
    >>> feedback.apply(Verdict("a", 6060.0, 5.2, 4.0, sensors=(Sensor("flow", 3.1, 4.4),))).threshold
    4.0
    """

    def __init__(self, labels: Iterable[Label] = ()) -> None:
        self._normal: dict[str, list[tuple[Sensor, ...]]] = {}
        self._stride: dict[str, list[int]] = {}  # by asset: every so many-th normal row is kept, and how many came
        self.set_labels(labels)

    def set_labels(self, labels: Iterable[Label]) -> None:
        """Take labels instead of those before."""
        self.labels = tuple(labels)
        self._false = [
            each
            for each in self.labels
            if each.holds and each.reason == FALSE_ALARM and None not in (each.score, each.threshold)
        ]
        self._effects = {asset: self._bounded(asset) for asset in self._normal}

    def apply(self, verdict: Verdict) -> Verdict:
        """Return the verdict, with a raised threshold where it is like a false alarm; note normal rows."""
        score, threshold = verdict.score, verdict.threshold
        if not self._false or score is None or threshold is None:
            return verdict
        if score <= threshold:
            self._note(verdict)
            return verdict
        raised = threshold
        for effect in self.effects(verdict.asset):
            near, label = effect.near, effect.label
            if near is not None and likeness(verdict.sensors, label) >= near:
                raised = max(raised, label.raised(threshold))
        return verdict if raised == threshold else replace(verdict, threshold=raised)

    def effects(self, asset: str) -> list[Effect]:
        """Return what each false alarm of an asset does now."""
        return self._effects.get(asset, [])

    def state(self) -> dict[str, Any]:
        """Return the normal rows, as plain data for JSON; the labels are kept elsewhere."""
        return {
            "normal": {
                name: [[list(vars(s).values()) for s in row] for row in rows] for name, rows in self._normal.items()
            },
            "stride": {name: list(pair) for name, pair in self._stride.items()},
            "effects": {
                name: [[each.label.id, each.near, each.share] for each in effects]
                for name, effects in self._effects.items()
            },
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state; labels that were not there then take effect now."""
        self._normal = {
            name: [tuple(Sensor(*s) for s in row) for row in rows] for name, rows in state["normal"].items()
        }
        self._stride = {name: list(pair) for name, pair in state["stride"].items()}
        known = {label.id: label for label in self._false}
        for asset, saved in state["effects"].items():
            same = [name for name, *_ in saved] == [label.id for label in self._false if label.asset == asset]
            effects = [Effect(known[name], near, share) for name, near, share in saved] if same else None
            self._effects[asset] = self._bounded(asset) if effects is None else effects

    def _note(self, verdict: Verdict) -> None:
        """Keep every so many-th normal row, ever fewer, so that the whole past counts alike."""
        rows = self._normal.setdefault(verdict.asset, [])
        pair = self._stride.setdefault(verdict.asset, [1, 0])
        pair[1] += 1
        if pair[1] % pair[0]:
            return
        rows.append(tuple(sensor for sensor in verdict.sensors if sensor.evidence >= 1))
        if len(rows) >= _MOST_NORMAL:
            del rows[::2]
            pair[0] *= 2
        if len(rows) % _FEWEST_NORMAL == 0:
            self._effects[verdict.asset] = self._bounded(verdict.asset)

    def _bounded(self, asset: str) -> list[Effect]:
        normal = self._normal[asset]
        mine = [label for label in self._false if label.asset == asset]
        return bounded_effects(mine, normal) if len(normal) >= _FEWEST_NORMAL else []


def bounded_effects(labels: Sequence[Label], normal: Sequence[Sequence[Sensor]]) -> list[Effect]:
    """Return how wide each false alarm may act so that all together act on at most a share of the normal rows.

    The earlier label has the first say. `normal` are the sensors with evidence in each normal row.
    """
    taken: set[int] = set()
    effects = []
    for label in labels:
        alike = [likeness(row, label) for row in normal]
        for near in NEAR:
            mine = {place for place, cosine in enumerate(alike) if cosine >= near}
            if label.pattern and len(taken | mine) <= MOST_SHARE * len(normal):
                taken |= mine
                effects.append(Effect(label, near, len(mine) / len(normal)))
                break
        else:
            effects.append(Effect(label, None, len(mine) / len(normal)))
    return effects
