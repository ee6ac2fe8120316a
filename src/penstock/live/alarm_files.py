"""Alarms in files: write those of a stream, and read them, or verdicts, again."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from penstock._messages import listed
from penstock.io import InputError, JsonLinesSink, OutputMark, continue_sink, is_number, open_sink, read_stamps
from penstock.live.alarms import AlarmBook, Change, Event, Sensor, Verdict
from penstock.live.feedback import Feedback, Label, labels_of
from penstock.live.options import AlarmRules
from penstock.live.scorers import Verdicts

ROW_SECONDS = 60.0  # from one row to the next, where there is no time
_UNITS = ((1e11, "s", 1.0), (1e14, "ms", 1e3), (1e17, "us", 1e6), (math.inf, "ns", 1e9))
_DATE = re.compile(r"(19|20)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])")  # without separators: 20240501
_FIRST_EPOCH = 1e8  # s; smaller numbers are no dates


def epoch_unit(number: float) -> tuple[str, float]:
    """Return the unit of a time that is a number, which follows from its size, and how many of it a second has."""
    return next(((name, per_second) for most, name, per_second in _UNITS if not abs(number) >= most), ("s", 1.0))


def is_epoch(time: Any) -> bool:
    """Return whether a time is a number since 1970: a number that is not a date without separators.

    >>> [is_epoch(time) for time in ("20240501", 20240501, "1714557600", "12345.67", 12345678, "2024-05-01")]
    [False, False, True, True, True, False]
    """
    return is_number(time) and not _DATE.fullmatch(str(time))


def epoch_seconds(number: float) -> float:
    """Return a time that is a number in seconds."""
    return number / epoch_unit(number)[1]


@dataclass
class StreamClock:
    """Read the times of a stream in seconds; how they are written is decided by the first.

    kind : "stamps", "numbers" (seconds, or since 1970 in a unit that follows from their size), or "rows", a minute from
    one to the next, where there is no time that could be read; "" before the first.
    last : of a row whose time cannot be read, too.

    >>> StreamClock().seconds(["2024-05-01 10:00", "?", "2024-05-01 10:02"], 1)
    [1714557600.0, 1714557600.0, 1714557720.0]
    >>> StreamClock().seconds(None, 1)
    [60.0]
    """

    kind: str = ""
    day_first: bool | None = None
    zoned: bool = False
    last: float = 0.0

    def seconds(self, times: Sequence[Any] | None, first_row: int, n: int = 1) -> list[float]:
        """Return the times of rows, of which the first has this number."""
        if not self.kind and (times is None or len(times)):
            self._decide(None if times is None else times[0])
        if times is None or self.kind == "rows":
            count = n if times is None else len(times)
            return [ROW_SECONDS * row for row in range(first_row, first_row + count)]
        if self.kind == "numbers":
            read = [epoch_seconds(float(time)) if is_number(time) else math.nan for time in times]
        else:
            read = self._stamps(times)
        for place, value in enumerate(read):
            self.last = read[place] = value if math.isfinite(value) else self.last
        return read

    def text(self, seconds: float) -> str | None:
        """Return a time as people write it; None where there are no dates."""
        if self.kind == "rows" or (self.kind == "numbers" and seconds < _FIRST_EPOCH):
            return None
        whole = math.floor(seconds)
        stamp = str(np.datetime64(whole, "s"))
        part = f"{seconds - whole:.6f}".rstrip("0").rstrip(".")[1:] if seconds != whole else ""
        return f"{stamp}{part}{'Z' if self.zoned or self.kind == 'numbers' else ''}"

    def _decide(self, first: Any) -> None:
        text = "" if first is None else str(first)
        if is_epoch(first):
            self.kind = "numbers"
            return
        read, zoned, self.day_first = read_stamps([text], None)
        self.kind = "rows" if np.isnat(read[0]) else "stamps"
        self.zoned = bool(zoned[0])

    def _stamps(self, times: Sequence[Any]) -> list[float]:
        read, _, _ = read_stamps(["" if time is None else str(time) for time in times], self.day_first)
        nanoseconds = read.astype("datetime64[ns]")
        seconds = nanoseconds.astype(np.int64) / 1e9
        return [float(value) for value in np.where(np.isnat(nanoseconds), np.nan, seconds)]


class AlarmWriter:
    """Write the alarms of a stream to a file, so that a run that was killed can be continued.

    `asset` is the name of the stream, `warn` gets a text, and `labels` are what people said of earlier alarms.
    """

    def __init__(
        self, path: Path, asset: str, rules: AlarmRules, warn: Callable[[str], None], labels: Sequence[Label] = ()
    ) -> None:
        self._path, self._asset, self._rules, self._warn = path, asset, rules, warn
        self.book, self._clock, self._feedback = AlarmBook(rules), StreamClock(), Feedback(labels)
        self._sink: JsonLinesSink | None = None
        if labels and all(label.asset != asset for label in labels):
            others = listed(sorted({label.asset for label in labels}))
            warn(f"No label has an effect: they are of {others}, and this stream is {asset!r:.100}.")

    def settings(self) -> dict[str, str]:
        """Return what the alarms depend on apart from the verdicts."""
        return {f"alarms: {name}": repr(value) for name, value in vars(self._rules).items()}

    def open(self, saved: dict[str, Any] | None = None, *, overwrite: bool = False) -> None:
        """Open the file, which is empty, or that of a snapshot."""
        if saved is None:
            self._sink = open_sink(self._path, overwrite=overwrite)
        else:
            self._sink, _ = continue_sink(self._path, _mark(saved), None)

    def take(self, first_row: int, times: Sequence[Any] | None, found: Verdicts, names: Sequence[str]) -> bool:
        """Take verdicts on rows of which the first has this number; return whether anything was written."""
        assert self._sink is not None
        unknown = not self._clock.kind
        seconds = self._clock.seconds(times, first_row, len(found.scores.scores))
        if unknown and times and self._clock.kind == "rows":
            self._warn(f"The time {str(times[0])!r:.40} cannot be read: for alarms, rows count as a minute apart.")
        events = self.book.update(map(self._feedback.apply, found.for_alarms(self._asset, seconds, names)))
        self._sink.write_lines(b"".join(event_line(event, self._clock) for event in events))
        return bool(events)

    def state(self) -> dict[str, Any]:
        """Return what `restore` and `open` need; the file is on the disk then."""
        assert self._sink is not None
        self._sink.sync()
        state = {"asset": self._asset, "book": self.book.state(), "clock": vars(self._clock)}
        packed = json.dumps({**state, "feedback": self._feedback.state()}, allow_nan=False)
        return {"mark": self._sink.mark(), "state": np.frombuffer(packed.encode(), dtype=np.uint8)}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from a state; ValueError, TypeError or LookupError if it does not fit."""
        _mark(saved)
        state = json.loads(bytes(saved["state"]))
        self._asset, self._clock = str(state["asset"]), StreamClock(**state["clock"])
        self.book = AlarmBook.restore(state["book"])
        self._feedback.restore(state["feedback"])

    def close(self) -> None:
        """Close the file."""
        if self._sink is not None:
            self._sink.close()


