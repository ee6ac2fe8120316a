"""Read bytes as they come, cut them into lines, and mark a place to go on from.

A feed is a pipe, a file, a packed file, a file that grows and is rotated, by rename or by truncation, or a folder that
files come to.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import select
import stat
import sys
import time
import zlib
from abc import ABC, abstractmethod
from collections import deque
from contextlib import suppress
from dataclasses import asdict, dataclass
from io import FileIO
from pathlib import Path
from typing import Any, Literal, cast

_CHUNK = 1 << 18  # bytes read at once at most: enough for batches, few enough for a fast answer
_WAIT = 0.1  # seconds for which a pipe is waited for
_POLL = 0.025  # seconds between looks at a file that has not grown
HEAD = 4096  # bytes at the beginning of a file, and before a place in it, that identify the two
ADVICE = "Give the input that was watched with this --state, or begin with an empty --state folder."
_PIECE = 1 << 12  # bytes unpacked at once, which a call that fails loses
_SETTLED = 2_000_000_000  # nanoseconds: a folder that did not change for so long has a time that will differ
_PLACES = 64  # of a file that are looked at
_FOLLOWED = (".csv", ".txt", ".tsv", ".dat", ".json", ".jsonl", ".ndjson")  # of the files of a folder
LONGEST = 1_000_000  # bytes; a longer line is not a row of a table
# plant.csv.1, plant.csv-20260314, plant.csv.2026-03-14_10: names that logrotate and Python's handlers give to plant.csv
_ROTATED_ENDING = re.compile(r"[.\-_]\d[\d.\-_T:]*")


class InputError(ValueError):
    """The input cannot be read at all, or not be continued; the message says what to do."""


@dataclass(frozen=True)
class Mark:
    """A place in a file: how the file begins, and what comes just before the place."""

    offset: int
    inode: int | None  # None: there was no file
    head_length: int
    head: str
    tail_length: int
    tail: str

    @classmethod
    def at(cls, offset: int, inode: int | None, head: bytes, tail: bytes) -> Mark:
        """Return the mark of an offset, given (at least) the beginning of the file and what comes before the offset."""
        head, tail = head[: min(offset, HEAD)], tail[-HEAD:]
        return cls(offset, inode, len(head), _digest(head), len(tail), _digest(tail))

    @classmethod
    def restore(cls, state: dict[str, Any], name: str) -> Mark:
        """Return the mark whose `state()` this is, for an input of this name; InputError if it is none."""
        _check_kind(state, "file", name)
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
        return {"kind": "file", **asdict(self)}

    def is_in(self, file: Path, *, renamed: bool = False) -> bool:
        """Return whether a file reaches to the mark, and is as it was there and at its beginning.

        renamed : it must be the very file of the mark, perhaps under another name.
        """
        try:
            with file.open("rb") as opened:
                found = os.fstat(opened.fileno())
                if found.st_size < self.offset or (renamed and found.st_ino != self.inode):
                    return False
                head = opened.read(self.head_length)
                opened.seek(self.offset - self.tail_length)
                return _digest(head) == self.head and _digest(opened.read(self.tail_length)) == self.tail
        except OSError:
            return False


def _check_kind(state: dict[str, Any], kind: Literal["file", "pipe"], name: str) -> None:
    """Raise an InputError unless a mark was made in this kind of input."""
    made_in = state.get("kind") if isinstance(state, dict) else None
    if made_in not in ("file", "pipe"):
        raise InputError(f"What the --state says of the position in {name} makes no sense. {ADVICE}")
    if made_in != kind:
        raise InputError(f"This state belongs to a {made_in}, but {name} is a {kind}. {ADVICE}")


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class _OverlongLine(bytes):
    """The beginning of a line that is too long; `dropped` bytes of it were not kept."""

    dropped: int = 0


class LineCutter:
    """Cut bytes at line ends, and keep an unfinished line until its end arrives."""

    def __init__(self) -> None:
        self._unfinished = bytearray()
        self._dropped = 0

    def cut(self, data: bytes) -> list[bytes]:
        """Return the lines that `data` completes, without their line ends."""
        first, newline, others = data.partition(b"\n")
        self._keep(first)
        if not newline:
            return []
        lines = others.split(b"\n")
        lines.insert(0, self.rest())
        self._keep(lines.pop())
        return lines

    def rest(self) -> bytes:
        """Return the unfinished line, b"" if there is none, and forget it."""
        line: bytes = bytes(self._unfinished)
        if self._dropped:
            line = _OverlongLine(line)
            line.dropped = self._dropped
        self._unfinished.clear()
        self._dropped = 0
        return line

    def _keep(self, data: bytes) -> None:
        # One byte more than allowed shows that the line is too long; memory stays bounded.
        room = max(0, LONGEST + 1 - len(self._unfinished))
        self._unfinished += data[:room]
        self._dropped += max(0, len(data) - room)


def byte_length(lines: list[bytes]) -> int:
    """Return how many bytes of the input the lines took, with a line end each."""
    dropped = sum(line.dropped for line in lines if isinstance(line, _OverlongLine))
    return sum(map(len, lines)) + len(lines) + dropped


def last_bytes(before: bytes, lines: list[bytes], most: int, *, ended: bool) -> bytes:
    """Return the last bytes of the input up to the end of `lines`, which follow `before`.

    ended : the last line has no line end.

    >>> last_bytes(b"1\\n", [b"2", b"3"], 5, ended=False)
    b'\\n2\\n3\\n'
    """
    known = before + b"\n".join([*lines[-most:], b""])
    for number, line in enumerate(lines):
        if isinstance(line, _OverlongLine):  # its end was not kept: only what follows it is known
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
        """Return what is there now: None if nothing is there yet, b"" at the end of a file."""

    def next_file(self) -> bool:
        """Begin the next file after the end of one; return whether there is one."""
        return False

    @abstractmethod
    def mark(self, offset: int, tail: bytes) -> dict[str, Any]:
        """Return what `continue_from` needs to go on at this offset of the file; `tail` is what comes before it."""

    @abstractmethod
    def continue_from(self, state: dict[str, Any]) -> tuple[int, bytes]:
        """Go on at a mark; return offset and tail: 0 and b"" where a feed cannot seek, because it has begun again."""

    def lines_elsewhere(self) -> list[bytes]:
        """Return some whole lines from all over the file, in order, if it can be looked at; the position stays."""
        return []

    def close(self) -> None:  # noqa: B027  (there may be nothing to close)
        """Close the file."""


class PipeFeed(Feed):
    """Standard input, or another descriptor that cannot be sought in."""

    can_seek = False

    def __init__(self, descriptor: int, name: str = "standard input") -> None:
        self.name = name
        self._descriptor = descriptor
        with suppress(ImportError, AttributeError, OSError):  # not Linux, no pipe, not allowed: batches stay smaller
            import fcntl

            fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, _CHUNK)

    def read(self) -> bytes | None:
        # Windows can wait for sockets only: there reading waits, and Ctrl-C works with the next bytes.
        if os.name == "posix" and not select.select([self._descriptor], [], [], _WAIT)[0]:
            return None
        try:
            return os.read(self._descriptor, _CHUNK)
        except BlockingIOError:  # another process has read it
            return None

    def mark(self, offset: int, tail: bytes) -> dict[str, Any]:
        return {"kind": "pipe", "offset": offset}

    def continue_from(self, state: dict[str, Any]) -> tuple[int, bytes]:
        _check_kind(state, "pipe", self.name)
        return 0, b""


class FileFeed(Feed):
    """A file from its beginning, or from a mark, to its end."""

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self._file = self._open(path)
        self._head = b""

    def read(self) -> bytes | None:
        data = self._take(_CHUNK)
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
        tail = (self._head + before)[-mark.tail_length :] if mark.tail_length else b""
        problem = ""
        if not reaches or len(before) < mark.offset - between:
            problem = f"is shorter than the {mark.offset:,} bytes that were read of it before"
        elif _digest(self._head) != mark.head:
            problem = "does not begin like the input that was watched with this --state"
        elif _digest(tail) != mark.tail:
            problem = f"was changed before byte {mark.offset:,}, up to which it was read with this --state"
        if problem:
            raise InputError(f"{self.name} {problem}. {ADVICE}")
        return mark.offset, tail

    def lines_elsewhere(self) -> list[bytes]:
        return _lines_all_over(self._file.fileno())

    def close(self) -> None:
        self._file.close()

    def _open(self, path: Path) -> FileIO:
        return path.open("rb", buffering=0)

    def _take(self, size: int) -> bytes:
        return self._file.read(size)

    def _skip_to(self, offset: int) -> bool:
        """Go to an offset after the head; return False if the file does not reach so far."""
        self._file.seek(offset)
        return os.fstat(self._file.fileno()).st_size >= offset


class GzipFeed(FileFeed):
    """A file packed by gzip. Offsets are those of the unpacked bytes; all bytes before a damage are returned."""

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

    def lines_elsewhere(self) -> list[bytes]:
        return []  # it can only be unpacked from its beginning

    def _skip_to(self, offset: int) -> bool:
        left = offset - len(self._head)
        while left > 0 and (skipped := self._take(min(left, _CHUNK))):
            left -= len(skipped)
        return left <= 0


class FollowFeed(Feed):
    """A file that grows, as `tail -F` follows it: after a rename, the old file is read to its end, then the new one.

    The old file is left only when the new one has bytes: until then a writer may still hold the old one open.
    """

    grows = True

    def __init__(self, path: Path, *, wait: bool = True) -> None:
        self.name = str(path)
        self._path = path
        self._pause = _POLL if wait else 0.0
        self._descriptor: int | None = None  # None: the file is not there (yet)
        self._queue: list[int] = []  # files to be read after this one, held open: their names may change
        self._offset = 0
        self._head = b""

    def read(self) -> bytes | None:
        if self._descriptor is not None or self._begin(_opened(self._path)):
            data = self._read_on()
            if data or self.truncated:
                return data
            if self._has_successor():
                return self._read_on()  # what was written before the new file was begun
        time.sleep(self._pause)
        return None

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
        file = _file_of_mark(self._path, mark)
        self._begin(_opened(file))
        assert self._descriptor is not None
        if file != self._path:
            self._queue_later_files()
        return self._go_to(mark)

    def _go_to(self, mark: Mark) -> tuple[int, bytes]:
        assert self._descriptor is not None
        self._offset = mark.offset
        self._head = os.pread(self._descriptor, mark.head_length, 0)
        os.lseek(self._descriptor, self._offset, os.SEEK_SET)
        return mark.offset, os.pread(self._descriptor, mark.tail_length, mark.offset - mark.tail_length)

    def lines_elsewhere(self) -> list[bytes]:
        return [] if self._descriptor is None else _lines_all_over(self._descriptor)

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
        """Open the files that were rotated after the one that is open, oldest first; the path itself comes last."""
        assert self._descriptor is not None
        read = os.fstat(self._descriptor)
        later = [(file.stat(), file) for file in _rotated(self._path)]
        later = [(found, file) for found, file in later if found.st_mtime_ns > read.st_mtime_ns]
        later.sort(key=lambda entry: entry[0].st_mtime_ns)
        others = [file for found, file in later if not os.path.samestat(found, read)]
        files = [file for file in others if not _is_copy(file, self._descriptor)]
        opened = [_opened(file) for file in (*files, self._path)]
        self._queue = [descriptor for descriptor in opened if descriptor is not None]

    def _read_on(self) -> bytes:
        assert self._descriptor is not None
        # Truncated: shorter than what was read of it, or filled with something else.
        self.truncated = os.fstat(self._descriptor).st_size < self._offset
        self.truncated = self.truncated or os.pread(self._descriptor, len(self._head), 0) != self._head
        if self.truncated:
            return b""
        data = os.read(self._descriptor, _CHUNK)
        if len(self._head) < HEAD and self._offset == len(self._head):
            self._head += data[: HEAD - len(self._head)]
        self._offset += len(data)
        return data

    def _has_successor(self) -> bool:
        assert self._descriptor is not None
        if any(os.fstat(descriptor).st_size > 0 for descriptor in self._queue):
            return True
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return False
        if not found.st_size or os.path.samestat(found, os.fstat(self._descriptor)):
            return False
        self._drop_queue()  # of empty files, which were rotated in their turn: look again
        return True

    def _drop_queue(self) -> None:
        for descriptor in self._queue:
            os.close(descriptor)
        self._queue.clear()


class FolderFeed(FollowFeed):
    """The text files of a folder, one after the other in order of their names; the last of them may grow.

    A file that comes later with a name before that of the one that is read is not read any more: InputError says so.
    """

    def __init__(self, folder: Path, *, wait: bool = True) -> None:
        super().__init__(folder, wait=wait)
        self._last = ""  # the file that is read
        self._seen: set[str] | None = None  # names of files since this feed looks at the folder
        self._later: deque[str] = deque()  # files after the one that is read, in order
        self._changed: int | None = None  # when the folder had changed last, as it was looked through

    def read(self) -> bytes | None:
        if self._descriptor is None:
            self.next_file()
        if self._descriptor is None:
            time.sleep(self._pause)
            return None
        return super().read()

    def mark(self, offset: int, tail: bytes) -> dict[str, Any]:
        return {**super().mark(offset, tail), "file": self._last}

    def continue_from(self, state: dict[str, Any]) -> tuple[int, bytes]:
        """Go on in the file of the mark; with the next one if it was taken away."""
        name = state.get("file") if isinstance(state, dict) else None
        if not isinstance(name, str) or Path(name).name != name:
            raise InputError(f"This state does not belong to the folder {self.name}. {ADVICE}")
        mark, self._last = Mark.restore({key: of for key, of in state.items() if key != "file"}, self.name), name
        file = self._path / name
        if mark.inode is None or not file.exists():
            return 0, b""
        if not mark.is_in(file):
            raise InputError(f"{file} is not as it was before byte {mark.offset:,}, up to which it was read. {ADVICE}")
        self._begin(_opened(file))
        return self._go_to(mark)

    def _queue_later_files(self) -> None:
        name = self._next()
        opened = None if name is None else _opened(self._path / name)
        if name is not None and opened is not None:
            self._last = name
            self._queue = [opened]

    def _has_successor(self) -> bool:
        return self._next() is not None

    def _next(self) -> str | None:
        """Return the next file that has something in it; None if there is none.

        With many files it takes a while to look through the folder: that is done when something came or went.
        """
        with suppress(FileNotFoundError):
            changed = self._path.stat().st_mtime_ns
            name = self._first_filled() if changed == self._changed else None
            if name is None:
                self._look_through()
                # What comes within the resolution of the clock does not change the time of the folder again.
                self._changed = changed if time.time_ns() - changed > _SETTLED else None
                name = self._first_filled()
            return name
        return None

    def _first_filled(self) -> str | None:
        while self._later and by_numbers(self._later[0]) <= by_numbers(self._last):
            self._later.popleft()
        return next((name for name in self._later if (self._path / name).stat().st_size), None)

    def _look_through(self) -> None:
        """Note the names of all files; InputError for one that came too late."""
        with os.scandir(self._path) as entries:
            sizes = {each.name: each.stat().st_size for each in entries if each.name.lower().endswith(_FOLLOWED)}
        after = by_numbers(self._last)
        keys = {name: by_numbers(name) for name in sizes if name[0] != "."}
        filled = {name for name in keys if sizes[name]}
        late = {name for name in filled - (self._seen or filled) if keys[name] < after}
        self._seen = filled
        if late:
            said = f"came after {self._last} was begun and is not read: files are read in order of their names."
            raise InputError(f"{self._path / min(late)} {said} Give it a name that comes later.")
        self._later = deque(sorted((name for name in keys if keys[name] > after), key=keys.__getitem__))


def by_numbers(name: str) -> list[tuple[int, int, str]]:
    """Return a key by which numbers in names count as numbers.

    >>> sorted(["day10.csv", "day9.csv"], key=by_numbers)
    ['day9.csv', 'day10.csv']
    """
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in re.split(r"(\d+)", name)]


def _lines_all_over(descriptor: int) -> list[bytes]:
    """Return whole lines from places that are evenly spread over a file."""
    size, found = os.fstat(descriptor).st_size, []
    step = max(size // _PLACES, _PIECE)
    for offset in range(0, size, step) if hasattr(os, "pread") else ():
        lines = os.pread(descriptor, _PIECE, offset).split(b"\n")
        found += lines[1:-1]  # the first and the last may be parts of lines
    return found


def _opened(path: Path) -> int | None:
    try:
        return os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        return None


def _file_of_mark(path: Path, mark: Mark) -> Path:
    """Return the file that a mark was made in: the path, or the name it was given by rotation.

    A renamed file is known by its inode, a copy (of a file that was then emptied) by its beginning. The inode comes
    first: the beginning may be no more than a header, which the file that took its place has too.
    """
    for file in (path, *_neighbours(path)):
        if mark.is_in(file, renamed=True):
            return file
    for file in (path, *_rotated(path)):
        if mark.offset and mark.is_in(file):
            return file
    raise InputError(
        f"{path} is not the file that was watched with this --state, and neither is a rotated one in its folder: what "
        f"follows byte {mark.offset:,} there is out of reach. Put that file back (unpacked), or begin with an empty "
        f"--state folder."
    )


def _is_copy(file: Path, descriptor: int) -> bool:
    """Return whether a file holds nothing but what the open one holds: a copy of it."""
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


def _neighbours(path: Path) -> list[Path]:
    return sorted(file for file in path.parent.iterdir() if file.is_file() and file != path)


def _rotated(path: Path) -> list[Path]:
    name = path.name
    same_beginning = [file for file in _neighbours(path) if file.name.startswith(name)]
    return [file for file in same_beginning if _ROTATED_ENDING.fullmatch(file.name, len(name))]


def open_feed(path: Path | None, *, follow: bool = False, wait: bool = True) -> Feed:
    """Open the feed of a path; None is standard input. Without `wait`, a followed file is looked at without a pause."""
    if path is None:
        if follow:
            raise InputError("--follow needs a file, not standard input (a pipe is followed to its end anyway).")
        return PipeFeed(sys.stdin.fileno())
    if path.is_dir() and follow:
        return FolderFeed(path, wait=wait)
    if path.is_dir():
        raise InputError(f"{path} is a folder; give a file in it, or follow it (--follow).")
    packed = path.suffix == ".gz"
    if not follow:
        if packed:
            return GzipFeed(path)
        if stat.S_ISREG(path.stat().st_mode):
            return FileFeed(path)
        # Opening does not wait for a writer, during which Ctrl-C would do nothing; reading does.
        return PipeFeed(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), name=str(path))
    if packed:
        raise InputError(f"{path} is packed by gzip, which cannot be followed (--follow).")
    if path.exists() and not path.is_file():
        raise InputError(f"{path} is not a regular file, which --follow needs; a pipe is followed to its end anyway.")
    if not path.parent.is_dir():
        raise InputError(f"There is no folder {path.parent}, in which --follow could wait for {path.name}.")
    return FollowFeed(path, wait=wait)
