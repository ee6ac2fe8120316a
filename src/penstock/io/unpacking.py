"""Unpacks gzip so that all that comes before a damage is handed out."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

_PIECE = 1 << 14  # packed bytes at once
_GZIP = 31  # what zlib calls a gzip header and trailer


class GzipReader:
    """Reads a packed file forwards. Unlike `gzip.open`, it raises only after what could be unpacked was handed out."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb", buffering=0)
        self._member: Any = None  # a zlib decompressor, while a member of the file is unfinished
        self._any_member = False
        self._ready = b""
        self._damage: Exception | None = None

    def read(self, size: int) -> bytes:
        """The next `size` bytes, fewer before the end or a damage; EOFError or zlib.error at a damage."""
        parts: list[bytes] = []
        wanted = size
        while wanted > 0:
            if not self._ready and not self._fill(bool(parts)):
                break
            parts.append(self._ready[:wanted])
            self._ready = self._ready[wanted:]
            wanted -= len(parts[-1])
        return b"".join(parts)

    def fileno(self) -> int:
        return self._file.fileno()

    def close(self) -> None:
        self._file.close()

    def _fill(self, quiet: bool) -> bool:
        """Unpack some more; False at the end, and, if `quiet`, at a damage."""
        while not self._ready and self._damage is None:
            packed = self._file.read(_PIECE)
            if not packed and self._member is None:
                return False
            if packed:
                self._ready = self._unpacked(packed)
            else:
                self._damage = EOFError("it ends before its end mark, as if it was cut off")
        if not self._ready and self._damage is not None and not quiet:
            raise self._damage
        return bool(self._ready)

    def _unpacked(self, packed: bytes) -> bytes:
        parts = []
        while packed:
            if self._member is None:
                packed = packed.lstrip(b"\0") if self._any_member else packed  # some programs pad with zeros
                if not packed:
                    break
                self._member, self._any_member = zlib.decompressobj(_GZIP), True
            before = self._member.copy()
            try:
                parts.append(self._member.decompress(packed))
            except zlib.error as damage:
                self._damage = damage
                parts += _before_damage(before, packed)
                break
            packed = self._member.unused_data
            if self._member.eof:
                self._member = None
        return b"".join(parts)


def _before_damage(member: Any, packed: bytes) -> list[bytes]:
    """What can be unpacked of a piece that is damaged: byte by byte, as zlib gives nothing for a call that fails."""
    parts: list[bytes] = []
    try:
        for at in range(len(packed)):
            parts.append(member.decompress(packed[at : at + 1]))
    except zlib.error:
        pass
    return parts