def stream_name(path: Path) -> str:
    """Return what a stream is called in alarms: as its file, without endings."""
    return (path.name.split(".")[0] if path.is_file() else "") or "stream"


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


def append_record(path: Path, record: dict[str, Any]) -> None:
    """Add a line to a file that only grows, and return when it will survive a power cut."""
    with path.open("ab") as file:
        file.write(json.dumps(record, allow_nan=False).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def _mark(saved: dict[str, Any]) -> OutputMark | None:
    """Return the mark of the file in a state; None if it went where nothing can be taken back."""
    if saved["mark"] is None:
        return None
    length, tail = saved["mark"]["length"], saved["mark"]["tail"]
    if type(length) is not int or length < 0 or not isinstance(tail, str):
        raise ValueError("alarms: this is no mark of a file")
    return {"length": length, "tail": tail}


def event_line(event: Event, clock: StreamClock) -> bytes:
    """Return a change or notification as a line of JSON; `at` is its time as people write it."""
    at = clock.text(event.time)
    record = {**({} if at is None else {"at": at}), **event.as_dict()}
    return json.dumps(record, allow_nan=False).encode() + b"\n"


@dataclass(frozen=True)
class AlarmRecord:
    """Changes of alarms in order, the first and last second of the record, and the clock that shows them."""

    changes: list[Change]
    start: float
    end: float
    clock: StreamClock


def read_alarms(path: Path, rules: AlarmRules | None = None) -> AlarmRecord:
    """Read a file of `penstock watch --alarms`, or make alarms of a file of verdicts by these rules.

    An InputError names a line that is neither.
    """
    changes: list[Change] = []
    clock, book, start, end = StreamClock(), AlarmBook(rules), math.inf, -math.inf
    asset = stream_name(path)
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
                if "row" in record:
                    verdict = _verdict(record, asset, clock)
                    events: Iterable[Event] = book.update([verdict])
                    time = verdict.time
                else:
                    at = record.pop("at", None)
                    if not clock.kind:
                        clock.kind, clock.zoned = ("stamps", str(at).endswith("Z")) if at else ("rows", False)
                    time = float(record["time"])
                    events = [] if record["kind"] == "notification" else [Change.from_dict(record)]
            except (AttributeError, LookupError, TypeError, ValueError) as error:
                raise InputError(
                    f"{path}, line {number}: neither a verdict nor a change of an alarm ({error!s:.100})."
                ) from None
            changes += [event for event in events if isinstance(event, Change)]
            start, end = min(start, time), max(end, time)
    if end < start:
        raise InputError(f"{path} is empty: there is neither a verdict nor a change of an alarm.")
    return AlarmRecord(changes, start, end, clock)


def _verdict(record: dict[str, Any], asset: str, clock: StreamClock) -> Verdict:
    """Return the verdict of a line of `penstock watch`."""
    (time,) = clock.seconds([record["time"]] if "time" in record else None, int(record["row"]))
    score, threshold = (None if record[name] is None else float(record[name]) for name in ("score", "threshold"))
    sensors = [Sensor(name, 1.0, residual) for name, residual in record["variables"].items()] if record["flag"] else []
    reason = record.get("reason", "")
    return Verdict(
        asset, time, score, threshold, None, tuple(sensors), None, reason, reason != "the row has no reading"
    )
