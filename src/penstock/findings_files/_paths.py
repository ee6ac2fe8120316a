"""What a path says about the file that is to be written there."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from penstock.io import TableError, need_pyarrow
from penstock.storage import StorageError, replace_file

CSV, PACKED_CSV, JSON, JSON_LINES, PARQUET = ".csv", ".csv.gz", ".json", ".jsonl", ".parquet"
FINDINGS_ENDINGS = (CSV, PACKED_CSV, JSON, PARQUET)
SCORES_ENDINGS = (CSV, PACKED_CSV, JSON_LINES, PARQUET)

AnyPath = str | os.PathLike[str]


def check_ending(path: AnyPath, known: Sequence[str]) -> str:
    """Which of the known endings a path has; a StorageError if it has none, or what writes it is not installed.

    >>> check_ending("Findings.CSV", FINDINGS_ENDINGS)
    '.csv'
    >>> check_ending("findings.xlsx", FINDINGS_ENDINGS)
    Traceback (most recent call last):
    penstock.storage.files.StorageError: Cannot write findings.xlsx: its ending must be one of .csv, .csv.gz, .json,
    .parquet.
    """
    name = Path(path).name.lower()
    ending = next((ending for ending in known if name.endswith(ending)), None)
    if ending is None:
        raise StorageError(f"Cannot write {path}: its ending must be one of {', '.join(known)}.")
    if ending == PARQUET:
        try:
            need_pyarrow(f"Writing {path}")
        except TableError as error:
            raise StorageError(str(error)) from None
    return ending


def refuse_existing(paths: Iterable[AnyPath | None], overwrite: bool) -> None:
    """Raise if something is at one of the paths already and must not be replaced; to be asked before any computing.

    A folder, a device or a pipe is not replaced by a file whatever `overwrite` says. None stands for no file.

    >>> import tempfile
    >>> refuse_existing([None, "/nowhere/findings.csv"], overwrite=False)
    >>> refuse_existing([tempfile.mkdtemp()], overwrite=True)
    Traceback (most recent call last):
    penstock.storage.files.StorageError: Cannot write /...: it is a folder. Name a file.
    """
    for path in paths:
        if path is None or not os.path.lexists(path):
            continue
        there = Path(path)
        if there.is_dir():
            raise StorageError(f"Cannot write {path}: it is a folder. Name a file.")
        if there.exists() and not there.is_file():
            raise StorageError(f"Cannot write {path}: it is a device or a pipe. Name a file.")
        if not overwrite:
            raise FileExistsError(f"{path} exists already. Choose another name, or overwrite=True.")


def write_new(path: AnyPath, pieces: Iterable[bytes], overwrite: bool) -> None:
    """Write a file wholly or not at all; without `overwrite` only if nothing is there, before and after the pieces."""
    refuse_existing([path], overwrite)
    replace_file(Path(path), _unless_there(path, pieces, overwrite))


def _unless_there(path: AnyPath, pieces: Iterable[bytes], overwrite: bool) -> Iterator[memoryview]:
    yield from (memoryview(piece) for piece in pieces)
    refuse_existing([path], overwrite)  # it may have appeared meanwhile
