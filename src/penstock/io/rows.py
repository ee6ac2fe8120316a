"""A feed, a line cutter and a parser together: batches of rows, and the position from which reading can go on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from penstock._types import FloatArray
from penstock.io.columns import Columns, TableOptions
from penstock.io.csv_rows import CsvRows
from penstock.io.faults import Fault, InputError, LineError
from penstock.io.feeds import Feed
from penstock.io.json_rows import JsonRows
from penstock.io.lines import LineCutter, byte_length, last_bytes
from penstock.io.marks import ADVICE, HEAD
from penstock.io.parsed import RowParser


@dataclass
class Batch:
    """Some rows in order, the lines they were in, and the malformed lines among them."""

    values: FloatArray
    lines: Sequence[int]
    times: list[Any] | None = None
    faults: list[Fault] = field(default_factory=list)
    texts: dict[str, list[str | None]] = field(default_factory=dict)  # `TableOptions.texts`, None: missing


class RowSource:
    """Rows from a feed, as soon as they are there.

    Parameters
    ----------
    feed : Feed
    options : TableOptions
    strict : bool
        A malformed line raises an InputError, after the rows before it were handed out.

    Attributes
    ----------
    columns : Columns or None
        None until the first row has been seen.
    ended : bool
        No more will come.
    provisional : bool
        What comes now is a last line without a line end. It may yet grow: a position after it is not to be kept.

    Examples
    --------
    >>> import os
    >>> from penstock.io import PipeFeed, RowSource, TableOptions
    >>> reading, writing = os.pipe()
    >>> os.write(writing, b"time,flow\\n10:00,1.5\\n10:01,off\\n"), os.close(writing)
    (30, None)
    >>> source = RowSource(PipeFeed(reading), TableOptions())
    >>> while not source.ended:
    ...     batch = source.next_batch(at_most=100)
    ...     if batch is not None:
    ...         print(batch.times, batch.values.tolist(), *batch.faults)
    ['10:00'] [[1.5]] standard input, line 3: column "flow" holds "off", which is not a number
    """

    def __init__(self, feed: Feed, options: TableOptions, strict: bool = False) -> None:
        self._feed = feed
        self._options = options
        self.strict = strict
        self._cutter = LineCutter()
        self._parser: RowParser | None = None
        self._lines: list[bytes] = []  # complete lines of the present file that were not handed out
        self._offset = 0  # in the present file, of the first of them
        self._tail = b""  # of the present file, what comes before that offset
        self._line = 0  # lines of the present file before it
        self._at_end = False  # of the present file
        self._may_repeat = False  # the header: of a file that is not the first, only blank lines were seen
        self.ended = False
        self.provisional = False

    @property
    def columns(self) -> Columns | None:
        return None if self._parser is None else self._parser.columns

    def next_batch(self, at_most: int) -> Batch | None:
        """Rows from at most so many lines; None when there are none yet, and between one kind of line and another."""
        if not self._lines:
            self._fill()
            if self.provisional or not self._lines:
                return None
            if self._at_end and self._feed.truncated:
                return self._cut_off()
        if self._parser is None or self._parser.columns is None:
            return self._prepare()
        if self._may_repeat:
            self._begin_further_file()
            return None
        return self._parse(self._lines[:at_most])

    def fault(self, line: int, reason: str) -> Fault:
        """A line of the present file that cannot be used."""
        return Fault(self._feed.name, line, reason)

    def position(self) -> dict[str, Any]:
        """Where the first line is that was not handed out, and how the table is read, in plain values."""
        assert self._parser is not None
        place = {"file": self._feed.mark(self._offset, self._tail), "line": self._line, "may_repeat": self._may_repeat}
        return {**place, "table": self._parser.state()}

    def continue_from(self, position: dict[str, Any]) -> None:
        """Go on at a position, or, where the feed cannot seek, with what comes now."""
        try:
            table, file, line = position["table"], position["file"], int(position["line"])
            parsers: dict[str, type[CsvRows] | type[JsonRows]] = {"csv": CsvRows, "jsonl": JsonRows}
            self._parser = parsers[table["format"]].restore(table, self._options)
        except (LookupError, TypeError, ValueError) as error:
            raise InputError(
                f"What the --state says of {self._feed.name} makes no sense ({error!r}). {ADVICE}"
            ) from None
        self._offset, self._tail = self._feed.continue_from(file)
        self._line = line if self._offset else 0
        self._may_repeat = not self._offset or bool(position.get("may_repeat"))

    def close(self) -> None:
        """Let go of the file."""
        self._feed.close()

    def _fill(self) -> None:
        if self._at_end:
            self._next_file()
            return
        data = self._feed.read()
        if data is None:
            return
        if data:
            self._lines = self._cutter.cut(data)
            return
        self._at_end = True
        unfinished = self._cutter.rest()
        if unfinished:
            self._lines = [unfinished]
            self.provisional = self._feed.can_seek and not self._feed.grows

    def _next_file(self) -> None:
        if not self._feed.next_file():
            self.ended = True
            return
        self._offset, self._tail, self._line = 0, b"", 0
        self._at_end = False
        self._may_repeat = True

    def _cut_off(self) -> Batch:
        """The file was emptied before its last line was read to its end: what there is of it is no row."""
        fault = self.fault(self._line + 1, "cut off by truncation of the file")
        self._refuse_if_strict(fault)
        self._use_up(1)
        return Batch(np.empty((0, 0)), [], None, [fault])

    def _begin_further_file(self) -> None:
        """Pass over a blank line or the header, should it come again; InputError if another header comes."""
        assert self._parser is not None
        blank = not self._lines[0].strip()
        self._may_repeat = blank
        if blank or self._parser.is_header(self._lines[0]):
            self._use_up(1)

    def _prepare(self) -> Batch | None:
        """Learn the columns from the first line; it is used up if it is blank, a header or malformed."""
        line = self._lines[0]
        if not line.strip():
            self._use_up(1)
            return None
        if self._parser is None:
            self._parser = _parser_for(line, self._options)
        try:
            if self._parser.prepare(line):
                self._use_up(1)
            return None
        except LineError as malformed:
            fault = self.fault(self._line + 1, str(malformed))
            self._refuse_if_strict(fault)
            self._use_up(1)
            return Batch(np.empty((0, 0)), [], None, [fault])

    def _parse(self, lines: list[bytes]) -> Batch | None:
        assert self._parser is not None
        filled: Sequence[int] = range(len(lines))
        if not all(lines) or any(map(bytes.isspace, lines)):
            filled = [number for number, line in enumerate(lines) if line.strip()]
        if not filled:
            self._use_up(len(lines))
            return None
        parsed = self._parser.parse([lines[number] for number in filled])
        faults = [self.fault(self._line + filled[number] + 1, reason) for number, reason in parsed.faults]
        if faults and self.strict:
            return self._parse_before(faults[0])
        malformed = {number for number, _ in parsed.faults}
        read = [self._line + 1 + where for number, where in enumerate(filled) if number not in malformed]
        self._use_up(len(lines))
        return Batch(parsed.values, read, parsed.times, faults, parsed.texts)

    def _parse_before(self, fault: Fault) -> Batch | None:
        good = self._lines[: fault.line - 1 - self._line]
        if not good:
            self._refuse_if_strict(fault)
        return self._parse(good)

    def _refuse_if_strict(self, fault: Fault) -> None:
        if self.strict:
            raise InputError(f"{fault} (--strict)")

    def _use_up(self, count: int) -> None:
        self._offset += byte_length(self._lines[:count]) - self._at_end  # a last line has no line end
        self._tail = last_bytes(self._tail, self._lines[:count], HEAD, ended=self._at_end)
        self._line += count
        del self._lines[:count]


def _parser_for(line: bytes, options: TableOptions) -> RowParser:
    text = line.removeprefix(b"\xef\xbb\xbf").strip()
    if line.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in line:
        raise InputError("The first line looks like UTF-16, or is no text at all; save the table as UTF-8.")
    if b"\r" in text:
        raise InputError("The lines seem to end in a carriage return alone (CR); save the table with LF or CR LF.")
    begins_array = text.startswith(b"[") and text[1:].lstrip()[:1] in (b"", b"{", b"[")
    if begins_array if options.format is None else options.format == "jsonl" and text.startswith(b"["):
        raise InputError("The input is a JSON array; one object per line is needed (jq -c '.[]' makes them of it).")
    if options.format == "jsonl" or (options.format is None and text.startswith(b"{")):
        return JsonRows(options)
    return CsvRows(options)
