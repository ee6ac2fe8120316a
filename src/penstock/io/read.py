"""Read the table that a plant engineer has, and put its rows in order of time and by groups."""

from __future__ import annotations

import datetime as dt
import os
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from penstock._messages import counted, duration_in_words, listed, option, quoted
from penstock._types import BoolArray, IndexArray
from penstock.io._clock import find_clock
from penstock.io._combine import (
    Area,
    Combined,
    JoinPlan,
    RawTable,
    appended,
    combine,
    have_same_columns,
    one_below_other,
    own_names,
    records_among,
    spread_tags,
    with_file_names,
    with_names,
    without_fillers,
)
from penstock.io._daylight import without_second_hours
from penstock.io._files import ReadOptions, are_areas, files_of, from_memory, is_in_memory, read_files
from penstock.io._hints import PER_SECOND, check_orientation, note_clock_changes, spread_stamps
from penstock.io._numbers import MissingCodes, numbers_and_texts
from penstock.io._readings import ValueOptions, pair_readings, without_bad_readings
from penstock.io._text import TextOptions, default_max_bytes, most_cells
from penstock.io.align import Alignment, AlignOptions
from penstock.io.sql import is_address, public_address, read_sql
from penstock.io.table import ReadLog, Table, TableError, refuse_unknown
from penstock.io.times import TimeOptions, TimeReader, as_zone

_NO_GROUP = "(none)"  # rows without a value in the column of groups
_FEWEST_ROWS = 2  # of a group, on average, in a table of
_ENOUGH = 20  # rows
_MOST_WITHOUT, _FEW_WITHOUT = 0.2, 20  # share of rows without a time, and number, above which a table is refused
_YEARS_AHEAD = pd.Timedelta(days=5 * 365)
_SHARED = 0.3  # of the rows have the stamp of the row before
_NEARLY_ALL = 0.99  # of the rows are the only one of their kind at their time


