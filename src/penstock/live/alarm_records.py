"""Records of alarms: verdicts that go in, alarms and their states, changes and notifications that come out.

All are plain frozen data, and those that come out can be written to JSON and read back.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from penstock._messages import counted
from penstock.certainty import about_figure
from penstock.explain import Label, Pattern, new_label_id

ALARM, NO_DATA, STALE_MODEL = "alarm", "no data", "stale model"  # what an alarm is about
LEADING = 3  # sensors that say whether two incidents have the same cause


class RefusedError(ValueError):
    """A request or an action cannot be accepted, and has changed nothing; `status` and `headers` are those of HTTP."""

    def __init__(self, message: str, status: int = 400, **headers: str) -> None:
        super().__init__(message)
        self.status, self.headers = status, headers


@dataclass(frozen=True)
class Sensor:
    """One sensor in a verdict: evidence (1 at the edge of what is usual), measured minus expected, and the reading.

    state : the reading in words ("on", "off"), if it is a state rather than a measurement.
    """

    name: str
    evidence: float = 1.0
    residual: float | None = None
    value: float | None = None
    state: str = ""


class SensorReadings(Mapping[str, float]):
    """The readings of a row by the name of the sensor, without those that are missing (NaN); made without a copy.

    >>> dict(SensorReadings({"flow": 0, "head": 1}, [3.5, float("nan")]))
    {'flow': 3.5}
    """

    def __init__(self, places: Mapping[str, int], row: Sequence[float]) -> None:
        self._places, self._row = places, row

    def __getitem__(self, name: str) -> float:
        value = float(self._row[self._places[name]])
        if not math.isfinite(value):
            raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[str]:
        return (name for name, place in self._places.items() if math.isfinite(self._row[place]))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def copied(self) -> SensorReadings:
        """Return the same with a row of its own, which keeps no larger array in memory."""
        return SensorReadings(self._places, [float(value) for value in self._row])


@dataclass(frozen=True)
class RowVerdict:
    """What a model says of one row of one asset.

    Parameters
    ----------
    asset : str
        Its name. Assets with names such as "plant1/pump3" are notified in one group, "plant1".
    time : float
        Seconds.
    score, threshold : float or None
        None: the row was not scored.
    expected_by_chance : float or None
        How many episodes of at least this score are expected in a day of normal data; None if that is not known.
    sensors : tuple of Sensor
        Those with evidence, the most first; also of rows below the threshold, if they are known: they
        show which sensor moved first.
    values : mapping, optional
        Readings by sensor; those of the last normal row are shown as the values before an alarm.
    reason : str
        Why the row was not scored.
    has_data : bool
        False for a row without any reading: it does not end *no data*.
    pattern : mapping, optional
        Evidence by sensor, with the sign of the deviation, of all sensors that are out; None: that of `sensors`.

    Examples
    --------
    >>> verdict = RowVerdict("plant1/pump3", 60.0, score=4.0, threshold=2.5)
    >>> verdict.score > verdict.threshold, verdict.has_data
    (True, True)
    """

    asset: str
    time: float
    score: float | None = None
    threshold: float | None = None
    expected_by_chance: float | None = None
    sensors: tuple[Sensor, ...] = ()
    values: Mapping[str, float] | None = None
    reason: str = ""
    has_data: bool = True
    pattern: Pattern | None = None

    def out_of_usual(self) -> Pattern:
        """Return the pattern of the row.

        >>> RowVerdict("a", 0.0, 5.0, 4.0, sensors=(Sensor("oil", 3.0, 4.5), Sensor("flow", 2.0, -0.1))).out_of_usual()
        {'oil': 3.0, 'flow': -2.0}
        """
        if self.pattern is not None:
            return self.pattern
        return {
            each.name: math.copysign(each.evidence, each.residual or 1.0) for each in self.sensors if each.evidence >= 1
        }


@dataclass(frozen=True)
class AlarmState:
    """The states of an alarm, after OPC UA Part 9; they do not depend on each other except as docs/alarms.md says."""

    active: bool = False
    acknowledged: bool = False
    confirmed: bool = False
    shelved: bool = False
    suppressed: bool = False
    out_of_service: bool = False
    latched: bool = False

    @property
    def in_use(self) -> bool:
        """Whether it is neither shelved nor suppressed nor out of service."""
        return not (self.shelved or self.suppressed or self.out_of_service)

    def names(self) -> list[str]:
        """Return the states that are true.

        >>> AlarmState(active=True, out_of_service=True).names()
        ['active', 'out_of_service']
        """
        return [name for name, value in vars(self).items() if value]


@dataclass(frozen=True)
class AlarmSensor:
    """A sensor behind an alarm.

    evidence : the highest so far.
    residual, value : measured minus expected and the reading, where the evidence was highest.
    moved : time from which on it was outside what is usual.
    before : its reading in the last normal row.
    state : the reading in words, if it is a state.
    """

    name: str
    evidence: float
    residual: float | None
    value: float | None
    moved: float
    before: float | None
    state: str = ""


@dataclass(frozen=True)
class Alarm:
    """An alarm: one asset, one cause, from the first row that was part of it to its closing. Times are in seconds.

    id : the same for the same input, also after a restart.
    about : ALARM, NO_DATA or STALE_MODEL.
    cause : the leading sensor and its direction, such as "oil_temp high"; in words where there is none.
    since, last : time of the first (before the on-delay) and the last row that was part of it.
    raised, ended : when it last became active, and when it last ended, after the off-delay; None while it is active.
    occurrences : how often it became active: fragments of one incident are one alarm.
    score, threshold : the highest score in terms of its threshold, and that threshold.
    expected_by_chance : of the highest score, see `RowVerdict`.
    sensors : the most evidence first.
    acknowledged_by, acknowledged_at : "" and None if it is not acknowledged.
    reason, comment : of the last action that had them.
    shelved_until : None where it is shelved: until it has ended.
    changes : how many it has had.
    pattern : the highest evidence of each sensor that was out, with the sign of the deviation then.
    known, known_as : the label of an earlier situation that it is like, and what that was ("rare but normal"); or "".
    """

    id: str
    asset: str
    about: str
    cause: str
    state: AlarmState
    since: float
    raised: float
    last: float
    ended: float | None = None
    occurrences: int = 1
    score: float | None = None
    threshold: float | None = None
    expected_by_chance: float | None = None
    sensors: tuple[AlarmSensor, ...] = ()
    acknowledged_by: str = ""
    acknowledged_at: float | None = None
    reason: str = ""
    comment: str = ""
    shelved_until: float | None = None
    changes: int = 0
    pattern: Pattern = field(default_factory=dict)
    known: str = ""
    known_as: str = ""

    @property
    def moved_first(self) -> tuple[str, ...]:
        """The sensors in the order in which they left what is usual."""
        return tuple(each.name for each in sorted(self.sensors, key=lambda each: each.moved))

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON and `from_dict`."""
        lists = {"state": self.state.names(), "sensors": [dict(vars(each)) for each in self.sensors]}
        return {**vars(self), **lists, "pattern": dict(self.pattern)}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Alarm:
        """Return the alarm of `as_dict`, or of a store; ValueError, TypeError or LookupError if it is none."""
        plain = {name: value for name, value in record.items() if name != "open"}
        state = AlarmState(**dict.fromkeys(record["state"], True))
        return cls(**{**plain, "state": state, "sensors": tuple(AlarmSensor(**each) for each in record["sensors"])})


