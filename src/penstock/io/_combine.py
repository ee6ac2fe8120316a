"""Combine raw tables, as files or other libraries have them, into one: rows one after the other, or columns joined."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from penstock._messages import counted, listed, option, quoted
from penstock.io._clock import TableClock, find_clock, is_time_name, plain_name, seems_time
from penstock.io._reading_columns import (
    ReadingColumns,
    are_readings,
    find_reading_columns,
    has_many_numbers,
    is_about_readings,
    mostly_numbers,
    named_reading_columns,
)
from penstock.io._readings import (
    FEWEST_READINGS,
    TagReadings,
    ValueOptions,
    align_all,
    area_readings,
    check_common_period,
    long_readings,
    microseconds,
    note_missing_times,
    order_of_readings,
    refuse_same_tags,
    refuse_some_zones,
    shared_stamps,
    without_bad_readings,
)
from penstock.io.align import NONE, Alignment, AlignOptions
from penstock.io.table import ReadLog, TableError, TagNote
from penstock.io.times import TimeOptions, column_times

_BEGINNINGS = frozenset(("start", "begin", "beginn", "from", "von"))
_ENDS = frozenset(("end", "ende", "stop", "to", "until", "bis"))
_MANY_ROWS, _FEW_FILLED = 200, 0.5  # rows of a table, and share of the readings of a row, to call it sparse
_FEWEST_COMMON = 4  # stamps of an area within the period common to all, to compare them there
_MOST_COMMON = 0.5  # of the period of a file that another with the same columns may have too
_ONCE = 0.9  # of the readings are the only one of their tag at their time


@dataclass(frozen=True)
class RawTable:
    """Columns of numbers, texts or times, each with its own name."""

    name: str
    frame: pd.DataFrame
    decimal: str = "."
    unnamed: tuple[str, ...] = ()  # columns that were given their names by us
    units: Mapping[str, str] = field(default_factory=dict[str, str])  # of columns for which the source says it
    lengths: tuple[int, ...] = ()  # the numbers of rows from each file, if files were appended
    files: tuple[str, ...] = ()  # and the names of these
    area: str = ""  # the name that the user gave to this part of the plant: never appended to another

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.frame.columns)


Area = RawTable | TagReadings


def own_names(names: Sequence[str], source: str) -> tuple[list[str], tuple[str, ...]]:
    """Return names for all columns, and those made from the place of a column without a name.

    >>> own_names(["time", "", "flow"], "plant.csv")
    (['time', 'column 2', 'flow'], ('column 2',))
    """
    called = _numbered([name or f"column {number}" for number, name in enumerate(names, start=1)])
    repeated = dict.fromkeys(pd.Index(called)[pd.Index(called).duplicated()])
    if repeated:
        raise TableError(f"{source} has more than one column named {listed(repeated)}. Give each column its own name.")
    return called, tuple(call for call, name in zip(called, names, strict=True) if not name)


def _numbered(names: list[str]) -> list[str]:
    """Number names of times and of quality that come again: such columns are beside each tag.

    >>> _numbered(["Time", "P1", "Time", "P2", "P1"])
    ['Time', 'P1', 'Time (2)', 'P2', 'P1']
    """
    found, met = [], dict[str, int]()
    for name in names:
        met[name] = met.get(name, 0) + 1
        repeatable = met[name] > 1 and (is_time_name(name) or is_about_readings(name))
        found.append(f"{name} ({met[name]})" if repeatable else name)
    return found


def with_names(raw: RawTable, names: Sequence[str], log: ReadLog) -> RawTable:
    """Return the table with the names that the user gave for its columns."""
    width = raw.frame.shape[1]
    if len(names) != width:
        raise TableError(f"{raw.name} has {counted(width, 'column')}, but names has {len(names):,}. Name every column.")
    own_names(names, "names")
    log.notes = [note for note in log.notes if note.kind != "no header"]
    if len(raw.unnamed) < width:
        before = listed(raw.frame.columns, most=3)
        log.add("names", f"The names of the columns of {raw.name}, {before}, were replaced.", width)
    called = dict(zip(raw.frame.columns, names, strict=True))
    units = {called[name]: unit for name, unit in raw.units.items()}
    return replace(raw, frame=raw.frame.rename(columns=called), unnamed=(), units=units)


def without_fillers(raw: RawTable, log: ReadLog) -> RawTable:
    """Leave out columns with neither name nor values, and a first one that only numbers the rows."""
    frame, unnamed, some_named = raw.frame, raw.unnamed, len(raw.unnamed) < raw.frame.shape[1]
    empty = [name for name in unnamed if frame[name].isna().all()]
    if len(empty) == frame.shape[1]:
        empty = []
    if empty:
        said = f"{counted(len(empty), 'column')} of {raw.name} with neither name nor values left out."
        log.add("empty columns", said, len(empty), tuple(empty))
    first, numbered = frame.columns[0], list[str]()
    if some_named and first in unnamed and frame[first].dtype.kind in "iu" and len(frame) > 1:
        numbers = frame[first].to_numpy()
        if numbers[0] in (0, 1) and (np.diff(numbers) == 1).all():
            numbered = [first]
            said = f"The first column of {raw.name} has no name and numbers the rows ({numbers[0]}, …); it is left out."
            log.add("row numbers", said, 1, (first,))
    called = [name for name in unnamed if name not in (*empty, *numbered)]
    if called and some_named:
        said = f"{counted(len(called), 'column')} of {raw.name} without a name, called by the place: {listed(called)}."
        log.add("unnamed columns", said, len(called), tuple(called))
    return replace(raw, frame=frame.drop(columns=[*empty, *numbered])) if empty or numbered else raw


def one_below_other(tables: Sequence[RawTable], name: str) -> RawTable:
    return replace(tables[0], name=name, frame=pd.concat([table.frame for table in tables], ignore_index=True))


def with_file_names(tables: list[RawTable], options: TimeOptions) -> list[RawTable]:
    """Return one table with the names of the files as tags, if each has the time and values of one tag, at one time.

    Files whose times follow each other are parts of one record, and stay as they are.
    """
    tag, value, _ = named_reading_columns(tables[0].frame.columns)
    if len(tables) < 2 or tag or not value or not have_same_columns(tables):
        return tables
    try:
        clocks = [find_clock(table.frame, options, {value}, ReadLog(table.name)) for table in tables]
    except TableError:  # reported where the time is read
        return tables
    spans = sorted((each.times.min(), each.times.max()) for each in clocks if each.times is not None)
    if len(spans) < len(tables) or any(later[0] > before[1] for before, later in pairwise(spans)):
        return tables
    tags = [Path(table.name.removesuffix(".gz")).stem for table in tables]
    named = [
        replace(each, frame=each.frame.assign(**{"file name": tag})) for each, tag in zip(tables, tags, strict=True)
    ]
    return [one_below_other(named, f"{len(tables)} files")]


def spread_tags(raw: RawTable, options: TimeOptions, taken: Collection[str], plan: JoinPlan, log: ReadLog) -> Area:
    """Return a column for each tag, if a table has a row for each reading, as historians export them.

    Such a table has one column of tags and one of values, the time, and what is said about readings (unit, quality):
    see `find_reading_columns`. Where tags share their stamps, readings of a tag that come again at the same time make
    another row; where they do not, the readings are returned, to be put on one clock.
    """
    raw = _with_whole_tags(raw)
    columns, when = _reading_columns_of(raw, options, taken)
    codes, tags = (np.empty(0, dtype=np.int32), []) if columns is None else _tags_of(raw.frame[columns.tag])
    if columns is None or not 2 <= len(tags) <= len(raw.frame) / 2 or set(tags) & set(when):
        return raw
    tag, value, unit = columns.tag, columns.value, columns.unit
    found = ReadLog(raw.name, log.strict)
    clock = _clock_of_readings(raw.frame, when, options, found)
    if clock.times is None:
        return raw
    stamps = microseconds(clock.times)
    order = order_of_readings(codes, stamps)
    ordered_codes, ordered = (codes, stamps) if order is None else (codes[order], stamps[order])
    again, shared = shared_stamps(ordered_codes, ordered, len(tags))
    refuse_same_tags(raw, codes, stamps)
    if again > 1 - _ONCE or not (columns.named or are_readings(codes, stamps, mostly_numbers(raw.frame[value]))):
        return raw
    raw = without_bad_readings(raw, {}, log, dict.fromkeys(columns.quality, value))
    frame, named = raw.frame, dict[str, str]()
    if unit:
        units = frame[unit].groupby(codes, observed=True).first()
        named = {tags[code]: str(units[code]) for code in range(len(tags)) if code in units and pd.notna(units[code])}
    others = [name for name in frame.columns if name not in (tag, value, *when)]
    left = f" Left out: {listed(others)}." if others else ""
    if untagged := int((codes < 0).sum()):
        left += f" {counted(untagged, 'row')} without a tag left out."
    said = f"Each row of {raw.name} is one reading. These were put together: "
    if shared and not isinstance(plan.align.step, int):
        wide = _spread_at_once(raw, codes, tags, value, when, plan, log)
        if wide is None:
            return raw
        how = f"a row for each time ({len(wide):,}), a column for each of the {len(tags):,} tags ({tag})."
        log.add("long format", f"{said}{how}{left}", len(tags), (tag, value), changed=True, doubt=False)
        _note_doubles(again, len(stamps), raw.name, log)
        return replace(raw, frame=wide, unnamed=(), units=named)
    said = f"{said}a column for each of the {len(tags):,} tags ({tag}).{left}"
    log.add("long format", said, len(tags), (tag, value), doubt=False)
    log.notes += found.notes
    _note_doubles(again, len(stamps), raw.name, log)
    note_missing_times(stamps, raw.name, log)
    # Of ten million readings each column takes 80 MB: what is not needed any more goes.
    raw = replace(raw, units=named, frame=frame[[value]])
    clock = replace(clock, times=clock.times[:0])
    del codes, stamps, frame
    read = long_readings(raw, ordered_codes, ordered, order, tags, value, clock, plan.values, log)
    return replace(read, time_reader=clock.reader)


def _note_doubles(share: float, n_readings: int, source: str, log: ReadLog) -> None:
    if share:
        count = round(share * n_readings)
        said = f"{counted(count, 'reading')} of {source} at the time of another of the same tag; both count."
        log.add("duplicate readings", said, count)


def _with_whole_tags(raw: RawTable) -> RawTable:
    """Put the measurement of InfluxDB before the field, if there are several: together they are the tag."""
    plain = {plain_name(name): name for name in raw.frame.columns}
    field_, measurement = plain.get("field"), plain.get("measurement")
    if field_ is None or measurement is None or raw.frame[measurement].nunique() < 2:
        return raw
    whole = raw.frame[measurement].astype(str) + "." + raw.frame[field_].astype(str)
    return replace(raw, frame=raw.frame.assign(**{field_: whole}).drop(columns=measurement))


def _reading_columns_of(
    raw: RawTable, options: TimeOptions, taken: Collection[str]
) -> tuple[ReadingColumns | None, list[str]]:
    """Return the columns of a table with a row for each reading, and those of its time; None if it is no such table."""
    if len(raw.frame) < 4 or not set(options.columns) <= set(raw.frame.columns) or has_many_numbers(raw.frame):
        return None, []
    tag, value, _ = named_reading_columns(raw.frame.columns)
    try:
        when = list(find_clock(raw.frame.iloc[:20], options, {tag, value, *taken}, ReadLog(raw.name)).columns)
    except TableError:  # reported where the time is read
        return None, []
    return (find_reading_columns(raw.frame, when, taken) if when else None), when


def _tags_of(column: pd.Series[Any]) -> tuple[NDArray[np.int32], list[str]]:
    """Return the number of each row's tag, -1 without one, and the tags, without blanks around them."""
    if isinstance(column.dtype, pd.CategoricalDtype):  # without the larger numbers that factorize makes
        codes, kinds = column.cat.codes.to_numpy(), column.cat.categories
    else:
        codes, kinds = pd.factorize(column)
    numbers, names = pd.factorize(np.array([str(kind).strip() for kind in kinds], dtype=object))
    return np.append(numbers, -1).astype(np.int32)[codes], names.tolist()


