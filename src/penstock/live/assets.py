"""One asset while it runs: its rows and its model; and the alarms of a group of assets."""

from __future__ import annotations

import hashlib
import json
import logging
import math
import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from penstock._messages import odd_character
from penstock._types import FloatArray
from penstock.explain import MOST_LABELS, Label
from penstock.io import (
    AlignedSource,
    AnySource,
    BadLine,
    Batch,
    Feed,
    InputError,
    RowParser,
    RowSource,
    TimeProgress,
    TimeReader,
    is_missing,
)
from penstock.live.alarm_files import AlarmClock
from penstock.live.alarm_records import Event, Notification, RowVerdict
from penstock.live.alarms import AlarmBook
from penstock.live.options import AlarmRules, WatchOptions
from penstock.live.scorers import Scorer, Verdicts
from penstock.live.store import AssetRecord, ScoredBlock, Store
from penstock.storage import state_from_bytes, state_to_bytes

log = logging.getLogger("penstock.serve")
log.addHandler(logging.NullHandler())  # without a service nothing is logged: what happens is reported
_KIND = "penstock.live"
_LATELY = 500  # rows: how many of the last have no score is shown
_MOST_LINES = 1000  # of an asset in one cycle
_PIECE_SECONDS, _PIECE_BYTES = 0.05, 300_000  # of an asset in one cycle: the others wait meanwhile
_COUNTED = ("rows", "accepted", "malformed")  # of a posted text
_MOST_PARTS = 16  # of posted texts that were cut off, remembered for each asset
_MOST_FILES = 200  # of a folder in one cycle
_STEPS_TO_NEXT_FILE = 3  # without a row: the end of a file, the next one, its header
MOST_ROWS, _MOST_COLUMNS = 20_000, 2_000  # of a delivery
MOST_FAULTS = 20  # malformed lines that are named one by one
_MOST_BAD = 5  # rows that cannot be scored, one after the other: then it is not the rows
_MOST_LAYOUTS = 16  # of posted tables, remembered for each asset
_LONGEST_HEADER, _LONGEST_NAME = 200_000, 1000  # of a posted table in bytes, and of a column in characters
_MOST_SENDERS = 1000  # over HTTP, whose last number is remembered for each asset
_NUMERIC_TIME = re.compile(rb'"(time|timestamp|date|datetime|ts?|t_stamp|_time)"\s*:\s*-?\d', re.IGNORECASE)
_STATE_ROWS, _STATE_SECONDS = 5000, 30.0  # after which a model's state is saved


@dataclass(frozen=True)
class ScoredBatch:
    """Rows of an asset with their verdicts.

    batch : the rows.
    block : the same for the store; None if there is no row.
    verdicts : for the alarms; none where there are none.
    unknown_texts : by column, what the model does not know.
    refused, failed : by place among the rows that came, why the model cannot use a row, and how it failed on one.
    """

    batch: Batch
    block: ScoredBlock | None = None
    verdicts: list[RowVerdict] = field(default_factory=list)
    unknown_texts: Iterable[tuple[str, str]] = ()
    refused: dict[int, str] = field(default_factory=dict)
    failed: dict[int, str] = field(default_factory=dict)


@dataclass
class TextReading:
    """A posted text that an asset reads piece by piece, from where it was left if it was cut off before.

    rows, accepted, malformed : of the pieces so far: rows, those (or readings) that were taken, and other lines; the
        first of these are named.
    digest : of source and text; "" as long as all of it may be read at once.
    times : how its times were read at the beginning.
    """

    asset: Asset
    source: AnySource
    layout: str
    line_bytes: float
    digest: str = ""
    times: TimeReader | None = None
    rows: int = 0
    accepted: int = 0
    malformed: int = 0
    faults: list[BadLine] = field(default_factory=list)


