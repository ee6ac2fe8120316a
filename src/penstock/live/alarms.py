"""Alarms from verdicts: a state machine without clock, threads or files; what it does depends on its input alone.

Verdicts of many assets go in, in the order in which they come; state changes and notifications come out. All times are
seconds of the data's clock (UTC since 1970, where there are dates). Timers are kept in the state: a book that was
restored goes on as if nothing had happened, and any cut of the input into pieces gives the same output.
docs/alarms.md has the rules and a table of the states.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import asdict, dataclass, field, fields, replace
from fnmatch import fnmatchcase
from statistics import median
from typing import Any, ClassVar

from penstock.explain import NORMAL, Label, Pattern, find_known, joined_patterns
from penstock.live.alarm_records import (
    ACTIONS,
    ALARM,
    LEADING,
    NO_DATA,
    STALE_MODEL,
    Alarm,
    AlarmSensor,
    AlarmState,
    Change,
    Event,
    Notification,
    RefusedError,
    RowVerdict,
    Sensor,
    SensorReadings,
    Silence,
)
from penstock.live.options import AlarmRules

_MOST_SENSORS = 12  # of an alarm
_STRONGER = 2.0  # times the evidence: other sensors are a cause of their own
_STEPS = 9  # the last ones, whose median is the usual step
_FEWEST_STEPS = 3
_MOST_SILENCES = 1000  # at once
_FARTHEST = 1e12  # seconds: beyond, adding a second or a day to a time may not change it, and timers would never end
_Said = tuple[str, str, str]  # who, reason and comment of an action
_UNSAID: _Said = ("", "", "")


@dataclass
class _Candidate:
    """Rows above the threshold that may become an alarm: since when, how many, and what they have shown."""

    since: float
    count: int = 0
    score: float = 0.0
    threshold: float = 0.0
    expected_by_chance: float | None = None
    sensors: list[AlarmSensor] = field(default_factory=list)
    pattern: Pattern = field(default_factory=dict)

    def add(self, row: _Candidate) -> None:
        """Add a row: its sensors, and its score if it is the highest."""
        self.count += row.count
        self.sensors = _joined(self.sensors, row.sensors)
        self.pattern = joined_patterns(self.pattern, row.pattern)
        if row.score - row.threshold > self.score - self.threshold:
            self.score, self.threshold, self.expected_by_chance = row.score, row.threshold, row.expected_by_chance


@dataclass
class _Asset:
    """What is known of one asset.

    time, data : of the last row, and of the last row with data.
    steps : the last ones between rows with data.
    moved : by sensor, since when it has been outside what is usual.
    before : the readings of the last normal row.
    stale : why its model was said to be stale.
    numbers : how many alarms it has had.
    """

    time: float
    data: float | None = None
    steps: list[float] = field(default_factory=list)
    moved: dict[str, float] = field(default_factory=dict)
    before: Mapping[str, float] = field(default_factory=dict)
    candidate: _Candidate | None = None
    stale: str = ""
    numbers: int = 0
    open: list[str] = field(default_factory=list)


@dataclass
class _Group:
    """What a group of assets was told: since when there is something to tell, when it was told last, and of what."""

    since: float | None = None
    last: float | None = None
    repeats: int = 0
    told: list[str] = field(default_factory=list)
    numbers: int = 0


class AlarmBook:
    """Turn verdicts into alarms, and keep what people do with them.

    Parameters
    ----------
    rules : AlarmRules, default=AlarmRules()

    Examples
    --------
    >>> book = AlarmBook(AlarmRules(on_delay="5min"))
    >>> rows = [RowVerdict("unit1", 60.0 * minute, score=9.0 * (minute > 2), threshold=4.0) for minute in range(12)]
    >>> [(event.kind, event.time) for event in book.update(rows)]
    [('raised', 480.0), ('new', 510.0)]
    >>> [alarm.id for alarm in book.active()]
    ['unit1-1']
    >>> [event.alarm.state.names() for event in book.act("acknowledge", "unit1-1", "Ada", 700.0, "fault")]
    [['active', 'acknowledged']]
    >>> AlarmBook.restore(book.state()).active() == book.active()
    True
    """

    VERSION: ClassVar[int] = 1

    def __init__(self, rules: AlarmRules | None = None) -> None:
        self.rules = rules or AlarmRules()
        self.rules.check()
        self._seconds = {
            each.name: self.rules.seconds(each.name) for each in fields(AlarmRules) if isinstance(each.default, str)
        }
        self._inhibits = [tuple(name.strip() for name in pair.split(">")) for pair in self.rules.inhibit]
        self._clock = -math.inf  # the time of the last input
        self._assets: dict[str, _Asset] = {}
        self._alarms: dict[str, Alarm] = {}
        self._low: dict[str, tuple[float, int]] = {}  # active alarms: since when, and for how many rows, not seen
        self._groups: dict[str, _Group] = {}
        self._silences: dict[str, Silence] = {}
        self._silence_numbers = 0
        self._labels: tuple[Label, ...] = ()
        self._due = math.inf  # no timer is due before
        self._events: list[Event] = []

    # What comes from the stream.

    def update(self, verdicts: Iterable[RowVerdict]) -> list[Event]:
        """Take verdicts in the order in which they came; timers that are due before each of them come first."""
        every = list(verdicts)
        for verdict in every:
            if not abs(verdict.time) < _FARTHEST:
                raise RefusedError(
                    f"The time of a verdict on {verdict.asset!r:.80} is {verdict.time}: give seconds.", 409
                )
        for verdict in every:
            if verdict.time >= self._due:
                self._pass_time(verdict.time)
            self._clock = verdict.time
            self._take(verdict)
        for name in {verdict.asset for verdict in every}:
            asset = self._assets[name]
            if isinstance(asset.before, SensorReadings):
                asset.before = asset.before.copied()
        return self._taken()

    def advance(self, now: float) -> list[Event]:
        """Let time pass: no data, ends of shelving and silences, re-alarms, notifications."""
        self._pass_time(now)
        return self._taken()

    def next_timer(self) -> float | None:
        """Return when the next timer is due; None if there is none."""
        return min((due for due, *_ in self._timers()), default=None)

    def model_state(self, asset: str, now: float, stale: str = "") -> list[Event]:
        """Say that the model of an asset is stale, and why; "" if it is not (any more)."""
        self._pass_time(now)
        known = self._assets.setdefault(asset, _Asset(self._clock))
        known.stale = stale
        self._check_model_age(asset, self._clock)
        return self._taken()

    def set_labels(self, labels: Iterable[Label], now: float | None = None) -> list[Event]:
        """Take what people said of earlier situations, instead of what they said before; they are no part of the state.

        Alarms that are like one of them are `known`, those like one that is rare but normal are not notified.
        now : active alarms are compared again at once; else with their next row.
        """
        self._labels = tuple(labels)
        if now is not None:
            self._pass_time(now)
            for alarm in self.active():
                if alarm.about == ALARM:
                    self._recognise(alarm, alarm.state, now)
        return self._taken()

    # What people do. An action that is not possible is an RefusedError, and has changed nothing.

    def act(
        self,
        action: str,
        alarm_id: str,
        who: str,
        now: float,
        reason: str = "",
        comment: str = "",
        until: float | None = None,
    ) -> list[Event]:
        """Do one of `ACTIONS` for a person, after the timers that are due; RefusedError if it cannot be done.

        until : when an alarm comes back that is shelved, again with another end if it was; None: when it has ended.
        """
        _check_person(who)
        before = self.alarm(alarm_id)
        changed: dict[str, Any] = {}
        if action == "acknowledge":
            changed = {"acknowledged_by": who, "acknowledged_at": now}
        elif action in ("shelve", "unshelve"):
            changed = {"shelved_until": until}
        if action == "shelve" and until is not None and not now < until < math.inf:
            raise RefusedError(f"Alarm {alarm_id!r:.80} must be shelved until a time in the future.", 409)
        if action == "shelve" and until is None and not before.state.active:
            raise RefusedError(f"Alarm {alarm_id!r:.80} has ended: shelve it until a time.", 409)
        timer, known = self.next_timer(), ACTIONS[action]
        is_due = timer is not None and timer <= now
        saved = deepcopy(vars(self)) if is_due else dict(vars(self))  # without a timer, only the clock goes on
        try:
            self._pass_time(now)
            alarm = self.alarm(alarm_id)
            for name, value in known.needs.items():
                if getattr(alarm.state, name) != value:
                    is_so = ("not " if value else "") + name.replace("_", " ")
                    raise RefusedError(f"Alarm {alarm_id} cannot be {known.done}: it is {is_so}.", 409)
        except RefusedError:
            vars(self).update(saved)
            raise
        state = replace(alarm.state, **known.sets)
        said = replace(alarm, reason=reason or alarm.reason, comment=comment or alarm.comment)
        self._change(known.done, replace(said, state=state, **changed), alarm.state, now, (who, reason, comment))
        self._pass_time(now)
        return self._taken()

    def silence(
        self, pattern: str, who: str, now: float, until: float, reason: str = "", comment: str = ""
    ) -> list[Event]:
        """Send no notifications of assets whose name matches the pattern, until a time."""
        _check_person(who)
        if not now < until < math.inf:
            raise RefusedError("A silence must end at a time in the future.", 409)
        if len(self._silences) >= _MOST_SILENCES:
            raise RefusedError(f"There are {_MOST_SILENCES} silences already; wait until some have ended.", 409)
        self._pass_time(now)
        self._silence_numbers += 1
        made = Silence(f"silence~{self._silence_numbers}", pattern, until, who, reason)
        self._silences[made.id] = made
        self._due = min(self._due, until)
        self._events.append(Change(f"{made.id}.1", self._clock, "silenced", pattern, None, None, who, reason, comment))
        return self._taken()

    def end_silence(self, silence_id: str, who: str, now: float) -> list[Event]:
        """End a silence before its time; RefusedError if there is none of this id."""
        _check_person(who)
        if silence_id not in self._silences:
            raise RefusedError(f"There is no silence {silence_id!r:.80}, or it has ended.", 404)
        self._silences[silence_id] = replace(self._silences[silence_id], until=now, ended_by=who)
        self._pass_time(now)
        return self._taken()

    # What there is.

    def silences(self) -> list[Silence]:
        """Return the silences that have not ended."""
        return list(self._silences.values())

    def alarm(self, alarm_id: str) -> Alarm:
        """Return an alarm that is not closed; RefusedError if there is none of this id."""
        if alarm_id not in self._alarms:
            raise RefusedError(f"There is no alarm {alarm_id!r:.80}, or it is closed.", 409)
        return self._alarms[alarm_id]

    def alarms(self) -> list[Alarm]:
        """Return all alarms that are not closed, the oldest first."""
        return list(self._alarms.values())

    def active(self) -> list[Alarm]:
        """Return those that are active."""
        return [alarm for alarm in self._alarms.values() if alarm.state.active]

    def quiet(self, alarm: Alarm) -> str:
        """Return why an alarm is not notified, such as "shelved", "silenced" or "rare but normal"; "" if it is."""
        if alarm.known_as == NORMAL:
            return NORMAL
        for name in ("shelved", "suppressed", "out_of_service"):
            if getattr(alarm.state, name):
                return name.replace("_", " ")
        if any(fnmatchcase(alarm.asset, silence.pattern) for silence in self._silences.values()):
            return "silenced"
        for source, target in self._inhibits:
            if target == alarm.asset:
                for other in self._open(source):
                    if other.state.active and not other.state.out_of_service:
                        return f"inhibited by {other.id}"
        return ""

    def state(self) -> dict[str, Any]:
        """Return everything that `restore` needs, as plain data for JSON."""
        return {
            "version": self.VERSION,
            "rules": {**vars(self.rules), "inhibit": list(self.rules.inhibit)},
            "clock": None if self._clock == -math.inf else self._clock,
            "assets": {name: _packed_asset(asset) for name, asset in self._assets.items()},
            "alarms": [alarm.as_dict() for alarm in self._alarms.values()],
            "low": {name: list(run) for name, run in self._low.items()},
            "groups": {name: asdict(group) for name, group in self._groups.items()},
            "silences": [dict(vars(silence)) for silence in self._silences.values()],
            "silence_numbers": self._silence_numbers,
        }

    @classmethod
    def restore(cls, state: dict[str, Any], rules: AlarmRules | None = None) -> AlarmBook:
        """Return a book that goes on from a state; ValueError if it is none. `rules`: other rules from now on."""
        try:
            if state["version"] != cls.VERSION:
                raise ValueError(f"it is of version {state['version']!r:.20}, not {cls.VERSION}")
            book = cls(rules or AlarmRules(**{**state["rules"], "inhibit": tuple(state["rules"]["inhibit"])}))
            book._clock = -math.inf if state["clock"] is None else float(state["clock"])
            book._assets = {name: _restored_asset(packed) for name, packed in state["assets"].items()}
            book._alarms = {packed["id"]: Alarm.from_dict(packed) for packed in state["alarms"]}
            book._low = {name: (float(since), int(count)) for name, (since, count) in state["low"].items()}
            book._groups = {name: _Group(**packed) for name, packed in state["groups"].items()}
            book._silences = {packed["id"]: Silence(**packed) for packed in state["silences"]}
            book._silence_numbers = int(state["silence_numbers"])
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise ValueError(f"This is no state of alarms: {error!s:.200}") from error
        book._due = -math.inf  # looked up at the next verdict
        return book

    # One row of one asset.

    def _take(self, verdict: RowVerdict) -> None:
        asset = self._assets.get(verdict.asset)
        if asset is None:
            asset = self._assets[verdict.asset] = _Asset(verdict.time)
        time = self._follow(asset, verdict)
        if verdict.has_data:
            self._take_data(verdict.asset, asset, time)
        score, threshold = verdict.score, verdict.threshold
        if score is None or threshold is None or not (math.isfinite(score) and math.isfinite(threshold)):
            return
        named = [sensor for sensor in verdict.sensors if sensor.evidence >= 1] or list(verdict.sensors[:1])
        asset.moved = {sensor.name: asset.moved.get(sensor.name, time) for sensor in named}
        active = [alarm for alarm in self._open(verdict.asset) if alarm.state.active and alarm.about == ALARM]
        if score > threshold:
            self._take_high(verdict, asset, time, named, active)
            return
        low = score <= threshold - self.rules.dead_band * abs(threshold)
        for alarm in active:
            self._watch_end(alarm, time, seen=not low)
        if low:
            asset.candidate = None
            if not active and verdict.values:
                asset.before = verdict.values

    def _follow(self, asset: _Asset, verdict: RowVerdict) -> float:
        """Return the time of a row: not before the last one, but where the clock was set back all begins anew."""
        if verdict.time < asset.time - self._patience(asset):
            asset.candidate, asset.data, asset.time = None, None, verdict.time
            for name in asset.open:
                self._low.pop(name, None)
        asset.time = max(asset.time, verdict.time)
        return asset.time

    def _take_data(self, name: str, asset: _Asset, time: float) -> None:
        """Note that a row with readings has come, which ends *no data*."""
        if asset.data is not None and time > asset.data:
            asset.steps = [*asset.steps, time - asset.data][-_STEPS:]
        asset.data = time
        if self._seconds["no_data"]:
            self._due = min(self._due, time + self._seconds["no_data"])
        for alarm in self._open(name):
            if alarm.about == NO_DATA and alarm.state.active:
                self._end(alarm, time)

    def _take_high(
        self, verdict: RowVerdict, asset: _Asset, time: float, named: list[Sensor], active: list[Alarm]
    ) -> None:
        """Take a row above the threshold: part of the active alarms with one of its sensors, else of the candidate."""
        leading = {sensor.name for sensor in named[:LEADING]}
        assert verdict.score is not None
        assert verdict.threshold is not None
        sensors = [
            AlarmSensor(each.name, each.evidence, each.residual, each.value, asset.moved[each.name],
                asset.before.get(each.name), each.state)
            for each in named
        ]  # fmt: skip
        row = _Candidate(
            time, 1, verdict.score, verdict.threshold, verdict.expected_by_chance, _joined([], sensors),
            verdict.out_of_usual(),
        )  # fmt: skip
        part_of_one = False
        for alarm in active:
            seen = _meets(leading, {sensor.name for sensor in alarm.sensors})
            self._watch_end(alarm, time, seen=seen)
            if seen:
                self._grow(alarm, row, time)
            part_of_one |= seen
        if part_of_one:
            asset.candidate = None
            return
        candidate = asset.candidate
        if candidate is None:
            candidate = asset.candidate = row
        else:
            candidate.add(row)
        if candidate.count > 1 and time - candidate.since >= self._seconds["on_delay"]:
            asset.candidate = None
            joined = next((alarm for alarm in active if self._is_joined(self._alarms[alarm.id], candidate)), None)
            if joined is None:
                self._raise(verdict.asset, asset, ALARM, _cause(candidate.sensors), time, candidate)
            else:
                self._low.pop(joined.id, None)
                self._grow(self._alarms[joined.id], candidate, time)

    def _is_joined(self, alarm: Alarm, rows: _Candidate) -> bool:
        """Return whether rows with other sensors are part of an alarm: soon after its own, and not much stronger."""
        mine, others = ([*sensors][:1] for sensors in (alarm.sensors, rows.sensors))
        stronger = bool(mine and others) and others[0].evidence > _STRONGER * mine[0].evidence
        return alarm.state.active and rows.since - alarm.last <= self._seconds["off_delay"] and not stronger

    def _watch_end(self, alarm: Alarm, time: float, *, seen: bool) -> None:
        """End an active alarm that was not seen for the off-delay, in two rows at least."""
        if seen:
            self._low.pop(alarm.id, None)
            return
        since, count = self._low.get(alarm.id, (time, 0))
        self._low[alarm.id] = (since, count + 1)
        long_enough = time - since >= self._seconds["off_delay"] and not (
            0 <= time - alarm.raised < self._seconds["min_duration"]
        )
        if count and long_enough:
            self._end(alarm, time)

    def _grow(self, alarm: Alarm, rows: _Candidate, time: float) -> None:
        """Add rows to an active alarm; a new leading sensor is a change."""
        grown = replace(_with_rows(alarm, rows), last=time)
        self._alarms[alarm.id] = grown
        if grown.pattern != alarm.pattern and self._recognise(grown, alarm.state, time):
            return
        if {each.name for each in grown.sensors[:LEADING]} - {each.name for each in alarm.sensors[:LEADING]}:
            self._change("updated", grown, alarm.state, time)

    def _recognise(self, alarm: Alarm, before: AlarmState, time: float) -> bool:
        """Look for a known situation that an alarm is like; return whether that has changed, which is told."""
        seen = self._with_known(alarm)
        if seen.known == alarm.known:
            return False
        self._change("recognised" if seen.known else "not recognised", seen, before, time)
        return True

    def _with_known(self, alarm: Alarm) -> Alarm:
        label = find_known(alarm.pattern, self._labels, alarm.asset) if self._labels else None
        known, known_as = ("", "") if label is None else (label.id, label.reason)
        return replace(alarm, known=known, known_as=known_as)

    # Changes that come by themselves.

    def _raise(
        self, name: str, asset: _Asset, about: str, cause: str, time: float, rows: _Candidate, reason: str = ""
    ) -> None:
        """Make an alarm active: one of the same cause that has not been over for long, or a new one."""
        leading = {sensor.name for sensor in rows.sensors[:LEADING]}
        for old in reversed(self._open(name)):
            same = old.about == about and _meets(leading, {each.name for each in old.sensors[:LEADING]})
            if old.state.active or not same or old.ended is None:
                continue
            kept = old.state.latched or not old.state.in_use
            if kept or rows.since - old.ended <= self._seconds["rejoin"]:
                alarm = _with_rows(old, rows) if about == ALARM else old
                occurrences, reason = old.occurrences + 1, reason or old.reason
                alarm = replace(alarm, raised=time, last=time, ended=None, occurrences=occurrences, reason=reason)
                kind = "returned"
                break
        else:
            asset.numbers += 1
            alarm = Alarm(
                f"{_plain(name)}-{asset.numbers}", name, about, cause, AlarmState(), rows.since, time, time,
                sensors=tuple(rows.sensors), reason=reason, pattern=rows.pattern,
            )  # fmt: skip
            if about == ALARM:
                alarm = replace(
                    alarm, score=rows.score, threshold=rows.threshold, expected_by_chance=rows.expected_by_chance
                )
            asset.open.append(alarm.id)
            kind = "raised"
        alarm = self._with_known(alarm) if about == ALARM else alarm
        before = alarm.state if kind == "returned" else None
        latched = alarm.state.latched or (self.rules.latching and about == ALARM)
        self._change(kind, replace(alarm, state=replace(alarm.state, active=True, latched=latched)), before, time)

    def _end(self, alarm: Alarm, time: float) -> None:
        """Make an alarm inactive."""
        self._low.pop(alarm.id, None)
        alarm = self._alarms[alarm.id]
        ended = replace(alarm, ended=time, state=replace(alarm.state, active=False))
        self._change("ended", ended, alarm.state, time)
        if alarm.state.shelved and alarm.shelved_until is None:
            self._unshelve(alarm.id, time)
        if alarm.about == ALARM:
            self._check_model_age(alarm.asset, self._clock)
        self._due = -math.inf

    def _check_model_age(self, name: str, time: float) -> None:
        """Raise or end *stale model*: as was said, or as an alarm that does not end shows."""
        limit, asset = self._seconds["stale_model"], self._assets[name]
        reason = asset.stale
        for alarm in self._open(name) if limit and not reason else ():
            if alarm.about == ALARM and alarm.state.active and time >= alarm.raised + limit:
                reason = f"{alarm.cause} has been reported for {limit / 86_400:g} days: repair it, or fit again"
        stale = [alarm for alarm in self._open(name) if alarm.about == STALE_MODEL and alarm.state.active]
        if reason and not stale:
            self._raise(name, asset, STALE_MODEL, STALE_MODEL, time, _Candidate(time), reason)
        elif stale and not reason:
            self._end(stale[0], time)

    def _unshelve(self, alarm_id: str, time: float) -> None:
        alarm = self._alarms[alarm_id]
        changed = replace(alarm, shelved_until=None, state=replace(alarm.state, shelved=False))
        self._change("unshelved", changed, alarm.state, time)

    def _end_silence(self, silence_id: str, time: float) -> None:
        ended = self._silences.pop(silence_id)
        change = Change(f"{silence_id}.2", time, "silence ended", ended.pattern, None, None, ended.ended_by)
        self._events.append(change)
        self._note_groups(time)

    def _change(self, kind: str, alarm: Alarm, before: AlarmState | None, time: float, said: _Said = _UNSAID) -> None:
        """Keep a changed alarm, and report it."""
        alarm = replace(alarm, changes=alarm.changes + 1)
        self._alarms[alarm.id] = alarm
        change_id = f"{alarm.id}.{alarm.changes}"
        self._events.append(Change(change_id, time, kind, alarm.asset, before, alarm, *said, self.quiet(alarm)))
        if kind == "closed":
            del self._alarms[alarm.id]
            self._assets[alarm.asset].open.remove(alarm.id)
        if kind not in ("updated", "commented"):
            self._due = -math.inf
            self._note_groups(time)

    # Timers.

    def _pass_time(self, now: float) -> None:
        """Let all timers act that are due, in order."""
        if not abs(now) < _FARTHEST:
            raise RefusedError(f"The time is {now}: give seconds.", 409)
        while (first := min(self._timers(), default=None)) is not None and first[0] <= now:
            due, _, name, act = first
            self._clock = min(max(self._clock, due), now)
            act(name, self._clock)
        self._due = math.inf if first is None else first[0]
        self._clock = now

    def _timers(self) -> Iterator[tuple[float, int, str, Callable[[str, float], None]]]:
        """Yield when a timer is due, which of those at the same time comes first, whose it is, and what it does."""
        rules = self._seconds
        for name, asset in self._assets.items():
            if rules["no_data"] and asset.data is not None and len(asset.steps) >= _FEWEST_STEPS:
                silent = any(alarm.about == NO_DATA and alarm.state.active for alarm in self._open(name))
                if not silent:
                    yield asset.data + self._patience(asset), 1, name, self._lose_data
        for alarm in self._alarms.values():
            state = alarm.state
            if state.shelved and alarm.shelved_until is not None:
                yield alarm.shelved_until, 2, alarm.id, self._unshelve
            if state.active and state.acknowledged and state.in_use and rules["re_alarm"]:
                yield (alarm.acknowledged_at or 0.0) + rules["re_alarm"], 3, alarm.id, self._re_alarm
            if state.active and alarm.about == ALARM and rules["stale_model"]:
                known = any(other.about == STALE_MODEL and other.state.active for other in self._open(alarm.asset))
                if not known:
                    yield alarm.raised + rules["stale_model"], 4, alarm.asset, self._check_model_age
            if alarm.ended is not None and state.in_use and not state.latched:
                done = state.acknowledged and (state.confirmed or not self.rules.confirm)
                yield alarm.ended + max(rules["rejoin"], 0.0 if done else rules["keep"]), 5, alarm.id, self._close
        for silence in self._silences.values():
            yield silence.until, 6, silence.id, self._end_silence
        for name, group in self._groups.items():
            due = self._notify_at(group)
            if due is not None:
                yield due, 7, name, self._notify

    def _lose_data(self, name: str, time: float) -> None:
        """Raise *no data*."""
        asset = self._assets[name]
        asset.candidate = None
        assert asset.data is not None
        self._raise(name, asset, NO_DATA, NO_DATA, time, _Candidate(asset.data))

    def _close(self, alarm_id: str, time: float) -> None:
        """Let go of an alarm that is over."""
        alarm = self._alarms[alarm_id]
        reason = "" if alarm.state.acknowledged else "not acknowledged"
        self._change("closed", alarm, alarm.state, time, ("", reason, ""))

    def _patience(self, asset: _Asset) -> float:
        """Return how long an asset may be without data."""
        return max(self._seconds["no_data"], 3 * median(asset.steps) if asset.steps else 0.0)

    def _re_alarm(self, alarm_id: str, time: float) -> None:
        """Ask again for an acknowledgement."""
        alarm = self._alarms[alarm_id]
        group = self._groups[_group_name(alarm.asset)]
        group.told = [name for name in group.told if name != alarm.id]
        state = replace(alarm.state, acknowledged=False, confirmed=False)
        changed = replace(alarm, state=state, acknowledged_by="", acknowledged_at=None)
        self._change("re-alarmed", changed, alarm.state, time)

    # Notifications.

    def _note_groups(self, time: float) -> None:
        """Start the wait of each group that has something to tell, and end that of others."""
        for alarm in self._alarms.values():
            self._groups.setdefault(_group_name(alarm.asset), _Group())
        for name, group in self._groups.items():
            new, ended = self._news(name, group)
            if not new and not ended:
                group.since = None
            elif group.since is None:
                group.since = time
        self._due = -math.inf

    def _news(self, name: str, group: _Group) -> tuple[list[str], list[str]]:
        """Return which alarms a group is to be notified of, and of the end of which."""
        new = [
            alarm.id
            for alarm in self._alarms.values()
            if alarm.state.active and not alarm.state.acknowledged and alarm.id not in group.told
            and _group_name(alarm.asset) == name and not self.quiet(alarm)
        ]  # fmt: skip
        ended = [told for told in group.told if told not in self._alarms or not self._alarms[told].state.active]
        return new, ended

    def _waiting(self, group: _Group) -> list[str]:
        """Return alarms that were notified and are not acknowledged."""
        told = [self._alarms[name] for name in group.told if name in self._alarms]
        return [a.id for a in told if a.state.active and not a.state.acknowledged and not self.quiet(a)]

    def _notify_at(self, group: _Group) -> float | None:
        rules = self._seconds
        if group.since is not None:
            earliest = group.since + rules["group_wait"]
            return earliest if group.last is None else max(earliest, group.last + rules["group_interval"])
        if group.last is not None and rules["repeat"] and self._waiting(group):
            return group.last + rules["repeat"] * 2.0 ** min(group.repeats, 50)
        return None

    def _notify(self, name: str, time: float) -> None:
        group = self._groups[name]
        new, ended = self._news(name, group)
        group.told = [told for told in group.told if told not in ended] + new
        group.since, group.last = None, time
        group.numbers += 1
        active = tuple(told for told in group.told if not self.quiet(self._alarms[told]))
        kind = "new" if new or ended else "repeat"
        group.repeats = group.repeats + 1 if kind == "repeat" else 0
        notification_id = f"{_plain(name) or 'all'}-n{group.numbers}"
        self._events.append(Notification(kind, notification_id, time, name, tuple(new), tuple(ended), active))

    # Steps that several of the above share.

    def _open(self, asset: str) -> list[Alarm]:
        """Return the alarms of an asset that are not closed, the oldest first."""
        known = self._assets.get(asset)
        return [self._alarms[name] for name in known.open] if known is not None else []

    def _taken(self) -> list[Event]:
        events, self._events = self._events, []
        return events


def _packed_asset(asset: _Asset) -> dict[str, Any]:
    candidate = None if asset.candidate is None else asdict(asset.candidate)
    copies = {"steps": list(asset.steps), "moved": dict(asset.moved), "open": list(asset.open)}
    return {**vars(asset), **copies, "before": dict(asset.before), "candidate": candidate}


def _restored_asset(packed: dict[str, Any]) -> _Asset:
    asset = _Asset(**packed)
    if packed["candidate"] is not None:
        asset.candidate = _Candidate(**packed["candidate"])
        asset.candidate.sensors = [AlarmSensor(**each) for each in packed["candidate"]["sensors"]]
    return asset


def _check_person(who: str) -> None:
    if not who.strip():
        raise RefusedError("An action needs the name of the person who does it.", 409)


def _meets(one: set[str], other: set[str]) -> bool:
    """Return whether two sets of leading sensors may have one cause: a common sensor, or one of them names none."""
    return not one or not other or not one.isdisjoint(other)


def _with_rows(alarm: Alarm, rows: _Candidate) -> Alarm:
    """Return an alarm with the sensors of rows, and their score if it is the highest."""
    if alarm.score is None or rows.score - rows.threshold > alarm.score - (alarm.threshold or 0.0):
        alarm = replace(alarm, score=rows.score, threshold=rows.threshold, expected_by_chance=rows.expected_by_chance)
    pattern = joined_patterns(alarm.pattern, rows.pattern)
    return replace(alarm, sensors=tuple(_joined(alarm.sensors, rows.sensors)), pattern=pattern)


def _joined(sensors: Iterable[AlarmSensor], others: Iterable[AlarmSensor]) -> list[AlarmSensor]:
    """Return sensors by evidence, the most first: of each the highest, when it first moved, its first value before."""
    found = {sensor.name: sensor for sensor in sensors}
    for other in others:
        known = found.setdefault(other.name, other)
        higher = other if other.evidence > known.evidence else known
        found[other.name] = replace(higher, moved=min(known.moved, other.moved), before=known.before)
        found = dict(sorted(found.items(), key=lambda pair: -pair[1].evidence)[:_MOST_SENSORS])
    return list(found.values())


def _cause(sensors: list[AlarmSensor]) -> str:
    if not sensors:
        return "unlike what was fitted"
    leading = sensors[0]
    if leading.state:
        return f"{leading.name} is {leading.state}"
    direction = "" if not leading.residual else " high" if leading.residual > 0 else " low"
    return f"{leading.name}{direction}"


def _group_name(asset: str) -> str:
    return asset.split("/", 1)[0] if "/" in asset else ""


def _plain(name: str) -> str:
    """Return a name for ids and addresses: with a few digits of its hash where characters had to be replaced."""
    plain = re.sub(r"[^A-Za-z0-9._/-]", "_", name)[:40]
    same = plain == name
    plain = plain.replace("/", ":")
    return plain if same else f"{plain}~{hashlib.sha256(name.encode()).hexdigest()[:6]}"