def _clock_of_readings(frame: pd.DataFrame, when: list[str], options: TimeOptions, log: ReadLog) -> TableClock:
    """Read the time of a table with a row for each reading, each text once: a time comes as often as there are tags."""
    column = frame[when[0]]
    if column.dtype.kind == "M":  # without a copy, which `find_clock` would make
        read = column_times(column, options)
        return TableClock(read.index(options.zone, when[0], log), when[0], (when[0],), read.reader(options))
    if len(when) > 1 or column.dtype.kind in "iuf":
        return find_clock(frame[when], options, (), log)
    codes, texts = pd.factorize(column)
    clock = find_clock(pd.DataFrame({column.name: texts}), options, (), log)
    if clock.times is None:
        return clock
    none = pd.DatetimeIndex([pd.NaT]).as_unit("us").tz_localize(clock.times.tz)  # of missing texts
    return replace(clock, times=pd.DatetimeIndex(clock.times.append(none)[codes]))


def _spread_at_once(
    raw: RawTable,
    codes: NDArray[np.int32],
    tags: Sequence[str],
    value: str,
    when: list[str],
    plan: JoinPlan,
    log: ReadLog,
) -> pd.DataFrame | None:
    """Return a row for each time and a column for each tag; None if tags come again too often at one time.

    A reading of a tag that is not asked for, or hardly ever read, makes no row of its own, as it makes none in a
    stream.
    """
    often = np.bincount(codes[codes >= 0], minlength=len(tags)) >= FEWEST_READINGS
    asked = np.append([plan.wanted(tag) for tag in tags] & often, False)  # -1, no tag, takes the last
    times = raw.frame.groupby(when, sort=False, dropna=False).ngroup().to_numpy()
    has_asked = np.zeros(times.max() + 1, dtype=np.bool_)
    has_asked[times[asked[codes]]] = True
    alone = (codes >= 0) & ~has_asked[times] & asked.any()
    if alone.any():
        said = f"left out: at their times only {listed(sorted({tags[code] for code in codes[alone]}))} were read."
        log.add("rare tags", f"{counted(int(alone.sum()), 'reading')} {said}", int(alone.sum()), changed=True)
    tagged = (codes >= 0) & ~alone
    readings = raw.frame[tagged].reset_index(drop=True)
    codes = codes[tagged]
    rows = _rows_at(times[tagged], codes)
    if rows is None:
        return None
    n = int(rows.max()) + 1
    if n * len(tags) > plan.max_cells:
        said = f"{raw.name} has {len(tags):,} tags at {n:,} times, which may not fit into memory."
        raise TableError(f"{said} Export fewer tags or a shorter period, or pass a larger {option('max_bytes')}.")
    kind = np.float64 if readings[value].dtype.kind in "iuf" else object
    spread = np.full((n, len(tags)), np.nan, dtype=kind)
    read = readings[value].to_numpy(dtype=kind, na_value=np.nan)
    spread[rows, codes] = read
    cells = pd.Series(rows * len(tags) + codes)
    if kind is np.float64 and (merged := cells.duplicated(keep=False)).any():  # as on a clock: their mean
        means = pd.Series(read)[merged].groupby(cells[merged]).mean()
        spread.reshape(-1)[means.index.to_numpy()] = means
    _, first = np.unique(rows, return_index=True)
    wide = readings[when].take(first).reset_index(drop=True)
    return pd.concat([wide, pd.DataFrame(spread, columns=pd.Index(tags))], axis=1)


