"""Alarms from verdicts: a state machine without clock, threads or files; what it does depends on its input alone.

Verdicts of many assets go in, in the order in which they come; state changes and notifications come out. All times are
seconds of the data's clock (UTC since 1970, where there are dates). Timers are kept in the state: a book that was
restored goes on as if nothing had happened, and any cut of the input into pieces gives the same output.
docs/alarms.md has the rules and a table of the states.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from penstock.live.options import AlarmRules

__all__ = [
    "ALARM", "NO_DATA", "STALE_MODEL", "Alarm", "AlarmBook", "AlarmError", "AlarmRules", "AlarmSensor", "AlarmState",
    "Change", "Event", "Notification", "Sensor", "Silence", "Verdict",
]  # fmt: skip

ALARM, NO_DATA, STALE_MODEL = "alarm", "no data", "stale model"  # what an alarm is about


class AlarmError(ValueError):
    """An action that is not possible; the message says why."""


@dataclass(frozen=True)
class Sensor:
    """One sensor in a verdict: evidence (1 at the edge of what is usual), measured minus expected, and the reading."""

    name: str
    evidence: float = 1.0
    residual: float | None = None
    value: float | None = None


@dataclass(frozen=True)
class Verdict:
    """What a model says of one row of one asset.

    Parameters
    ----------
    asset : str
        Its name. Assets with names such as "plant1/pump3" are notified in one group, "plant1".
    time : float
        Seconds.
    score, threshold : float or None
        None: the row was not judged.
    by_chance : float or None
        How many episodes of at least this score are expected in a day of normal data; None if that is not known.
    sensors : tuple of Sensor
        Those with evidence, the most first; also of rows below the threshold, if they are known: which moved first
        is told from them.
    values : dict, optional
        Readings by sensor; those of the last normal row are shown as the values before an alarm.
    reason : str
        Why the row was not judged.
    has_data : bool
        False for a row without any reading: it does not end *no data*.
    """

    asset: str
    time: float
    score: float | None = None
    threshold: float | None = None
    by_chance: float | None = None
    sensors: tuple[Sensor, ...] = ()
    values: dict[str, float] | None = None
    reason: str = ""
    has_data: bool = True


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


@dataclass(frozen=True)
class AlarmSensor:
    """A sensor behind an alarm.

    Attributes
    ----------
    name : str
    evidence : float
        The highest so far.
    residual, value : float or None
        Measured minus expected and the reading, where the evidence was highest: `value - residual` was expected.
    moved : float
        Time from which on it was outside what is usual.
    before : float or None
        Its reading in the last normal row.
    """

    name: str
    evidence: float
    residual: float | None
    value: float | None
    moved: float
    before: float | None


@dataclass(frozen=True)
class Alarm:
    """An alarm: one asset, one cause, from the first row that was part of it to its closing.

    Attributes
    ----------
    id : str
        The same for the same input, also after a restart.
    asset, about : str
        `about` is ALARM, NO_DATA or STALE_MODEL.
    cause : str
        The leading sensor and its direction, such as "oil_temp high"; in words where there is none.
    state : AlarmState
    since : float
        Time of the first row that was part of it (before the on-delay).
    raised, ended : float or None
        When it last became active, and when it last ended; None while it is active.
    occurrences : int
        How often it became active: fragments of one incident are one alarm.
    score, threshold : float or None
        The highest score in terms of its threshold, and that threshold.
    by_chance : float or None
        Of the highest score, see `Verdict`.
    sensors : tuple of AlarmSensor
        The most evidence first.
    acknowledged_by, reason, comment : str
        Of the last action.
    shelved_until : float or None
        None while it is shelved: until it has ended.
    changes : int
        How many changes it has had.
    """

    id: str
    asset: str
    about: str
    cause: str
    state: AlarmState
    since: float
    raised: float
    ended: float | None = None
    occurrences: int = 1
    score: float | None = None
    threshold: float | None = None
    by_chance: float | None = None
    sensors: tuple[AlarmSensor, ...] = ()
    acknowledged_by: str = ""
    reason: str = ""
    comment: str = ""
    shelved_until: float | None = None
    changes: int = 0

    @property
    def moved_first(self) -> tuple[str, ...]:
        """The sensors in the order in which they left what is usual."""
        return tuple(each.name for each in sorted(self.sensors, key=lambda each: each.moved))

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON."""
        raise NotImplementedError


@dataclass(frozen=True)
class Silence:
    """No notifications of assets whose name matches a pattern (`*` for any text), until a time."""

    id: str
    pattern: str
    until: float
    who: str = ""
    reason: str = ""


