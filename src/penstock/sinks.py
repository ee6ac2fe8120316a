"""Where verdicts go: one JSON object per sample, a line each."""

from __future__ import annotations

import fcntl
import json
import os
import stat
import sys
from collections.abc import Sequence
from json.encoder import encode_basestring_ascii
from pathlib import Path
from typing import Any

import numpy as np

from penstock._types import FloatArray, StreamScores


class OutputError(ValueError):
    """The output cannot be written, or not be continued; the message says what to do."""


class JsonLinesSink:
    """Writes verdicts to a file or standard output (None), each batch at once, without a buffer that a kill would lose.

    Attributes
    ----------
    length : int or None
        Bytes in the file so far; None where the output cannot be cut back (a pipe, a terminal).
    """

    def __init__(self, path: Path | None = None) -> None:
        self._is_ours = path is not None  # to close; standard output is not
        descriptor = sys.stdout.fileno() if path is None else _opened(path)
        self._descriptor = descriptor
        is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
        self.length: int | None = os.lseek(descriptor, 0, os.SEEK_END) if is_file else None
        self._names: list[str] = []

    def name_variables(self, names: Sequence[str]) -> None:
        """What the columns are called in the output."""
        self._names = [encode_basestring_ascii(name) for name in names]

    def write(self, first_row: int, times: Sequence[Any] | None, scores: StreamScores) -> None:
        """Write the verdicts on samples number `first_row` and following."""
        data = memoryview(format_verdicts(first_row, times, scores, self._names))
        written = 0
        try:
            while written < len(data):
                written += os.write(self._descriptor, data[written:])
        except BrokenPipeError:  # the reader has had enough, which is no failure
            raise
        except OSError as error:
            raise OutputError(f"The output cannot be written: {error.strerror}.") from error
        if self.length is not None:
            self.length += written

    def sync(self) -> None:
        """Return when all that was written will survive a power cut."""
        if self.length is not None:
            os.fsync(self._descriptor)

    def cut_back(self, length: int) -> None:
        """Take back what was written after so many bytes, where that can be done."""
        if self.length is not None:
            os.ftruncate(self._descriptor, length)
            os.lseek(self._descriptor, length, os.SEEK_SET)
            self.length = length

    def close(self) -> None:
        if self._is_ours:
            os.close(self._descriptor)


def open_sink(path: Path | None, *, overwrite: bool = False) -> JsonLinesSink:
    """A sink at its beginning; None is standard output. A file that holds something is refused unless `overwrite`."""
    sink = JsonLinesSink(path)
    if path is not None:
        if sink.length and not overwrite:
            sink.close()
            raise OutputError(
                f"{path} holds something already, and there is no snapshot (--state) that it belongs to. Choose "
                f"another --output, or allow it to be replaced with --overwrite."
            )
        sink.cut_back(0)
    return sink


def continue_sink(path: Path | None, length: int | None, *, keep: bool = False) -> tuple[JsonLinesSink, int]:
    """A sink that goes on where a snapshot was made, and how many lines after the snapshot it keeps.

    What was written after the snapshot is cut off, to be written again. With `keep`, for an input that cannot be read
    again, only a torn last line is: what was said stays said.
    """
    if length is None:  # it went to a pipe then: a file is no part of it
        return open_sink(path), 0
    sink = JsonLinesSink(path)
    if path is None or sink.length is None:  # of a pipe nothing can be taken back
        return sink, 0
    if sink.length < length:
        sink.close()
        raise OutputError(
            f"{path} has {sink.length:,} bytes, fewer than the {length:,} of the last snapshot: it is not the output "
            f"that belongs to this --state. Put that one back, or begin with an empty --state folder."
        )
    kept = b""
    if keep:
        with path.open("rb") as written:
            written.seek(length)
            kept = written.read()
        kept = kept[: kept.rfind(b"\n") + 1]
    sink.cut_back(length + len(kept))
    return sink, kept.count(b"\n")


def format_verdicts(first_row: int, times: Sequence[Any] | None, scores: StreamScores, names: Sequence[str]) -> bytes:
    """One line for each sample; `names` are JSON strings already.

    >>> import numpy as np
    >>> verdict = StreamScores(
    ...     np.array([0.25]), np.array([np.nan]), np.array([False]), np.array([[1, -1]]), np.array([[0.5, np.nan]])
    ... )
    >>> format_verdicts(7, ["10:00"], verdict, ['"flow"', '"head"'])
    b'{"row": 7, "time": "10:00", "score": 0.25, "threshold": null, "flag": false, "variables": {"head": 0.5}}\\n'
    """
    rows = range(first_row, first_row + len(scores.scores))
    stamps = [""] * len(rows) if times is None else [f' "time": {_encoded(time)},' for time in times]
    flags = ["true" if flag else "false" for flag in scores.flags.tolist()]
    columns = (rows, stamps, _numbers(scores.scores), _numbers(scores.thresholds), flags, _reasons(scores, names))
    lines = [
        f'{{"row": {row},{stamp} "score": {score}, "threshold": {threshold}, "flag": {flag}, "variables": {{{why}}}}}\n'
        for row, stamp, score, threshold, flag, why in zip(*columns, strict=True)
    ]
    return "".join(lines).encode("ascii")


def _numbers(values: FloatArray) -> list[str]:
    """Numbers as JSON: the shortest text that gives the same float, null for what JSON cannot say."""
    texts = list(map(repr, values.tolist()))
    for place in np.flatnonzero(~np.isfinite(values)).tolist():
        texts[place] = "null"
    return texts


def _reasons(scores: StreamScores, names: Sequence[str]) -> list[str]:
    """The insides of the objects that say by how much which variables were off."""
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


def _encoded(time: Any) -> str:
    return encode_basestring_ascii(time) if isinstance(time, str) else json.dumps(time)


def _opened(path: Path) -> int:
    """Open for writing, and keep other watchers out: two of them would tear each other's lines apart."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o666)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise OutputError(f"Another penstock watch is writing to {path}; choose another --output.") from None
    return descriptor