def _rows_at(stamps: NDArray[np.integer], codes: NDArray[np.integer]) -> NDArray[np.integer] | None:
    """Return the row of each reading, by its stamp and how often its tag has come there; None if they come often.

    Where only some of the tags come again at a stamp, there is one row.
    """
    again = pd.Series(codes).groupby([stamps, codes]).cumcount().to_numpy()
    if (again == 0).mean() < _ONCE:
        return None
    at_once = pd.Series(again).groupby([stamps, again]).transform("size").to_numpy()
    tags = pd.Series(again == 0).groupby(stamps).transform("sum").to_numpy()
    again = np.where(2 * at_once < tags, 0, again)
    return np.asarray(pd.Series(again).groupby([stamps, again], sort=False).ngroup())


@dataclass(frozen=True)
class JoinPlan:
    """How areas are joined: on which clock, how values are read, how many cells fit, which columns are read."""

    align: AlignOptions
    values: ValueOptions
    max_cells: int
    wanted: Callable[[str], bool]
    label: str | None = None
    group: str | None = None
    known: Alignment | None = None  # of a model: new data are put on its clock


@dataclass(frozen=True)
class Combined:
    """A raw table, its clock and units; `lengths` are the numbers of rows from each file, if files were appended."""

    frame: pd.DataFrame
    clock: TableClock
    decimal: str
    lengths: tuple[int, ...]
    units: Mapping[str, str]
    alignment: Alignment | None = None  # if tags were put on one clock; their values are then numbers or texts already
    tags: tuple[TagNote, ...] = ()
    areas: Mapping[str, Sequence[str]] = field(default_factory=dict)  # the columns of each, if there are several


