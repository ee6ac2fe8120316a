"""What people say of incidents and alarms, and which later ones are alike: one definition for both.

A *pattern* has the highest evidence of each sensor that was out of what is usual (1 at its edge), negative where less
was measured than expected. It names sensors, nothing inside a model, so that labels hold after a refit. Labels are kept
in a model, in a file that only grows, or in the store of a live service; docs/decisions/0024 has the measurements.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from penstock.io import InputError

FAULT, SENSOR_DEFECT, MAINTENANCE, NORMAL = "fault", "sensor defect", "maintenance", "rare but normal"
REASONS = (FAULT, SENSOR_DEFECT, MAINTENANCE, NORMAL)
NOT_FITTED = (FAULT, SENSOR_DEFECT, MAINTENANCE)  # periods to leave out when a model is fitted
ALIKE = 0.8  # cosine of patterns
MOST_SENSORS = 200  # of a pattern, the strongest
MOST_LABELS = 100  # of a model
_MORE, _BEYOND = 2.0, 2.5  # a sensor that is farther out than so many times as far as then, and this, is something else

Pattern = Mapping[str, float]


@dataclass(frozen=True)
class Label:
    """What a person said of an incident or an alarm.

    Attributes
    ----------
    id : str
    subject : str
        The incident or alarm.
    asset : str
        Of a live service or stream; "" for whatever a model scores.
    reason : {"fault", "sensor defect", "maintenance", "rare but normal"}
    who, comment : str
    at, since, until : float
        When it was said, and of which period, in seconds since 1970 (or rows, where there are no dates).
    pattern : mapping
        Highest evidence by sensor, with the sign of the deviation.
    withdrawn_by, withdrawn_at : str, float or None
        Who took it back, and when; "" and None if it holds.

    Examples
    --------
    >>> label = Label("1", "unit1-3", "unit1", NORMAL, "Ada", 900.0, 0.0, 600.0, {"oil": 3.0}, "oil change")
    >>> label.holds, label.in_words()
    (True, 'rare but normal: oil change')
    """

    id: str
    subject: str
    asset: str
    reason: str
    who: str
    at: float
    since: float
    until: float
    pattern: Pattern = field(default_factory=dict)
    comment: str = ""
    withdrawn_by: str = ""
    withdrawn_at: float | None = None

    @property
    def holds(self) -> bool:
        """Whether it was not taken back."""
        return self.withdrawn_at is None

    def is_about(self, asset: str) -> bool:
        """Return whether it is about an asset: itself, a group of its rows ("asset/group"), or any."""
        return not self.asset or asset == self.asset or asset.startswith(f"{self.asset}/")

    def in_words(self) -> str:
        """Return the reason, and the comment if there is one."""
        return f"{self.reason}: {self.comment}" if self.comment else self.reason

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON and `from_dict`."""
        return {**vars(self), "pattern": dict(self.pattern)}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Label:
        """Return the label of `as_dict`; ValueError, TypeError or LookupError if it is none."""
        unknown = next((name for name in record if name not in {each.name for each in fields(cls)}), None)
        if unknown is not None:
            raise ValueError(f"a label has no {unknown!r:.40}")
        label = cls(**{**record, "withdrawn_by": record.get("withdrawn_by") or ""})
        label.check()
        return label

    def check(self) -> None:
        """Raise a ValueError for values that no label has."""
        if self.reason not in REASONS:
            raise ValueError(f"The reason must be one of {', '.join(REASONS)}; got {self.reason!r:.80}.")
        if not self.who.strip():
            raise ValueError("A label needs the name of the person who gives it.")
        if len(self.pattern) > MOST_SENSORS:
            raise ValueError(f"Label {self.id!r:.80} has more than {MOST_SENSORS} sensors.")
        if not all(math.isfinite(float(each)) for each in (self.at, self.since, self.until, *self.pattern.values())):
            raise ValueError(f"The times and numbers of label {self.id!r:.80} must be finite numbers.")


def as_reason(text: str) -> str:
    """Return the reason that a person means; ValueError if it is none.

    >>> as_reason("normal"), as_reason("Fault"), as_reason("sensor")
    ('rare but normal', 'fault', 'sensor defect')
    """
    words = text.strip().casefold()
    found = [reason for reason in REASONS if words and words in (reason, reason.split()[0], reason.split()[-1])]
    if len(found) != 1:
        raise ValueError(f"must be one of {', '.join(REASONS)} (or normal, for short); got {text!r:.80}")
    return found[0]


def strongest(pattern: Pattern) -> dict[str, float]:
    """Return the sensors of a pattern that are kept, the strongest first; ties in order of the names."""
    order = sorted(pattern.items(), key=lambda pair: (-abs(pair[1]), pair[0]))
    return dict(order[:MOST_SENSORS])


