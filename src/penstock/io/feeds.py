"""Where bytes come from: a pipe, a file, a packed file. `follow.py` has the file that grows."""

from __future__ import annotations

import os
import select
import stat
import sys
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import Any

from penstock.io.faults import InputError
from penstock.io.marks import ADVICE, HEAD, Mark, check_kind
from penstock.io.unpacking import GzipReader

CHUNK = 1 << 18  # bytes read at once at most: enough to work in batches, little enough to answer at once
WAIT = 0.1  # seconds until someone who waits for bytes looks up again


class Feed(ABC):
    """Bytes as they come.

    `can_seek` says whether reading can go on later where it was left; `grows`, whether an unfinished last line waits
    for its end; `truncated`, after the end of a file, whether it was emptied: an unfinished last line was cut off.
    """

    name: str
    can_seek = True
    grows = False
    truncated = False

    @abstractmethod
    def read(self) -> bytes | None:
        """What is there now: None if nothing is there yet, b"" at the end of a file."""

    def next_file(self) -> bool:
        """After the end of a file: begin the next one, if there is one."""
        return False

    @abstractmethod
    def mark(self, offset: int, tail: bytes) -> dict[str, Any]:
        """What `continue_from` needs to go on at this offset of the present file; `tail` is what comes before it."""

    @abstractmethod
    def continue_from(self, state: dict[str, Any]) -> tuple[int, bytes]:
        """Go on at a mark; returns offset and tail: 0 and b"" where a feed cannot seek, because it has begun anew."""

    def close(self) -> None:  # noqa: B027  (there may be nothing to close)
        """Let go of the file."""


class PipeFeed(Feed):
    """Standard input, or another descriptor that cannot be sought in."""

    can_seek = False

    def __init__(self, descriptor: int, name: str = "standard input") -> None:
        self.name = name
        self._descriptor = descriptor
        with suppress(ImportError, AttributeError, OSError):  # not Linux, no pipe, not allowed: batches stay smaller
            import fcntl

            fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, CHUNK)

    def read(self) -> bytes | None:
        # Windows can wait for sockets only: there reading waits, and Ctrl-C is heard with the next bytes.
        if os.name == "posix" and not select.select([self._descriptor], [], [], WAIT)[0]:
            return None
        try:
            return os.read(self._descriptor, CHUNK)
        except BlockingIOError:  # somebody else was faster
            return None

    def mark(self, offset: int, tail: bytes) -> dict[str, Any]:
        return {"kind": "pipe", "offset": offset}

    def continue_from(self, state: dict[str, Any]) -> tuple[int, bytes]:
        check_kind(state, "pipe", self.name)
        return 0, b""


class FileFeed(Feed):
    """A file from its beginning, or from a mark, to its end."""

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self._file = self._open(path)
        self._head = b""

    def read(self) -> bytes | None:
        data = self._file.read(CHUNK)
        if len(self._head) < HEAD:
            self._head += data[: HEAD - len(self._head)]
        return data

    def mark(self, offset: int, tail: bytes) -> dict[str, Any]:
        return Mark.at(offset, os.fstat(self._file.fileno()).st_ino, self._head, tail).state()

    def continue_from(self, state: dict[str, Any]) -> tuple[int, bytes]:
        mark = Mark.restore(state, self.name)
        self._head = self._file.read(mark.head_length)
        between = max(mark.head_length, mark.offset - mark.tail_length)  # a packed file can only be read forwards
        reaches = self._skip_to(between)
        before = self._file.read(mark.offset - between)
        if not reaches or len(before) < mark.offset - between:
            raise InputError(
                f"{self.name} is shorter than the {mark.offset:,} bytes that were read of it before. {ADVICE}"
            )
        if not mark.is_begun_by(self._head):
            raise InputError(f"{self.name} does not begin like the input that was watched with this --state. {ADVICE}")
        tail = (self._head + before)[-mark.tail_length :] if mark.tail_length else b""
        if not mark.is_after(tail):
            raise InputError(
                f"{self.name} was changed before byte {mark.offset:,}, up to which it was read with this --state. "
                f"{ADVICE}"
            )
        return mark.offset, tail

    def close(self) -> None:
        self._file.close()

    def _open(self, path: Path) -> FileIO | GzipReader:
        return path.open("rb", buffering=0)

    def _skip_to(self, offset: int) -> bool:
        """Go to an offset after the head; False if the file does not reach so far."""
        assert isinstance(self._file, FileIO)
        self._file.seek(offset)
        return os.fstat(self._file.fileno()).st_size >= offset


class GzipFeed(FileFeed):
    """A file packed by gzip. Offsets are those of the unpacked bytes."""

    def read(self) -> bytes | None:
        with self._complaining():
            return super().read()

    def continue_from(self, state: dict[str, Any]) -> tuple[int, bytes]:
        with self._complaining():
            return super().continue_from(state)

    @contextmanager
    def _complaining(self) -> Iterator[None]:
        try:
            yield
        except (EOFError, OSError, zlib.error) as error:
            raise InputError(f"{self.name} cannot be unpacked: {error}.") from error

    def _open(self, path: Path) -> FileIO | GzipReader:
        return GzipReader(path)

    def _skip_to(self, offset: int) -> bool:
        left = offset - len(self._head)
        while left > 0 and (skipped := self._file.read(min(left, CHUNK))):
            left -= len(skipped)
        return left <= 0


def open_feed(path: Path | None, *, follow: bool = False) -> Feed:
    """The feed for a path; None is standard input."""
    if path is None:
        if follow:
            raise InputError("--follow needs a file, not standard input (a pipe is followed to its end anyway).")
        return PipeFeed(sys.stdin.fileno())
    if path.is_dir():
        raise InputError(f"{path} is a folder; give a file in it.")
    if follow:
        return _followed(path)
    if path.suffix == ".gz":
        return GzipFeed(path)
    if not stat.S_ISREG(path.stat().st_mode):
        # Without waiting for a writer, during which Ctrl-C would do nothing: reading waits.
        return PipeFeed(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), name=str(path))
    return FileFeed(path)


def _followed(path: Path) -> Feed:
    from penstock.io.follow import FollowFeed

    if path.suffix == ".gz":
        raise InputError(f"{path} is packed by gzip, which cannot be followed (--follow).")
    if path.exists() and not path.is_file():
        raise InputError(f"{path} is not a regular file, which --follow needs; a pipe is followed to its end anyway.")
    if not path.parent.is_dir():
        raise InputError(f"There is no folder {path.parent}, in which --follow could wait for {path.name}.")
    return FollowFeed(path)