def combine(
    tables: Sequence[Area], options: TimeOptions, taken: Collection[str], plan: JoinPlan, log: ReadLog
) -> Combined:
    """Join tables with different columns on their time; refuse those that share some.

    Tables whose stamps agree are joined on equal stamps. Others, and readings, are put on one clock.
    """
    combined = _combine(tables, options, taken, plan, log)
    return combined if len(tables) < 2 else replace(combined, areas={area.name: area.names for area in tables})


def _combine(
    areas: Sequence[Area], options: TimeOptions, taken: Collection[str], plan: JoinPlan, log: ReadLog
) -> Combined:
    # A decimal comma if any has it: the numbers of the others have been read already.
    decimal = "," if any(isinstance(area, RawTable) and area.decimal == "," for area in areas) else "."
    units = {name: unit for area in areas for name, unit in area.units.items()}
    on_grid = isinstance(plan.align.step, int) or plan.known is not None
    if on_grid and plan.group is not None:
        raise TableError("Rows of groups are not put on one clock: give either step or group.", "step")
    first = areas[0]
    is_sparse = len(areas) == 1 and isinstance(first, RawTable) and _is_sparse(first.frame, plan)
    if len(areas) == 1 and isinstance(first, RawTable) and not on_grid and not is_sparse:
        clock = find_clock(first.frame, options, taken, log)
        if clock.times is not None and plan.group is None:
            _refuse_same_period(first, clock)
        return Combined(first.frame, clock, decimal, first.lengths or (len(first.frame),), units)
    clocks = [
        _clock_to_join(area, options, taken, log, alone=len(areas) == 1) if isinstance(area, RawTable) else None
        for area in areas
    ]
    _refuse_mixture(areas, clocks)
    if not on_grid and not is_sparse and all(isinstance(area, RawTable) for area in areas):
        raws = [area for area in areas if isinstance(area, RawTable)]
        stamped = [clock for clock in clocks if clock is not None]
        if plan.group is not None or plan.align.step == NONE or _are_of_one_clock(stamped):
            return _joined(raws, stamped, decimal, units, log)
    readings: list[TagReadings] = []
    for area, its in zip(areas, clocks, strict=True):
        used = () if its is None else its.columns
        names = [name for name in area.names if name not in used and plan.wanted(name)]
        if names and isinstance(area, TagReadings):
            readings.append(area.only(names))
        elif names and isinstance(area, RawTable) and its is not None and its.times is not None:
            readings.append(area_readings(area, its, names, plan.values, log, plan.known))
    frame, times, alignment, tags = align_all(
        readings, plan.align, {plan.label} - {None}, plan.max_cells, log, plan.known
    )
    return Combined(
        frame,
        TableClock(times, readings[0].time_name, (), readings[0].time_reader),
        ".",
        (len(frame),),
        units,
        alignment,
        tags,
    )


