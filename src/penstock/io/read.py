"""Reads the table that a plant engineer has."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from penstock._messages import listed, quoted
from penstock.io._clock import TimeOptions, as_zone
from penstock.io._combine import Combined, RawTable, combine, records_among, with_names, without_fillers
from penstock.io._files import FileOptions, files_of, read_file
from penstock.io._memory import from_memory, is_in_memory
from penstock.io._numbers import NumberOptions, as_codes, numbers_and_texts
from penstock.io._order import Groups, note_long_format, note_sampling, rows_in_order
from penstock.io._text import TextOptions, default_max_bytes
from penstock.io.table import Note, Notebook, Table, TableError, refuse_unknown


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
    max_bytes: int | None = None,
    also: Sequence[str] = (),
    fewest_rows: int = 2,
    group_needed: bool = True,
) -> Table:
    """Read a table, find its time, and say everything that was changed or is odd.

    Parameters
    ----------
    source : path, folder, list of paths, or a pandas, polars or NumPy table
        Text with separators (also .gz), Parquet (extra `files`) and Excel (extra `excel`). The files of a folder, or of
        a list, belong together: with the same columns their rows are appended in order of time, with different columns
        they are joined on time. In a folder, lists without a time, and lists of events, are left out beside others.
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
        How a text is written; found if None, but numbers with a sign between thousands are refused.
    missing : texts or numbers
        Further values that count as missing, such as -9999. Numbers are compared as numbers.
    sheet : str, optional
        Of a workbook; the first if None.
    max_bytes : int, optional
        The largest text to read (unpacked), and twice the most cells; a quarter of the memory if None. Of a sheet of
        Excel at most 1 GB, and 2²⁷ cells.
    also : names
        Columns to read where the table has them, whatever `columns` and `exclude` say.
    fewest_rows : int
        Refuse a table with fewer. Rows are judged by each other, or, one alone, by a model that was learnt before.
    group_needed : bool
        Refuse a table without the column of groups; else it is one group, which a note says.

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
    notebook = Notebook(_describe(source), strict)
    text = TextOptions(separator, decimal, thousands, encoding)
    files = FileOptions(text, sheet, default_max_bytes() if max_bytes is None else max_bytes, as_names(names, "names"))
    labels, groups = as_names(label, "label"), as_names(group, "group")
    inputs = InputOptions(
        None if columns is None else as_names(columns, "columns"),
        as_names(exclude, "exclude"),
        next(iter(labels), None),
        next(iter(groups), None),
    )
    clock = TimeOptions(as_names(time, "time"), as_zone(timezone), day_first, time_format)
    numbers = NumberOptions(thousands, as_codes(missing))
    try:
        tables = _read_all(source, files, notebook)
        if isinstance(source, str | os.PathLike):
            tables = records_among(tables, clock, inputs.taken, notebook)
        known = list(dict.fromkeys(name for each in tables for name in each.frame.columns))
        if inputs.group is not None and inputs.group not in known and not group_needed:
            notebook.add("row groups", f"There is no column {quoted(inputs.group)}: all rows are one group.", 1)
            inputs = replace(inputs, group=None)
        inputs.check(known, clock.columns, notebook.source)
        combined = combine(tables, clock, inputs.taken, notebook)
        chosen = _with(inputs, [name for name in also if name in known])
        return _made_of(combined, chosen, numbers, fewest_rows, notebook)
    except TableError as error:
        raise _naming_sheets(error, notebook) from error.__cause__
    except MemoryError:
        raise
    except Exception as error:
        said = f"{notebook.source} cannot be read ({type(error).__name__}: {str(error)[:150]}). Export the table again."
        raise _naming_sheets(TableError(said), notebook) from error


def _naming_sheets(error: TableError, notebook: Notebook) -> TableError:
    """The error with the sheets there are, if the first of several was read."""
    sheets = _note_on_sheets(notebook)
    return error if sheets is None else TableError(f"{error} {sheets} Name another with sheet= (--sheet).")


def _note_on_sheets(notebook: Notebook) -> Note | None:
    return next((note for note in notebook.notes if note.kind == "sheets"), None)


def _with(inputs: InputOptions, names: Sequence[str]) -> InputOptions:
    """The inputs and these columns."""
    columns = None if inputs.columns is None else tuple(dict.fromkeys((*inputs.columns, *names)))
    exclude = tuple(name for name in inputs.exclude if name not in names)
    return replace(inputs, columns=columns, exclude=exclude, also_group=inputs.group in names)


def _describe(source: Any) -> str:
    if is_in_memory(source):
        return "the table"
    if isinstance(source, str | os.PathLike):
        return Path(source).name or str(source)
    return f"{len(source)} files" if isinstance(source, Sequence) else "the table"


def _read_all(source: Any, files: FileOptions, notebook: Notebook) -> list[RawTable]:
    if is_in_memory(source):
        raw = from_memory(source, notebook)
        if files.names and isinstance(source, np.ndarray) and source.dtype.names is None:
            raw = with_names(replace(raw, unnamed=tuple(raw.frame.columns)), files.names, notebook)
        return [without_fillers(raw, notebook)]
    return [read_file(path, files, notebook) for path in files_of(source, notebook)]


