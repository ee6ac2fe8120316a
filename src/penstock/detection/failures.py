"""A log of failures, as plants keep it: when each began and ended, and what it was.

A CSV file comes in, `Failure` records go out; `detect` compares what it finds with them, as with a label column.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from penstock.columns import order_to_stamp
from penstock.io import TableError, TimeReader

_MOST = 10_000  # failures of a log
_MOST_BYTES = 10_000_000
_STARTS = {"start", "begin", "began", "from", "since", "beginn", "von"}
_ENDS = {"end", "ended", "until", "to", "stop", "ende", "bis"}


@dataclass(frozen=True)
class Failure:
    """A known failure: both ends are included, and a day stands for all of it.

    Examples
    --------
    >>> Failure("2024-05-01", "2024-05-03", "bearing changed").text
    'bearing changed'
    """

    start: str
    end: str
    text: str = ""


def read_failures(source: Any) -> tuple[Failure, ...]:
    """Read a log of failures; TableError, with the line, if it is none.

    source : the path of a CSV file with the columns start, end and text (the first three, if they have other names; a
        missing end is the start), failures, or (start, end, text) each; None for no failures.

    >>> read_failures([("31.5.2024 13:40", "", "seal")])
    (Failure(start='2024-05-31T13:40:00', end='2024-05-31T13:40:00', text='seal'),)
    """
    if source is None:
        return ()
    if not isinstance(source, str | os.PathLike):
        rows = [(each.start, each.end, each.text) if isinstance(each, Failure) else tuple(each) for each in source]
        return _made([("", *row) for row in rows])
    path = Path(source)
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise TableError(f"failures: {path}: {error.strerror}.", "failures") from None
    if len(content) > _MOST_BYTES:
        raise TableError(f"failures: {path} is larger than {_MOST_BYTES / 1e6:g} MB: this is no log.", "failures")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("cp1252", "replace")
    lines = text.splitlines()
    separator = max(",;\t|", key=lines[0].count) if lines else ","
    try:
        rows = [(number, row) for number, row in enumerate(csv.reader(lines, delimiter=separator), 1) if any(row)]
    except csv.Error as error:
        raise TableError(f"failures: {path} is no CSV file: {error}.", "failures") from None
    if not rows:
        raise TableError(f"failures: {path} is empty. Its columns are start, end and text.", "failures")
    head = [name.strip().casefold() for name in rows[0][1]]
    start = next((place for place, name in enumerate(head) if name in _STARTS), None)
    end = next((place for place, name in enumerate(head) if name in _ENDS), None)
    if start is not None or not any(each.isdigit() for each in head[0]):
        rows = rows[1:]
    if not rows:
        raise TableError(f"failures: {path} has no failures below its header (start, end, text).", "failures")
    start = 0 if start is None else start
    end = next((place for place in (1, 0) if place != start and place < len(head)), start) if end is None else end
    others = [place for place in range(len(head)) if place not in (start, end)]
    named = [place for place in others if "text" in head[place] or "descr" in head[place]]
    text_at = next(iter(named + others), None)

    def cell(row: Sequence[str], place: int | None) -> str:
        return row[place].strip() if place is not None and place < len(row) else ""

    made = [(f"{path}, line {number}: ", cell(row, start), cell(row, end), cell(row, text_at)) for number, row in rows]
    return _made(made)


def _made(rows: Iterable[tuple[Any, ...]]) -> tuple[Failure, ...]:
    """Return failures of (place for errors, start, end, text); times are written as `order_to_stamp` reads them."""
    found = [(str(place), str(start).strip(), str(end or start).strip(), str(text)) for place, start, end, text in rows]
    if len(found) > _MOST:
        raise TableError(f"failures: a log has at most {_MOST:,} failures; this one has {len(found):,}.", "failures")
    texts = [each for row in found for each in row[1:3]]
    if not all(_is_plain(each) for each in texts):
        reader = TimeReader.learn(texts) if texts else None
        found = [(place, _read(place, a, reader), _read(place, b, reader), text) for place, a, b, text in found]
    return tuple(Failure(start, end, text) for _, start, end, text in found)


def _is_plain(text: str) -> bool:
    if text.isascii() and text.isdigit() and len(text) < 10:  # a row number
        return True
    try:
        order_to_stamp(pd.DatetimeIndex([], tz="UTC"), text)
    except ValueError:
        return False
    return True


def _read(place: str, text: str, reader: TimeReader | None) -> str:
    if _is_plain(text):
        return text
    seconds = reader.seconds([text])[0] if reader is not None and reader.dated else float("nan")
    read = None if reader is None or pd.isna(seconds) else reader.text(seconds)
    if read is None:
        columns = "The columns are start, end and text."
        raise TableError(f"failures: {place}{text!r:.60} is not a time. {columns}", "failures")
    return read if ":" in text else read[:10]  # a day stands for all of it
