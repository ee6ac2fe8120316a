"""Write verdicts: one JSON object per sample, a line each."""

from __future__ import annotations

import hashlib
import json
import os
import select
import stat
import sys
from collections.abc import Mapping, Sequence
from json.encoder import encode_basestring_ascii
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from penstock._types import FloatArray, StreamScores
from penstock.storage import StorageError, lock

_WHAT_TO_DO = "Put that one back, or begin with an empty --state folder."
_TAIL = 4096  # bytes before the end of an output that identify it


class OutputMark(TypedDict):
    """The length of an output file, and the SHA-256 of its last bytes (up to 4 KB), which identify it."""

    length: int
    tail: str


class JsonLinesSink:
    """Write verdicts to a file or standard output (None), each batch at once, without a buffer that a kill would lose.

    length : bytes in the file so far; None where the output cannot be cut back (a pipe, a terminal).
    """

    def __init__(self, path: Path | None = None, *, create: bool = True) -> None:
        self._is_ours = path is not None  # to close; standard output is not
        if path is None and sys.stdout is None:
            raise StorageError("Standard output is closed; open it, or give a file with --output.")
        if path is None:
            descriptor = sys.stdout.fileno()
        else:
            flags = os.O_WRONLY | getattr(os, "O_BINARY", 0) | (os.O_CREAT if create else 0)
            descriptor = os.open(path, flags, 0o666)
        self._descriptor = descriptor
        is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
        # The lines of two writers would be mixed up. Not on Windows, where a locked file cannot be read either.
        if path is not None and is_file and os.name == "posix" and not lock(descriptor):
            os.close(descriptor)
            raise StorageError(f"Another penstock watch is writing to {path}; choose another --output.")
        self.length: int | None = os.lseek(descriptor, 0, os.SEEK_END) if is_file else None
        self._tail = b""
        self._names: list[str] = []

    def name_variables(self, names: Sequence[str]) -> None:
        self._names = [encode_basestring_ascii(name) for name in names]

    def write(
        self,
        first_row: int,
        times: Sequence[Any] | None,
        scores: StreamScores,
        reasons: Mapping[int, str] | None = None,
    ) -> None:
        """Write the verdicts on samples number `first_row` and following; `reasons` say why some have no score."""
        self.write_lines(format_verdicts(first_row, times, scores, self._names, reasons))

    def write_lines(self, lines: bytes) -> None:
        data, written = memoryview(lines), 0
        try:
            while written < len(data):
                try:
                    written += os.write(self._descriptor, data[written:])
                except BlockingIOError:  # a pipe that was opened so; wait for room, as any other write does
                    select.select([], [self._descriptor], [])
        except BrokenPipeError:  # the reader has closed it, which is no failure
            raise
        except OSError as error:
            raise StorageError(f"The output cannot be written: {error.strerror}.") from error
        if self.length is not None:
            self.length += written
            self._tail = (self._tail + bytes(data[-_TAIL:]))[-_TAIL:]

    def mark(self) -> OutputMark | None:
        """Return what `continue_sink` needs; None where nothing can be taken back, as of standard output."""
        if self.length is None or not self._is_ours:
            return None
        return {"length": self.length, "tail": hashlib.sha256(self._tail).hexdigest()}

    def sync(self) -> None:
        """Return when all that was written will survive a power cut."""
        if self.length is not None:
            os.fsync(self._descriptor)

    def cut_back(self, length: int, tail: bytes = b"") -> None:
        """Cut the output to a length, where that can be done; `tail` are the last bytes that stay."""
        if self.length is not None:
            os.ftruncate(self._descriptor, length)
            os.lseek(self._descriptor, length, os.SEEK_SET)
            self.length, self._tail = length, tail[-_TAIL:]

    def close(self) -> None:
        if self._is_ours:
            os.close(self._descriptor)


def open_sink(path: Path | None, *, overwrite: bool = False) -> JsonLinesSink:
    """Open an empty sink; None is standard output. A file that holds something is refused unless `overwrite`."""
    sink = JsonLinesSink(path)
    if path is not None:
        if sink.length and not overwrite:
            sink.close()
            raise StorageError(
                f"{path} holds something already, and there is no snapshot (--state) that it belongs to. Choose "
                f"another --output, or allow it to be replaced with --overwrite."
            )
        sink.cut_back(0)
    return sink


