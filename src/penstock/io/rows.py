"""Read rows from a feed: cut its bytes into lines, learn the layout from the first, and know the position.

The layout is found by the same functions as that of a file (`read_table`), from as many first lines, or from those that
are there when the input pauses. It is decided once, and kept with the position.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from penstock._types import FloatArray
from penstock.io._clock import column_times
from penstock.io._csv_rows import CsvRows, RowLayout, learn_layout
from penstock.io._layout import HEAD_LINES, is_enough
from penstock.io._row_values import Columns, JsonRows, LineError, TableOptions
from penstock.io.feeds import ADVICE, HEAD, Feed, InputError, LineCutter, Mark, byte_length, last_bytes
from penstock.io.table import Note, Notebook

RowParser = CsvRows | JsonRows


@dataclass(frozen=True)
class Fault:
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
    times: list[Any] | None = None
    faults: list[Fault] = field(default_factory=list)
    texts: dict[str, list[str | None]] = field(default_factory=dict)  # `TableOptions.texts`, None: missing


class RowSource:
    """Read rows from a feed, as soon as they are there; the `columns` are None until the layout is known."""

    def __init__(self, feed: Feed, options: TableOptions, strict: bool = False) -> None:
        self._feed = feed
        self._options = options
        self.strict = strict  # a malformed line raises an InputError, after the rows before it were returned
        self._cutter = LineCutter()
        self._parser: RowParser | None = None
        self._lines: list[bytes] = []  # complete lines of the present file that were not returned
        self._last: bytes | None = None  # at the end of the file: what comes after its last line end
        self._at_end = False  # that is what `_lines` holds now
        self._offset = 0  # in the present file, of the first of the lines
        self._tail = b""  # of the present file, what comes before that offset
        self._line = 0  # lines of the present file before it
        self._judged = 0  # lines from which no layout could be learnt
        self._may_repeat = False  # the header: of a file that is not the first, no row was seen
        self.notes: list[Note] = []  # on what was left out: lines above the table, columns of text
        self.ended = False  # no more will come
        self.provisional = False  # a last line without a line end, which may grow: do not keep a position after it

    @property
    def columns(self) -> Columns | None:
        return None if self._parser is None else self._parser.columns

    def next_batch(self, at_most: int) -> Batch | None:
        """Return rows from at most so many lines; None when there are none yet, or a line was no row."""
        if self._parser is None:
            return self._learn()
        if not self._lines:
            self._fill()
            if self.provisional or not self._lines:
                return None
        if self._at_end and self._feed.truncated:
            return self._malformed("cut off by truncation of the file")
        if self._may_repeat:  # pass over blank lines and the lines above the first row, if they come again
            line = self._lines[0]
            role = self._parser.role_above(line, self._line) if line.strip() else "blank"
            header = role == "header" and self._parser.has_lines_below
            self._may_repeat = header or role in ("blank", "preamble", "units")
            self._use_up(bool(role))
            return None
        return self._parse(self._parser, self._lines[:at_most])

    def read_times(self, times: Sequence[Any]) -> pd.DatetimeIndex | None:
        """Return `Batch.times` as `read_table` would read them, NaT where one cannot be read; None if there are none.

        Day and month are in the order that the first lines show.
        """
        day_first, numeric = self._options.day_first, False
        if isinstance(self._parser, CsvRows):
            day_first, numeric = self._parser.layout.day_first, self._parser.layout.numeric_time
        texts = pd.Series([None if time is None else str(time).strip() for time in times], dtype="object")
        column = pd.to_numeric(texts, errors="coerce") if numeric else texts
        read = column_times(column, day_first, self._options.time_format)
        return None if read.times is None else read.index(None, "time", Notebook(self._feed.name))

    def fault(self, line: int, reason: str) -> Fault:
        """Return the report on a line of the present file that cannot be used."""
        return Fault(self._feed.name, line, reason)

    def position(self) -> dict[str, Any]:
        """Return the place of the first line that was not returned, and how the table is read, in plain values."""
        assert self._parser is not None
        place = {"file": self._feed.mark(self._offset, self._tail), "line": self._line, "may_repeat": self._may_repeat}
        return {**place, "table": self._parser.state()}

    def continue_from(self, position: dict[str, Any]) -> None:
        """Go on at a position, or, where the feed cannot seek, with what comes now."""
        try:
            table, file, line = position["table"], position["file"], int(position["line"])
            self._parser = restore_parser(table, self._options)
        except (LookupError, TypeError, ValueError) as error:
            raise InputError(
                f"What the --state says of {self._feed.name} makes no sense ({error!r}). {ADVICE}"
            ) from None
        self._offset, self._tail = self._feed.continue_from(file)
        self._line = line if self._offset else 0
        self._may_repeat = not self._offset or bool(position.get("may_repeat"))

    def close(self) -> None:
        self._feed.close()

    def _learn(self) -> Batch | None:
        """Collect lines until they show the layout; return only malformed lines."""
        paused = self._last is None and not self._fill()
        while self._lines and not self._lines[0].strip():
            self._use_up(1)
        if self._last is not None and not self._lines:
            self._fill()  # the unfinished last line, or the next file
        lines = [*self._lines, *([self._last] if self._last and not self._at_end else [])]
        if not lines or not lines[0].strip():
            self._use_up(len(self._lines))
            return None
        if _holds_json(lines[0], self._options):
            try:
                self._parser = JsonRows.of(lines[0], self._options)
            except LineError as malformed:
                return self._malformed(str(malformed))
            return None
        whole = self._last is not None or is_enough(len(lines), sum(map(len, lines)))
        if not whole and not (paused and len(lines) > self._judged):
            return None
        notebook = Notebook(self._feed.name)
        layout = learn_layout(lines[:HEAD_LINES], self._options, notebook, more=not whole)
        if layout is not None:
            self._parser = CsvRows(layout)
            self.notes = notebook.notes
            for note in self.notes:
                warnings.warn(str(note), stacklevel=3)
            self._use_up(layout.above)
        elif self._last is not None:
            self._use_up(len(self._lines))  # a header without rows
        self._judged = len(lines)
        return None

    def _fill(self) -> bool:
        """Read what is there now; return False if nothing is there yet."""
        if self._last:  # the file has ended, and all its complete lines were returned
            self._lines, self._last, self._at_end = [self._last], b"", True
            self.provisional = self._feed.can_seek and not self._feed.grows
            return True
        if self._last is not None:
            if self._feed.next_file():
                self._offset, self._tail, self._line, self._judged = 0, b"", 0, 0
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

    def _parse(self, parser: RowParser, lines: list[bytes]) -> Batch | None:
        filled: Sequence[int] = range(len(lines))
        if not all(lines) or any(map(bytes.isspace, lines)):
            filled = [number for number, line in enumerate(lines) if line.strip()]
        if not filled:
            self._use_up(len(lines))
            return None
        parsed = parser.parse([lines[number] for number in filled])
        faults = [self.fault(self._line + filled[number] + 1, reason) for number, reason in parsed.faults]
        if faults and self.strict:
            good = lines[: faults[0].line - 1 - self._line]
            if not good:
                raise InputError(f"{faults[0]} (--strict)")
            return self._parse(parser, good)
        malformed = {number for number, _ in parsed.faults}
        read = [self._line + 1 + where for number, where in enumerate(filled) if number not in malformed]
        self._use_up(len(lines))
        return Batch(parsed.values, read, parsed.times, faults, parsed.texts)

    def _malformed(self, reason: str) -> Batch:
        """Pass over the first line and report it."""
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
        return JsonRows(Columns.restore(state), options)
    if state["format"] != "csv":
        raise ValueError(f"there is no format {state['format']!r}")
    return CsvRows(RowLayout.restore(state))


def check_position(position: dict[str, Any], options: TableOptions) -> Columns:
    """Return the columns of a position; ValueError, TypeError or LookupError if reading could not go on from it."""
    line, file = position["line"], position["file"]
    if type(line) is not int or line < 0:
        raise ValueError(f"input: line is {line!r}, not a whole number ≥ 0")
    if file["kind"] == "file":
        Mark.restore(file, "the input")
    elif file["kind"] != "pipe":
        raise ValueError("input: file is no mark")
    return restore_parser(position["table"], options).columns


def _holds_json(line: bytes, options: TableOptions) -> bool:
    """Return whether lines hold JSON objects, by the first; InputError if the input is not one row a line."""
    text = line.removeprefix(b"\xef\xbb\xbf").strip()
    if b"\r" in text:
        raise InputError("The lines seem to end in a carriage return alone (CR); save the table with LF or CR LF.")
    begins_array = text.startswith(b"[") and text[1:].lstrip()[:1] in (b"", b"{", b"[")
    if begins_array if options.format is None else options.format == "jsonl" and text.startswith(b"["):
        raise InputError("The input is a JSON array; one object per line is needed (jq -c '.[]' makes them of it).")
    return options.format == "jsonl" or (options.format is None and text.startswith(b"{"))