def read_table(
    source: Any,
    *,
    time: str | Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    label: str | None = None,
    group: str | None = None,
    timezone: str | dt.tzinfo | None = None,
    strict: bool = False,
    day_first: bool | None = None,
    time_format: str | None = None,
    names: Sequence[str] = (),
    separator: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    missing: Sequence[str | float] = (),
    encoding: str | None = None,
    sheet: str | None = None,
    query: str | None = None,
    max_bytes: int | None = None,
    step: str | dt.timedelta | None = None,
    hold: str | dt.timedelta | None = None,
    alignment: Alignment | None = None,
    also: Sequence[str] = (),
    fewest_rows: int = 2,
    group_needed: bool = True,
    time_reader: TimeReader | None = None,
    words: Sequence[str] | None = None,
) -> Table:
    """Read a table, find its time, and note everything that was changed or is odd.

    Parameters
    ----------
    source : path, folder, list of paths, address of a database, a pandas, polars or NumPy table, or a dict of these
        Text with separators (also .gz), Parquet (extra `files`) and Excel (extra `excel`). The files of a folder, or of
        a list, belong together: with the same columns their rows are appended in order of time, with different columns
        they are joined on time. In a folder with other tables, lists without a time and lists of events are left out. A
        table with a row for each reading (columns such as tag, time and value) gets a column for each tag, and so does
        one with a column of times beside each tag. A database (extra `sql`) is "sql:" and its address, as SQLAlchemy
        writes it: "sql:sqlite:///plant.db". A dict with a table or a path for each area of the plant is joined on time;
        columns that several areas have get the name of the area before their own. A dict of lists or arrays is one
        table, its columns.
    time : str or a pair of str, optional
        The column with the time stamps, or those with the date and the time of day. Found by name or content if None.
    columns, exclude : names, optional
        The inputs: these, or all but these. The time and the label are never inputs.
    label : str, optional
        A column that says what is known of each row. It is kept apart.
    group : str, optional
        A column that says which run, unit or machine each row is of. It is kept apart too; rows of a group stay
        together, in order of time, and groups are in the order in which they begin.
    timezone : str, optional
        The zone of time stamps that have none, and the zone to show others in.
    strict : bool
        Raise instead of changing anything: sorting rows, leaving out rows, taking odd values as missing.
    day_first : bool, optional
        Whether 1/2/2024 is in February. Decided from the whole column if None.
    time_format : str, optional
        How times are written, as `datetime.strptime` takes it: "%d/%m/%y %Hh". Found if None.
    names : names, optional
        The names of all columns of a file or a NumPy array, for one that has no header, or instead of its own.
    separator, decimal, thousands, encoding : str, optional
        How a text is written; found if None, but numbers with signs both between thousands and before decimals are
        refused. A blank as `thousands` stands for any blank.
    missing : texts or numbers
        Further values that count as missing, such as -9999. Numbers are compared as numbers.
    sheet : str, optional
        Of a workbook; the first if None.
    query : str, optional
        What to read from a database: one SELECT. The only table if None.
    max_bytes : int, optional
        The largest text to read (unpacked), and twice the most cells; a quarter of the memory if None. Of a sheet of
        Excel at most 1 GB, and 2²⁷ cells; above 64 MB its parts may be packed at most 200 times.
    step : "auto", "none" or a duration such as "5min", optional
        Of the one clock on which tags with times of their own are put. "auto" (None) finds a round step, and changes
        nothing where tags share their stamps; "none" makes a row of each time. With a duration, all tables are put on
        that clock. A row stands for the step that begins at its stamp: the mean of the readings in it (the last one of
        a state), else the last one before, for as long as is usual for the tag.
    hold : duration, optional
        For how long a reading stands, instead of what is usual for its tag.
    alignment : Alignment, optional
        The clock of a table read before: this one is put on the same.
    also : names
        Columns to read where the table has them, whatever `columns` and `exclude` say.
    fewest_rows : int
        Refuse a table with fewer. Rows are scored by each other, or, one alone, by a model that was fitted before.
    group_needed : bool
        Refuse a table without the column of groups; else it is one group, which a note says.
    time_reader : TimeReader, optional
        How times of the same source were read before (`Table.time_reader`): decides between day and month first, and
        on the unit of numbers, where the values do not.
    words : texts, optional
        That stood in place of numbers in a table read before (`Table.words`): they do so here, however often. If None,
        codes such as -9999 count as missing too, where they come again and lie far from all readings of a column.

    Returns
    -------
    Table

    Raises
    ------
    TableError
        With one sentence on what is wrong and where, and one on what to do.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "plant.csv"
    >>> _ = path.write_text("Zeit;Fluss;Zustand\\n31.12.2024 13:50;3,5;an\\n31.12.2024 13:40;;aus\\n")
    >>> table = read_table(path)
    >>> table.values["Fluss"].tolist(), table.time[0].isoformat(), table.time_name
    ([nan, 3.5], '2024-12-31T13:40:00', 'Zeit')
    >>> for note in table.notes:
    ...     print(f"{note.kind}: {note}")
    decimal comma: plant.csv was read with a decimal comma.
    day and month: Dates in column 'Zeit' were read with the day first, as days above 12 show.
    order: The rows were in order of time with the newest first; they were turned round.
    missing values: Of 2 values in columns of numbers 1 is missing.
    """
    log = ReadLog(source_name(source), strict)
    text = TextOptions(separator, decimal, thousands, encoding, keep_times=time_format is not None)
    files = ReadOptions(text, sheet, default_max_bytes() if max_bytes is None else max_bytes, _names(names, "names"))
    inputs = _InputOptions(
        None if columns is None else _names(columns, "columns"),
        _names(exclude, "exclude"),
        next(iter(_names(label, "label")), None),
        next(iter(_names(group, "group")), None),
    )
    clock = TimeOptions(_names(time, "time"), as_zone(timezone), day_first, time_format, time_reader)
    codes = MissingCodes.of(missing, words)
    joining = JoinPlan(
        AlignOptions.of(step, hold),
        ValueOptions(thousands, codes),
        most_cells(files.max_bytes),
        lambda name: inputs.reads(name, also),
        inputs.label,
        inputs.group,
        alignment,
    )
    try:
        raws = _read_all(source, files, query, log)
        if len(raws) == 1:
            check_orientation(raws[0], log)
        raws = [without_bad_readings(each, inputs.taken, log) for each in raws]
        is_spread = inputs.label is None and inputs.group is None
        tables: list[Area] = [] if is_spread else [*appended(raws, log)]
        if is_spread:
            raws = appended(with_file_names(raws, clock), log)
            while raws:  # a long table is not kept beside its readings
                area = spread_tags(raws.pop(0), clock, inputs.taken, joining, log)
                pairs = None
                if isinstance(area, RawTable):
                    pairs = pair_readings(area, clock, inputs.taken, joining.values, log)
                tables.append(pairs or area)
        tables = _with_area_names(tables, clock, inputs.taken, log)
        if isinstance(source, str | os.PathLike) and not is_address(source):
            tables = records_among(tables, clock, inputs.taken, log)
        known = list(dict.fromkeys(name for each in tables for name in each.names))
        if inputs.group is not None and inputs.group not in known and not group_needed:
            log.add("row groups", f"There is no column {quoted(inputs.group)}: all rows are one group.", 1)
            inputs = replace(inputs, group=None)
        inputs.check(known, clock.columns, log.source)
        combined = combine(tables, clock, inputs.taken, joining, log)
        if combined.clock.times is None and any(map(is_address, _each(source))):
            raise TableError(
                f"What {log.source} returns has no time among its columns, {listed(known)}, and rows of a "
                f"database have no order. Select the time stamps too, or name their column ({option('time')}).",
                "time",
            )
        chosen = inputs.choose(combined, [name for name in also if name in known], log.source)
        return _made_of(combined, chosen, inputs, thousands, codes, fewest_rows, log)
    except TableError as error:
        raise _naming_sheets(error, log) from error.__cause__
    except MemoryError:
        raise
    except Exception as error:
        said = f"{log.source} cannot be read ({type(error).__name__}: {str(error)[:150]}). Export the table again."
        raise _naming_sheets(TableError(said), log) from error


