"""A log that is rotated: which file was being read, and which were put aside after it."""

from __future__ import annotations

import os
import re
from pathlib import Path

from penstock.io.faults import InputError
from penstock.io.marks import HEAD, Mark

# plant.csv.1, plant.csv-20260314, plant.csv.2026-03-14_10: what logrotate and Python's handlers make of plant.csv
_ROTATED_ENDING = re.compile(r"[.\-_]\d[\d.\-_T:]*")


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
