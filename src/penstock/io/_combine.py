"""Combine raw tables, as files or other libraries have them, into one: rows one after the other, or columns joined."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from penstock._messages import counted, duration_in_words, listed, quoted
from penstock.io._clock import Clock, TimeOptions, find_clock, plain_name, seems_time
from penstock.io.table import Notebook, TableError

_BEGINNINGS = frozenset(("start", "begin", "beginn", "from", "von"))
_ENDS = frozenset(("end", "ende", "stop", "to", "until", "bis"))
_TAGS = (
    "tag", "tagname", "tag name", "tag id", "varname", "variable", "sensor", "sensor name", "sensor id", "signal",
    "point", "point name", "channel", "metric", "parameter", "item", "field", "measurement", "name", "file name",
)  # fmt: skip
_VALUES = ("value", "varvalue", "val", "reading", "tag value", "wert", "valor", "valeur")
_UNITS = ("unit", "units", "uom", "eu", "einheit")
_ABOUT_READINGS = (*_UNITS, "quality", "qualitycode", "validity", "status", "good", "result", "table", "description")
_ONCE = 0.9  # of the readings are the only one of their tag at their time
_AT_ONE_TIME = 0.6  # of the times have a reading of the tag that is read most often


@dataclass(frozen=True)
class RawTable:
    """Columns of numbers, texts or times, each with its own name."""

    name: str
    frame: pd.DataFrame
    decimal: str = "."
    unnamed: tuple[str, ...] = ()  # columns that were given their names by us
    units: Mapping[str, str] = field(default_factory=dict[str, str])  # of columns for which the source says it
    area: str = ""  # the name that the user gave to this part of the plant: never appended to another


def own_names(names: Sequence[str], source: str) -> tuple[list[str], tuple[str, ...]]:
    """Return names for all columns, and those made from the place of a column without a name.

    >>> own_names(["time", "", "flow"], "plant.csv")
    (['time', 'column 2', 'flow'], ('column 2',))
    """
    called = [name or f"column {number}" for number, name in enumerate(names, start=1)]
    repeated = dict.fromkeys(pd.Index(called)[pd.Index(called).duplicated()])
    if repeated:
        raise TableError(f"{source} has more than one column named {listed(repeated)}. Give each column its own name.")
    return called, tuple(call for call, name in zip(called, names, strict=True) if not name)


def with_names(raw: RawTable, names: Sequence[str], notebook: Notebook) -> RawTable:
    """Return the table with the names that the user gave for its columns."""
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
    """Leave out columns with neither name nor values, and a first one that only numbers the rows."""
    frame, unnamed, some_named = raw.frame, raw.unnamed, len(raw.unnamed) < raw.frame.shape[1]
    empty = [name for name in unnamed if frame[name].isna().all()]
    if len(empty) == frame.shape[1]:
        empty = []
    if empty:
        said = f"{counted(len(empty), 'column')} of {raw.name} with neither name nor values left out."
        notebook.add("empty columns", said, len(empty), tuple(empty))
    first, numbered = frame.columns[0], list[str]()
    if some_named and first in unnamed and frame[first].dtype.kind in "iu" and len(frame) > 1:
        numbers = frame[first].to_numpy()
        if numbers[0] in (0, 1) and (np.diff(numbers) == 1).all():
            numbered = [first]
            said = f"The first column of {raw.name} has no name and numbers the rows ({numbers[0]}, …); it is left out."
            notebook.add("row numbers", said, 1, (first,))
    called = [name for name in unnamed if name not in (*empty, *numbered)]
    if called and some_named:
        said = f"{counted(len(called), 'column')} of {raw.name} without a name, called by the place: {listed(called)}."
        notebook.add("unnamed columns", said, len(called), tuple(called))
    return replace(raw, frame=frame.drop(columns=[*empty, *numbered])) if empty or numbered else raw


def reading_columns(names: Iterable[str]) -> tuple[str, str, str]:
    """Return which columns are named like tags, values and units; "" where none is.

    >>> reading_columns(["TimeString", "VarName", "VarValue"])
    ('VarName', 'VarValue', '')
    """
    plain = {plain_name(name): name for name in names}
    tag, value, unit = (next((plain[name] for name in some if name in plain), "") for some in (_TAGS, _VALUES, _UNITS))
    return tag, value, unit


def with_file_names(tables: list[RawTable], options: TimeOptions) -> list[RawTable]:
    """Return one table with the names of the files as tags, if each has the time and values of one tag, at one time.

    Files whose times follow each other are parts of one record, and stay as they are.
    """
    tag, value, _ = reading_columns(tables[0].frame.columns)
    if len(tables) < 2 or tag or not value or not _have_same_columns(tables):
        return tables
    try:
        clocks = [find_clock(table.frame, options, {value}, Notebook(table.name)) for table in tables]
    except TableError:  # reported where the time is read
        return tables
    spans = sorted((each.times.min(), each.times.max()) for each in clocks if each.times is not None)
    if len(spans) < len(tables) or any(later[0] > before[1] for before, later in pairwise(spans)):
        return tables
    tags = [Path(table.name.removesuffix(".gz")).stem for table in tables]
    frames = [table.frame.assign(**{"file name": tag}) for table, tag in zip(tables, tags, strict=True)]
    return [replace(tables[0], name=f"{len(tables)} files", frame=pd.concat(frames, ignore_index=True))]


def spread_tags(
    raw: RawTable, options: TimeOptions, taken: Collection[str], max_cells: int, notebook: Notebook
) -> RawTable:
    """Return a column for each tag, if a table has a row for each reading, as historians export them.

    Such a table is known by the names of its columns: one of tags, one of values, the time, and what is said about
    readings (quality, unit). Readings of a tag that come again at the same time make another row.
    """
    frame, (tag, value, unit) = raw.frame, reading_columns(raw.frame.columns)
    if not tag or not value or {tag, value} & set(taken) or len(frame) < 4:
        return raw
    try:
        when = list(find_clock(frame.iloc[:20], options, {tag, value}, Notebook(raw.name)).columns)
    except TableError:  # reported where the time is read
        return raw
    others = [name for name in frame.columns if name not in (tag, value, *when)]
    about = [name for name in others if plain_name(name) in _ABOUT_READINGS or frame[name].nunique() < 2]
    if not when or any(name not in about and not seems_time(frame[name]) for name in others):
        return raw
    readings = frame[frame[tag].notna()].reset_index(drop=True)
    codes, tags = pd.factorize(readings[tag].astype(str).str.strip())
    rows = _rows_at([pd.factorize(readings[name])[0] for name in when], codes)
    if rows is None or not 2 <= len(tags) <= len(frame) / 2 or set(tags) & set(when):
        return raw
    n, fullest, rounded = int(rows.max()) + 1, int(np.bincount(codes).max()), ""
    if fullest < _AT_ONE_TIME * n and len(when) == 1:  # read one after the other, perhaps, in each step of time
        times, step = _rounded_down(find_clock(readings, options, {tag, value}, Notebook(raw.name)).times, codes)
        fewer = None if times is None else _rows_at([times.asi8], codes)
        if fewer is not None and fullest >= _AT_ONE_TIME * (int(fewer.max()) + 1):
            readings, rows, n = readings.assign(**{when[0]: times}), fewer, int(fewer.max()) + 1
            rounded = f" Times were rounded down to steps of {duration_in_words(step)}, as each tag has its own."
    if fullest < _AT_ONE_TIME * n:
        raise TableError(
            f"{raw.name} has a row for each reading, and the {len(tags):,} tags of column {quoted(tag)} have times of "
            f"their own: none was read at more than {fullest:,} of {n:,} times. Export them at the same times "
            f"(sampled, averaged or interpolated values, such as one a minute)."
        )
    if n * len(tags) > max_cells:
        said = f"{raw.name} has {len(tags):,} tags at {n:,} times, which may not fit into memory."
        raise TableError(f"{said} Export fewer tags or a shorter period, or pass a larger max_bytes (--max-bytes).")
    kind = np.float64 if readings[value].dtype.kind in "iuf" else object
    spread = np.full((n, len(tags)), np.nan, dtype=kind)
    spread[rows, codes] = readings[value].to_numpy(dtype=kind, na_value=np.nan)
    _, first = np.unique(rows, return_index=True)
    wide = readings[when].take(first).reset_index(drop=True)
    wide = pd.concat([wide, pd.DataFrame(spread, columns=pd.Index(tags))], axis=1)
    units = {} if not unit else dict(zip(tags, readings.groupby(codes)[unit].first(), strict=True))
    left = f" Left out: {listed(others)}." if others else ""
    if untagged := len(frame) - len(readings):
        left += f" {counted(untagged, 'row')} without a tag left out."
    said = f"Each row of {raw.name} is one reading. These were put together: a row for each time ({n:,}), a column for"
    said = f"{said} each of the {len(tags):,} tags ({tag}).{rounded}{left}"
    notebook.add("long format", said, len(tags), (tag, value), changed=True)
    return replace(
        raw, frame=wide, unnamed=(), units={str(name): str(of) for name, of in units.items() if pd.notna(of)}
    )


def _rows_at(stamps: Sequence[NDArray[np.integer]], codes: NDArray[np.integer]) -> NDArray[np.integer] | None:
    """Return the row of each reading, by its stamp and how often its tag has come there; None if they come often."""
    again = pd.Series(codes).groupby([*stamps, codes]).cumcount().to_numpy()
    rows = pd.Series(again).groupby([*stamps, again], sort=False).ngroup().to_numpy()
    return rows if (again == 0).mean() >= _ONCE else None


def _rounded_down(times: pd.DatetimeIndex | None, codes: NDArray[np.integer]) -> tuple[pd.DatetimeIndex | None, float]:
    """Return times rounded down to the usual step of a tag, and that in seconds; None where it is not known."""
    if times is None or times.hasnans:
        return None, 0.0
    ticks = pd.Series(times.as_unit("us").asi8)
    steps = ticks.sort_values(kind="stable").groupby(codes[ticks.argsort(kind="stable")]).diff()
    step = int(steps[steps > 0].median()) if (steps > 0).any() else 0
    if step == 0:
        return None, 0.0
    down = pd.DatetimeIndex((ticks - ticks % step).to_numpy().astype("M8[us]"))
    return down if times.tz is None else down.tz_localize("UTC").tz_convert(times.tz), step / 1e6


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
    # A decimal comma if any has it: the numbers of the others have been read already.
    decimal = "," if any(table.decimal == "," for table in tables) else "."
    units = {name: unit for table in tables for name, unit in table.units.items()}
    if _have_same_columns(tables):
        frame = tables[0].frame
        if len(tables) > 1:
            frame = pd.concat([table.frame for table in tables], ignore_index=True)
            said = f"{len(tables)} files with the same columns were put one after the other."
            notebook.add("appended files", said, len(tables))
        clock = find_clock(frame, options, taken, notebook)
        return Combined(frame, clock, decimal, tuple(len(table.frame) for table in tables), units)
    clocks = [_clock_to_join(table, options, taken, notebook) for table in tables]
    parts = [table.frame.drop(columns=list(clock.columns)) for table, clock in zip(tables, clocks, strict=True)]
    _refuse_mixture(tables, parts)
    stamped = [_unique_stamps(table.name, clock) for table, clock in zip(tables, clocks, strict=True)]
    if len({stamps.tz is None for stamps in stamped}) > 1:
        raise TableError(
            f"Of {listed([table.name for table in tables])} some have time stamps with a zone and some without, and "
            f"cannot be joined. Pass timezone."
        )
    for part, stamps in zip(parts, stamped, strict=True):
        part.index = stamps
    frame = pd.concat(parts, axis=1, join="outer", sort=True)
    stamps = pd.DatetimeIndex(frame.index)
    lonely = int((~np.logical_and.reduce([stamps.isin(each) for each in stamped])).sum())
    said = f"{len(tables)} files with different columns were joined on time; {lonely:,} of {len(stamps):,} time stamps"
    notebook.add("joined files", f"{said} are not in all of them, and the values there count as missing.", lonely)
    clock = Clock(stamps, clocks[0].name, ())
    return Combined(frame.reset_index(drop=True), clock, decimal, (len(stamps),), units)


def _have_same_columns(tables: Sequence[RawTable]) -> bool:
    return all(set(table.frame.columns) == set(tables[0].frame.columns) for table in tables)


def _clock_to_join(table: RawTable, options: TimeOptions, taken: Collection[str], notebook: Notebook) -> Clock:
    missing = [name for name in options.columns if name not in table.frame.columns]
    if missing:
        raise TableError(f"{table.name} has no column {quoted(missing[0])} (given as time). Files are joined on time.")
    clock = find_clock(table.frame, options, taken, notebook)
    if clock.times is None:
        raise TableError(
            f"{table.name} has other columns than the other files, and no time to join them on. Name its time column, "
            f"or read it alone."
        )
    return clock


def _refuse_mixture(tables: Sequence[RawTable], parts: Sequence[pd.DataFrame]) -> None:
    """Raise unless all columns are different: if only some are the same, what is meant cannot be known."""
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
    """Return the tables of a folder without lists of names and of events, if others have different columns.

    If no table has a time, all are kept: which belong together is then not known.
    """
    if _have_same_columns(tables):
        return tables
    is_record = [_is_record(table, options, taken) for table in tables]
    records = [table for table, has_time in zip(tables, is_record, strict=True) if has_time]
    others = [table.name for table, has_time in zip(tables, is_record, strict=True) if not has_time]
    if not records or not others:
        return tables
    rows = listed([table.name for table in records])
    message = f"The rows are in {rows}. Left out, as without time or only starts and ends of events: {listed(others)}."
    notebook.add("other files", message, len(others), changed=True)
    return records


def _is_record(table: RawTable, options: TimeOptions, taken: Collection[str]) -> bool:
    """Return whether a table says when each row was; problems with its time are reported where it is read."""
    frame = table.frame
    if options.columns:
        return all(name in frame.columns for name in options.columns)
    first_words = {name: re.split(r"[\W_]", str(name).casefold())[0] for name in frame.columns}
    if all(
        any(first_words[name] in words and seems_time(frame[name]) for name in frame.columns)
        for words in (_BEGINNINGS, _ENDS)
    ):
        return False  # a list of events
    try:
        parts = (frame.iloc[:20], frame)
        return any(find_clock(rows, options, taken, Notebook(table.name)).times is not None for rows in parts)
    except TableError:
        return True