@dataclass(frozen=True)
class Change:
    """One change of an alarm.

    Attributes
    ----------
    id : str
        That of the alarm and a number: the same for the same input.
    time : float
    kind : str
        "raised", "returned", "updated", "ended", "closed", "re-alarmed", "acknowledged", "confirmed", "reset", "shelved",
        "unshelved", "suppressed", "unsuppressed", "out of service", "in service", "commented", "silenced" or "silence ended".
    asset : str
        For the last two kinds the pattern.
    before : AlarmState or None
        None if the alarm is new.
    alarm : Alarm or None
        As it is after the change; None for silences.
    who, reason, comment : str
        Of an action of a person; "" for changes that came by themselves.
    quiet : str
        Why it is not notified ("shelved", "silenced", …); "" if it is.
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
        """Return plain data, for JSON."""
        raise NotImplementedError


@dataclass(frozen=True)
class Notification:
    """One message about all alarms of a group: what is new, what has ended, and what is active.

    Attributes
    ----------
    id : str
        The same for the same input; whoever gets it twice can tell.
    time : float
    group : str
        What is before the first "/" of the assets' names, "" without.
    kind : str
        "new", or "repeat" where nothing is new but something is active and not acknowledged.
    new, ended, active : tuples of str
        Ids of alarms.
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
        raise NotImplementedError


Event = Change | Notification


class AlarmBook:
    """Turn verdicts into alarms.

    Parameters
    ----------
    rules : AlarmRules, default=AlarmRules()
    """

    VERSION: ClassVar[int] = 1

    def __init__(self, rules: AlarmRules | None = None) -> None:
        raise NotImplementedError

    def update(self, verdicts: Iterable[Verdict]) -> list[Event]:
        """Take verdicts in the order in which they came; timers that are due before each of them come first."""
        raise NotImplementedError

    def advance(self, now: float) -> list[Event]:
        """Let time pass: no data, ends of shelving and silences, re-alarms, notifications."""
        raise NotImplementedError

    def next_timer(self) -> float | None:
        """Return when the next timer is due; None if there is none."""
        raise NotImplementedError

    def model_state(self, asset: str, now: float, stale: str = "") -> list[Event]:
        """Say that the model of an asset is stale, and why; "" if it is not (any more)."""
        raise NotImplementedError

    def acknowledge(self, alarm_id: str, who: str, now: float, reason: str = "", comment: str = "") -> list[Event]:
        """Note that a person has seen the alarm."""
        raise NotImplementedError

    def confirm(self, alarm_id: str, who: str, now: float, reason: str = "", comment: str = "") -> list[Event]:
        """Note that what had to be done was done; the alarm must be acknowledged."""
        raise NotImplementedError

    def reset(self, alarm_id: str, who: str, now: float, reason: str = "", comment: str = "") -> list[Event]:
        """End the latching of an alarm that has ended and is acknowledged."""
        raise NotImplementedError

    def shelve(
        self, alarm_id: str, who: str, now: float, until: float | None, reason: str = "", comment: str = ""
    ) -> list[Event]:
        """Put an alarm aside until a time; None: until it has ended."""
        raise NotImplementedError

    def unshelve(self, alarm_id: str, who: str, now: float, reason: str = "", comment: str = "") -> list[Event]:
        """Take an alarm back from the shelf."""
        raise NotImplementedError

    def suppress(self, alarm_id: str, who: str, now: float, reason: str = "", comment: str = "") -> list[Event]:
        """Suppress an alarm, for a reason of the plant (a part that does not run)."""
        raise NotImplementedError

    def unsuppress(self, alarm_id: str, who: str, now: float, reason: str = "", comment: str = "") -> list[Event]:
        """End the suppression."""
        raise NotImplementedError

    def out_of_service(self, alarm_id: str, who: str, now: float, reason: str = "", comment: str = "") -> list[Event]:
        """Take an alarm out of service, for maintenance."""
        raise NotImplementedError

    def in_service(self, alarm_id: str, who: str, now: float, reason: str = "", comment: str = "") -> list[Event]:
        """Put an alarm in service again."""
        raise NotImplementedError

    def comment(self, alarm_id: str, who: str, now: float, reason: str = "", comment: str = "") -> list[Event]:
        """Add a comment."""
        raise NotImplementedError

    def silence(
        self, pattern: str, who: str, now: float, until: float, reason: str = "", comment: str = ""
    ) -> list[Event]:
        """Send no notifications of assets whose name matches the pattern, until a time."""
        raise NotImplementedError

    def unsilence(self, silence_id: str, who: str, now: float, reason: str = "", comment: str = "") -> list[Event]:
        """End a silence."""
        raise NotImplementedError

    def alarm(self, alarm_id: str) -> Alarm:
        """Return an alarm that is not closed; AlarmError if there is none of this id."""
        raise NotImplementedError

    def alarms(self) -> list[Alarm]:
        """Return all alarms that are not closed, the oldest first."""
        raise NotImplementedError

    def active(self) -> list[Alarm]:
        """Return those that are active."""
        raise NotImplementedError

    def silences(self) -> list[Silence]:
        """Return the silences that have not ended."""
        raise NotImplementedError

    def quiet(self, alarm: Alarm) -> str:
        """Return why an alarm is not notified: "shelved", "suppressed", "out of service", "silenced", "inhibited by …"."""
        raise NotImplementedError

    def state(self) -> dict[str, Any]:
        """Return everything that `restore` needs, as plain data for JSON."""
        raise NotImplementedError

    @classmethod
    def restore(cls, state: dict[str, Any], rules: AlarmRules | None = None) -> AlarmBook:
        """Return a book that goes on from a state; ValueError if it is none. `rules`: other rules from now on."""
        raise NotImplementedError