class Asset:
    """One asset while it runs: its scorer, its file, and how posted rows are laid out.

    positions : where its inputs are; it goes on there.
    rows : a feed of rows, or a source that is to be read on; None if they are posted.
    clock : for rows of a record; None: they are of the present.
    has_alarms : whether verdicts for alarms are made.
    """

    book: Book

    def __init__(
        self,
        record: AssetRecord,
        options: WatchOptions,
        make: Callable[[], Scorer],
        positions: dict[str, Any],
        rows: Feed | RowSource | None,
        clock: AlarmClock | None = None,
        *,
        has_alarms: bool = True,
    ) -> None:
        self.record, self.positions, self._make = record, positions, make
        self.clock, self.has_alarms = clock, has_alarms
        self._strict, self._n_variables = options.strict, options.n_variables
        self._unsaved: list[Batch] | None = None if clock is None else []  # scored since the state, if not in a store
        self.unread = 0  # malformed lines of its inputs since the last row
        self.bad_rows = 0  # that could not be scored, one after the other
        self.last_bad = -math.inf  # when there was one
        scorer = self.scorer = self._saved_scorer()
        self._table = scorer.table_options(options.table)
        self.layouts: dict[str, Any] = positions.pop("layouts", {})
        self._parsers: dict[str, RowParser] = {}  # of layouts
        self.parts: dict[str, Any] = positions.pop("parts", {})  # of posted texts: where each is to be read on
        self.new_layout = self.new_parts = self.new_columns = False
        self.line_seconds, self.spent = 1e-3, 0.0  # what a line takes, about, and what those of this cycle took
        self._saved = time.monotonic() - _STATE_SECONDS * (record.id % 10) / 10  # so that not all are saved at once
        self._last: dict[str, Any] = {"score": None, "threshold": None, "reason": ""}
        self._lately: deque[bool] = deque(maxlen=_LATELY)  # of the last rows, which have a score
        self._ahead = options.seconds("max_ahead")
        self.progress = TimeProgress(**positions.pop("clock", {}))
        self.aligning = scorer.aligning(options)
        if self.aligning is not None:
            self._table = self.aligning.options(self._table)
            waiting = positions.pop("aligner", None)
            if not all(map(self.aligning.fits, (waiting, positions.get("file", {}).get("aligner")))):
                log.warning(
                    "%s: the model has other tags; readings of the step that is not over are not used", record.name
                )
                waiting = None
                positions |= {"file": {**positions["file"], "aligner": None}} if "file" in positions else {}
            if waiting is not None:
                self.aligning.restore(waiting)
        self.rows: RowSource | None = None
        self.source: AnySource | None = None
        is_folder = clock is None and isinstance(rows, Feed) and Path(rows.name).is_dir()
        self._most_files, self._empty_steps = (_MOST_FILES, _STEPS_TO_NEXT_FILE) if is_folder else (1, 0)
        if rows is not None:
            goes_on = isinstance(rows, RowSource)
            self.rows = rows.reading_with(self._table) if isinstance(rows, RowSource) else self._read_rows(rows)
            self.source = self._aligned(self.rows)
            if "file" in positions and not goes_on:
                self.source.continue_from(positions.pop("file"))
            self.progress = self.source.progress

    def switched(self, record: AssetRecord, options: WatchOptions, make: Callable[[], Scorer]) -> Asset:
        """Return the same asset with another model, which goes on here."""
        waiting = {} if self.aligning is None else {"aligner": self.aligning.state()}
        texts = {"layouts": self.layouts, "parts": self.parts}
        positions = {**self.positions, **waiting, **texts, "clock": asdict(self.progress)}
        positions.pop("file", None)
        return Asset(record, options, make, positions, self.rows, self.clock, has_alarms=self.has_alarms)

    def _scorer_at(self, state: dict[str, Any] | None) -> Scorer:
        """Return a scorer that goes on from a state; None: from the beginning."""
        scorer = self._make()
        if state is not None:
            scorer.restore(state)
        if self.record.columns is not None:
            scorer.begin(self.record.columns)
        return scorer

    def _saved_scorer(self) -> Scorer:
        saved = self.record.state
        return self._scorer_at(None if saved is None else state_from_bytes(saved, _KIND))

    def close(self) -> None:
        """Close the file."""
        if self.source is not None:
            self.source.close()
        self.source = self.rows = None

    def _read_rows(self, feed: Feed) -> RowSource:
        clock = time.time if self.clock is None else None
        return RowSource(feed, self._table, self._strict, self.progress, self._ahead, clock)

    def _aligned(self, rows: RowSource) -> AnySource:
        return rows if self.aligning is None else AlignedSource(rows, self.aligning, is_part=self.clock is None)

    @property
    def room(self) -> int:
        """How many lines may be read in a cycle, by what lines have taken."""
        return max(1, min(_MOST_LINES, int(_PIECE_SECONDS / self.line_seconds)))

    @contextmanager
    def timed(self, lines: int = 0) -> Iterator[None]:
        """Note how long the block takes; with the number of lines that it ends, also how long a line does."""
        begun = time.monotonic()
        try:
            yield
        finally:
            self.spent += time.monotonic() - begun
            if lines:  # one slow moment of the machine makes pieces four times smaller at most
                self.line_seconds = min(self.spent / lines, 4 * self.line_seconds)
                self.spent = 0.0

    def read_file(self, at_most: int) -> Batch | None:
        """Return the next rows of the file, or of the next files of a folder; None if there are none."""
        source = self.source
        if source is None:
            return None
        is_new = source.columns is None
        parts, n_rows, empty = list[Batch](), 0, 0
        while empty <= self._empty_steps and n_rows < at_most and len(parts) < self._most_files:
            part = source.next_batch(at_most)
            empty = empty + 1 if part is None else 0
            if part is not None:
                parts.append(part)
                n_rows += len(part.lines)
        if source.columns is not None:
            self._begin(source.columns.variable_names)
            for note in source.notes if is_new else ():
                log.info("%s", note)
        return joined_batches(parts) if parts else None

    def _layout_key(self, lines: bytes) -> str:
        """Return what texts of one layout have in common; InputError for a text that is too large."""
        header = lines.lstrip().partition(b"\n")[0].strip()
        if not header:
            raise InputError("There is no row in this.")
        columns = max(_MOST_COLUMNS, 2 * len(self.record.columns or self.scorer.variable_names))
        is_json = header.startswith(b"{")
        if not is_json and len(header) > _LONGEST_HEADER:
            raise InputError(f"The first line may have {_LONGEST_HEADER:,} bytes at most; it has {len(header):,}.")
        if lines.count(b"\n") > MOST_ROWS or max(map(header.count, (b",", b";", b"\t", b"|"))) > columns:
            most = f"{MOST_ROWS:,} lines and {columns:,} columns"
            raise InputError(f"At most {most} are taken at once: send the others by themselves.")
        if is_json:  # senders write times in their own ways: as texts, or as numbers
            return "json, time as a number" if _NUMERIC_TIME.search(header[:4096]) else "json"
        return header[:4096].decode("utf-8", errors="replace")

    def knows_layout(self, lines: bytes) -> bool:
        """Return whether a text is laid out like one before, or too large to be looked at."""
        with suppress(InputError):
            return self._layout_key(lines) in self.layouts
        return True

    def learn_layout(self, lines: bytes, source: str) -> dict[str, Any] | None:
        """Return how a text is laid out, for `read_lines`; None if that is known.

        It takes seconds with thousands of columns: it is for the thread of whoever brings the text.
        """
        if self._layout_key(lines) in self.layouts:
            return None
        rows = RowSource(_Lines(lines, source), self._table, self._strict, None, self._ahead, time.time)
        while rows.columns is None:
            if rows.ended:
                raise InputError("There is no row in this that could be read; CSV needs a header and a row.")
            rows.next_batch(MOST_ROWS)
        for note in rows.notes:
            log.info("%s", note)
        table: dict[str, Any] = rows.position()["table"]
        return table

    def begin_text(self, lines: bytes, source: str, layout: dict[str, Any] | None) -> TextReading:
        """Begin to read a text, whose layout is known from one with the same first line, or was found out.

        A text of which a part was committed, and that was then cut off, goes on there when it comes again.
        """
        key = self._layout_key(lines)
        reader = self._aligned(self._read_rows(_Lines(lines, source)))
        known = self._parsers.get(key) or self.layouts.get(key, layout)
        if known is None:  # it was known when the text came, and is forgotten
            known = self.learn_layout(lines, source)
        reading = TextReading(self, reader, key, len(lines) / (1 + lines.count(b"\n")))
        place: dict[str, Any] = {"file": {"offset": 0}, "line": 0}
        if self.parts:
            reading.digest = _digest(lines, source)
            place = self.parts.get(reading.digest, place)
            for name in _COUNTED:
                setattr(reading, name, place.get(name, 0))
        reader.continue_from({"table": known, **place})
        reading.times = reader.reader
        return reading

    def read_text(self, reading: TextReading, at_most: int) -> Batch:
        """Return the next rows of a text, from at most so many lines."""
        reader, left = reading.source, max(1, min(at_most, int(_PIECE_BYTES / reading.line_bytes)))
        parts: list[Batch] = []
        while not reader.ended and (left > 0 or not reader.has_lines):
            part = reader.next_batch(left)
            if part is not None:
                left -= len(part.lines) + len(part.faults)
                part.further_faults, part.faults = len(part.faults[MOST_FAULTS:]), part.faults[:MOST_FAULTS]
                parts.append(part)
                left -= part.readings
        assert reader.columns is not None
        self._begin(reader.columns.variable_names)
        if reading.layout not in self._parsers or reader.reader is not reading.times:
            self._learn(reading)
        batch = joined_batches(parts)
        if reader.ended and not (
            batch.lines or batch.faults or batch.readings or reading.accepted or reading.malformed
        ):
            raise InputError("There is no row in this, only a header.")
        return batch

    def _learn(self, reading: TextReading) -> None:
        """Remember how a text is read, for others of its layout; its times may have shown more than before."""
        parser, key = reading.source.parser, reading.layout
        assert parser is not None
        if self.layouts.get(key) != parser.state():
            if len(self.layouts) >= _MOST_LAYOUTS:
                oldest = next(iter(self.layouts))
                self._parsers.pop(oldest, None)
                del self.layouts[oldest]
            self.layouts[key], self.new_layout = parser.state(), True
        self._parsers[key], reading.times = parser, reading.source.reader

    def note_part(self, reading: TextReading, lines: bytes, source: str) -> None:
        """Note how far a text was read, for the store; a text that was read to its end is forgotten."""
        if reading.source.ended:
            self.new_parts = self.parts.pop(reading.digest, None) is not None or self.new_parts
            return
        reading.digest = reading.digest or _digest(lines, source)
        self.parts.pop(reading.digest, None)  # the newest are the last
        if len(self.parts) >= _MOST_PARTS:
            self.parts.pop(next(iter(self.parts)))
        position = reading.source.position()
        place = {name: position[name] for name in ("file", "line", "may_repeat")}
        self.parts[reading.digest] = {**place, **{name: getattr(reading, name) for name in _COUNTED}}
        self.new_parts = True

    def note_position(self, source: str, position: Any) -> dict[str, Any]:
        """Note how far an input was read, and return what is new for the store; None: to be forgotten.

        Only the last of those who send over HTTP are remembered: names cost them nothing.
        """
        self.positions.pop(source, None)  # so that the last are those that came last
        self.positions[source] = position
        senders = [name for name in self.positions if name.startswith("http ")]
        forgotten = dict.fromkeys(senders[:-_MOST_SENDERS])
        for name in forgotten:
            del self.positions[name]
        return {source: position, **forgotten}

    def _begin(self, columns: tuple[str, ...]) -> None:
        """Take the columns of the first rows; later ones must have the same."""
        known = self.record.columns
        if known is None:
            for name in columns if self.clock is None else ():  # a service shows names to others
                if odd_character(name):
                    held = f"holds {odd_character(name)}, which is no character of a text"
                    raise InputError(f"The name {name!a:.100} {held}.")
                if len(name) > _LONGEST_NAME:
                    raise InputError(f"The name {name!a:.100} is longer than {_LONGEST_NAME:,} characters.")
            self.scorer.begin(columns)
            self.record.columns, self.new_columns = columns, True
        elif known != columns:
            raise InputError(f"The rows have the columns {', '.join(columns)}, but this asset has {', '.join(known)}.")

    def score(self, read: list[Batch], now: float, store: Store) -> ScoredBatch:
        """Score rows; those that the model fails on are left out.

        If it fails on each of several rows, this raises: then it is not the rows.
        """
        batch, record = joined_batches(read), self.record
        places, failed = list(range(len(batch.lines))), dict[int, str]()
        if not places:
            return ScoredBatch(batch)
        try:
            found = self._score(batch)
        except Exception as error:  # whatever a model does with a row
            if self.clock is not None and isinstance(error, InputError):
                raise  # the input is wrong, not a row
            log.exception("%s: rows could not be scored; those that can be are", record.name)
            failed = self._find_bad_rows(batch, store)
            places = [place for place in places if place not in failed]
            batch = batch.rows(places)
            if not places:
                return ScoredBatch(batch, failed=failed)
            found = self._score(batch)
        self.bad_rows = 0
        refused = {places[at]: reason for at, reason in found.refused.items()}
        batch = batch if found.taken is None else batch.rows(found.taken)
        if not len(batch.values):
            return ScoredBatch(batch, refused=refused, failed=failed)
        seconds = self._seconds(batch, now)
        times = None if batch.seconds is None else batch.times
        place = (record.rows + 1, now, seconds, times, record.version, found.scores, found.reasons)
        record.rows += len(batch.values)
        record.newest, record.received = float(seconds[-1]), now
        record.counts.update(found.counts(batch))
        if self._unsaved is not None:
            self._unsaved.append(batch)
        block = ScoredBlock(*place, batch.values, batch.texts)
        return ScoredBatch(batch, block, self._verdicts(found, seconds), found.unknown_texts, refused, failed)

    def _seconds(self, batch: Batch, now: float) -> FloatArray:
        """Return the times of rows for their alarms."""
        if self.clock is not None:
            self.clock.reader = self.clock.reader or (None if self.source is None else self.source.reader)
            return np.array(self.clock.seconds(batch.seconds, self.record.rows + 1, len(batch.lines)))
        read = np.full(len(batch.lines), np.nan) if batch.seconds is None else batch.seconds
        return _filled(read, None if self.progress.dated is None else self.record.newest, now)

    def _find_bad_rows(self, batch: Batch, store: Store) -> dict[int, str]:
        """Return the rows that the model fails on, and how, by place; the scorer is then as before the batch."""
        self.scorer = self._saved_scorer()
        stored = map(batch_of, store.rows(self.record.id, after=self.record.state_row, with_readings=True))
        for earlier in stored if self._unsaved is None else self._unsaved:
            self._score(earlier)
        before = self.scorer.state()

        def failure(places: list[int]) -> Exception | None:
            """Return the error that scoring these rows raises; the scorer may be anything then."""
            self.scorer = self._scorer_at(before)
            try:
                self._score(batch.rows(places))
            except Exception as error:
                return error
            return None

        left, bad, last = [*range(len(batch.lines))], dict[int, str](), 0
        while left and (error := failure(left)) is not None:
            if self.bad_rows >= _MOST_BAD:
                raise error
            good, failing = 0, len(left)  # the first `good` rows are scored, the first `failing` are not
            while failing - good > 1:
                middle = (good + failing) // 2
                found = failure(left[:middle])
                if found is None:
                    good = middle
                else:
                    failing, error = middle, found
            bad[left.pop(good)] = f"{type(error).__name__}: {error}"[:300]
            self.bad_rows = self.bad_rows + 1 if good == last else 1
            last = good
        self.scorer = self._scorer_at(before)
        return bad

    def _score(self, batch: Batch) -> Verdicts:
        return self.scorer.score(batch, self._n_variables, strict=self._strict)

    def fault(self, batch: Batch, place: int, reason: str, before: int = 0) -> BadLine:
        """Return the report on a row that cannot be used; so many rows of its text came before the batch."""
        if self.clock is None or self.source is None:
            return BadLine("the rows", before + place + 1, reason)
        return self.source.fault(batch.lines[place], reason)

    def row_text(self, batch: Batch, place: int) -> str:
        """Return a row as a line of JSON, as it was read."""
        row = dict(zip(self.record.columns or (), batch.values[place].tolist(), strict=False))
        plain: dict[str, Any] = {name: value if math.isfinite(value) else None for name, value in row.items()}
        time_of = {} if batch.times is None else {"time": batch.times[place]}
        return json.dumps({**time_of, **plain, **{name: texts[place] for name, texts in batch.texts.items()}})

    def replay(self, store: Store) -> Iterator[tuple[float, int, list[RowVerdict]]]:
        """Score again what was scored after the last saved state; yield when it came, the last row, and verdicts."""
        for block in store.rows(self.record.id, after=self.record.state_row, with_readings=True):
            found = self._score(batch_of(block))
            yield block.received, block.first + len(block.seconds) - 1, self._verdicts(found, block.seconds)

    def _verdicts(self, found: Verdicts, seconds: FloatArray) -> list[RowVerdict]:
        if not self.has_alarms:
            return []
        return found.for_alarms(self.record.name, seconds.tolist(), self.scorer.variable_names)

    def state_is_due(self) -> bool:
        """Return whether the state of the scorer is to be saved."""
        many = self.record.rows - self.record.state_row >= _STATE_ROWS
        return many or time.monotonic() - self._saved >= _STATE_SECONDS

    def pack(self) -> None:
        """Put the state of the scorer into the record."""
        state = self.scorer.state()
        self.record.state = None if state is None else state_to_bytes(_KIND, state)
        self.record.state_row, self._saved = self.record.rows, time.monotonic()
        self._unsaved = None if self._unsaved is None else []

    def save_positions(self, store: Store) -> None:
        """Write how far its inputs were read, and what is new of how they are laid out."""
        identity = self.record.id
        if self.new_columns:
            store.save_columns(self.record, self.scorer.variable_names)
            self.new_columns = False
        if self.new_layout:
            store.save_position(identity, "layouts", self.layouts)
            self.new_layout = False
        if self.new_parts:
            store.save_position(identity, "parts", self.parts)
            self.new_parts = False
        if self.source is not None and self.source.columns is not None:
            store.save_position(identity, "file", self.source.position())
        elif self.source is None:
            store.save_position(identity, "clock", asdict(self.progress))
            if self.aligning is not None:
                store.save_position(identity, "aligner", self.aligning.state())

    def show_last(self, block: ScoredBlock) -> None:
        """Note the last of some verdicts, to be shown."""
        last = {"score": block.scores.scores[-1], "threshold": block.scores.thresholds[-1]}
        self._last = {name: float(value) if math.isfinite(value) else None for name, value in last.items()}
        self._lately.extend(np.isfinite(block.scores.scores[-_LATELY:]).tolist())
        self._last["unscored_lately"] = [self._lately.count(False), len(self._lately)]
        if block.reasons:
            self._last["reason"] = block.reasons[max(block.reasons)]  # the last one

    def summary(self) -> dict[str, Any]:
        """Return the newest in plain values."""
        record = self.record
        when = {"row": record.rows, "time": record.newest, "received": record.received}
        return {
            "asset": record.name,
            "model": record.version,
            **when,
            **self._last,
            "counts": dict(record.counts),
        }


