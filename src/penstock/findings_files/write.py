"""Writes findings and scores, in the format that the path's ending says."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator

import pandas as pd

from penstock.detection.findings import Findings
from penstock.findings_files._cells import as_csv
from penstock.findings_files._document import document_pieces
from penstock.findings_files._paths import (
    FINDINGS_ENDINGS,
    JSON,
    JSON_LINES,
    PACKED_CSV,
    PARQUET,
    SCORES_ENDINGS,
    AnyPath,
    check_ending,
    refuse_existing,
    write_new,
)
from penstock.findings_files._plain import as_json, records
from penstock.findings_files._tables import ROWS_AT_ONCE, findings_table, scores_tables
from penstock.io import parquet_pieces


def write_findings(
    findings: Findings, path: AnyPath, *, overwrite: bool = False, most_explained: int | None = None
) -> None:
    """Write what was found.

    Parameters
    ----------
    findings : of `detect` or of a model's `score`
    path : path
        .csv, .csv.gz or .parquet (extra `files`): one line per finding, the highest score first, with its event and the
        rule that tells the event apart. .json: a document with the summary, events and why they are, days, findings,
        settings, notes and columns.
    overwrite : bool
        Whether a file that is there may be replaced; else it is a FileExistsError.
    most_explained : int, optional
        So many events, those with the highest scores, get their rule (and in JSON variables and neighbours). None: 100,
        of a long table fewer, but at least 20.

    CSV is UTF-8 without a byte order mark, with commas, CR LF and ISO 8601 time stamps; a text that a spreadsheet would
    take for a formula gets a single quote in front (see `as_csv`). JSON has null for what is not a finite number, and
    durations in seconds. The file is written wholly or not at all.
    """
    ending = check_ending(path, FINDINGS_ENDINGS)
    refuse_existing([path], overwrite)
    if ending == JSON:
        _write(path, document_pieces(findings, most_explained), overwrite)
    else:
        table = findings_table(findings, most_explained)
        starts = range(0, max(len(table), 1), ROWS_AT_ONCE)
        _write_tables(path, (table.iloc[start : start + ROWS_AT_ONCE] for start in starts), ending, overwrite)


def write_scores(findings: Findings, path: AnyPath, *, overwrite: bool = False) -> None:
    """Write the score of every row of the table, a line each: row, time, group, score, flag, event, mode, seen.

    The path ends in .csv, .csv.gz, .jsonl or .parquet (extra `files`). Rows are in order of time; `row` is where they
    were in the source, from 0. A row that was not judged has no score. Otherwise as `write_findings`.
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