def _names(value: str | Sequence[str] | None, option: str) -> tuple[str, ...]:
    names = (value,) if isinstance(value, str) else tuple(value or ())
    for name in names:
        if not isinstance(name, str):
            raise TableError(f"{option} must be a name or names of columns; got {quoted(name)}.")
    return names


def _naming_sheets(error: TableError, log: ReadLog) -> TableError:
    """Return the error with the names of the sheets, if the first of several was read."""
    sheets = next((note for note in log.notes if note.kind == "sheets"), None)
    return error if sheets is None else TableError(f"{error} {sheets} Name another ({option('sheet', '…')}).")


def source_name(source: Any) -> str:
    """Return what a source is called in messages: never with the password of a database.

    >>> source_name("data/plant.csv"), source_name("sql:postgresql://reader:secret@host/plant")
    ('plant.csv', 'postgresql://reader@host/plant')
    """
    if are_areas(source):
        return f"{len(source)} areas"
    if is_in_memory(source):
        return "the table"
    if is_address(source):
        return public_address(source)
    if isinstance(source, str | os.PathLike):
        return Path(source).name or str(source)
    return f"{len(source)} files" if isinstance(source, Sequence) else "the table"


def _each(source: Any) -> list[Any]:
    """Return the sources of a list or of areas; else the only one."""
    if are_areas(source):
        return [part for area in source.values() for part in _each(area)]
    several = isinstance(source, Sequence) and not isinstance(source, str) and not is_in_memory(source)
    return list(source) if several else [source]