@dataclass(frozen=True)
class Silence:
    """No notifications of assets whose name matches a pattern (`*` for any text), until a time.

    ended_by : a person who ends it before its time.
    """

    id: str
    pattern: str
    until: float
    who: str = ""
    reason: str = ""
    ended_by: str = ""


@dataclass(frozen=True)
class Change:
    """One change of an alarm.

    id : that of the alarm and a number: the same for the same input.
    kind : "raised", "returned", "updated", "ended", "closed", "re-alarmed", "unshelved", "silence ended"; of people one
        of `ACTIONS`, "silenced" and "silence ended".
    asset : for silences the pattern.
    before : None if the alarm is new.
    alarm : as it is after the change; None for silences.
    who, reason, comment : of an action of a person; "" for changes that came by themselves.
    quiet : why it is not notified ("shelved", "silenced", …); "" if it is.
    """

    id: str
    time: float
    kind: str
    asset: str
    before: AlarmState | None
    alarm: Alarm | None
    who: str = ""
    reason: str = ""
    comment: str = ""
    quiet: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON: `from` and `to` are the states before and after."""
        plain: dict[str, Any] = {"id": self.id, "time": self.time, "kind": self.kind, "asset": self.asset}
        said = {name: getattr(self, name) for name in ("who", "reason", "comment", "quiet") if getattr(self, name)}
        if self.alarm is None:
            return {**plain, **said}
        states = {"from": [] if self.before is None else self.before.names(), "to": self.alarm.state.names()}
        return {**plain, **states, **said, "alarm": self.alarm.as_dict()}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Change:
        """Return the change of `as_dict`; ValueError, TypeError or LookupError if it is none."""
        alarm = None if "alarm" not in record else Alarm.from_dict(record["alarm"])
        new = alarm is None or (record["kind"] == "raised" and not record["from"])
        before = None if new else AlarmState(**dict.fromkeys(record["from"], True))
        said = {name: record.get(name, "") for name in ("who", "reason", "comment", "quiet")}
        return cls(record["id"], float(record["time"]), record["kind"], record["asset"], before, alarm, **said)


@dataclass(frozen=True)
class Notification:
    """One message about all alarms of a group: what is new, what has ended, and what is active (ids of alarms).

    kind : "new" where something is new or has ended, "repeat" where something is still not acknowledged.
    id : the same for the same input, so that a receiver recognises a repetition.
    group : what is before the first "/" of the assets' names, "" without.
    """

    kind: str
    id: str
    time: float
    group: str
    new: tuple[str, ...]
    ended: tuple[str, ...]
    active: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON."""
        lists = {name: list(getattr(self, name)) for name in ("new", "ended", "active")}
        plain = {"id": self.id, "time": self.time, "kind": "notification", "group": self.group}
        return {**plain, "repeat": self.kind == "repeat", **lists}


