"""Combine raw tables, as files or other libraries have them, into one: rows one after the other, or columns joined."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from penstock._messages import counted, listed, quoted
from penstock.io._clock import Clock, TimeOptions, find_clock, seems_time
from penstock.io.table import Notebook, TableError

_BEGINNINGS = frozenset(("start", "begin", "beginn", "from", "von"))
_ENDS = frozenset(("end", "ende", "stop", "to", "until", "bis"))


@dataclass(frozen=True)
class RawTable:
    """Columns of numbers, texts or times, each with its own name; `unnamed` were given theirs by us.

    units : of the columns for which the source says it.
    """

    name: str
    frame: pd.DataFrame
    decimal: str = "."
    unnamed: tuple[str, ...] = ()
    units: Mapping[str, str] = field(default_factory=dict[str, str])


def own_names(names: Sequence[str], source: str) -> tuple[list[str], tuple[str, ...]]:
    """Names for all columns: one without a name is called after its place. Raises if a name comes twice.

    >>> own_names(["time", "", "flow"], "plant.csv")
    (['time', 'column 2', 'flow'], ('column 2',))
    """
    called = [name or f"column {number}" for number, name in enumerate(names, start=1)]
    if len(set(called)) < len(called):
        seen: set[str] = set()
        repeated = dict.fromkeys(name for name in called if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise TableError(f"{source} has more than one column named {listed(repeated)}. Give each column its own name.")
    return called, tuple(call for call, name in zip(called, names, strict=True) if not name)


def with_names(raw: RawTable, names: Sequence[str], notebook: Notebook) -> RawTable:
    """The same with the names that were given for its columns."""
    width = raw.frame.shape[1]
    if len(names) != width:
        raise TableError(f"{raw.name} has {counted(width, 'column')}, but names has {len(names):,}. Name every column.")
    own_names(names, "names")
    notebook.notes = [note for note in notebook.notes if note.kind != "no header"]
    if len(raw.unnamed) < width:
        before = listed(raw.frame.columns, most=3)
        notebook.add("names", f"The names of the columns of {raw.name}, {before}, were replaced.", width)
    called = dict(zip(raw.frame.columns, names, strict=True))
    units = {called[name]: unit for name, unit in raw.units.items()}
    return replace(raw, frame=raw.frame.rename(columns=called), unnamed=(), units=units)


def without_fillers(raw: RawTable, notebook: Notebook) -> RawTable:
    """Leave out what programs add: columns with neither name nor values, and a first one that only numbers the rows."""
    empty = [name for name in raw.unnamed if raw.frame[name].isna().all()]
    if empty and len(empty) < raw.frame.shape[1]:
        notebook.add(
            "empty columns",
            f"{counted(len(empty), 'column')} of {raw.name} with neither name nor values left out.",
            len(empty),
            tuple(empty),
        )
    else:
        empty = []
    first = raw.frame.columns[0]
    numbered = [first] if first in raw.unnamed and raw.frame.shape[1] > 1 and _numbers_rows(raw.frame[first]) else []
    if numbered and len(raw.unnamed) < raw.frame.shape[1]:  # all unnamed: there is no header to say so
        notebook.add(
            "row numbers",
            f"The first column of {raw.name} has no name and numbers the rows ({raw.frame[first].iloc[0]}, …); it is "
            f"left out.",
            1,
            (first,),
        )
    else:
        numbered = []
    called = [name for name in raw.unnamed if name not in (*empty, *numbered)]
    if called and len(raw.unnamed) < raw.frame.shape[1]:
        notebook.add(
            "unnamed columns",
            f"{counted(len(called), 'column')} of {raw.name} without a name, called by the place: {listed(called)}.",
            len(called),
            tuple(called),
        )
    if not empty and not numbered:
        return raw
    return replace(raw, frame=raw.frame.drop(columns=[*empty, *numbered]))


def _numbers_rows(column: pd.Series[float]) -> bool:
    if column.dtype.kind not in "iu" or len(column) < 2:
        return False
    numbers = column.to_numpy()
    return bool(numbers[0] in (0, 1) and (np.diff(numbers) == 1).all())


@dataclass(frozen=True)
class Combined:
    """A raw table, its clock and units; `lengths` are the numbers of rows from each file, if files were appended."""

    frame: pd.DataFrame
    clock: Clock
    decimal: str
    lengths: tuple[int, ...]
    units: Mapping[str, str]


def combine(tables: Sequence[RawTable], options: TimeOptions, taken: Collection[str], notebook: Notebook) -> Combined:
    """Append tables with the same columns; join tables with different columns on their time; refuse a mixture."""
    if have_same_columns(tables):
        frame = tables[0].frame
        if len(tables) > 1:
            frame = pd.concat([table.frame for table in tables], ignore_index=True)
            notebook.add(
                "appended files",
                f"{len(tables)} files with the same columns were put one after the other.",
                len(tables),
            )
        clock = find_clock(frame, options, taken, notebook)
        lengths = tuple(len(table.frame) for table in tables)
        return Combined(frame, clock, _common_decimal(tables), lengths, _all_units(tables))
    return _joined(tables, options, taken, notebook)


def have_same_columns(tables: Sequence[RawTable]) -> bool:
    return all(set(table.frame.columns) == set(tables[0].frame.columns) for table in tables)


def _all_units(tables: Sequence[RawTable]) -> dict[str, str]:
    return {name: unit for table in tables for name, unit in table.units.items()}


def _common_decimal(tables: Sequence[RawTable]) -> str:
    """A comma if any has it: the numbers of the others have been read already."""
    return "," if any(table.decimal == "," for table in tables) else "."


def _joined(tables: Sequence[RawTable], options: TimeOptions, taken: Collection[str], notebook: Notebook) -> Combined:
    clocks = [_clock_of(table, options, taken, notebook) for table in tables]
    parts = [table.frame.drop(columns=list(clock.columns)) for table, clock in zip(tables, clocks, strict=True)]
    _refuse_mixture(tables, parts)
    for table, clock, part in zip(tables, clocks, parts, strict=True):
        part.index = _unique_stamps(table.name, clock)
    zones = {str(part.index.tz) for part in parts if isinstance(part.index, pd.DatetimeIndex)}
    if len({zone == "None" for zone in zones}) > 1:
        raise TableError(
            f"Of {listed([table.name for table in tables])} some have time stamps with a zone and some without, and "
            f"cannot be joined. Pass timezone."
        )
    frame = pd.concat(parts, axis=1, join="outer", sort=True)
    stamps = pd.DatetimeIndex(frame.index)
    lonely = int((~np.logical_and.reduce([stamps.isin(part.index) for part in parts])).sum())
    notebook.add(
        "joined files",
        f"{len(tables)} files with different columns were joined on time; {lonely:,} of {len(stamps):,} time stamps "
        f"are not in all of them, and the values there count as missing.",
        lonely,
    )
    clock = Clock(stamps, clocks[0].name, ())
    return Combined(frame.reset_index(drop=True), clock, _common_decimal(tables), (len(stamps),), _all_units(tables))


def _clock_of(table: RawTable, options: TimeOptions, taken: Collection[str], notebook: Notebook) -> Clock:
    missing = [name for name in options.columns if name not in table.frame.columns]
    if missing:
        raise TableError(f"{table.name} has no column {quoted(missing[0])} (given as time). Files are joined on time.")
    clock = find_clock(table.frame, options, taken, notebook)
    if clock.times is None:
        raise TableError(
            f"{table.name} has other columns than the files beside it, and no time to join them on. Name its time "
            f"column, or read it alone."
        )
    return clock


def _refuse_mixture(tables: Sequence[RawTable], parts: Sequence[pd.DataFrame]) -> None:
    """Columns must be all the same or all different: anything between is a mistake, or more than we should guess."""
    for number, part in enumerate(parts):
        for other in range(number):
            shared = [name for name in part.columns if name in parts[other].columns]
            if shared:
                raise TableError(
                    f"{tables[other].name} and {tables[number].name} share some columns ({listed(shared, most=4)}) but "
                    f"not all. Files that belong together have the same columns (then rows are appended) or different "
                    f"ones (then they are joined on time): rename columns, or read the files apart."
                )


def _unique_stamps(name: str, clock: Clock) -> pd.DatetimeIndex:
    assert clock.times is not None
    odd = len(clock.times) - clock.times.nunique()
    if odd:
        raise TableError(
            f"{name} has {odd:,} time stamps that are missing or come more than once, so that it cannot be joined to "
            f"other files on time. Remove these rows, or read the file alone."
        )
    return clock.times


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
