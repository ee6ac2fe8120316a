"""Follow a file that grows, through rotation, by rename and by truncation."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from typing import Any

from penstock.io.feeds import CHUNK, HEAD, WAIT, Feed, InputError, Mark

_POLL = WAIT / 4  # seconds between looks at a file that has not grown
# plant.csv.1, plant.csv-20260314, plant.csv.2026-03-14_10: what logrotate and Python's handlers make of plant.csv
_ROTATED_ENDING = re.compile(r"[.\-_]\d[\d.\-_T:]*")


class FollowFeed(Feed):
    """Like `tail -F`: waits for more bytes, and when the file was renamed and made anew, reads the old one to its end.

    The old file is left only when the new one has bytes: until then a writer may still hold the old one open.
    """

    grows = True

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self._path = path
        self._descriptor: int | None = None  # None: the file is not there (yet)
        self._queue: list[int] = []  # files to be read after this one, held open: their names may change
        self._offset = 0
        self._head = b""

    def read(self) -> bytes | None:
        if self._descriptor is None and not self._begin(_opened(self._path)):
            return self._wait()
        data = self._read_on()
        if data or self.truncated:
            return data
        if self._has_successor():
            return self._read_on()  # what was written before the new file was begun
        return self._wait()

    def next_file(self) -> bool:
        if not self._queue and self.truncated:
            assert self._descriptor is not None
            os.lseek(self._descriptor, 0, os.SEEK_SET)
            self._offset, self._head = 0, b""
            return True
        if not self._queue:
            self._queue_later_files()
        self._begin(self._queue.pop(0) if self._queue else None)
        return True

    def mark(self, offset: int, tail: bytes) -> dict[str, Any]:
        inode = None if self._descriptor is None else os.fstat(self._descriptor).st_ino
        return Mark.at(offset, inode, self._head, tail).state()

    def continue_from(self, state: dict[str, Any]) -> tuple[int, bytes]:
        """Find the file of the mark, under its new name if it was rotated, and what was rotated after it."""
        mark = Mark.restore(state, self.name)
        if mark.inode is None:  # there was none: the old one had been read, and the next had not come
            return 0, b""
        file = file_of_mark(self._path, mark)
        self._begin(_opened(file))
        assert self._descriptor is not None
        if file != self._path:
            self._queue_later_files()
        self._offset = mark.offset
        self._head = os.pread(self._descriptor, mark.head_length, 0)
        os.lseek(self._descriptor, self._offset, os.SEEK_SET)
        return mark.offset, os.pread(self._descriptor, mark.tail_length, mark.offset - mark.tail_length)

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
        self._descriptor = None
        self._drop_queue()

    def _begin(self, descriptor: int | None) -> bool:
        if self._descriptor is not None:
            os.close(self._descriptor)
        self._descriptor = descriptor
        self._offset, self._head = 0, b""
        return descriptor is not None

    def _queue_later_files(self) -> None:
        assert self._descriptor is not None
        opened = [_opened(file) for file in files_after(self._path, self._descriptor)]
        self._queue = [descriptor for descriptor in opened if descriptor is not None]

    def _read_on(self) -> bytes:
        assert self._descriptor is not None
        self.truncated = self._was_truncated()
        if self.truncated:
            return b""
        data = os.read(self._descriptor, CHUNK)
        if len(self._head) < HEAD and self._offset == len(self._head):
            self._head += data[: HEAD - len(self._head)]
        self._offset += len(data)
        return data

    def _was_truncated(self) -> bool:
        """Whether the file begins otherwise than before: shorter than what was read, or filled with something else."""
        assert self._descriptor is not None
        if os.fstat(self._descriptor).st_size < self._offset:
            return True
        return os.pread(self._descriptor, len(self._head), 0) != self._head

    def _has_successor(self) -> bool:
        """Whether there is a later file with something in it."""
        if any(os.fstat(descriptor).st_size > 0 for descriptor in self._queue):
            return True
        if not self._was_replaced():
            return False
        self._drop_queue()  # of empty files, which were put aside in their turn: look again
        return True

    def _drop_queue(self) -> None:
        for descriptor in self._queue:
            os.close(descriptor)
        self._queue.clear()

    def _was_replaced(self) -> bool:
        """Whether the path leads to another file by now, one with something in it."""
        assert self._descriptor is not None
        try:
            there = self._path.stat()
        except FileNotFoundError:
            return False
        return there.st_size > 0 and not os.path.samestat(there, os.fstat(self._descriptor))

    @staticmethod
    def _wait() -> None:
        time.sleep(_POLL)


def _opened(path: Path) -> int | None:
    try:
        return os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        return None


def file_of_mark(path: Path, mark: Mark) -> Path:
    """The file that a mark was made in: the path, or the name it was given by rotation.

    A renamed file is known by its inode, a copy (of a file that was then emptied) by its beginning. The inode comes
    first: the beginning may be no more than a header, which the file that took its place has too.
    """
    for file in (path, *_neighbours(path)):
        if _inode(file) == mark.inode and _has_mark(file, mark):
            return file
    for file in (path, *_rotated(path)):
        if mark.offset and _has_mark(file, mark):
            return file
    raise InputError(
        f"{path} is not the file that was watched with this --state, and neither is a rotated one beside it: what "
        f"follows byte {mark.offset:,} there is out of reach. Put that file back (unpacked), or begin with an empty "
        f"--state folder."
    )


def files_after(path: Path, descriptor: int) -> list[Path]:
    """The files that were rotated after the one that is open, oldest first; the path itself comes last."""
    read = os.fstat(descriptor)
    later = [(file.stat(), file) for file in _rotated(path)]
    later = [(found, file) for found, file in later if found.st_mtime_ns > read.st_mtime_ns]
    later.sort(key=lambda entry: entry[0].st_mtime_ns)
    others = [file for found, file in later if not os.path.samestat(found, read)]
    return [file for file in others if not _is_copy(file, descriptor)] + [path]


def _is_copy(file: Path, descriptor: int) -> bool:
    """Whether a file holds nothing but what the open one holds: a copy that somebody made of it."""
    try:
        with file.open("rb") as candidate:
            size = os.fstat(candidate.fileno()).st_size
            if size > os.fstat(descriptor).st_size:
                return False
            last = max(0, size - HEAD)
            same_head = os.pread(candidate.fileno(), HEAD, 0) == os.pread(descriptor, HEAD, 0)
            return same_head and os.pread(candidate.fileno(), HEAD, last) == os.pread(descriptor, size - last, last)
    except OSError:
        return False


def _inode(file: Path) -> int | None:
    try:
        return file.stat().st_ino
    except FileNotFoundError:
        return None


def _has_mark(file: Path, mark: Mark) -> bool:
    try:
        with file.open("rb") as opened:
            return mark.is_in(opened.fileno())
    except OSError:
        return False


def _neighbours(path: Path) -> list[Path]:
    return sorted(file for file in path.parent.iterdir() if file.is_file() and file != path)


def _rotated(path: Path) -> list[Path]:
    name = path.name
    return [
        file
        for file in _neighbours(path)
        if file.name.startswith(name) and _ROTATED_ENDING.fullmatch(file.name, len(name))
    ]
