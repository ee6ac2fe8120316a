"""A log that is rotated: which file was being read, and which were put aside after it."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from penstock.sources.faults import InputError
from penstock.sources.feeds import fingerprint

# plant.csv.1, plant.csv-20260314, plant.csv.2026-03-14_10: what logrotate and Python's handlers make of plant.csv
_ROTATED_ENDING = re.compile(r"[.\-_]\d[\d.\-_T:]*")


def file_of_mark(path: Path, mark: dict[str, Any]) -> Path:
    """The file that a mark was made in: the path, or the name it was given by rotation.

    A renamed file is known by its inode, a copy (of a file that was then emptied) by its beginning. The inode comes
    first: the beginning may be no more than a header, which the file that took its place has too.
    """
    for file in (path, *_neighbours(path)):
        if _inode(file) == mark["inode"] and _has_mark(file, mark):
            return file
    for file in (path, *_rotated(path)):
        if mark["offset"] and _has_mark(file, mark):
            return file
    raise InputError(
        f"{path} is not the file that was watched with this --state, and neither is a rotated one beside it: what "
        f"follows byte {mark['offset']:,} there is out of reach. Put that file back (unpacked), or begin with an empty "
        f"--state folder."
    )


def files_after(path: Path, read: os.stat_result) -> list[Path]:
    """The files that were rotated after the one that has been read, oldest first; the path itself comes last."""
    later = [(file.stat(), file) for file in _rotated(path)]
    later = [(found, file) for found, file in later if found.st_mtime_ns > read.st_mtime_ns]
    later.sort(key=lambda entry: entry[0].st_mtime_ns)
    return [file for found, file in later if not os.path.samestat(found, read)] + [path]


def _inode(file: Path) -> int | None:
    try:
        return file.stat().st_ino
    except FileNotFoundError:
        return None


def _has_mark(file: Path, mark: dict[str, Any]) -> bool:
    try:
        with file.open("rb") as opened:
            head = opened.read(mark["head_length"])
            long_enough: bool = os.fstat(opened.fileno()).st_size >= mark["offset"]
    except OSError:
        return False
    return long_enough and bool(fingerprint(head)["head"] == mark["head"])


def _neighbours(path: Path) -> list[Path]:
    return sorted(file for file in path.parent.iterdir() if file.is_file() and file != path)


def _rotated(path: Path) -> list[Path]:
    name = path.name
    return [
        file
        for file in _neighbours(path)
        if file.name.startswith(name) and _ROTATED_ENDING.fullmatch(file.name, len(name))
    ]