def _made_of(
    combined: Combined, inputs: InputOptions, numbers: NumberOptions, fewest_rows: int, notebook: Notebook
) -> Table:
    """The table of these columns, with rows in order of time."""
    frame, times = combined.frame, combined.clock.times
    names = inputs.choose(list(frame.columns), combined.clock.columns, notebook.source)
    _refuse_few_rows(len(frame), fewest_rows, notebook.source)
    groups = None if inputs.group is None else Groups.of(frame[inputs.group], times, notebook)
    rows = np.arange(len(frame)) if times is None else rows_in_order(times, combined.lengths, notebook, groups)
    if groups is not None:
        rows = rows[np.argsort(groups.codes[rows], kind="stable")]
    _refuse_few_rows(len(rows), fewest_rows, notebook.source)
    values = numbers_and_texts(frame, names, combined.decimal, numbers, notebook)
    label = None if inputs.label is None else frame[inputs.label]
    if not np.array_equal(rows, np.arange(len(frame))):
        values = values.iloc[rows]
        label = None if label is None else label.iloc[rows]
        times = None if times is None else times[rows]
    values.index = pd.Index(rows)
    if label is not None:
        label = label.set_axis(values.index)
    _check_numbers(values, notebook)
    if times is not None:
        if len(rows) > 1:
            note_sampling(times, rows, notebook, groups)
            if groups is None:
                note_long_format(values, times, combined.clock.name, notebook)
        times = times.rename(None)
    units = {name: unit for name, unit in combined.units.items() if name in values}
    group = None if groups is None else groups.named(rows)
    return Table(values, times, combined.clock.name, label, notebook.source, tuple(notebook.notes), units, group)


def _refuse_few_rows(count: int, fewest: int, source: str) -> None:
    if count >= fewest:
        return
    rows = "no rows" if count == 0 else "a single row" if count == 1 else f"{count:,} rows"
    others = ", and rows are judged by each other" if fewest > 1 else ""
    raise TableError(f"{source} has {rows}{others}. Check that the export was complete.")


def _check_numbers(values: pd.DataFrame, notebook: Notebook) -> None:
    """Raise unless there are numbers; note how many are missing."""
    numeric = values.select_dtypes("number")
    if not numeric.shape[1]:
        advice = "" if _note_on_sheets(notebook) else " Check separator and decimal, or choose other columns."
        raise TableError(
            f"{notebook.source} has no column of numbers besides the time, only text ({listed(values, most=4)})."
            f"{advice}"
        )
    numbers = numeric.to_numpy()
    with np.errstate(over="ignore"):
        complete = not np.isnan(numbers.sum(axis=0)).any()  # as mostly, and quicker to see than where it is not
    missing = np.zeros(numeric.shape[1]) if complete else np.isnan(numbers).sum(axis=0)
    count = int(missing.sum())
    if count == numeric.size:
        raise TableError(
            f"{notebook.source} has no number at all: every value of {listed(numeric, most=4)} is missing."
        )
    if count:
        notebook.add(
            "missing values",
            f"Of {numeric.size:,} values in columns of numbers {count:,} {'is' if count == 1 else 'are'} missing.",
            count,
            tuple(numeric.columns[missing > 0]),
        )


@dataclass(frozen=True)
class InputOptions:
    """The inputs: `columns` (None: all) without `exclude`, the label, the group and the time."""

    columns: tuple[str, ...] | None
    exclude: tuple[str, ...]
    label: str | None
    group: str | None = None
    also_group: bool = False  # a rule looks at it, so that it is read like an input

    @property
    def taken(self) -> set[str]:
        """Columns that are not to be searched for the time."""
        return {*(self.columns or ()), *self.exclude, *self._named("label"), *self._named("group")}

    def check(self, known: Sequence[str], time: Sequence[str], source: str) -> None:
        """Raise for names that are no columns, and for columns that cannot be both."""
        labels, groups = self._named("label"), self._named("group")
        for option, names in (
            ("time", time),
            ("columns", self.columns or ()),
            ("exclude", self.exclude),
            ("label", labels),
            ("group", groups),
        ):
            refuse_unknown(names, known, option, source)
        for name in self.columns or ():
            if name in time or name in labels or name in groups:
                role = "time" if name in time else "label" if name in labels else "group"
                raise TableError(f"Column {quoted(name)} cannot be an input and the {role}. Name it once.")
        if self.columns is not None and len(set(self.columns)) < len(self.columns):
            raise TableError(f"columns names a column twice: {listed(self.columns)}. Name each once.")
        if self.label is not None and self.label in time:
            raise TableError(f"Column {quoted(self.label)} cannot be the label and the time. Name it once.")
        if self.group is not None and self.group in (*time, *labels):
            role = "time" if self.group in time else "label"
            raise TableError(f"Column {quoted(self.group)} cannot be the group and the {role}. Name it once.")

    def choose(self, names: Sequence[str], used_up: Collection[str], source: str) -> list[str]:
        """The inputs among these columns; `used_up` are those of the time."""
        wanted = names if self.columns is None else self.columns
        no_inputs = {*self.exclude, *self._named("label"), *used_up}
        no_inputs |= set() if self.also_group else set(self._named("group"))
        inputs = [name for name in wanted if name not in no_inputs]
        if not inputs:
            raise TableError(f"No column of {source} is left as an input; its columns are {listed(names)}.")
        return inputs

    def _named(self, role: str) -> tuple[str, ...]:
        name: str | None = getattr(self, role)
        return () if name is None else (name,)


def as_names(value: str | Sequence[str] | None, option: str) -> tuple[str, ...]:
    """One name or several."""
    names = (value,) if isinstance(value, str) else tuple(value or ())
    for name in names:
        if not isinstance(name, str):
            raise TableError(f"{option} must be a name or names of columns; got {quoted(name)}.")
    return names