Event = Change | Notification


@dataclass(frozen=True)
class AlarmAction:
    """What a person can do with an alarm: what it is then, the states that it needs, and those that it sets."""

    done: str
    needs: dict[str, bool] = field(default_factory=dict)
    sets: dict[str, bool] = field(default_factory=dict)


ACTIONS = {
    "acknowledge": AlarmAction("acknowledged", {"acknowledged": False}, {"acknowledged": True}),
    "confirm": AlarmAction("confirmed", {"acknowledged": True, "confirmed": False}, {"confirmed": True}),
    "reset": AlarmAction("reset", {"latched": True, "active": False, "acknowledged": True}, {"latched": False}),
    "shelve": AlarmAction("shelved", sets={"shelved": True}),
    "unshelve": AlarmAction("unshelved", {"shelved": True}, {"shelved": False}),
    "suppress": AlarmAction("suppressed", {"suppressed": False}, {"suppressed": True}),
    "unsuppress": AlarmAction("unsuppressed", {"suppressed": True}, {"suppressed": False}),
    "out_of_service": AlarmAction("out of service", {"out_of_service": False}, {"out_of_service": True}),
    "in_service": AlarmAction("in service", {"out_of_service": True}, {"out_of_service": False}),
    "comment": AlarmAction("commented"),
}


def alarm_in_words(alarm: Alarm) -> str:
    """Return one sentence for operators: what, how sure, which sensors.

    >>> state = AlarmState(active=True)
    >>> sensor = AlarmSensor("oil_temp", 3.0, 4.5, 61.5, 0.0, 56.0)
    >>> chance = {"expected_by_chance": 0.01}
    >>> alarm_in_words(Alarm("a-1", "a", ALARM, "oil_temp high", state, 0, 0, 0, **chance, sensors=(sensor,)))
    'a: oil_temp high; 61.5, expected 57, before 56; by chance fewer than 0.05 in 1 day'
    """
    words = alarm.cause if alarm.about == ALARM or not alarm.reason else f"{alarm.cause} ({alarm.reason})"
    for sensor in islice(alarm.sensors, 1):
        if sensor.value is not None and sensor.residual is not None and not sensor.state:
            words += f"; {sensor.value:.4g}, expected {sensor.value - sensor.residual:.4g}"
            words += "" if sensor.before is None else f", before {sensor.before:.4g}"
    if len(alarm.sensors) > 1:
        words += f"; first to move: {', '.join(alarm.moved_first[:LEADING])}"
    if alarm.expected_by_chance is not None:
        days = max(1, math.ceil((alarm.last - alarm.since) / 86_400))  # in less than a day a rate is no figure
        words += f"; by chance {about_figure(alarm.expected_by_chance * days)} in {counted(days, 'day')}"
    words += f"; known: {alarm.known_as}" if alarm.known_as else ""
    return f"{alarm.asset}: {words}"


def label_alarm(
    alarm: Alarm, reason: str, who: str, at: float, labels: Iterable[Label] = (), comment: str = ""
) -> Label:
    """Label an alarm with one of `REASONS`; if it is active, its period ends `at` these seconds of the data's clock.

    labels : all that there are, from which the new one differs by its id.

    >>> alarm = Alarm("unit1-3", "unit1", "alarm", "oil high", AlarmState(True), 60.0, 360.0, 420.0)
    >>> label_alarm(alarm, "rare but normal", "Ada", 600.0).id
    'unit1-3~1'
    """
    until = alarm.ended if alarm.ended is not None else max(at, alarm.last)
    label = Label(
        new_label_id(alarm.id, labels),
        alarm.id,
        alarm.asset,
        reason,
        who,
        at,
        alarm.since,
        until,
        alarm.pattern,
        comment,
    )
    label.check()
    return label
