"""The bytes of a text file as UTF-8 with plain line ends, checked while they pass.

A file is opened several times: for its encoding, its layout and its rows, and again where rows are short or mixed.
"""

from __future__ import annotations

import codecs
import gzip
import os
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from penstock._messages import quoted
from penstock.io._errors import TableError
from penstock.io._formats import refuse_binary, refuse_foreign

LONGEST_LINE = 64 * 2**20  # bytes
_CHUNK = 2**18
_HEAD = 2**16  # bytes that are enough to learn the layout, if they hold three lines
_HEAD_LINES = 60  # are enough, however short
_BOMS = {
    codecs.BOM_UTF32_LE: "utf-32",  # before that of UTF-16, which it begins with
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


@dataclass(frozen=True)
class TextSource:
    """A text that can be opened again and again: `name` for messages, and its greatest length in bytes.

    path : of a file that holds the text as it is, neither packed nor made from something else.
    most_bytes : that may come of it.
    """

    name: str
    open: Callable[[], BinaryIO]
    max_bytes: int
    path: Path | None = None
    most_bytes: int = 0


def single_blanks(text: bytes) -> bytes:
    """Text with one blank for each run of blanks and tabs, and none around line ends.

    >>> single_blanks(b" 1  2\\t 3 \\n4 5")
    b' 1 2 3\\n4 5'
    """
    return re.sub(rb" ?\n ?", b"\n", re.sub(rb"[ \t]+", b" ", text))


class WrongEncodingError(Exception):
    """The bytes are not in the encoding they were taken to be in."""


def default_max_bytes() -> int:
    """A quarter of the memory: numbers take up to four times the space of their text."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4
    except (AttributeError, OSError, ValueError):  # not on every system
        return 2 * 2**30


def likely_encodings(source: TextSource) -> list[str]:
    """Encodings to try in turn, from the first bytes."""
    with source.open() as file:
        start = _read(file, source.name, 4096)
    for mark, encoding in _BOMS.items():
        if start.startswith(mark):
            return [encoding]
    refuse_foreign(start, source.name)
    half = len(start) // 2
    if half >= 4 and start[1::2].count(0) > 0.8 * half and start[::2].count(0) == 0:
        return ["utf-16-le"]
    if half >= 4 and start[::2].count(0) > 0.8 * half and start[1::2].count(0) == 0:
        return ["utf-16-be"]
    return ["utf-8", "cp1252", "latin-1"]


class CleanBytes:
    """A readable file of UTF-8 bytes, made from any encoding and any line ends.

    Raises `WrongEncodingError` if the bytes do not fit the encoding, and `TableError` at a NUL, at a line longer than
    64 MB, and when there is more than `max_bytes` of it or more than half as many cells, `width` in each line. Memory
    stays bounded by the longest line. With a blank as `separator`, any number of blanks and tabs is one.
    """

    def __init__(self, source: TextSource, encoding: str, width: int = 1, separator: str = ",") -> None:
        self._source = source
        self._blanks = separator == " "
        self._width = width
        self._name = source.name
        self._encoding = encoding
        try:
            self._is_utf8 = codecs.lookup(encoding).name == "utf-8"
            self._decoder = codecs.getincrementaldecoder(encoding)()
            "x".encode(encoding)  # refuses codecs that are not of text
        except (LookupError, TypeError, ValueError):
            raise TableError(
                f"There is no encoding {quoted(encoding)}. Use a name that Python knows, such as 'utf-8' or 'cp1252'."
            ) from None
        self._pending = b""
        self._waiting = b""  # a blank or a line end at the end of a chunk: blanks may follow in the next
        self._held = b""  # a carriage return at the end of a chunk: the line feed may follow in the next
        self._total = 0
        self._lines = 0
        self._line_length = 0
        self._started = False
        self._ended = False
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
        """The first lines, complete, some sixty of them; they stay to be read."""
        chunks: list[bytes] = []
        lines = size = 0
        while not self._ended and (size < _HEAD or lines < 3 or (lines < _HEAD_LINES and size < 64 * _HEAD)):
            chunks.append(self._next_chunk())
            size += len(chunks[-1])
            lines += chunks[-1].count(b"\n")
        self._pending = b"".join(chunks)
        refuse_binary(self._pending[:_HEAD], self._name)
        first = self._pending.split(b"\n", _HEAD_LINES)
        return self._pending if self._ended and len(first) <= _HEAD_LINES else b"\n".join(first[:-1]) + b"\n"

    def skip(self, count: int) -> None:
        """Leave out so many bytes from the start of the head."""
        self._pending = self._pending[count:]

    def read(self, _size: int = -1) -> bytes:
        """The next bytes, however many are wanted; none at the end."""
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
        try:
            text = self._decoder.decode(raw, final=not raw)
            return raw if self._is_utf8 else text.encode()
        except UnicodeError as error:
            raise WrongEncodingError(str(error)) from None

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
        """Cut blanks around lines, and runs of them to one; the last sign waits for what follows it."""
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
            raise TableError(
                f"{self._name} holds more than {self._source.max_bytes:,} bytes of text, which may not fit into "
                f"memory. Read a part of it, or pass a larger max_bytes."
            )
        self._lines += chunk.count(b"\n")
        if self._lines * self._width > max(1, self._source.max_bytes // 2):  # 8 bytes each, of four times max_bytes
            raise TableError(
                f"{self._name} has more than {self._source.max_bytes // 2:,} cells in rows of {self._width:,}, which "
                f"may not fit into memory. Read a part of it, or pass a larger max_bytes."
            )
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

    def _line_at(self, position: int) -> int:
        """The number of the line that this byte is in, by reading again: cheaper than to count lines of every table."""
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
