"""Read text with separators into a raw table, with the parser of pandas, once the layout is known.

A file is opened several times: for its encoding, its layout and its rows, and again where rows are short or mixed.
"""

from __future__ import annotations

import codecs
import csv
import datetime as dt
import gzip
import io
import os
import re
import warnings
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from penstock._messages import counted, listed, option, quoted
from penstock._types import FloatArray
from penstock.io._clock import is_time_name, seems_time
from penstock.io._combine import RawTable, own_names
from penstock.io._encodings import UTF8, TextEncoding, find_encoding, marked_encoding
from penstock.io._layout import (
    HEAD_BYTES,
    NUMBER,
    InnerLines,
    TextLayout,
    find_inner_lines,
    find_layout,
    is_enough,
    refuse_binary,
    refuse_foreign,
    single_blanks,
    stamps_of,
)
from penstock.io._reading_columns import named_reading_columns
from penstock.io._time_texts import NAIVE
from penstock.io.table import ReadLog, TableError
from penstock.io.times import TimeReader

LONGEST_LINE = 64 * 2**20  # bytes
_CHUNK = 2**18
_NEWLINE = 10
_BLOCK = 2**15  # numbers
# What makes pandas read numbers as Python does; since 3.1 it does so by itself.
_OLD_PANDAS = tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1)
_EXACTLY: dict[str, Any] = {"float_precision": "round_trip"} if _OLD_PANDAS else {}
_LARGE = 5 * 2**20  # bytes: from here on pandas reads in parallel
_LONG = 32 * 2**20  # bytes: from here on a text with a row for each reading is read in pieces
_PIECE = 250_000  # rows
_EXACT = 2.0**53  # whole numbers up to this one are kept
_FINER = re.compile(r"\.\d{7}")  # than microseconds
_FEW, _FEWEST, _SAMPLED = 1000, 20, 20_000  # values looked at first, that say how numbers are written, and of those
_WHOLE = 0.01  # of the numbers; with three decimals, one in a thousand is


@dataclass(frozen=True)
class TextSource:
    """A text that can be opened several times."""

    name: str  # for messages
    open: Callable[[], BinaryIO]
    max_bytes: int  # the greatest length allowed
    path: Path | None = None  # of a file that holds the text as it is, neither packed nor converted
    most_bytes: int = 0  # its length, or a bound of it


