"""Bytes in pieces of any size → complete lines."""

from __future__ import annotations

LONGEST = 1_000_000  # bytes; what is longer is not a row of a table but an accident


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