def _read_all(source: Any, files: ReadOptions, query: str | None, log: ReadLog) -> list[RawTable]:
    if query is not None and not any(map(is_address, _each(source))):
        raise TableError("query is for databases: give an address such as sql:sqlite:///plant.db.", "query")
    if are_areas(source):
        return [table for name, each in source.items() for table in _read_area(name, each, files, query, log)]
    if is_in_memory(source):
        raw = from_memory(source, log)
        if files.names and isinstance(source, np.ndarray) and source.dtype.names is None:
            raw = with_names(replace(raw, unnamed=tuple(raw.frame.columns)), files.names, log)
        return [without_fillers(raw, log)]
    addresses = [each for each in _each(source) if is_address(each)]
    paths = [each for each in _each(source) if not is_address(each)]
    tables = [read_sql(each, query, files.max_bytes) for each in addresses]
    if paths or not tables:
        tables += read_files(files_of(paths if tables else source, log), files, log)
    return tables


def _read_area(name: object, source: Any, files: ReadOptions, query: str | None, log: ReadLog) -> list[RawTable]:
    """Read an area: its files with the same columns are one table, and each table has its name."""
    if not isinstance(name, str) or not name.strip():
        raise TableError(f"The areas of a plant need names; got {quoted(name)}.")
    if are_areas(source):
        raise TableError(f"Area {quoted(name)} holds areas again. Give a table or a path for each area.")
    tables = _read_all(source, files, None if not is_address(source) else query, log)
    if len(tables) > 1 and have_same_columns(tables):
        tables = [one_below_other(tables, name)]
    called = [name] if len(tables) == 1 else [f"{name} {table.name}" for table in tables]
    return [replace(table, name=own, area=name) for table, own in zip(tables, called, strict=True)]


def _with_area_names(tables: list[Area], options: TimeOptions, taken: Collection[str], log: ReadLog) -> list[Area]:
    """Put the name of the area before the names of columns, other than the time, that several areas have."""
    areas = [table for table in tables if isinstance(table, RawTable) and table.area]
    if len({table.area for table in areas}) < 2:
        return tables
    when = {table.area: _time_columns(table, options, taken) for table in areas}
    measured = Counter(name for table in areas for name in set(table.frame.columns) - when[table.area])
    shared = {name for name, count in measured.items() if count > 1}
    if not shared:
        return tables
    named: list[Area] = []
    for table in tables:
        if not isinstance(table, RawTable) or not table.area:
            named.append(table)
            continue
        called = {name: f"{table.area} {name}" for name in table.frame.columns if name in shared - when[table.area]}
        frame = table.frame.rename(columns=called)
        own_names(list(frame.columns), table.name)
        units = {called.get(name, name): unit for name, unit in table.units.items()}
        unnamed = tuple(called.get(name, name) for name in table.unnamed)
        named.append(replace(table, frame=frame, units=units, unnamed=unnamed))
    said = f"Several areas have {listed(sorted(shared), most=4)}: the name of the area is put before the column's."
    log.add("areas", said, len(shared), tuple(sorted(shared)))
    return named


def _time_columns(table: RawTable, options: TimeOptions, taken: Collection[str]) -> set[str]:
    try:
        return set(find_clock(table.frame, options, taken, ReadLog(table.name)).columns)
    except TableError:  # reported where the tables are combined
        return set(options.columns)


