"""Where bytes come from: a pipe, a file, a packed file. `follow.py` has the file that grows."""

from __future__ import annotations

import fcntl
import gzip
import hashlib
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

from penstock.sources.faults import InputError

CHUNK = 1 << 18  # bytes read at once at most: enough to work in batches, little enough to answer at once
WAIT = 0.1  # seconds until someone who waits for bytes looks up again
HEAD = 4096  # bytes at the beginning of a file by which it is known again


class Feed(ABC):
    """Bytes as they come.

    `can_seek` says whether reading can go on later where it was left; `grows`, whether an unfinished last line waits
    for its end.
    """

    name: str
    can_seek = True
    grows = False

    @abstractmethod
    def read(self) -> bytes | None:
        """What is there now: None if nothing is there yet, b"" at the end of a file."""

    def next_file(self) -> bool:
        """After the end of a file: begin the next one, if there is one."""
        return False

    def mark(self, offset: int) -> dict[str, Any]:
        """What `continue_from` needs to go on at this offset of the present file."""
        return {"offset": offset}

    def continue_from(self, mark: dict[str, Any]) -> int:
        """Go on at a mark, and return the offset: 0 where a feed cannot seek, because it has begun anew."""
        return 0

    def close(self) -> None:  # noqa: B027  (there may be nothing to close)
        """Let go of the file."""


class PipeFeed(Feed):
    """Standard input, or another descriptor that cannot be sought in."""

    can_seek = False

    def __init__(self, descriptor: int, name: str = "standard input") -> None:
        self.name = name
        self._descriptor = descriptor
        if hasattr(fcntl, "F_SETPIPE_SZ"):
            with suppress(OSError):  # not a pipe, or not allowed: then batches stay smaller
                fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, CHUNK)

    def read(self) -> bytes | None:
        if not select.select([self._descriptor], [], [], WAIT)[0]:
            return None
        try:
            return os.read(self._descriptor, CHUNK)
        except BlockingIOError:  # somebody else was faster
            return None


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

    def mark(self, offset: int) -> dict[str, Any]:
        return {"offset": offset, **fingerprint(self._head[:offset])}

    def continue_from(self, mark: dict[str, Any]) -> int:
        offset = int(mark["offset"])
        self._head = self._file.read(mark["head_length"])
        if not self._seek(offset):
            raise InputError(
                f"{self.name} is shorter than the {offset:,} bytes that were read of it before. Give the input that "
                f"was watched with this --state, or begin with an empty --state folder."
            )
        if fingerprint(self._head)["head"] != mark["head"]:
            raise InputError(
                f"{self.name} does not begin like the input that was watched with this --state. Give that one, or "
                f"begin with an empty --state folder."
            )
        return offset

    def close(self) -> None:
        self._file.close()

    def _open(self, path: Path) -> FileIO | gzip.GzipFile:
        return path.open("rb", buffering=0)

    def _seek(self, offset: int) -> bool:
        """Go to the offset; False if the file does not reach so far."""
        self._file.seek(offset)
        return os.fstat(self._file.fileno()).st_size >= offset


class GzipFeed(FileFeed):
    """A file packed by gzip. Offsets are those of the unpacked bytes."""

    def read(self) -> bytes | None:
        with self._complaining():
            return super().read()

    def continue_from(self, mark: dict[str, Any]) -> int:
        with self._complaining():
            return super().continue_from(mark)

    @contextmanager
    def _complaining(self) -> Iterator[None]:
        try:
            yield
        except (EOFError, OSError, zlib.error) as error:
            raise InputError(f"{self.name} cannot be unpacked: {error}.") from error

    def _open(self, path: Path) -> FileIO | gzip.GzipFile:
        return gzip.open(path, "rb")

    def _seek(self, offset: int) -> bool:
        return self._file.seek(offset) == offset


def open_feed(path: Path | None, *, follow: bool = False) -> Feed:
    """The feed for a path; None is standard input."""
    if path is None:
        if follow:
            raise InputError("--follow needs a file, not standard input (a pipe is followed to its end anyway).")
        return PipeFeed(sys.stdin.fileno())
    if follow:
        from penstock.sources.follow import FollowFeed

        if path.suffix == ".gz":
            raise InputError(f"{path} is packed by gzip, which cannot be followed (--follow).")
        return FollowFeed(path)
    if path.suffix == ".gz":
        return GzipFeed(path)
    if path.is_dir():
        raise InputError(f"{path} is a folder; give a file in it.")
    if not stat.S_ISREG(path.stat().st_mode):
        return PipeFeed(os.open(path, os.O_RDONLY), name=str(path))
    return FileFeed(path)


def fingerprint(head: bytes) -> dict[str, Any]:
    """By what the beginning of a file is known again."""
    return {"head_length": len(head), "head": hashlib.sha256(head).hexdigest()}