def joined_patterns(one: Pattern, other: Pattern) -> dict[str, float]:
    """Return of each sensor the value that is farther out.

    >>> joined_patterns({"oil": 3.0, "flow": -2.0}, {"oil": -4.0, "head": 1.0})
    {'oil': -4.0, 'flow': -2.0, 'head': 1.0}
    """
    found = dict(one)
    for name, value in other.items():
        if abs(value) > abs(found.get(name, 0.0)):
            found[name] = value
    return strongest(found)


def likeness(one: Pattern, other: Pattern) -> float:
    """Return the cosine of two patterns; 0 if one of them is empty.

    >>> likeness({"oil": 3.0}, {"oil": 3.0, "flow": 4.0}), likeness({"oil": 3.0}, {"oil": -1.0})
    (0.6, -1.0)
    """
    lengths = math.hypot(*one.values()) * math.hypot(*other.values())
    cosine = sum(value * other.get(name, 0.0) for name, value in one.items()) / lengths if lengths else 0.0
    return max(-1.0, min(cosine, 1.0))


def is_alike(pattern: Pattern, known: Pattern) -> bool:
    """Return whether a pattern is like one that is known.

    The cosine is at least 0.8, and no sensor is farther out than twice as far as then and 2.5 more: what is on top of a
    known situation is something else, however strong the situation is.

    >>> is_alike({"oil": 9.0}, {"oil": 8.0, "flow": 2.0}), is_alike({"oil": 9.0, "seal": 4.0}, {"oil": 8.0})
    (True, False)
    """
    if likeness(pattern, known) < ALIKE:
        return False
    return all(abs(value) <= _MORE * abs(known.get(name, 0.0)) + _BEYOND for name, value in pattern.items())


def find_known(pattern: Pattern, labels: Iterable[Label], asset: str = "") -> Label | None:
    """Return the label of the situation that a pattern is most like; None if it is like none.

    asset : labels of other assets are passed over.

    What is like a known fault, too, is never excused: labels of faults and defects come before those of what is normal.

    >>> flood = Label("1", "a-1", "a", NORMAL, "Ada", 9.0, 0.0, 5.0, {"level": 4.0})
    >>> find_known({"level": 3.5}, [flood]).reason, find_known({"level": -3.5}, [flood])
    ('rare but normal', None)
    """
    known = [
        (label.reason != NORMAL, likeness(pattern, label.pattern), label.at, label.id, label)
        for label in labels
        if label.holds and label.reason != MAINTENANCE and (not asset or label.is_about(asset))
        and is_alike(pattern, label.pattern)
    ]  # fmt: skip
    return max(known, key=lambda each: each[:4])[4] if known else None


def labels_of(records: Iterable[Mapping[str, Any]]) -> list[Label]:
    """Return the labels of a record that only grows, in their order, those that were taken back too.

    A record is {"kind": "label", …} as of `Label.as_dict`, where the kind may be left out, or {"kind": "withdrawn",
    "id": …, "who": …, "at": …}.

    >>> label = Label("a~1", "a", "unit1", "maintenance", "Ada", 9.0, 0.0, 5.0)
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
            who = str(record["who"])
            at = float(record["at"])
            found[record["id"]] = replace(found[record["id"]], withdrawn_by=who, withdrawn_at=at)
        else:
            raise ValueError(f"kind must be label or withdrawn; got {kind!r:.80}.")
    return list(found.values())


def read_labels(path: Path) -> list[Label]:
    """Read what people said of alarms, one line of JSON each (see `labels_of`); InputError if one is none."""
    number = 0

    def records() -> Iterator[dict[str, Any]]:
        nonlocal number
        with path.open("rb") as lines:
            for line in lines:
                number += 1
                if line.strip():
                    yield json.loads(line)

    try:
        return labels_of(records())
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise InputError(f"{path}, line {number}: this is no label ({error!s:.200}).") from None


def new_label_id(subject: str, labels: Iterable[Label]) -> str:
    """Return an id for a further label of an incident or alarm.

    >>> new_label_id("unit1-3", [])
    'unit1-3~1'
    """
    return f"{subject}~{sum(label.subject == subject for label in labels) + 1}"


def excluded_periods(labels: Iterable[Label]) -> list[tuple[float, float]]:
    """Return the periods that a model must not be fitted to, in order and without overlaps.

    >>> def label(reason, since, until):
    ...     return Label(f"{since}", "a", "unit1", reason, "Ada", 99.0, since, until)
    >>> excluded_periods([label("maintenance", 3, 5), label("fault", 4, 7), label("rare but normal", 20, 30)])
    [(3, 7)]
    """
    return joined_periods((label.since, label.until) for label in labels if label.holds and label.reason in NOT_FITTED)


def joined_periods(periods: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return periods in order, those that overlap as one."""
    joined: list[tuple[float, float]] = []
    for since, until in sorted(periods):
        if joined and since <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(until, joined[-1][1]))
        else:
            joined.append((since, until))
    return joined
