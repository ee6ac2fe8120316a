"""Read rows from a feed: cut its bytes into lines, learn the layout from the first, and know the position.

The layout is found by the same functions as that of a file (`read_table`), from as many first lines, or from those that
are there when the input pauses. It is decided once, and kept with the position.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from penstock._messages import duration_in_words, quoted
from penstock._types import FloatArray
from penstock.io._csv_rows import CsvRows, RowLayout, learn_layout
from penstock.io._layout import HEAD_LINES, is_enough, is_missing
from penstock.io._row_values import Columns, JsonRows, Parsed, TableOptions
from penstock.io.feeds import ADVICE, HEAD, Feed, InputError, LineCutter, byte_length, last_bytes
from penstock.io.table import Note, ReadLog
from penstock.io.times import TimeReader

RowParser = CsvRows | JsonRows
MAX_AHEAD = 86_400.0  # seconds by which a row may be ahead of all before it
_BEHIND = 3600.0  # seconds: a clock that is so far behind is worth a remark


@dataclass(frozen=True)
class BadLine:
    """A malformed line: where it is and what is wrong with it."""

    source: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.source}, line {self.line}: {self.reason}"


@dataclass
class Batch:
    """Some rows in order, the lines they were in, and the malformed lines among them."""

    values: FloatArray
    lines: Sequence[int]
    times: list[Any] | None = None  # as they are written
    faults: list[BadLine] = field(default_factory=list)
    texts: dict[str, list[str | None]] = field(default_factory=dict)  # `TableOptions.texts`, None: missing
    seconds: FloatArray | None = None  # the times as they were read (`TimeReader.seconds`), NaN where one is missing
    remarks: list[str] = field(default_factory=list)  # what is odd about the clock
    readings: int = 0  # how many were taken to make these and later rows, where rows are made of readings
    further_faults: int = 0  # malformed lines that are not among `faults`

    def rows(self, places: Sequence[int]) -> Batch:
        """Return the rows at these places, alone."""
        return Batch(
            self.values[list(places)],
            [self.lines[place] for place in places],
            None if self.times is None else [self.times[place] for place in places],
            texts={name: [column[place] for place in places] for name, column in self.texts.items()},
            seconds=None if self.seconds is None else self.seconds[list(places)],
        )


@dataclass
class TimeProgress:
    """How far the times of a stream have come; what one row says of the time is held against the rows before it."""

    last: float = -np.inf  # the time of the last row that has one
    newest: float = -np.inf
    step: float = 0.0  # the last step forwards
    ahead: float | None = None  # a time too far ahead of all before, which the next row may confirm
    behind: bool = False  # the last row was far behind the newest
    dated: bool | None = None  # whether they are dates; None before the first

    def check(self, seconds: FloatArray, most: float) -> tuple[list[int], list[str]]:
        """Take the times of rows; return the places of those that are too far ahead, and remarks on the clock.

        A row may be ahead of all before it by `most` seconds, or three of the last steps. One that is farther ahead is
        right if the next row agrees with it: after a break the clock goes on from there. Of a last one that is too far
        ahead, which the next row may confirm, `ahead` is the time.

        >>> TimeProgress(0.0, 0.0, 60.0).check(np.array([60.0, 9e6, 120.0]), 86_400.0)
        ([1], [])
        >>> TimeProgress(0.0, 0.0, 60.0).check(np.array([60.0, 9e6, 9e6 + 60]), 86_400.0)
        ([], [])
        """
        wrong: list[int] = []
        remarks: list[str] = []
        waiting: int | None = None  # the place of the row that is ahead; None if it came earlier
        for place, time in enumerate(seconds.tolist()):
            if math.isnan(time):
                continue
            if self.ahead is not None:
                if self.ahead <= time <= self.ahead + max(most, 3 * self.step, self.ahead - self.newest):
                    self.step, self.newest = self.ahead - self.newest, self.ahead  # both are right
                elif waiting is not None:
                    wrong.append(waiting)
                self.ahead = waiting = None
            if time - self.newest > max(most, 3 * self.step) and self.newest > -np.inf:
                self.ahead, waiting = time, place
                continue
            far_behind = self.newest - time > _BEHIND
            if far_behind and not self.behind:
                far = duration_in_words(self.newest - time)
                remarks.append(f"The clock runs backwards: a row is {far} before the newest one.")
            if time > self.newest:
                self.step = time - self.newest if self.newest > -np.inf else self.step
                self.newest = time
            self.behind, self.last = far_behind, time
        return (wrong if waiting is None else [*wrong, waiting]), remarks


@dataclass
class _ParsedRows:
    """Rows that were parsed from some lines.

    lines : the number of the line of each, among those given.
    faults : reasons by number of the line.
    waiting : the line of a row whose time the next row may confirm.
    """

    lines: list[int]
    parsed: Parsed
    seconds: FloatArray | None = None
    faults: dict[int, str] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    waiting: int | None = None

    @classmethod
    def of(cls, filled: Sequence[int], parsed: Parsed) -> _ParsedRows:
        faults = {filled[number]: reason for number, reason in parsed.faults}
        return cls([number for number in filled if number not in faults], parsed, faults=faults)

    def refuse(self, reasons: dict[int, str]) -> None:
        """Take out rows, by their place."""
        if not reasons:
            return
        self.faults |= {self.lines[place]: reason for place, reason in reasons.items()}
        self._keep([place for place in range(len(self.lines)) if place not in reasons])

    def up_to(self, line: int) -> _ParsedRows:
        """Leave out the lines from this number on."""
        self.faults = {number: reason for number, reason in self.faults.items() if number < line}
        self._keep([place for place, number in enumerate(self.lines) if number < line])
        return self

    def _keep(self, places: list[int]) -> None:
        parsed = self.parsed
        self.lines = [self.lines[place] for place in places]
        parsed.values = parsed.values[places]
        parsed.times = None if parsed.times is None else [parsed.times[place] for place in places]
        parsed.texts = {name: [column[place] for place in places] for name, column in parsed.texts.items()}
        self.seconds = None if self.seconds is None else self.seconds[places]


def _is_there(time: Any) -> bool:
    return time is not None and not is_missing(str(time))


class RowSource:
    """Read rows from a feed, as soon as they are there; the `columns` are None until the layout is known."""

    def __init__(
        self,
        feed: Feed,
        options: TableOptions,
        strict: bool = False,
        progress: TimeProgress | None = None,
        max_ahead: float = MAX_AHEAD,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._feed = feed
        self._options = options
        self.strict = strict  # a malformed line raises an InputError, after the rows before it were returned
        self.progress = progress or TimeProgress()  # of the times; shared where several sources bring rows of one unit
        self._max_ahead = max_ahead
        self._clock = clock  # returns the present, where rows are of the present: none may be far ahead of it
        self._waits = False  # the first line is a row too far ahead: the next one tells whether its time is right
        self._cutter = LineCutter()
        self._parser: RowParser | None = None
        self._lines: list[bytes] = []  # complete lines of the present file that were not returned
        self._last: bytes | None = None  # at the end of the file: what comes after its last line end
        self._at_end = False  # that is what `_lines` holds now
        self._offset = 0  # in the present file, of the first of the lines
        self._tail = b""  # of the present file, what comes before that offset
        self._line = 0  # lines of the present file before it
        self._lines_tried = 0  # lines from which no layout could be found
        self._may_repeat = False  # the header: of a file that is not the first, no row was seen
        self.notes: list[Note] = []  # on what was left out: lines above the table, columns of text
        self.ended = False  # no more will come
        self.provisional = False  # a last line without a line end, which may grow: do not keep a position after it

    @property
    def columns(self) -> Columns | None:
        return None if self._parser is None else self._parser.columns

    @property
    def reader(self) -> TimeReader | None:
        """How times are read; None as long as there was none that can be read."""
        return None if self._parser is None else self._parser.reader

    @property
    def parser(self) -> RowParser | None:
        """What parses the lines; None as long as the layout is not known."""
        return self._parser

    @property
    def has_lines(self) -> bool:
        """Whether lines were read that were not returned."""
        return bool(self._lines or self._last)

    def next_batch(self, at_most: int) -> Batch | None:
        """Return rows from at most so many lines; None when there are none yet, or a line was no row."""
        if self._parser is None:
            return self._learn(at_most)
        if self._waits:  # for the line that tells whether the time of the first one is right
            if len(self._lines) < 2 and self._last is None and not self._fill():
                return None
            at_most = max(at_most, 2)
        if not self._lines:
            self._fill()
            if self.provisional or not self._lines:
                return None
        if self._at_end and self._feed.truncated:
            return self._malformed("cut off by truncation of the file")
        if self._may_repeat:  # pass over blank lines and the lines above the first row, if they come again
            self._use_up(self._count_blank())
            role = self._parser.role_above(self._lines[0], self._line) if self._lines else "blank"
            header = role == "header" and self._parser.has_lines_below
            self._may_repeat = header or role in ("blank", "preamble", "units")
            self._use_up(bool(role))
            return None
        return self._parse(self._parser, self._lines[:at_most])

    def fault(self, line: int, reason: str) -> BadLine:
        """Return the report on a line of the present file that cannot be used."""
        return BadLine(self._feed.name, line, reason)

    def position(self) -> dict[str, Any]:
        """Return the place of the first line that was not returned, and how the table is read, in plain values."""
        assert self._parser is not None
        place = {"file": self._feed.mark(self._offset, self._tail), "line": self._line, "may_repeat": self._may_repeat}
        return {**place, "table": self._parser.state(), "progress": asdict(self.progress)}

    def continue_from(self, position: dict[str, Any]) -> None:
        """Go on at a position, or, where the feed cannot seek, with what comes now.

        How the table is read may be said by the parser of another source with the same options.
        """
        try:
            table, file, line = position["table"], position["file"], int(position["line"])
            is_parser = isinstance(table, CsvRows | JsonRows)
            self._parser = copy(table) if is_parser else restore_parser(table, self._options)
            if "progress" in position:
                self.progress = TimeProgress(**position["progress"])
        except (LookupError, TypeError, ValueError) as error:
            raise InputError(
                f"What the --state says of {self._feed.name} makes no sense ({error!r}). {ADVICE}"
            ) from None
        self._offset, self._tail = self._feed.continue_from(file)
        self._line = line if self._offset else 0
        self._may_repeat = not self._offset or bool(position.get("may_repeat"))

    def reading_with(self, options: TableOptions) -> RowSource:
        """Return a source that goes on here with other options; of the two, only one may be read on."""
        other = copy(self)
        other._options = options
        other._parser = None if self._parser is None else restore_parser(self._parser.state(), options)
        return other

    def close(self) -> None:
        self._feed.close()

    def _learn(self, at_most: int) -> Batch | None:
        """Collect lines until they show the layout; return only malformed lines."""
        paused = self._last is None and not self._fill()
        self._use_up(self._count_blank())
        if self._last is not None and not self._lines:
            self._fill()  # the unfinished last line, or the next file
        lines = [*self._lines[:HEAD_LINES], *([self._last] if self._last and not self._at_end else [])]
        if not lines or not lines[0].strip():
            self._use_up(len(self._lines))
            return None
        if _holds_json(lines[0], self._options):
            return self._learn_json(at_most)
        whole = self._last is not None or is_enough(len(self._lines), sum(map(len, self._lines)))
        if not whole and not (paused and len(lines) > self._lines_tried):
            return None
        notebook = ReadLog(self._feed.name)
        elsewhere = self._feed.lines_elsewhere
        layout = learn_layout(lines[:HEAD_LINES], self._options, notebook, elsewhere, more=not whole)
        if layout is not None:
            self._parser = CsvRows(layout, self._options.missing)
            self.notes = notebook.notes
            for note in self.notes if self._clock is None else ():  # a service logs them
                warnings.warn(str(note), stacklevel=3)
            self._use_up(layout.above)
        elif self._last is not None:
            self._use_up(len(self._lines))  # a header without rows
        self._lines_tried = len(lines)
        return None

    def _learn_json(self, at_most: int) -> Batch | None:
        """Learn the columns from the first line that is a row; return the malformed lines before it."""
        faults: list[BadLine] = []
        passed = 0
        for line in self._lines[:at_most]:
            if line.strip():
                if not _holds_json(line, self._options):
                    break
                try:
                    self._parser = JsonRows.of(line, self._options)
                    break
                except InputError:
                    raise
                except ValueError as malformed:
                    faults.append(self.fault(self._line + passed + 1, str(malformed)))
            passed += 1
        if faults and self.strict:
            raise InputError(f"{faults[0]} (--strict)")
        self._use_up(passed)
        if self._parser is not None:
            self._learn_times(self._parser, self._parser.parse(self._lines[:HEAD_LINES]).times)
        return Batch(np.empty((0, 0)), [], None, faults) if faults else None

    def _count_blank(self) -> int:
        return next((at for at, line in enumerate(self._lines) if line.strip()), len(self._lines))

    def _fill(self) -> bool:
        """Read what is there now; return False if nothing is there yet."""
        if self._last:  # the file has ended, and all its complete lines were returned
            self._lines, self._last, self._at_end = [self._last], b"", True
            self.provisional = self._feed.can_seek and not self._feed.grows
            return True
        if self._last is not None:
            if self._feed.next_file():
                self._offset, self._tail, self._line, self._lines_tried = 0, b"", 0, 0
                self._last, self._at_end = None, False
                self._may_repeat = self._parser is not None
            else:
                self.ended = True
            return True
        data = self._feed.read()
        if data:
            self._lines += self._cutter.cut(data)
        elif data is not None:
            self._last = self._cutter.rest()
        return data is not None

    def _learn_times(self, parser: RowParser, times: Sequence[Any] | None) -> None:
        if times is not None and parser.reader is None:
            parser.reader = TimeReader.learn(times, self._options.times)
        elif times is not None and parser.reader is not None and not parser.reader.dated and self._clock is not None:
            found = TimeReader.learn(times, self._options.times)
            parser.reader = found if found is not None and found.is_epoch else parser.reader

    def _parse(self, parser: RowParser, lines: list[bytes]) -> Batch | None:
        filled: Sequence[int] = range(len(lines))
        if not all(lines) or any(map(bytes.isspace, lines)):
            filled = [number for number, line in enumerate(lines) if line.strip()]
        if not filled:
            self._use_up(len(lines))
            return None
        before = replace(self.progress)
        rows = _ParsedRows.of(filled, parser.parse([lines[number] for number in filled]))
        self._read_times(parser, rows, lines)
        if rows.waiting is not None and self._more_come(lines):  # the next line tells
            self._waits = True
            lines = lines[: rows.waiting]
            rows = rows.up_to(len(lines))
        faults = [self.fault(self._line + number + 1, reason) for number, reason in sorted(rows.faults.items())]
        if faults and self.strict:
            good = lines[: faults[0].line - 1 - self._line]
            if not good:
                raise InputError(f"{faults[0]} (--strict)")
            self.progress = before
            return self._parse(parser, good)
        read = [self._line + 1 + number for number in rows.lines]
        self._use_up(len(lines))
        parsed = rows.parsed
        return Batch(parsed.values, read, parsed.times, faults, parsed.texts, rows.seconds, rows.remarks)

    def _more_come(self, lines: list[bytes]) -> bool:
        """Return whether lines of the present file may follow these."""
        return self._last is None or len(lines) < len(self._lines)

    def _read_times(self, parser: RowParser, rows: _ParsedRows, lines: list[bytes]) -> None:
        """Read the times of rows; one that cannot be read, or is too far ahead of all before, is a fault."""
        times = rows.parsed.times
        self._learn_times(parser, times)
        self._waits = False
        passed_on = parser.reader is None and self.progress.dated is None and self._clock is None
        if times is None or passed_on:
            return
        reader = parser.reader or TimeReader()
        rows.seconds = reader.seconds(times, self.progress.last)
        unread = [place for place in np.flatnonzero(np.isnan(rows.seconds)).tolist() if _is_there(times[place])]
        reasons = {place: reader.why_not(times[place]) for place in unread}
        reasons |= self._impossible_times(reader, times, rows.seconds)
        rows.seconds[list(reasons)] = np.nan
        newest = self.progress.newest
        ahead, rows.remarks = self.progress.check(rows.seconds, self._max_ahead)
        for place in ahead:
            far = duration_in_words(
                float(rows.seconds[place]) - max(newest, min(self.progress.newest, self.progress.last))
            )
            reasons[place] = f"its time {str(times[place])[:40]!r} is {far} ahead of the newest row (--max-ahead)"
        if self.progress.ahead is not None and ahead:
            rows.waiting = rows.lines[ahead[-1]]
        if rows.waiting is not None and self._more_come(lines):
            self.progress.ahead = None  # it is looked at again with the next line
        rows.refuse(reasons)

    def _impossible_times(self, reader: TimeReader, times: Sequence[Any], seconds: FloatArray) -> dict[int, str]:
        """Return why times that can be read are none of this stream, by place."""
        known = np.flatnonzero(np.isfinite(seconds)).tolist()
        if not known:
            return {}
        if reader.dated and self.progress.dated is False:  # where there are dates, counts were a mistake
            vars(self.progress).update(vars(TimeProgress()))
        if self.progress.dated is None:
            self.progress.dated = reader.dated
        if self.progress.dated and not reader.dated:
            return {at: f"its time {quoted(times[at], 40)} is no date, and those before are dates" for at in known}
        if self._clock is None or not reader.dated:
            return {}
        ahead = seconds[known] - self._clock()
        return {
            at: f"its time {quoted(times[at], 40)} is {duration_in_words(by)} ahead of this machine's clock"
            for at, by in zip(known, ahead.tolist(), strict=True)
            if by > max(self._max_ahead, MAX_AHEAD)
        }

    def _malformed(self, reason: str) -> Batch:
        fault = self.fault(self._line + 1, reason)
        if self.strict:
            raise InputError(f"{fault} (--strict)")
        self._use_up(1)
        return Batch(np.empty((0, 0)), [], None, [fault])

    def _use_up(self, count: int) -> None:
        used = self._lines[:count]
        self._offset += byte_length(used) - (self._at_end and bool(used))  # a last line has no line end
        self._tail = last_bytes(self._tail, used, HEAD, ended=self._at_end)
        self._line += len(used)
        del self._lines[:count]


def restore_parser(state: dict[str, Any], options: TableOptions) -> RowParser:
    """Return the parser whose `state()` this is; ValueError, TypeError or LookupError if it is none."""
    if state["format"] == "jsonl":
        reader = None if state["reader"] is None else TimeReader.restore(state["reader"])
        return JsonRows(Columns.restore(state).chosen_by(options), options, reader)
    if state["format"] != "csv":
        raise ValueError(f"there is no format {state['format']!r}")
    layout = RowLayout.restore(state)
    return CsvRows(replace(layout, columns=layout.columns.chosen_by(options)), options.missing)


def _holds_json(line: bytes, options: TableOptions) -> bool:
    """Return whether lines hold JSON objects, by the first; InputError if the input is not one row a line."""
    text = line.removeprefix(b"\xef\xbb\xbf").strip()
    if b"\r" in text:
        raise InputError("The lines seem to end in a carriage return alone (CR); save the table with LF or CR LF.")
    begins_array = text.startswith(b"[") and text[1:].lstrip()[:1] in (b"", b"{", b"[")
    if begins_array if options.format is None else options.format == "jsonl" and text.startswith(b"["):
        raise InputError("The input is a JSON array; one object per line is needed (jq -c '.[]' makes them of it).")
    return options.format == "jsonl" or (options.format is None and text.startswith(b"{"))
