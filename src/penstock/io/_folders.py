"""Which tables of a folder are records over time, and which only lie beside them."""

from __future__ import annotations

import re
from collections.abc import Collection

import pandas as pd

from penstock._messages import listed
from penstock.io._column_times import seems_time
from penstock.io._combine import have_same_columns
from penstock.io._errors import TableError
from penstock.io._notes import Notebook
from penstock.io._raw import RawTable
from penstock.io._time_column import TimeOptions, find_clock

_BEGINNINGS = frozenset(("start", "begin", "beginn", "from", "von"))
_ENDS = frozenset(("end", "ende", "stop", "to", "until", "bis"))


def records_among(
    tables: list[RawTable], options: TimeOptions, taken: Collection[str], notebook: Notebook
) -> list[RawTable]:
    """The tables of a folder without lists of names and of events, as far as there are others with different columns.

    If no table has a time, all are kept: which belong together is then not known.
    """
    if have_same_columns(tables):
        return tables
    records = [table for table in tables if _is_record(table, options, taken)]
    beside = [table.name for table in tables if not any(table is record for record in records)]
    if not records or not beside:
        return tables
    notebook.add(
        "files beside",
        f"{listed(beside)} beside {listed([table.name for table in records])} was left out, having no time, or only "
        f"the starts and ends of events.",
        len(beside),
        changed=True,
    )
    return records


def _is_record(table: RawTable, options: TimeOptions, taken: Collection[str]) -> bool:
    """Whether a table says when each row was; what goes wrong with its time is told later, where it is read."""
    frame = table.frame
    if options.columns:
        return all(name in frame.columns for name in options.columns)
    if _lists_events(frame):
        return False
    try:
        return any(
            find_clock(rows, options, taken, Notebook(table.name)).times is not None
            for rows in (frame.iloc[:20], frame)
        )
    except TableError:
        return True


def _lists_events(frame: pd.DataFrame) -> bool:
    first_words = {name: re.split(r"[\W_]", str(name).casefold())[0] for name in frame.columns}
    return all(
        any(first_words[name] in words and seems_time(frame[name]) for name in frame.columns)
        for words in (_BEGINNINGS, _ENDS)
    )
