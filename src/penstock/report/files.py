"""Write findings and scores to files, in the format that the path's ending names."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import pandas as pd

from penstock.detection.findings import Findings
from penstock.io import TableError, need_pyarrow, parquet_pieces
from penstock.report.document import (
    ROWS_AT_ONCE,
    as_csv,
    as_json,
    cases_table,
    document_pieces,
    findings_table,
    records,
    scores_tables,
    workbook,
)
from penstock.storage import StorageError, replace_file

CSV, PACKED_CSV, JSON, JSON_LINES, PARQUET, EXCEL = ".csv", ".csv.gz", ".json", ".jsonl", ".parquet", ".xlsx"
FINDINGS_ENDINGS = (CSV, PACKED_CSV, JSON, PARQUET, EXCEL)
INCIDENTS_ENDINGS = (CSV, PACKED_CSV, PARQUET)
SCORES_ENDINGS = (CSV, PACKED_CSV, JSON_LINES, PARQUET)

AnyPath = str | os.PathLike[str]


def check_ending(path: AnyPath, known: Sequence[str]) -> str:
    """Which of the known endings a path has; a StorageError if it has none, or what writes it is not installed.

    >>> check_ending("Findings.CSV", FINDINGS_ENDINGS)
    '.csv'
    >>> check_ending("findings.txt", FINDINGS_ENDINGS)
    Traceback (most recent call last):
    penstock.storage.files.StorageError: Cannot write findings.txt: its ending must be one of .csv, .csv.gz, .json,
    .parquet, .xlsx.
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
    if ending == EXCEL and find_spec("openpyxl") is None:
        raise StorageError(f"Writing {path} needs openpyxl: pip install 'penstock[excel]'.")
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
            raise FileExistsError(f"{path} exists already. Choose another name, or overwrite=True (--overwrite).")


def write_new(path: AnyPath, pieces: Iterable[bytes], overwrite: bool) -> None:
    """Write a file wholly or not at all; without `overwrite` only if nothing is there, before and after the pieces."""
    refuse_existing([path], overwrite)
    replace_file(Path(path), _unless_there(path, pieces, overwrite))


def _unless_there(path: AnyPath, pieces: Iterable[bytes], overwrite: bool) -> Iterator[memoryview]:
    yield from (memoryview(piece) for piece in pieces)
    refuse_existing([path], overwrite)  # it may have appeared meanwhile


def write_findings(findings: Findings, path: AnyPath, *, overwrite: bool = False) -> None:
    """Write what was found.

    path : .csv, .csv.gz or .parquet (extra `files`): one line per finding, the highest score first, with its event and
        the rule that separates the event from normal rows, and its incident if there are incidents. .xlsx (extra
        `excel`): the same on the sheet findings, with the sheets incidents (else events), sensors and settings, the
        verdict first among the settings. .json: a document with the summary, the verdict, incidents and their sensors,
        events and why they are, days, findings, settings, notes and columns.
    overwrite : whether a file that is there may be replaced; else it is a FileExistsError.

    CSV is UTF-8 without a byte order mark, with commas, CR LF and ISO 8601 time stamps; a text that a spreadsheet would
    take for a formula gets a single quote in front (see `as_csv`). JSON has null for what is not a finite number, and
    durations in seconds. The file is written wholly or not at all.
    """
    ending = check_ending(path, FINDINGS_ENDINGS)
    refuse_existing([path], overwrite)
    if ending == JSON:
        _write(path, document_pieces(findings), overwrite)
    elif ending == EXCEL:
        write_new(path, [workbook(findings, path)], overwrite)
    else:
        table = findings_table(findings)
        starts = range(0, max(len(table), 1), ROWS_AT_ONCE)
        _write_tables(path, (table.iloc[start : start + ROWS_AT_ONCE] for start in starts), ending, overwrite)


def write_incidents(findings: Findings, path: AnyPath, *, overwrite: bool = False) -> None:
    """Write one line per incident, the most severe first; per event, for methods that have no incidents.

    The path ends in .csv, .csv.gz or .parquet (extra `files`). A line has when it was, how sure it is, the sensor to
    look at first, and its sensors in the order in which they left their range. Otherwise as `write_findings`.
    """
    ending = check_ending(path, INCIDENTS_ENDINGS)
    refuse_existing([path], overwrite)
    table = cases_table(findings)
    if findings.table.time is not None:
        table["duration"] = pd.TimedeltaIndex(table["duration"]).total_seconds()
    _write_tables(path, [table], ending, overwrite)


def write_scores(findings: Findings, path: AnyPath, *, overwrite: bool = False) -> None:
    """Write the score of every row of the table, a line each: row, time, group, score, flag, event, mode, seen.

    The path ends in .csv, .csv.gz, .jsonl or .parquet (extra `files`). Rows are in order of time; `row` is where they
    were in the source, from 0. A row that was not scored has no score. Otherwise as `write_findings`.
    """
    ending = check_ending(path, SCORES_ENDINGS)
    refuse_existing([path], overwrite)
    _write_tables(path, scores_tables(findings), ending, overwrite)


def _write_tables(path: AnyPath, tables: Iterable[pd.DataFrame], ending: str, overwrite: bool) -> None:
    if ending == PARQUET:
        write_new(path, parquet_pieces(tables), overwrite)
    elif ending == JSON_LINES:
        lines = ("".join(f"{as_json(record)}\n" for record in records(table)) for table in tables)
        _write(path, lines, overwrite)
    else:
        texts = (as_csv(table, header=not number) for number, table in enumerate(tables))
        _write(path, texts, overwrite, packed=ending == PACKED_CSV)


def _write(path: AnyPath, texts: Iterable[str], overwrite: bool, packed: bool = False) -> None:
    # A path may hold bytes that are not UTF-8: what stands for them is \udcXX in the file, which is JSON's way too.
    pieces: Iterator[bytes] = (text.encode("utf-8", "backslashreplace") for text in texts)
    write_new(path, _packed(pieces) if packed else pieces, overwrite)


def _packed(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """As gzip, without a time in it: the same findings make the same file."""
    packer = zlib.compressobj(level=6, wbits=16 + zlib.MAX_WBITS)
    for piece in pieces:
        yield packer.compress(piece)
    yield packer.flush()