def _is_sparse(frame: pd.DataFrame, plan: JoinPlan) -> bool:
    """Return whether each row of a table has readings of a few tags only, as if each had a clock of its own."""
    if plan.group is not None or plan.label is not None or plan.align.step == NONE or len(frame) < _MANY_ROWS:
        return False
    numbers = [column.to_numpy() for _, column in frame.items() if column.dtype.kind in "iuf"]
    for rows in (slice(None, None, 1 + len(frame) // _MANY_ROWS), slice(None)):  # some show most tables to be full
        if len(numbers) <= 2:
            return False
        filled = np.array([pd.notna(column[rows]) for column in numbers]).T
        if (filled.mean(axis=1) <= _FEW_FILLED).mean() < _FEW_FILLED:
            return False
    return bool((filled.mean(axis=1) <= _FEW_FILLED).mean() >= _ONCE)


def appended(tables: Sequence[RawTable], log: ReadLog) -> list[RawTable]:
    """Put tables with the same columns, of one area, one after the other."""
    groups: dict[tuple[str, frozenset[str]], list[RawTable]] = {}
    for table in tables:
        groups.setdefault((table.area, frozenset(table.names)), []).append(table)
    areas = list[RawTable]()
    for group in groups.values():
        if len(group) == 1:
            areas.append(group[0])
            continue
        log.add("appended files", f"{len(group)} files with the same columns were put one after the other.", len(group))
        name = group[0].name if len(groups) == 1 else f"{group[0].name} and {len(group) - 1:,} more"
        decimal = "," if any(table.decimal == "," for table in group) else "."
        lengths = tuple(len(table.frame) for table in group)
        files = tuple(table.name for table in group)
        areas.append(replace(one_below_other(group, name), decimal=decimal, lengths=lengths, files=files))
    return areas


def _refuse_same_period(table: RawTable, clock: TableClock) -> None:
    """Raise if two files with the same columns have other rows at the same time: they may be of two machines."""
    if len(table.files) < 2 or clock.times is None:
        return
    stops = np.cumsum(table.lengths)
    blocks = [slice(int(stop) - length, int(stop)) for stop, length in zip(stops, table.lengths, strict=True)]
    stamps = microseconds(clock.times)
    spans = []
    for place, block in enumerate(blocks):
        there = stamps[block][~np.isnat(stamps[block].view("M8[us]"))]
        if len(there) > 1:
            spans.append((int(there.min()), int(there.max()), place))
    spans.sort()
    for (_, before_end, one), (start, end, other) in pairwise(spans):
        if min(before_end, end) - start <= _MOST_COMMON * (end - start):
            continue
        rows = [table.frame.iloc[blocks[place]].drop(columns=list(clock.columns)) for place in (one, other)]
        first, second = (part.set_axis(stamps[blocks[place]]) for part, place in zip(rows, (one, other), strict=True))
        common = first.index.intersection(second.index)
        unique = first.index.is_unique and second.index.is_unique
        if unique and 2 * len(common) > len(second) and first.loc[common].equals(second.loc[common]):
            continue  # the same rows once more
        names = table.files[one], table.files[other]
        keys = [Path(name.removesuffix(".gz")).stem for name in names]
        raise TableError(
            f"{names[0]} and {names[1]} have the same columns and other rows in the same period. If they are two "
            f"machines, read them apart, or side by side in Python: detect({{{keys[0]!r}: …, {keys[1]!r}: …}}). Or "
            f"give the files a column that says which machine a row is of ({option('group')})."
        )


def _are_of_one_clock(clocks: Sequence[TableClock]) -> bool:
    """Return whether the stamps of tables agree, but for some."""
    stamps = [microseconds(clock.times.dropna()) for clock in clocks if clock.times is not None]
    if not all(map(len, stamps)):
        return True  # refused where they are joined
    first, last = max(each.min() for each in stamps), min(each.max() for each in stamps)
    common = [each[(each >= first) & (each <= last)] for each in stamps]
    if min(map(len, common)) >= _FEWEST_COMMON:  # outside, only some areas have rows at all
        stamps = common
    codes = np.repeat(np.arange(len(stamps), dtype=np.int32), [len(each) for each in stamps])
    times = np.concatenate(stamps)
    order = np.argsort(times, kind="stable")
    return shared_stamps(codes[order], times[order], len(stamps))[1]


def _joined(
    tables: Sequence[RawTable], clocks: Sequence[TableClock], decimal: str, units: Mapping[str, str], log: ReadLog
) -> Combined:
    parts = [table.frame.drop(columns=list(clock.columns)) for table, clock in zip(tables, clocks, strict=True)]
    stamped = [_unique_stamps(table.name, clock) for table, clock in zip(tables, clocks, strict=True)]
    names = [table.name for table in tables]
    refuse_some_zones(names, [stamps.tz for stamps in stamped])
    check_common_period(names, [microseconds(stamps) for stamps in stamped], log)
    for part, stamps in zip(parts, stamped, strict=True):
        part.index = stamps
    frame = pd.concat(parts, axis=1, join="outer", sort=True)
    stamps = pd.DatetimeIndex(frame.index)
    lonely = int((~np.logical_and.reduce([stamps.isin(each) for each in stamped])).sum())
    said = f"{len(tables)} files with different columns were joined on time; {lonely:,} of {len(stamps):,} time stamps"
    log.add("joined files", f"{said} are not in all of them, and the values there count as missing.", lonely)
    clock = TableClock(stamps, clocks[0].name, (), clocks[0].reader)
    return Combined(frame.reset_index(drop=True), clock, decimal, (len(stamps),), units)


def have_same_columns(tables: Sequence[Area]) -> bool:
    return all(set(table.names) == set(tables[0].names) for table in tables)


def _clock_to_join(
    table: RawTable, options: TimeOptions, taken: Collection[str], log: ReadLog, *, alone: bool
) -> TableClock:
    missing = [name for name in options.columns if name not in table.frame.columns]
    if missing:
        raise TableError(
            f"{table.name} has no column {quoted(missing[0])} (given as {option('time')}). Files are joined on time."
        )
    clock = find_clock(table.frame, options, taken, log)
    if clock.times is None and alone:
        raise TableError(f"{table.name} has no time that can be read, so that there are no steps of time.", "step")
    if clock.times is None:
        raise TableError(
            f"{table.name} has other columns than the other files, and no time to join them on. Name its time column "
            f"({option('time')}), or read it alone."
        )
    return clock


def _refuse_mixture(areas: Sequence[Area], clocks: Sequence[TableClock | None]) -> None:
    """Raise unless all columns are different: if only some are the same, what is meant cannot be known."""
    used = [() if clock is None else clock.columns for clock in clocks]
    named = [[name for name in area.names if name not in some] for area, some in zip(areas, used, strict=True)]
    for number, names in enumerate(named):
        for other in range(number):
            shared = [name for name in names if name in named[other]]
            if shared:
                raise TableError(
                    f"{areas[other].name} and {areas[number].name} share some columns ({listed(shared, most=4)}) but "
                    f"not all. Files that belong together have the same columns (then rows are appended) or different "
                    f"ones (then they are joined on time): rename columns, or read the files apart."
                )


def _unique_stamps(name: str, clock: TableClock) -> pd.DatetimeIndex:
    assert clock.times is not None
    odd = len(clock.times) - clock.times.nunique()
    if odd:
        raise TableError(
            f"{name} has {odd:,} time stamps that are missing or come more than once, so that it cannot be joined to "
            f"other files on time. Remove these rows, or read the file alone."
        )
    return clock.times


def records_among(tables: list[Area], options: TimeOptions, taken: Collection[str], log: ReadLog) -> list[Area]:
    """Return the tables of a folder without lists of names and of events, if others have different columns.

    If no table has a time, all are kept: which belong together is then not known.
    """
    if have_same_columns(tables):
        return tables
    is_record = [isinstance(table, TagReadings) or _is_record(table, options, taken) for table in tables]
    records = [table for table, has_time in zip(tables, is_record, strict=True) if has_time]
    others = [table.name for table, has_time in zip(tables, is_record, strict=True) if not has_time]
    if not records or not others:
        return tables
    rows = listed([table.name for table in records])
    message = f"The rows are in {rows}. Left out, as without time or only starts and ends of events: {listed(others)}."
    log.add("other files", message, len(others), changed=True)
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
        return any(find_clock(rows, options, taken, ReadLog(table.name)).times is not None for rows in parts)
    except TableError:
        return True