@dataclass(frozen=True)
class _InputOptions:
    """The inputs: `columns` (None: all) without `exclude`, the label, the group and the time."""

    columns: tuple[str, ...] | None
    exclude: tuple[str, ...]
    label: str | None
    group: str | None

    @property
    def taken(self) -> set[Any]:
        """Columns that are not to be searched for the time."""
        return {*(self.columns or ()), *self.exclude, self.label, self.group} - {None}

    def check(self, known: Sequence[str], time: Sequence[str], source: str) -> None:
        """Raise for names that are no columns, and for columns that cannot be both."""
        label, group = (() if name is None else (name,) for name in (self.label, self.group))
        refuse_unknown(self.exclude, known, "exclude", source)
        purposes = dict[str, str]()
        uses = {"columns": self.columns or (), "group": group, "label": label, "time": time}
        for parameter, names in uses.items():
            purpose = "an input" if parameter == "columns" else f"the {parameter}"
            refuse_unknown(names, known, parameter, source)
            for name in names:
                if purposes.get(name) == purpose:
                    raise TableError(f"{parameter} names a column twice: {listed(names)}. Name each once.", parameter)
                if name in purposes:
                    both = f"{purposes[name]} and {purpose}"
                    raise TableError(f"Column {quoted(name)} cannot be {both}. Name it once.", parameter)
                purposes[name] = purpose

    def reads(self, name: str, also: Collection[str]) -> bool:
        """Return whether a column is read at all, as an input, the label or for rules."""
        wanted = name not in self.exclude if self.columns is None else name in self.columns
        return wanted or name in also or name in (self.label, self.group)

    def choose(self, combined: Combined, also: Collection[str], source: str) -> list[str]:
        """Return the inputs, and the columns of `also`, which rules look at."""
        names = list(combined.frame.columns)
        wanted = names if self.columns is None else dict.fromkeys((*self.columns, *also))
        no_inputs = {*combined.clock.columns, self.label, *({*self.exclude, self.group} - {*also})}
        inputs = [name for name in wanted if name not in no_inputs]
        if not inputs:
            raise TableError(f"No column of {source} is left as an input; its columns are {listed(names)}.")
        refuse_unknown(inputs, names, "columns", source)  # left out when tags were put on one clock
        return inputs


def _made_of(
    combined: Combined,
    names: list[str],
    inputs: _InputOptions,
    thousands: str | None,
    codes: MissingCodes,
    fewest_rows: int,
    log: ReadLog,
) -> Table:
    frame, times = combined.frame, combined.clock.times
    _refuse_few_rows(len(frame), fewest_rows, log.source)
    groups = None if inputs.group is None else _Groups.of(frame[inputs.group], times, log)
    rows, reader = np.arange(len(frame)), combined.clock.reader
    if times is not None:
        rows, times = _rows_in_order(times, combined.lengths, log, groups)
    if groups is not None:
        rows = rows[np.argsort(groups.codes[rows], kind="stable")]
    _refuse_few_rows(len(rows), fewest_rows, log.source)
    values = frame if names == list(frame.columns) else frame[names]
    complete = set[str]()
    if combined.alignment is None:
        values, complete = numbers_and_texts(frame, names, log, combined.decimal, thousands, codes)
        if log.about("long format"):
            rows = _with_readings(values, rows, log)
    label = None if inputs.label is None else frame[inputs.label]
    if not np.array_equal(rows, np.arange(len(frame))):
        values = values.iloc[rows]
        label = None if label is None else label.iloc[rows]
        times = None if times is None else times[rows]
    values.index = pd.Index(rows)
    if label is not None:
        label = label.set_axis(values.index)
    _check_numbers(values, complete, log)
    for area, columns in combined.areas.items():
        texts = [name for name in columns if name in values]
        if texts and all(values[name].dtype != np.float64 for name in texts):
            first = values[texts[0]].dropna()
            said = f"{area} has no column of numbers, only text"
            said = f"{said}, such as {quoted(first.iloc[0])}." if len(first) else f"{said}."
            log.add("only text", said, len(texts), tuple(texts))
    if times is not None:
        if len(rows) > 1:
            if groups is None and combined.alignment is None:
                times, reader = _placed(times, values, reader, log)
            _note_sampling(times, rows, log, groups)
            _note_times_to_come(times, combined.clock.name, log)
            if groups is None:
                _note_long_format(values, times, combined.clock.name, log)
        times = times.rename(None)
    units = {name: unit for name, unit in combined.units.items() if name in values}
    group = None if groups is None else groups.named(rows)
    notes, clock = tuple(log.notes), combined.clock
    return Table(
        values, times, clock.name, label, log.source, notes, units, group, reader, combined.alignment,
        combined.tags, {name: count for name, count in log.bad.items() if name in values},
        tuple(sorted(log.words)), log.thousands,
    )  # fmt: skip