class Book:
    """The alarms of a group of assets, with a clock: the newest time of the data plus what has passed since.

    Its name is "" where there is no other.
    """

    def __init__(self, name: str, rules: AlarmRules, labels: Iterable[Label], saved: dict[str, Any] | None) -> None:
        self.name, self.dirty = name, False
        self.rows: dict[str, int] = {}
        self._newest: float | None = None
        self._timer: float | None = None
        if saved is None:
            self.book = AlarmBook(rules)
        else:
            self.book = AlarmBook.restore(saved["book"], rules)
            self.rows, self._newest = saved["rows"], saved["newest"]
        self.book.set_labels(labels)
        self.begin_clock()

    def begin_clock(self) -> None:
        """Let time pass from now on."""
        self._came = time.monotonic()

    def now(self) -> float:
        """Return the time of the data's clock."""
        return time.time() if self._newest is None else self._newest + time.monotonic() - self._came

    def take(self, asset: str, verdicts: Sequence[RowVerdict], row: int) -> list[Event]:
        """Take the verdicts up to this row of an asset."""
        events = self.named(self.book.update(verdicts))
        self.rows[asset] = max(row, self.rows.get(asset, 0))
        if verdicts:
            newest = max(each.time for each in verdicts)
            self._newest = newest if self._newest is None else max(newest, self._newest)
            self.begin_clock()
        return events

    def named(self, events: Iterable[Event]) -> list[Event]:
        """Return events with ids that no other book has, and note that there is something to save."""
        self._timer = None
        found = list(events)
        for place, event in enumerate(found):
            if self.name and (isinstance(event, Notification) or event.alarm is None):
                found[place] = replace(event, id=f"{self.name}:{event.id}")
        self.dirty = self.dirty or bool(found)
        return found

    def silences(self) -> list[dict[str, Any]]:
        """Return the silences that have not ended, with ids that no other book has."""
        return [{**vars(each), "id": f"{self.name}:{each.id}"} for each in self.book.silences()]

    def is_due(self) -> bool:
        """Return whether a timer is due."""
        if self._newest is None:
            return False
        if self._timer is None:  # looking for it takes a while with many alarms: only after something has happened
            timer = self.book.next_timer()
            self._timer = math.inf if timer is None else timer
        return self._timer <= self.now()

    def advance(self) -> list[Event]:
        """Let timers run that are due."""
        return self.named(self.book.advance(self.now())) if self.is_due() else []

    def state(self) -> dict[str, Any]:
        """Return plain data for JSON, with which a book goes on."""
        return {"book": self.book.state(), "rows": self.rows, "newest": self._newest}