def default_max_bytes() -> int:
    """Return a quarter of the memory: numbers take up to four times the space of their text."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4
    except (AttributeError, OSError, ValueError):  # not on every system
        return 2 * 2**30


def most_cells(max_bytes: int) -> int:
    """Return how many cells a table may have: while it is checked each takes some 26 bytes, of four times max_bytes."""
    return max(1, max_bytes // 8)


class CleanBytes:
    """A readable file of UTF-8 bytes, made from any encoding and any line ends.

    Raises `UnicodeError` if the bytes do not fit the encoding, and `TableError` at a NUL, at a line longer than
    64 MB, and when there is more than `max_bytes` of it or more cells than `most_cells`, `width` in each line. Memory
    stays bounded by the longest line. With a blank as `separator`, any number of blanks and tabs is one.
    """

    def __init__(self, source: TextSource, encoding: TextEncoding, width: int = 1, separator: str = ",") -> None:
        self._source, self._name, self._encoding, self._width = source, source.name, encoding, width
        self._blanks = separator == " "
        try:
            self._is_utf8 = codecs.lookup(encoding.name).name == "utf-8"
            self._decoder = codecs.getincrementaldecoder(encoding.name)(encoding.errors)
            "x".encode(encoding.name)  # refuses codecs that are not of text
        except (LookupError, TypeError, ValueError):
            raise TableError(
                f"There is no encoding {quoted(encoding.name)}. Use one that Python knows, such as utf-8 or cp1252.",
                "encoding",
            ) from None
        self._pending = b""
        self._waiting = b""  # a blank or a line end at the end of a chunk: blanks may follow in the next
        self._held = b""  # a carriage return at the end of a chunk: the line feed may follow in the next
        self._total = self._lines = self._line_length = 0
        self._started = self._ended = False
        self.has_lone_returns = False  # line ends of old Macs
        self._file = source.open()

    def __enter__(self) -> CleanBytes:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def __iter__(self) -> Iterator[bytes]:
        while chunk := self.read():
            yield chunk

    def head(self) -> bytes:
        """Return the first lines, complete, as many as show the layout; `read` returns them again."""
        chunks: list[bytes] = []
        lines = size = 0
        while not (self._ended or is_enough(lines, size)):
            chunks.append(self._next_chunk())
            size += len(chunks[-1])
            lines += chunks[-1].count(b"\n")
        self._pending = b"".join(chunks)
        refuse_binary(self._pending[:HEAD_BYTES], self._name)
        stop = lines = 0
        while stop < len(self._pending) and not is_enough(lines, stop):
            end = self._pending.find(b"\n", stop)
            if end < 0:
                return self._pending if self._ended else self._pending[:stop]
            stop, lines = end + 1, lines + 1
        return self._pending[:stop]

    def skip(self, count: int) -> None:
        self._pending = self._pending[count:]

    def read(self, _size: int = -1) -> bytes:
        """Return the next bytes, as many as there are; none at the end."""
        if not self._pending and not self._ended:
            return self._next_chunk()
        chunk, self._pending = self._pending, b""
        return chunk

    def _next_chunk(self) -> bytes:
        chunk = self._next_unchecked()
        self._check(chunk)
        return chunk

    def _next_unchecked(self) -> bytes:
        while not self._ended:
            raw = _read(self._file, self._name, _CHUNK)
            self._ended = not raw
            if not self._started:
                raw, self._started = raw.removeprefix(codecs.BOM_UTF8), True
            chunk = self._with_plain_ends(self._to_utf8(raw))
            if self._blanks:
                chunk = self._with_single_blanks(chunk)
            if chunk:
                return chunk
        return b""

    def _to_utf8(self, raw: bytes) -> bytes:
        if self._is_utf8 and raw.isascii() and not self._decoder.getstate()[0]:
            return raw  # as nearly always: ten times as fast as decoding it
        text = self._decoder.decode(raw, final=not raw)
        return raw if self._is_utf8 and self._encoding.errors == "strict" else text.encode()

    def _with_plain_ends(self, chunk: bytes) -> bytes:
        chunk = self._held + chunk
        self._held = b"\r" if chunk.endswith(b"\r") and not self._ended else b""
        if b"\r" not in chunk:
            return chunk
        chunk = chunk[: len(chunk) - len(self._held)].replace(b"\r\n", b"\n")
        if b"\r" not in chunk:
            return chunk
        self.has_lone_returns = True
        return chunk.replace(b"\r", b"\n")

    def _with_single_blanks(self, chunk: bytes) -> bytes:
        """Cut blanks around lines, and runs of them to one; the last character waits for what follows it."""
        chunk = single_blanks(self._waiting + chunk)
        last = len(chunk) if self._ended else len(chunk) - chunk.endswith((b" ", b"\n"))
        chunk, self._waiting = chunk[:last], chunk[last:]
        if not self._total:
            chunk = chunk.lstrip(b" ")
        return chunk.rstrip(b" ") if self._ended else chunk

    def _check(self, chunk: bytes) -> None:
        before = self._total
        self._total += len(chunk)
        if self._total > self._source.max_bytes:
            raise self._too_large(f"holds more than {self._source.max_bytes:,} bytes of text")
        self._lines += int(np.count_nonzero(np.frombuffer(chunk, np.uint8) == _NEWLINE))  # quicker than bytes.count
        most = most_cells(self._source.max_bytes)
        if self._lines * self._width > most:
            raise self._too_large(f"has more than {most:,} cells in rows of {self._width:,}")
        if b"\0" in chunk:
            raise TableError(
                f"{self._name} holds a NUL byte in line {self._line_at(before + chunk.index(0)):,}: it is damaged, or "
                f"not a text file. Export it again, or remove that line."
            )
        last = chunk.rfind(b"\n")
        self._line_length += chunk.find(b"\n") if last >= 0 else len(chunk)
        if self._line_length > LONGEST_LINE:
            raise TableError(
                f"{self._name} has more than {LONGEST_LINE:,} bytes in line {self._line_at(before):,}: it is not a "
                f"table with one row a line. Export it again as CSV."
            )
        self._line_length = len(chunk) - last - 1 if last >= 0 else self._line_length

    def _too_large(self, how: str) -> TableError:
        advice = f"Read a part of it, or pass a larger {option('max_bytes')}"
        return TableError(f"{self._name} {how}, which may not fit into memory. {advice}.")

    def _line_at(self, position: int) -> int:
        """Return the number of the line of this byte, by reading again: other tables then need no count of lines."""
        line = 1
        with CleanBytes(self._source, self._encoding, separator=" " if self._blanks else ",") as again:
            while position > 0 and (chunk := again._next_unchecked()):
                line += chunk[:position].count(b"\n")
                position -= len(chunk)
        return line


def _read(file: BinaryIO, name: str, size: int) -> bytes:
    try:
        return file.read(size)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise TableError(
            f"{name} is cut short or damaged where it is packed ({error}). Copy or pack it again."
        ) from None


OTHER_SIGN = {".": ",", ",": "."}  # before decimals, if one stands between thousands


@dataclass(frozen=True)
class TextOptions:
    """How a text is read; what is None is found out."""

    separator: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    encoding: str | None = None
    keep_times: bool = False  # as they are written, since the user says how to read them

    def check(self) -> None:
        for name in ("separator", "decimal", "thousands"):
            sign = getattr(self, name)
            single = isinstance(sign, str) and len(sign) == 1 and sign not in '"\r\n\0'
            single = single and (sign.isascii() or name == "thousands")
            if sign is not None and not single:
                raise TableError(f"{name} must be a single character such as ';' or ','; got {quoted(sign)}.", name)
        if self.decimal is not None and self.decimal == self.thousands:
            said = f"decimal and {option('thousands')} cannot both be {quoted(self.decimal)}."
            raise TableError(said, "decimal")


def read_text(source: TextSource, options: TextOptions, log: ReadLog) -> list[RawTable]:
    """Read the tables of a text, one below the other, in the encoding that is given or found, and note which it was."""
    options.check()
    if options.encoding:
        encoding = TextEncoding(str(options.encoding))
    else:
        with source.open() as file:
            start = _read(file, source.name, 4096)
        marked = marked_encoding(start)
        if marked is None:
            refuse_foreign(start, source.name)
        encoding = UTF8 if marked is None else TextEncoding(marked)
        if encoding is not UTF8:
            log.add("encoding", f"{source.name} was read as {encoding.name}.", 1, doubt=False)
    try:
        return _read_as(source, encoding, options, log)
    except UnicodeError as error:
        if encoding is not UTF8:
            raise TableError(
                f"{source.name} is not {encoding.name} ({error}). Name its encoding ({option('encoding')}).", "encoding"
            ) from None
    encoding = find_encoding(_raw_chunks(source))
    log.add("encoding", encoding.note(source.name), 1, doubt=not encoding.sure or encoding.errors != "strict")
    try:
        return _read_as(source, encoding, options, log)
    except UnicodeError as error:
        said = f"{source.name} is neither UTF-8 nor {encoding.name} ({error}). Name its encoding"
        raise TableError(f"{said} ({option('encoding')}).", "encoding") from None


def _raw_chunks(source: TextSource) -> Iterator[bytes]:
    with source.open() as file:
        size = 0
        while size <= source.max_bytes and (chunk := _read(file, source.name, _CHUNK)):
            size += len(chunk)
            yield chunk


def _read_as(source: TextSource, encoding: TextEncoding, options: TextOptions, log: ReadLog) -> list[RawTable]:
    with CleanBytes(source, encoding) as stream:
        head = stream.head()
    if not head.strip():
        raise TableError(f"{source.name} is empty. Export the table again.")
    decimal = options.decimal or OTHER_SIGN.get(options.thousands or "")
    layout = find_layout(head.decode(), source.name, options.separator, decimal)
    names, unnamed = column_names(layout, source.name)
    stamps = None if options.keep_times else stamps_of(head.decode(), layout)
    if stamps is not None and is_time_name(names[stamps]):
        layout = replace(layout, stamps=stamps)
    ragged, frame = None, pd.DataFrame()
    try:
        frame = _read_checked(source, encoding, layout, None if options.keep_times else names)
    except TableError as error:
        ragged = error
        if not _odd_line(source, encoding, layout):
            raise
    if ragged is not None or _may_hold_headers(frame, layout):
        lines = _all_lines(source, encoding, layout)
        inner = find_inner_lines(lines, layout)
        if inner.found and not inner.misfits:
            return _read_parts(source, lines, inner, options, log)
    if ragged is not None:
        raise ragged
    if options.decimal is None and options.thousands is None:
        _restore_thousands(frame, names, source, encoding, layout, log)
    frame.columns = pd.Index(names)
    _note_layout(layout, frame, source, options, log)
    bare = (re.sub(r"^[\[(]([^\[\]()]*)[\])]$", r"\1", unit.strip()).strip() for unit in layout.units)
    units = {each: unit for each, unit in zip(names, bare, strict=False) if unit not in ("", "-")}
    return [RawTable(source.name, frame, layout.decimal, unnamed, units)]


def _read_parts(
    source: TextSource, lines: list[str], inner: InnerLines, options: TextOptions, log: ReadLog
) -> list[RawTable]:
    """Read a text without the lines that are no rows, and each of its tables by itself."""
    said = {
        "remarks": (inner.remarks, "{lines} among the rows of {name} left out: {first} …"),
        "headers again": (inner.headers, "The header of {name} comes again in {lines}, which were left out."),
        "lines below": (inner.below, "{lines} below the last row of {name} left out: {first} …"),
    }
    for kind, (some, sentence) in said.items():
        if some:
            count, first = counted(len(some), "line"), quoted(lines[some[0]])
            log.add(kind, sentence.format(lines=count, name=source.name, first=first), len(some), changed=True)
    tables: list[RawTable] = []
    for start, stop in pairwise([0, *inner.tables, len(lines)]):
        content = "\n".join(lines[place] for place in range(start, stop) if place not in inner.left_out).encode()
        name = f"{source.name} (table from line {start + 1:,})" if start else source.name
        tables += _read_as(TextSource(name, partial(io.BytesIO, content), source.max_bytes), UTF8, options, log)
    if inner.tables:
        where = ", ".join(f"{start + 1:,}" for start in inner.tables[:5])
        about = f"{source.name} holds {len(tables)} tables, one below the other (from line {where}); each is read."
        log.add("stacked tables", about, len(tables))
    return tables


def _all_lines(source: TextSource, encoding: TextEncoding, layout: TextLayout) -> list[str]:
    with CleanBytes(source, encoding, layout.width, layout.separator) as stream:
        stream.head()
        return b"".join(stream).decode(errors="replace").split("\n")


def _may_hold_headers(frame: pd.DataFrame, layout: TextLayout) -> bool:
    """Return whether there seem to be headers among the rows, which make texts of columns of numbers."""
    first, kinds = frame[0], [kind.kind for kind in frame.dtypes]
    if layout.names is None or not layout.has_data or layout.width < 2 or kinds[0] in "iufb":
        return False
    if any(layout.names[1:]) and all(kind in "iufb" for kind in kinds[1:]):
        return False
    if layout.names[0] and (first == layout.names[0]).any():
        return True
    if any(kind in "iufb" for kind in kinds):
        return False
    cells = frame.iloc[:_FEW, 1:].stack().astype(str)
    return bool(cells.str.fullmatch(NUMBER.pattern).mean() > 0.5)


def _read_checked(
    source: TextSource, encoding: TextEncoding, layout: TextLayout, names: list[str] | None = None
) -> pd.DataFrame:
    """Return all rows; TableError if there are none, or a line has too few or too many fields.

    names : of the columns, if the text may be read in pieces.
    """
    frame = None if names is None else _read_readings(source, encoding, layout, names)
    if frame is None:
        frame = _read_frame(source, encoding, layout)
    if frame.empty:
        raise TableError(f"{source.name} has a header but no rows. Check that the export was complete.")
    if frame.iloc[:, -1].isna().any():  # a short line has missing values at its end
        with _rows(source, encoding, layout) as stream:
            counts = [(chunk.count(layout.separator.encode()), chunk.count(b'"')) for chunk in stream]
        separators, quotes = (sum(each) for each in zip(*counts, strict=True))
        suspect = quotes or separators != len(frame) * (layout.width - 1)  # no line is too long: pandas refuses those
        if suspect and (odd := _odd_line(source, encoding, layout)):
            raise TableError(odd)
    _restore_texts(frame, source, encoding, layout)
    return frame


def column_names(layout: TextLayout, name: str) -> tuple[list[str], tuple[str, ...]]:
    """Return the names of all columns, and those of columns without one."""
    given = layout.names or ()
    return own_names([given[number] if number < len(given) else "" for number in range(layout.width)], name)


def _read_readings(
    source: TextSource, encoding: TextEncoding, layout: TextLayout, names: list[str]
) -> pd.DataFrame | None:
    """Read a long text with a row for each reading in pieces; None if it is none, or cannot be read so."""
    tag, value, _ = named_reading_columns(names)
    if source.most_bytes < _LONG or not tag or not value:
        return None
    with _rows(source, encoding, layout) as stream:
        first = _parse(stream, source, encoding, layout, nrows=1000)
    texts: list[Any] = [
        number for number, kind in zip(first.columns, first.dtypes, strict=True) if kind.kind not in "iufb"
    ]
    kinds = dict.fromkeys([names.index(tag), *(each for each in texts if not seems_time(first[each]))], "category")
    if names.index(value) in texts:
        return None
    with _rows(source, encoding, layout) as stream:
        pieces: Any = _parse(stream, source, encoding, layout, chunksize=_PIECE, dtype=kinds)
        return _read_in_pieces(pieces)


def _read_in_pieces(pieces: Iterator[pd.DataFrame]) -> pd.DataFrame | None:
    """Return the columns of a text with a row for each reading; None if one of them cannot be read for certain.

    Tags (categories) become numbers and times become times at once: ten million readings are 180 MB then, where their
    texts would be some gigabytes. Only numbers, and times that begin with the year, are read so.
    """
    parts = defaultdict[Any, list[NDArray[Any]]](list)
    tags = defaultdict[Any, dict[str, int]](dict)
    offset: int | None = None
    try:
        for piece in pieces:
            for name, column in piece.items():
                if isinstance(column.dtype, pd.CategoricalDtype):
                    known = tags[name]
                    codes = [known.setdefault(tag, len(known)) for tag in column.cat.categories]
                    part = np.array([*codes, -1], dtype=np.int32)[column.cat.codes.to_numpy()]
                elif column.dtype.kind in "iuf":
                    part = column.to_numpy(dtype=np.float64)
                    part = part if not np.abs(part).max() > _EXACT else part[:0]
                else:
                    part, own_offset = _plain_times(column)
                    part = part if own_offset is not None and offset in (None, own_offset) else part[:0]
                    offset = own_offset
                other = bool(parts[name]) and parts[name][0].dtype != part.dtype
                if other or len(part) < len(piece):
                    return None
                parts[name].append(part)
    except (TableError, OverflowError):
        return None  # and said by who reads it whole
    zone = None if offset in (None, NAIVE) else dt.timezone(dt.timedelta(minutes=offset or 0))
    frame = dict[Any, Any]()
    for name in list(parts):
        values = np.concatenate(parts.pop(name))
        if name in tags:
            frame[name] = pd.Categorical.from_codes(values, pd.Index(list(tags[name])))
        elif values.dtype.kind == "M":
            index = pd.DatetimeIndex(values, copy=False)
            frame[name] = index if zone is None else index.tz_localize("UTC").tz_convert(zone)
        else:
            frame[name] = values
    return pd.DataFrame(frame, copy=False)


def _plain_times(column: pd.Series[Any]) -> tuple[NDArray[Any], int | None]:
    """Return times and the one offset from UTC that all have; None if one of them cannot be read for certain."""
    rows, kinds = pd.factorize(column)
    texts = kinds.tolist()
    reader = TimeReader.learn(texts[:_FEW])
    if reader is None or reader.unit or reader.day_first is not None or reader.format or (rows < 0).any():
        return rows, None
    times, offsets = reader.read(texts)
    certain = not np.isnat(times).any() and len({*offsets.tolist()}) == 1 and not any(map(_FINER.search, texts))
    return times[rows], int(offsets[0]) if certain else None


def _read_frame(source: TextSource, encoding: TextEncoding, layout: TextLayout) -> pd.DataFrame:
    """Pass the rows to pandas; of a large file, once it is checked, the path, as pandas then reads in parallel.

    A text that may become too large is checked first too, before pandas keeps any of it.
    """
    plain = source.path is not None and encoding == UTF8 and layout.separator != " "
    by_path = plain and source.most_bytes >= _LARGE
    if by_path or source.most_bytes * layout.width > most_cells(source.max_bytes):
        with CleanBytes(source, encoding, layout.width, layout.separator) as stream:
            simple = all(line.count(b'"') % 2 == 0 for line in stream.head().split(b"\n")[: layout.lines_above])
            for _ in stream:  # raises if there is anything that pandas should not see
                pass
        if by_path and source.path is not None and simple and not stream.has_lone_returns:
            above: dict[str, Any] = {"skiprows": layout.lines_above}
            if layout.stamps is not None:
                # It reads the times of a plain table with the numbers; where one is no time, all stay texts. If it
                # reads the line of names too, that is quicker.
                above = {"header": 0, "parse_dates": [layout.stamps]}
            return _parse(str(source.path.resolve()), source, encoding, layout, **above, compression=None)
    with _rows(source, encoding, layout) as stream:
        return _parse(stream, source, encoding, layout)


@contextmanager
def _rows(source: TextSource, encoding: TextEncoding, layout: TextLayout) -> Iterator[CleanBytes]:
    with CleanBytes(source, encoding, layout.width, layout.separator) as stream:
        lines = stream.head().split(b"\n", layout.lines_above)[: layout.lines_above]
        stream.skip(sum(len(line) + 1 for line in lines))
        yield stream


def _parse(
    readable: CleanBytes | str, source: TextSource, encoding: TextEncoding, layout: TextLayout, **more: Any
) -> pd.DataFrame:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # a longer first row would lose its end
            warnings.simplefilter("ignore", pd.errors.DtypeWarning)  # see _restore_texts
            how: dict[str, Any] = {"header": None, **_EXACTLY, **more}
            frame: pd.DataFrame = pd.read_csv(
                cast(Any, readable),
                sep=layout.separator,
                decimal=layout.decimal,
                names=range(layout.width),
                index_col=False,
                skipinitialspace=layout.spaced,
                skip_blank_lines=layout.width > 1,  # in a single column a blank line is a missing value
                **how,
            )
            return frame
    except (ValueError, OverflowError, pd.errors.ParserWarning) as error:
        if isinstance(error, TableError | UnicodeError):
            raise
        name, open_quote = source.name, re.search(r"EOF inside string starting at row (\d+)", str(error))
        if open_quote:
            line = layout.lines_above + int(open_quote.group(1)) + 1
            said = f'{name} has a quote (") near line {line:,} that is never closed. Close or remove it.'
        else:
            said = f"{name} cannot be read as a table ({str(error).strip()[:200]}). Export it again as CSV."
            said = _odd_line(source, encoding, layout) or said
        raise TableError(said) from None


def _odd_line(source: TextSource, encoding: TextEncoding, layout: TextLayout) -> str:
    """Say which line is the first that has not a field for each column; "" if all have."""
    name, width = source.name, layout.width
    with _rows(source, encoding, layout) as stream:
        reader = csv.reader(_lines(stream), delimiter=layout.separator)
        try:
            for fields in reader:
                if len(fields) != width and (len(fields) > 1 or "".join(fields).strip()):
                    return (
                        f"{name}, line {layout.lines_above + reader.line_num:,} has {counted(len(fields), 'field')} "
                        f"where the table has {width:,} columns: it begins "
                        f"{quoted(layout.separator.join(fields[:4]))}. Correct or remove this line."
                    )
        except csv.Error as error:
            raise TableError(
                f"{name} cannot be cut into fields at line {layout.lines_above + reader.line_num:,}: {error}. "
                f"Correct or remove it."
            ) from None
    return ""


def _restore_texts(frame: pd.DataFrame, source: TextSource, encoding: TextEncoding, layout: TextLayout) -> None:
    """Read columns again as text where pandas, which reads in pieces, found text in one and numbers in another."""
    objects = [number for number, kind in zip(frame.columns, frame.dtypes, strict=True) if kind.kind == "O"]
    mixed = [number for number in objects if pd.api.types.infer_dtype(frame[number]).startswith("mixed")]
    if not mixed:
        return
    with _rows(source, encoding, layout) as stream:
        texts = _parse(stream, source, encoding, layout, usecols=mixed, dtype=str)
    for number in mixed:
        frame[number] = texts[number]


def _restore_thousands(
    frame: pd.DataFrame, names: list[str], source: TextSource, encoding: TextEncoding, layout: TextLayout, log: ReadLog
) -> None:
    """Read columns again in which the sign of decimals stands between thousands: 1.005 is 1005, as 995 has no sign.

    Decided for the whole text: a column in which numbers below 1000 have no sign, and all others three digits after it,
    shows it. Where numbers have one at three digits throughout, that cannot be known, and is noted.
    """
    sign = layout.decimal
    can_be_noted = sign == "." and layout.separator != ","
    # Columns of text would be copied.
    floats = {each: column.to_numpy() for each, column in frame.items() if column.dtype == float}
    suspects, shown, others = columns_with_groups(floats)
    if not suspects or not (shown or can_be_noted) or (others and not shown):
        return  # as nearly always
    for rows in (_FEW, None) if shown else (_FEW,):
        with _rows(source, encoding, layout) as stream:
            texts = _parse(stream, source, encoding, layout, usecols=suspects, dtype=str, nrows=rows)
        signed = {number: texts[number].str.contains(sign, regex=False, na=False) for number in suspects}
        if not all(are_groups(texts[number][signed[number]], sign) for number in suspects):
            return  # such as 13.7
    shown = [each for each in shown if (~signed[each] & texts[each].notna()).any()]
    if shown and not others:
        for number in suspects:
            frame[number] = pd.to_numeric(texts[number].str.replace(sign, "", regex=False))
        one = shown[0]
        examples = [texts[one][signed[one]].iloc[0], texts[one][~signed[one] & texts[one].notna()].iloc[0]]
        said = f"The {quoted(sign)} in numbers such as {quoted(examples[0])} was read as standing between thousands,"
        said = f"{said} as numbers below 1000, such as {quoted(examples[1])}, have none; {option('decimal', sign)}"
        said = f"{said} changes it."
        log.add("thousands", said, len(suspects), tuple(names[number] for number in suspects), changed=True)
        log.thousands = sign
    elif shown or (not others and can_be_noted):
        example = f"{frame[suspects[0]].dropna().iloc[0]:.3f}".replace(".", sign)
        said = f"The {quoted(sign)} in numbers such as {quoted(example)} was read as that of decimals, though all have"
        said = f"{said} three digits after it: if it stands between thousands, say so ({option('thousands', sign)})."
        log.add("thousands", said, len(suspects))


def columns_with_groups(columns: Mapping[Any, NDArray[Any]]) -> tuple[list[Any], list[Any], bool]:
    """Return which columns, read as if a sign stood before decimals, may have it between thousands.

    Returns
    -------
    The columns that may have it, those of them that show it, and whether other columns certainly have decimals.
    """
    shares = {key: _grouped_share(column) for key, column in columns.items() if column.dtype == np.float64}
    suspects = [key for key, share in shares.items() if share < 1]
    return suspects, [key for key in suspects if shares[key] >= _WHOLE], any(map(np.isnan, shares.values()))


def are_groups(texts: pd.Series[Any], sign: str) -> bool:
    """Return whether in all these numbers three digits follow the sign."""
    return bool(texts.str.fullmatch(rf"\s*[+-]?[1-9]\d{{0,2}}{re.escape(sign)}\d{{3}}\s*").all())


def _grouped_share(column: FloatArray) -> float:
    """Return the share of whole numbers, if all others are from 1.000 to 999.999; NaN if there are other fractions."""
    sizes = np.abs(column[:: 1 + len(column) // _SAMPLED])
    sizes = sizes[np.isfinite(sizes)]
    fractions = sizes[sizes != np.rint(sizes)]
    parts = 1000 * fractions
    odd = (fractions >= 1000) | (fractions < 1) | (np.abs(parts - np.rint(parts)) > 1e-6)
    if not len(fractions):
        return 1.0
    few = len(sizes) < _FEWEST or bool((sizes >= 1000).any())
    return float("nan") if few or odd.any() else 1 - len(fractions) / len(sizes)


def _note_layout(
    layout: TextLayout, frame: pd.DataFrame, source: TextSource, options: TextOptions, log: ReadLog
) -> None:
    if layout.preamble:
        above, first = counted(len(layout.preamble), "line"), quoted(layout.preamble[0])
        log.add("preamble", f"{above} above the table in {source.name} left out: {first} …", len(layout.preamble))
    if layout.names is None:
        called = listed(frame.columns, most=2)
        log.add("no header", f"{source.name} has no header; its columns are called {called}.", layout.width)
    below = (("units", "A line of units", layout.units), ("description", "A second line", layout.description))
    for kind, what, fields in below:
        if fields:
            shown = listed([text.strip() for text in fields if text.strip()], most=5)
            log.add(kind, f"{what} below the header of {source.name} is no row: {shown}.", 1)
    if layout.separator == " " and options.separator is None:
        log.add("blanks", f"{source.name} was read with blanks between its columns.", 1)
    if layout.decimal == "," and options.decimal is None:
        log.add("decimal comma", f"{source.name} was read with a decimal comma.", 1)


def _lines(chunks: Iterable[bytes]) -> Iterator[str]:
    rest = b""
    for chunk in chunks:
        *complete, rest = (rest + chunk).split(b"\n")
        for line in complete:
            yield line.decode(errors="replace") + "\n"
    if rest:
        yield rest.decode(errors="replace")
