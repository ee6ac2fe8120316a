"""Marks: by what a place in a file is known again, when reading goes on another day."""

from __future__ import annotations

import hashlib
import os
from dataclasses import asdict, dataclass
from typing import Any, Literal

from penstock.io.faults import InputError

HEAD = 4096  # bytes at the beginning of a file, and before a place in it, by which they are known again
ADVICE = "Give the input that was watched with this --state, or begin with an empty --state folder."


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