def known_labels(labels: Iterable[Label], assets: Iterable[Asset]) -> list[Label]:
    """Return the labels that act: of each asset the newest 100 of a store, and those that its model keeps.

    What a model keeps is about its asset.
    """
    found: list[Label] = []
    acting = [each for each in labels if each.holds and each.pattern]
    for asset in assets:
        name = asset.record.name
        found += [each for each in acting if each.is_about(name) or each.asset.startswith(f"{name}/")][-MOST_LABELS:]
        found += [replace(each, asset=name) for each in asset.scorer.labels]
    return found


class _Lines(Feed):
    """Lines that are all there."""

    can_seek = False

    def __init__(self, lines: bytes, name: str) -> None:
        self.name, self._lines = name, lines

    def read(self) -> bytes:
        lines, self._lines = self._lines, b""
        return lines

    def mark(self, offset: int, tail: bytes) -> dict[str, Any]:
        return {"offset": offset}

    def continue_from(self, state: dict[str, Any]) -> tuple[int, bytes]:
        self._lines = self._lines[state["offset"] :]
        return state["offset"], b""


def _digest(lines: bytes, source: str) -> str:
    return hashlib.sha256(source.encode() + b"\0" + lines).hexdigest()


def batch_of(block: ScoredBlock) -> Batch:
    """Return rows of the store with their readings as they were scored: those that came without a time have none."""
    assert block.values is not None
    seconds = None
    if block.times is not None:
        missing = [time is None or is_missing(str(time)) for time in block.times]
        seconds = np.where(missing, np.nan, block.seconds)
    return Batch(block.values.copy(), range(len(block.values)), block.times, [], block.texts, seconds)


