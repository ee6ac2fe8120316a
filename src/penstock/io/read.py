"""Read the table that a plant engineer has."""

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
from penstock.io._combine import (
    Combined,
    RawTable,
    combine,
    records_among,
    spread_tags,
    with_file_names,
    with_names,
    without_fillers,
)
from penstock.io._files import FileOptions, files_of, from_memory, is_in_memory, read_file
from penstock.io._numbers import MissingCodes, numbers_and_texts
from penstock.io._order import Groups, note_long_format, note_sampling, rows_in_order
from penstock.io._text import TextOptions, default_max_bytes
from penstock.io.table import Notebook, Table, TableError, refuse_unknown


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
    """Read a table, find its time, and note everything that was changed or is odd.

    Parameters
    ----------
    source : path, folder, list of paths, or a pandas, polars or NumPy table
        Text with separators (also .gz), Parquet (extra `files`) and Excel (extra `excel`). The files of a folder, or of
        a list, belong together: with the same columns their rows are appended in order of time, with different columns
        they are joined on time. In a folder with other tables, lists without a time and lists of events are left out. A
        table with a row for each reading (columns such as tag, time and value) gets a column for each tag.
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
        Excel at most 1 GB, and 2²⁷ cells; above 64 MB its parts may be packed at most 200 times.
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
    described = "the table"
    if not is_in_memory(source) and isinstance(source, str | os.PathLike):
        described = Path(source).name or str(source)
    elif not is_in_memory(source) and isinstance(source, Sequence):
        described = f"{len(source)} files"
    notebook = Notebook(described, strict)
    text = TextOptions(separator, decimal, thousands, encoding)
    files = FileOptions(text, sheet, default_max_bytes() if max_bytes is None else max_bytes, _names(names, "names"))
    inputs = _InputOptions(
        None if columns is None else _names(columns, "columns"),
        _names(exclude, "exclude"),
        next(iter(_names(label, "label")), None),
        next(iter(_names(group, "group")), None),
    )
    clock = TimeOptions(_names(time, "time"), as_zone(timezone), day_first, time_format)
    codes = MissingCodes.of(missing)
    try:
        tables = _read_all(source, files, notebook)
        if inputs.label is None and inputs.group is None:
            tables = with_file_names(tables, clock)
            tables = [spread_tags(each, clock, inputs.taken, files.max_bytes // 2, notebook) for each in tables]
        if isinstance(source, str | os.PathLike):
            tables = records_among(tables, clock, inputs.taken, notebook)
        known = list(dict.fromkeys(name for each in tables for name in each.frame.columns))
        if inputs.group is not None and inputs.group not in known and not group_needed:
            notebook.add("row groups", f"There is no column {quoted(inputs.group)}: all rows are one group.", 1)
            inputs = replace(inputs, group=None)
        inputs.check(known, clock.columns, notebook.source)
        combined = combine(tables, clock, inputs.taken, notebook)
        chosen = inputs.choose(combined, [name for name in also if name in known], notebook.source)
        return _made_of(combined, chosen, inputs, thousands, codes, fewest_rows, notebook)
    except TableError as error:
        raise _naming_sheets(error, notebook) from error.__cause__
    except MemoryError:
        raise
    except Exception as error:
        said = f"{notebook.source} cannot be read ({type(error).__name__}: {str(error)[:150]}). Export the table again."
        raise _naming_sheets(TableError(said), notebook) from error


def _names(value: str | Sequence[str] | None, option: str) -> tuple[str, ...]:
    """Return the names given for an option: none, one or several."""
    names = (value,) if isinstance(value, str) else tuple(value or ())
    for name in names:
        if not isinstance(name, str):
            raise TableError(f"{option} must be a name or names of columns; got {quoted(name)}.")
    return names


def _naming_sheets(error: TableError, notebook: Notebook) -> TableError:
    """Return the error with the names of the sheets, if the first of several was read."""
    sheets = next((note for note in notebook.notes if note.kind == "sheets"), None)
    return error if sheets is None else TableError(f"{error} {sheets} Name another with sheet= (--sheet).")


def _read_all(source: Any, files: FileOptions, notebook: Notebook) -> list[RawTable]:
    if is_in_memory(source):
        raw = from_memory(source, notebook)
        if files.names and isinstance(source, np.ndarray) and source.dtype.names is None:
            raw = with_names(replace(raw, unnamed=tuple(raw.frame.columns)), files.names, notebook)
        return [without_fillers(raw, notebook)]
    return [read_file(path, files, notebook) for path in files_of(source, notebook)]


@dataclass(frozen=True)
class _InputOptions:
    """The inputs: `columns` (None: all) without `exclude`, the label, the group and the time."""

    columns: tuple[str, ...] | None
    exclude: tuple[str, ...]
    label: str | None
    group: str | None

    @property
    def _kept_apart(self) -> dict[str, str]:
        """Label and group by column."""
        roles = ((self.group, "group"), (self.label, "label"))
        return {name: role for name, role in roles if name is not None}

    @property
    def taken(self) -> set[str]:
        """Columns that are not to be searched for the time."""
        return {*(self.columns or ()), *self.exclude, *self._kept_apart}

    def check(self, known: Sequence[str], time: Sequence[str], source: str) -> None:
        """Raise for names that are no columns, and for columns that cannot be both."""
        label, group = (() if name is None else (name,) for name in (self.label, self.group))
        options = {"time": time, "columns": self.columns or (), "exclude": self.exclude, "label": label, "group": group}
        for option, names in options.items():
            refuse_unknown(names, known, option, source)
        roles = self._kept_apart | dict.fromkeys(time, "time")
        for name in self.columns or ():
            if name in roles:
                raise TableError(f"Column {quoted(name)} cannot be an input and the {roles[name]}. Name it once.")
        if self.columns is not None and len(set(self.columns)) < len(self.columns):
            raise TableError(f"columns names a column twice: {listed(self.columns)}. Name each once.")
        for role, names, others in (("label", label, time), ("group", group, (*time, *label))):
            if names and names[0] in others:
                name = names[0]
                raise TableError(f"Column {quoted(name)} cannot be the {role} and the {roles[name]}. Name it once.")

    def choose(self, combined: Combined, also: Collection[str], source: str) -> list[str]:
        """Return the inputs, and the columns of `also`, which rules look at."""
        names = list(combined.frame.columns)
        wanted = names if self.columns is None else dict.fromkeys((*self.columns, *also))
        no_inputs = {*combined.clock.columns, self.label, *({*self.exclude, self.group} - {*also})}
        inputs = [name for name in wanted if name not in no_inputs]
        if not inputs:
            raise TableError(f"No column of {source} is left as an input; its columns are {listed(names)}.")
        return inputs


def _made_of(
    combined: Combined,
    names: list[str],
    inputs: _InputOptions,
    thousands: str | None,
    codes: MissingCodes,
    fewest_rows: int,
    notebook: Notebook,
) -> Table:
    """Return the table of these columns, with rows in order of time."""
    frame, times = combined.frame, combined.clock.times
    _refuse_few_rows(len(frame), fewest_rows, notebook.source)
    groups = None if inputs.group is None else Groups.of(frame[inputs.group], times, notebook)
    rows = np.arange(len(frame)) if times is None else rows_in_order(times, combined.lengths, notebook, groups)
    if groups is not None:
        rows = rows[np.argsort(groups.codes[rows], kind="stable")]
    _refuse_few_rows(len(rows), fewest_rows, notebook.source)
    values = numbers_and_texts(frame, names, notebook, combined.decimal, thousands, codes)
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
    numeric, source = values.select_dtypes("number"), notebook.source
    if not numeric.shape[1]:
        said = f"{source} has no column of numbers besides the time, only text ({listed(values, most=4)})."
        of_sheets = any(note.kind == "sheets" for note in notebook.notes)
        raise TableError(said if of_sheets else f"{said} Check separator and decimal, or choose other columns.")
    numbers = numeric.to_numpy()
    with np.errstate(over="ignore"):
        complete = not np.isnan(numbers.sum(axis=0)).any()  # usual, and faster than to count
    missing = np.zeros(numeric.shape[1]) if complete else np.isnan(numbers).sum(axis=0)
    count = int(missing.sum())
    if count == numeric.size:
        raise TableError(f"{source} has no number at all: every value of {listed(numeric, most=4)} is missing.")
    if count:
        said = f"Of {numeric.size:,} values in columns of numbers {count:,} {'is' if count == 1 else 'are'} missing."
        notebook.add("missing values", said, count, tuple(numeric.columns[missing > 0]))