def continue_sink(
    path: Path | None, mark: OutputMark | None, next_row: int | None, *, keep: bool = False
) -> tuple[JsonLinesSink, int]:
    """Return a sink that goes on where a snapshot was made, and how many lines after the snapshot it keeps.

    Lines written after the snapshot, from row number `next_row` on (None: lines that are no verdicts), are cut off, to
    be written again. With `keep`, for an input that cannot be read again, only an unfinished last line is. Nothing is
    cut unless the file is known to be the one that the snapshot belongs to.
    """
    if mark is None:  # it went to a pipe then: a file is no part of it
        return open_sink(path), 0
    if path is None:
        return JsonLinesSink(), 0
    try:
        sink = JsonLinesSink(path, create=False)
    except FileNotFoundError:
        raise StorageError(f"{path} is missing: there is no output that could be continued. {_WHAT_TO_DO}") from None
    try:
        if sink.length is None:  # of a pipe nothing can be taken back
            return sink, 0
        tail, rest = _parts(path, sink.length, mark)
        kept, expected = b"", b'{"' if next_row is None else b'{"row": %d,' % next_row
        if keep and next_row is not None:
            kept = _kept_lines(path, rest, next_row)
        # An output that was empty at the snapshot must begin like a line of ours; a power cut may leave zeros.
        elif not mark["length"] and not expected.startswith(rest[: len(expected)].rstrip(b"\0")):
            raise _not_ours(path, "it was empty at the last snapshot, and holds something else now")
        sink.cut_back(mark["length"] + len(kept), tail + kept)
    except BaseException:
        sink.close()
        raise
    return sink, kept.count(b"\n")


def _parts(path: Path, length: int, mark: OutputMark) -> tuple[bytes, bytes]:
    """Return the last bytes before the mark, and all after it; StorageError if the file is not that of the mark."""
    if length < mark["length"]:
        raise StorageError(
            f"{path} has {length:,} bytes, fewer than the {mark['length']:,} of the last snapshot: it is not the "
            f"output that belongs to this --state. {_WHAT_TO_DO}"
        )
    tail_length = min(mark["length"], _TAIL)
    with path.open("rb") as written:
        written.seek(mark["length"] - tail_length)
        tail, rest = written.read(tail_length), written.read()
    if hashlib.sha256(tail).hexdigest() != mark["tail"]:
        raise _not_ours(path, f"what is before byte {mark['length']:,} is not what was written there")
    return tail, rest


def _kept_lines(path: Path, rest: bytes, next_row: int) -> bytes:
    """Return the complete lines after a snapshot; each must be the verdict that is next."""
    kept = rest[: rest.rfind(b"\n") + 1]
    for row, line in enumerate(kept.splitlines(), start=next_row):
        try:
            verdict = json.loads(line)
        except ValueError:
            verdict = None
        if not isinstance(verdict, dict) or verdict.get("row") != row:
            raise _not_ours(path, f"after the last snapshot, the verdict on row {row:,} is expected and is not there")
    return kept


def _not_ours(path: Path, reason: str) -> StorageError:
    return StorageError(f"{path} is not the output that belongs to this --state ({reason}). {_WHAT_TO_DO}")


def format_verdicts(
    first_row: int,
    times: Sequence[Any] | None,
    scores: StreamScores,
    names: Sequence[str],
    reasons: Mapping[int, str] | None = None,
) -> bytes:
    """Return one line for each sample; `names` are JSON strings, `reasons` are those of some samples, by position."""
    rows = range(first_row, first_row + len(scores.scores))
    stamps = [""] * len(rows)
    if times is not None:
        texts = (encode_basestring_ascii(time) if isinstance(time, str) else json.dumps(time) for time in times)
        stamps = [f' "time": {text},' for text in texts]
    flags = ["true" if flag else "false" for flag in scores.flags.tolist()]
    columns = (rows, stamps, _numbers(scores.scores), _numbers(scores.thresholds), flags, _reasons(scores, names))
    lines = [
        f'{{"row": {row},{stamp} "score": {score}, "threshold": {threshold}, "flag": {flag}, "variables": {{{why}}}}}\n'
        for row, stamp, score, threshold, flag, why in zip(*columns, strict=True)
    ]
    for place, reason in (reasons or {}).items():
        lines[place] = f'{lines[place][:-2]}, "reason": {encode_basestring_ascii(reason)}}}\n'
    return "".join(lines).encode("ascii")


def _numbers(values: FloatArray) -> list[str]:
    """Return numbers as JSON: the shortest text that gives the same float, null for NaN and infinities."""
    texts = list(map(repr, values.tolist()))
    for place in np.flatnonzero(~np.isfinite(values)).tolist():
        texts[place] = "null"
    return texts


def _reasons(scores: StreamScores, names: Sequence[str]) -> list[str]:
    """Return the variables that deviate and by how much, for each sample, as the inside of a JSON object."""
    count = scores.variables.shape[1]
    if not count:
        return [""] * len(scores.scores)
    residuals = _numbers(scores.residuals.ravel())
    pairs = [
        f"{names[column]}: {residual}" if column >= 0 else ""
        for column, residual in zip(scores.variables.ravel().tolist(), residuals, strict=True)
    ]
    rows = [pairs[start : start + count] for start in range(0, len(pairs), count)]
    return [", ".join(row) if row[-1] else ", ".join(filter(None, row)) for row in rows]