def _refuse_few_rows(count: int, fewest: int, source: str) -> None:
    if count >= fewest:
        return
    rows = "no rows" if count == 0 else "a single row" if count == 1 else f"{count:,} rows"
    others = ", and rows are scored by each other" if fewest > 1 else ""
    raise TableError(f"{source} has {rows}{others}. Check that the export was complete.")


def _check_numbers(values: pd.DataFrame, complete: Collection[str], log: ReadLog) -> None:
    """Raise unless there are numbers; note how many are missing. `complete` are columns that are known to have all."""
    numeric = [str(name) for name, kind in values.dtypes.items() if kind == np.float64]
    source = log.source
    if not numeric:
        said = f"{source} has no column of numbers besides the time, only text ({listed(values, most=4)})."
        of_sheets = any(note.kind == "sheets" for note in log.notes)
        raise TableError(said if of_sheets else f"{said} Check separator and decimal, or choose other columns.")
    missing = dict[str, int]()
    for name in numeric:
        if name not in complete and (absent := int(values[name].isna().sum())):
            missing[name] = absent
    count, size = sum(missing.values()), len(values) * len(numeric)
    if count == size:
        raise TableError(f"{source} has no number at all: every value of {listed(numeric, most=4)} is missing.")
    if count:
        said = f"Of {size:,} values in columns of numbers {count:,} {'is' if count == 1 else 'are'} missing."
        log.add("missing values", said, count, tuple(missing))


@dataclass(frozen=True, eq=False)
class _Groups:
    """The groups of the rows of a table: `codes` number them in the order in which they begin."""

    column: str
    codes: NDArray[np.intp]
    names: tuple[str, ...]

    @classmethod
    def of(cls, column: pd.Series[Any], times: pd.DatetimeIndex | None, log: ReadLog) -> _Groups:
        """Read the column of groups, and note how many there are."""
        texts = column.map(_as_text).fillna(_NO_GROUP)
        codes, names = pd.factorize(texts)
        if len(names) * _FEWEST_ROWS > len(codes) >= _ENOUGH:
            raise TableError(
                f"{log.source}: column {quoted(column.name)} has {len(names):,} different values in "
                f"{counted(len(codes), 'row')}, so it is no column of groups. Name a column of runs, units or machines."
            )
        if times is not None:
            stamps = np.where(times.isna(), np.iinfo(np.int64).max, times.asi8)
            order = np.argsort(pd.Series(stamps).groupby(codes).min().to_numpy(), kind="stable")
            codes, names = np.argsort(order)[codes], names[order]
        missing = int(column.isna().sum())
        without = f"; {counted(missing, 'row')} without a value are the group {_NO_GROUP}" if missing else ""
        said = f"Rows are kept together by column {quoted(column.name)}: {counted(len(names), 'group')}{without}."
        log.add("row groups", said, len(names), (str(column.name),))
        return cls(str(column.name), codes.astype(np.intp), tuple(map(str, names)))

    def new(self, rows: NDArray[np.intp]) -> BoolArray:
        """Return whether each of these rows but the first is of another group than the one before."""
        return np.asarray(np.diff(self.codes[rows]) != 0)

    def named(self, rows: NDArray[np.intp]) -> pd.Series[Any]:
        """Return the names of these rows' groups, under the rows' numbers."""
        return pd.Series(np.array(self.names, dtype=object)[self.codes[rows]], index=pd.Index(rows), name=self.column)


def _as_text(value: Any) -> Any:
    """Return a value as text, whole numbers without decimals; missing values as they are."""
    if pd.isna(value):
        return value
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()


