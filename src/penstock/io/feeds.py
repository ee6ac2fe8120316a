"""Read bytes as they come, from a pipe, a file or a packed file, cut them into lines, and mark a place to go on from.

`follow.py` has the file that grows.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import select
import stat
import sys
import zlib
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import asdict, dataclass
from io import FileIO
from pathlib import Path
from typing import Any, Literal, cast

CHUNK = 1 << 18  # bytes read at once at most: enough to work in batches, little enough to answer at once
WAIT = 0.1  # seconds until someone who waits for bytes looks up again
HEAD = 4096  # bytes at the beginning of a file, and before a place in it, by which they are known again
ADVICE = "Give the input that was watched with this --state, or begin with an empty --state folder."
_PIECE = 1 << 12  # bytes unpacked at once: what a call that fails loses
LONGEST = 1_000_000  # bytes; what is longer is not a row of a table but an accident


class InputError(ValueError):
    """The input cannot be read at all, or not be continued; the message says what to do."""


@dataclass(frozen=True)
class Mark:
    """A place in a file: how the file begins, and what comes just before the place.

    >>> mark = Mark.at(4, None, b"a\\n1\\n2\\n", b"a\\n1\\n")
    >>> mark.is_after(b"a\\n1\\n"), mark.is_after(b"a\\n7\\n")
    (True, False)
    """

    offset: int
    inode: int | None  # None: there was no file
    head_length: int
    head: str
    tail_length: int
    tail: str

    @classmethod
    def at(cls, offset: int, inode: int | None, head: bytes, tail: bytes) -> Mark:
        """The mark of an offset, given (at least) the beginning of the file and what comes before the offset."""
        head, tail = head[: min(offset, HEAD)], tail[-HEAD:]
        return cls(offset, inode, len(head), _digest(head), len(tail), _digest(tail))

    @classmethod
    def restore(cls, state: dict[str, Any], name: str) -> Mark:
        """The mark whose `state()` this is, for an input of this name; InputError if it is none."""
        check_kind(state, "file", name)
        try:
            mark = cls(**{key: value for key, value in state.items() if key != "kind"})
            numbers = (mark.offset, mark.head_length, mark.tail_length, 0 if mark.inode is None else mark.inode)
            sound = all(type(number) is int and number >= 0 for number in numbers)
            sound = sound and max(mark.head_length, mark.tail_length) <= min(mark.offset, HEAD)
            sound = sound and isinstance(mark.head, str) and isinstance(mark.tail, str)
        except TypeError:
            sound = False
        if not sound:
            raise InputError(f"What the --state says of the position in {name} makes no sense. {ADVICE}")
        return mark

    def state(self) -> dict[str, Any]:
        """The same in plain values, for `restore`."""
        return {"kind": "file", **asdict(self)}

    def is_begun_by(self, head: bytes) -> bool:
        """Whether a file begins as that of the mark did, given its first `head_length` bytes."""
        return _digest(head) == self.head

    def is_after(self, tail: bytes) -> bool:
        """Whether what comes before the offset is as it was, given the last `tail_length` bytes of it."""
        return _digest(tail) == self.tail

    def is_in(self, descriptor: int) -> bool:
        """Whether an open file reaches to the mark, and is as it was there and at its beginning."""
        if os.fstat(descriptor).st_size < self.offset:
            return False
        tail = os.pread(descriptor, self.tail_length, self.offset - self.tail_length)
        return self.is_begun_by(os.pread(descriptor, self.head_length, 0)) and self.is_after(tail)


def check_kind(state: dict[str, Any], kind: Literal["file", "pipe"], name: str) -> None:
    """InputError unless a mark was made in this kind of input."""
    made_in = state.get("kind") if isinstance(state, dict) else None
    if made_in not in ("file", "pipe"):
        raise InputError(f"What the --state says of the position in {name} makes no sense. {ADVICE}")
    if made_in != kind:
        raise InputError(f"This state belongs to a {made_in}, but {name} is a {kind}. {ADVICE}")


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class OverlongLine(bytes):
    """The beginning of a line that is too long; `dropped` bytes of it were not kept."""

    dropped: int = 0


class LineCutter:
    """Cuts bytes at line ends and keeps an unfinished line until its end arrives.

    >>> cutter = LineCutter()
    >>> cutter.cut(b"1,2\\n3,"), cutter.cut(b"4\\n5")
    ([b'1,2'], [b'3,4'])
    >>> cutter.rest()
    b'5'
    """

    def __init__(self) -> None:
        self._unfinished = bytearray()
        self._dropped = 0

    def cut(self, data: bytes) -> list[bytes]:
        """The lines that `data` completes, without their line ends."""
        first, newline, others = data.partition(b"\n")
        self._keep(first)
        if not newline:
            return []
        lines = others.split(b"\n")
        lines.insert(0, self.rest())
        self._keep(lines.pop())
        return lines

    def rest(self) -> bytes:
        """The unfinished line, which is forgotten; b"" if there is none."""
        line: bytes = bytes(self._unfinished)
        if self._dropped:
            line = OverlongLine(line)
            line.dropped = self._dropped
        self._unfinished.clear()
        self._dropped = 0
        return line

    def _keep(self, data: bytes) -> None:
        # One byte more than allowed, so that the line is seen to be too long; the memory it takes stays bounded.
        room = max(0, LONGEST + 1 - len(self._unfinished))
        self._unfinished += data[:room]
        self._dropped += max(0, len(data) - room)


def byte_length(lines: list[bytes]) -> int:
    """How many bytes of the input the lines took, a line end each included."""
    dropped = sum(line.dropped for line in lines if isinstance(line, OverlongLine))
    return sum(map(len, lines)) + len(lines) + dropped


def last_bytes(before: bytes, lines: list[bytes], most: int, *, ended: bool) -> bytes:
    """The last bytes of the input up to the end of `lines`, which come after `before`; the last has no end if `ended`.

    >>> last_bytes(b"1\\n", [b"2", b"3"], 5, ended=False)
    b'\\n2\\n3\\n'
    """
    known = before + b"\n".join([*lines[-most:], b""])
    for number, line in enumerate(lines):
        if isinstance(line, OverlongLine):  # its end was not kept: only what follows it is known
            known = b"\n".join([b"", *lines[number + 1 :], b""])
    return (known[:-1] if ended else known)[-most:]


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
        data = self._take(CHUNK)
        if len(self._head) < HEAD:
            self._head += data[: HEAD - len(self._head)]
        return data

    def mark(self, offset: int, tail: bytes) -> dict[str, Any]:
        return Mark.at(offset, os.fstat(self._file.fileno()).st_ino, self._head, tail).state()

    def continue_from(self, state: dict[str, Any]) -> tuple[int, bytes]:
        mark = Mark.restore(state, self.name)
        self._head = self._take(mark.head_length)
        between = max(mark.head_length, mark.offset - mark.tail_length)  # a packed file can only be read forwards
        reaches = self._skip_to(between)
        before = self._take(mark.offset - between)
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

    def _open(self, path: Path) -> FileIO:
        return path.open("rb", buffering=0)

    def _take(self, size: int) -> bytes:
        return self._file.read(size)

    def _skip_to(self, offset: int) -> bool:
        """Go to an offset after the head; False if the file does not reach so far."""
        self._file.seek(offset)
        return os.fstat(self._file.fileno()).st_size >= offset


class GzipFeed(FileFeed):
    """A file packed by gzip. Offsets are those of the unpacked bytes; all that comes before a damage is handed out."""

    def _open(self, path: Path) -> FileIO:
        self._damage: Exception | None = None
        self._packed = gzip.GzipFile(path, "rb")
        return cast(FileIO, self._packed)

    def _take(self, size: int) -> bytes:
        parts: list[bytes] = []
        while size > 0 and self._damage is None:
            try:
                piece = self._packed.read1(min(size, _PIECE))
            except (EOFError, OSError, zlib.error) as error:
                self._damage = error
                break
            if not piece:
                break
            parts.append(piece)
            size -= len(piece)
        if self._damage is not None and not parts:
            raise InputError(f"{self.name} cannot be unpacked: {self._damage}.") from self._damage
        return b"".join(parts)

    def _skip_to(self, offset: int) -> bool:
        left = offset - len(self._head)
        while left > 0 and (skipped := self._take(min(left, CHUNK))):
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