def joined_batches(batches: Sequence[Batch]) -> Batch:
    """Return several batches as one; line numbers are those of each."""
    filled = [batch for batch in batches if len(batch.lines)]
    faults = [fault for batch in batches for fault in batch.faults]
    remarks = [remark for batch in batches for remark in batch.remarks]
    readings, further = (sum(getattr(each, name) for each in batches) for name in ("readings", "further_faults"))
    if len(filled) <= 1:
        batch = filled[0] if filled else Batch(np.empty((0, 0)), [], None, [])
        return replace(batch, faults=faults, remarks=remarks, readings=readings, further_faults=further)
    timed = any(batch.times is not None for batch in filled)
    times = [each for batch in filled for each in (batch.times or [None] * len(batch.lines))] if timed else None
    read = [np.full(len(batch.lines), np.nan) if batch.seconds is None else batch.seconds for batch in filled]
    seconds = np.concatenate(read) if any(batch.seconds is not None for batch in filled) else None
    texts = {name: [text for batch in filled for text in batch.texts[name]] for name in filled[0].texts}
    lines = [line for batch in filled for line in batch.lines]
    values = np.concatenate([batch.values for batch in filled])
    return Batch(values, lines, times, faults, texts, seconds, remarks, readings, further)


def _filled(seconds: FloatArray, before: float | None, now: float) -> FloatArray:
    """Return times without gaps: one that is not known is that of the row before; where none is known, it is now."""
    known = np.isfinite(seconds)
    first = before if before is not None else seconds[known][0] if known.any() else now
    last = np.maximum.accumulate(np.where(known, np.arange(len(seconds)), -1))
    return np.where(last >= 0, seconds[last], first)