def _rows_in_order(
    times: pd.DatetimeIndex, lengths: Sequence[int], log: ReadLog, groups: _Groups | None = None
) -> tuple[IndexArray, pd.DatetimeIndex]:
    """Return the rows that have a stamp, sorted by it, and all stamps; rows with the same one stay as they were.

    So do rows of an hour that comes twice: the second time, they have the last stamp of the first.

    lengths : of the files that the rows come from, which are put in order first, without a note.
    groups : a step from one group to another is no step in time.
    """
    missing = np.asarray(times.isna())
    if missing.all():
        raise TableError(f"{log.source} has no time stamp that can be read. Name another column as time.")
    rows = np.arange(len(times))
    if len(lengths) > 1:  # the file with the earliest stamp first
        none = np.iinfo(np.int64).max
        stamps = np.where(missing, none, times.asi8)
        blocks = np.split(rows, np.cumsum(lengths)[:-1])
        rows = np.concatenate(sorted(blocks, key=lambda block: int(stamps[block].min(initial=none))))
    if missing.any():
        rows, without = rows[~missing[rows]], np.flatnonzero(missing)
        if len(without) > max(_FEW_WITHOUT, _MOST_WITHOUT * len(times)):
            raise TableError(
                f"{log.source}: {len(without):,} of {len(times):,} rows have no time stamp that can be read, the "
                f"first of them row {without[0]:,} (counted from 0). Say how times are written "
                f"({option('time_format')}), name another column ({option('time')}), or remove these rows.",
                "time_format",
            )
        where = ", ".join(map(str, without[:3])) + (" …" if len(without) > 3 else "")
        said = f"{counted(len(without), 'row')} without a time stamp that can be read left out (number {where}, counted"
        log.add("missing times", f"{said} from 0).", len(without), rows=_first(without), changed=True)
    if groups is not None:
        rows = rows[np.argsort(groups.codes[rows], kind="stable")]
    steps = np.diff(times.asi8[rows])
    if groups is not None:
        steps = np.where(groups.new(rows), 0, steps)
    backwards = int((steps < 0).sum())
    if groups is None:
        note_clock_changes(times[rows], steps, log)
    if backwards and times.tz is None and groups is None:
        stamps = times.as_unit("us").asi8.copy()
        as_they_came = rows[::-1] if 2 * backwards > len(steps) else rows
        placed = without_second_hours(stamps[as_they_came])
        if not np.array_equal(placed, stamps[as_they_came]):
            stamps[as_they_came] = placed
            times, rows = pd.DatetimeIndex(stamps.view("M8[us]"), name=times.name), as_they_came
            steps = np.diff(placed)
            backwards = int((steps < 0).sum())
    if not backwards:
        return rows, times
    how = f"The rows were sorted by time: {counted(backwards, 'step')} went backwards."
    if backwards == len(steps):
        how = "The rows were in order of time with the newest first; they were turned round."
    log.add("order", how, backwards, rows=_first(rows[1:][steps < 0]), changed=True)
    return rows[np.argsort(times.asi8[rows], kind="stable")], times


def _with_readings(values: pd.DataFrame, rows: IndexArray, log: ReadLog) -> IndexArray:
    """Return the rows that have a reading: of readings that are all bad a stream makes no row, and neither do files."""
    empty = values.isna().all(axis=1).to_numpy()[rows]
    if not empty.any():
        return rows
    said = f"At {counted(int(empty.sum()), 'time')} all readings are missing or bad: these are no rows."
    log.add("empty rows", said, int(empty.sum()), rows=_first(rows[empty]), changed=True)
    return rows[~empty]


def _placed(
    times: pd.DatetimeIndex, values: pd.DataFrame, reader: TimeReader | None, log: ReadLog
) -> tuple[pd.DatetimeIndex, TimeReader | None]:
    """Return times of rows in order, spread where several share a stamp, and the reader that does it with new rows."""
    if reader is None or reader.shared is None:
        times, shared = spread_stamps(times, values, log)
        return times, reader if reader is None or shared is None else replace(reader, shared=shared)
    stamps = times.as_unit("us").asi8
    placed = reader.placed(stamps)
    if np.array_equal(placed, stamps):
        return times, reader
    said = f"Rows that share a stamp were put {duration_in_words(reader.shared[1] / reader.shared[0] / 1e6)} apart, as"
    log.add("repeated stamps", f"{said} when the model was fitted.", int((placed != stamps).sum()), doubt=False)
    index = pd.DatetimeIndex(placed.view("M8[us]"))
    return index if times.tz is None else index.tz_localize("UTC").tz_convert(times.tz), reader


