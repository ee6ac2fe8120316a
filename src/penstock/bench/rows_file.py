"""The file that a study's outcomes go to: one JSON line per cell, appended when the cell ends, never rewritten.

A line is there wholly or not at all: what a killed process left of one is cut off when the file is next opened, and a
full disk leaves none.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from penstock.storage import lock

ROWS_FILE = "rows.jsonl"


class RowsFileError(ValueError):
    """A file of outcomes that was changed or damaged: where, and what to do."""


def read_rows(folder: Path) -> dict[str, dict[str, Any]]:
    """Outcomes by the key of their cell; of several for one key (a retry) the last."""
    path = folder / ROWS_FILE
    if not path.is_file():
        return {}
    outcomes = {}
    lines = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines[:-1], start=1):  # what follows the last line end was cut off
        if not line.strip():  # one that a person deleted the text of
            continue
        try:
            outcome = json.loads(line)
            outcomes[outcome["key"]] = outcome
        except (ValueError, TypeError, KeyError):
            raise RowsFileError(
                f"{path}, line {number}: not the outcome of a cell. The file was changed or damaged; delete the line "
                "to have its cell run again."
            ) from None
    return outcomes


class RowsFile:
    """A study's file, open for one process at a time. Outcomes that a full disk refuses wait, and are counted.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with RowsFile(folder) as file:
    ...     file.append({"key": "a", "status": "ok"})
    >>> read_rows(folder)
    {'a': {'key': 'a', 'status': 'ok'}}
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / ROWS_FILE
        self.waiting: list[bytes] = []
        self.trouble: OSError | None = None
        self.path.touch()  # never "w": what another study has written meanwhile must stay
        self._file = self.path.open("r+b", buffering=0)
        try:
            _lock(self._file.fileno(), self.path)
            self._end = _whole_lines(self._file.read())
            self._file.truncate(self._end)
        except BaseException:
            self._file.close()
            raise

    def append(self, outcome: Mapping[str, Any]) -> None:
        """Keep an outcome; if the disk will not, hold it back and try again with the next."""
        self.waiting.append(json.dumps(outcome, allow_nan=False).encode("ascii") + b"\n")
        self.flush()

    def flush(self) -> None:
        """Write what waits."""
        while self.waiting:
            try:
                self._write(self.waiting[0])
            except OSError as error:
                self.trouble = error
                self._file.truncate(self._end)
                return
            self.waiting.pop(0)
        self.trouble = None

    def _write(self, line: bytes) -> None:
        self._file.seek(self._end)
        rest = memoryview(line)
        while rest:
            rest = rest[self._file.write(rest) or 0 :]
        os.fsync(self._file.fileno())
        self._end += len(line)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.flush()
        self._file.close()


def _whole_lines(content: bytes) -> int:
    """How many bytes of it are lines that were written to their end."""
    return content.rfind(b"\n") + 1


def _lock(descriptor: int, path: Path) -> None:
    if os.name == "posix" and not lock(descriptor):  # on Windows a locked file cannot be read
        raise RuntimeError(f"{path} is in use by another study. Wait for it to end, or choose another folder.")
