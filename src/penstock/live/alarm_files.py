"""Alarms in files: write those of a stream, and read them, or verdicts, again."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from penstock._types import FloatArray
from penstock.io import InputError, TimeReader
from penstock.live.alarm_records import Change, Event, RowVerdict, Sensor
from penstock.live.alarms import AlarmBook
from penstock.live.options import AlarmRules

ROW_SECONDS = 60.0  # from one row to the next, where there is no time
_SAMPLE = 10_000  # verdicts whose times show how they are written


@dataclass
class AlarmClock:
    """Give each row of a stream a time for its alarms.

    reader : how times are read, and so how they are shown; None where there is none that can be read.
    counts_rows : rows count as a minute apart, as there is no time; None before the first row.
    last : the time of the last row, and of a row without a time.

    >>> import numpy as np
    >>> AlarmClock(TimeReader()).seconds(np.array([60.0, np.nan, 180.0]), 1, 3)
    [60.0, 60.0, 180.0]
    >>> AlarmClock().seconds(None, 7, 1)
    [420.0]
    """

    reader: TimeReader | None = None
    counts_rows: bool | None = None
    last: float = 0.0

    def seconds(self, read: FloatArray | None, first_row: int, n: int) -> list[float]:
        """Return the times of n rows, of which the first has this number; `read` are those that the reader read."""
        if self.counts_rows is None and n:
            self.counts_rows = read is None
        if read is None or self.counts_rows:
            return [ROW_SECONDS * row for row in range(first_row, first_row + n)]
        found: list[float] = []
        for value in read.tolist():
            self.last = value if math.isfinite(value) else self.last
            found.append(self.last)
        return found

    def text(self, seconds: float) -> str | None:
        """Return a time as people write it; None where there are no dates."""
        return None if self.counts_rows or self.reader is None else self.reader.text(seconds)

    def state(self) -> dict[str, Any]:
        """Return plain values, for `restore`."""
        reader = None if self.reader is None else self.reader.state()
        return {"reader": reader, "counts_rows": self.counts_rows, "last": self.last}

    @classmethod
    def restore(cls, state: dict[str, Any]) -> AlarmClock:
        """Return the clock whose `state()` this is."""
        reader = None if state["reader"] is None else TimeReader.restore(state["reader"])
        return cls(reader, state["counts_rows"], float(state["last"]))


def stream_name(path: Path) -> str:
    """Return what a stream is called in alarms: as its file, without endings."""
    return (path.name.split(".")[0] if path.is_file() else "") or "stream"


def append_record(path: Path, record: dict[str, Any]) -> None:
    """Add a line to a file that only grows, and return when it will survive a power cut."""
    with path.open("ab") as file:
        file.write(json.dumps(record, allow_nan=False).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def event_line(event: Event, clock: AlarmClock) -> bytes:
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
    clock: AlarmClock


def read_alarms(path: Path, rules: AlarmRules | None = None) -> AlarmRecord:
    """Read a file of `penstock watch --alarms`, or make alarms of a file of verdicts by these rules.

    An InputError names a line that is neither.
    """
    changes: list[Change] = []
    clock, book, start, end = AlarmClock(_reader_of_verdicts(path)), AlarmBook(rules), math.inf, -math.inf
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
                    if clock.counts_rows is None:
                        clock.counts_rows, clock.reader = not at, TimeReader.learn([str(at)]) if at else None
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


def _reader_of_verdicts(path: Path) -> TimeReader | None:
    """Learn how times are written from the first verdicts of a file; None if there are none, or no times."""
    times: list[Any] = []
    with path.open("rb") as lines:
        for line in islice(lines, _SAMPLE):
            with suppress(ValueError):
                record = json.loads(line)
                if isinstance(record, dict) and "row" in record and isinstance(record.get("time"), str | int | float):
                    times.append(record["time"])
    return TimeReader.learn(times) if times else None


def _verdict(record: dict[str, Any], asset: str, clock: AlarmClock) -> RowVerdict:
    """Return the verdict of a line of `penstock watch`."""
    read = None
    if "time" in record and clock.reader is not None:
        read = clock.reader.seconds([record["time"]], clock.last or -math.inf)
    (time,) = clock.seconds(read, int(record["row"]), 1)
    score, threshold = (None if record[name] is None else float(record[name]) for name in ("score", "threshold"))
    sensors = [Sensor(name, 1.0, residual) for name, residual in record["variables"].items()] if record["flag"] else []
    reason = record.get("reason", "")
    return RowVerdict(
        asset, time, score, threshold, None, tuple(sensors), None, reason, reason != "the row has no reading"
    )