def _note_sampling(times: pd.DatetimeIndex, rows: IndexArray, log: ReadLog, groups: _Groups | None = None) -> None:
    """Note how often stamps come twice, and how regular they are; `times` are in order, `rows` their rows."""
    ticks = np.diff(times.asi8)
    if groups is None and len(ticks) and ticks[0] > 0 and (ticks == ticks[0]).all():  # as regular as can be
        return
    steps = ticks / PER_SECOND[times.unit]
    if groups is not None:
        steps = np.where(groups.new(rows), -1.0, steps)  # neither equal nor apart
    repeated = int((steps == 0).sum())
    if repeated:
        said = f"The time stamp of {counted(repeated, 'row')} is that of the row before; all rows are kept."
        log.add("duplicate times", said, repeated, rows=_first(rows[1:][steps == 0]), doubt=2 * repeated > len(rows))
    seconds, steps = steps, steps[steps > 0]
    if len(steps) < 3:  # too few to say what is usual
        return
    median = float(np.median(steps))
    gaps = steps > 1.5 * median
    usual, n_gaps = duration_in_words(median), int(gaps.sum())
    if n_gaps:
        longest = f"{duration_in_words(float(steps.max()))} (after {times[int(np.argmax(seconds))]})"
        said = f"There {'is' if n_gaps == 1 else 'are'} {counted(n_gaps, 'gap')}: stamps are usually {usual} apart, but"
        log.add("gaps", f"{said} up to {longest}.", n_gaps)
    uneven = int((np.abs(steps[~gaps] - median) > 0.1 * median).sum())
    if uneven > 0.05 * len(steps) and len(steps) >= 10:
        said = f"Stamps are {usual} apart in the middle, but {uneven:,} of {len(steps):,} distances differ from that by"
        log.add("irregular sampling", f"{said} more than a tenth.", uneven)


def _note_times_to_come(times: pd.DatetimeIndex, name: str | None, log: ReadLog) -> None:
    """Note times that are years ahead of today: probably their unit or origin is another one."""
    last = times[-1]
    if last > pd.Timestamp.now(tz=times.tz) + _YEARS_AHEAD:
        said = f"The times in column {quoted(name)} go up to {last:%Y-%m-%d}. If that cannot be, they are counted in"
        said = f"{said} another way than was taken: give them as dates."
        log.add("times to come", said, len(times), () if name is None else (name,))


def _first(rows: NDArray[np.integer]) -> tuple[int, ...]:
    return tuple(int(row) for row in rows[:5])


def _note_long_format(values: pd.DataFrame, times: pd.DatetimeIndex, time_name: str | None, log: ReadLog) -> None:
    """Note a column of text that names what each of several rows at the same time is about; `times` are in order."""
    stamps = times.asi8
    if np.count_nonzero(stamps[1:] == stamps[:-1]) < _SHARED * len(stamps):
        return
    numeric = values.select_dtypes("number").columns
    kinds = {name: values[name].nunique() for name in values.columns.difference(numeric, sort=False)}
    for name in sorted(kinds, key=lambda each: kinds[each]):
        pairs = pd.DataFrame({"stamp": stamps, "kind": pd.factorize(values[name])[0]})
        if 2 <= kinds[name] <= len(values) / 2 and (~pairs.duplicated()).mean() >= _NEARLY_ALL:
            log.add(
                "long format",
                f"The {kinds[name]:,} kinds of column {quoted(name)} have rows of their own at the same time. If they "
                f"name sensors or machines, pivot the table first, to one row per {quoted(time_name)} and a column of "
                f"{listed(numeric, most=3)} for each {quoted(name)}.",
                kinds[name],
                (name, *numeric),
            )
            return
