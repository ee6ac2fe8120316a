"""Decide how the rows of a stream are read: its layout, its time column and its variables, from the first lines."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from difflib import get_close_matches
from typing import Any

import pandas as pd

from penstock._messages import counted
from penstock.io._clock import Clock, TimeOptions, find_clock
from penstock.io._combine import RawTable, without_fillers
from penstock.io._layout import MISSING, Layout, find_layout, likely_encodings
from penstock.io._text import column_names
from penstock.io.feeds import LONGEST, InputError
from penstock.io.table import Notebook, TableError

_TIME_NAMES = ("time", "timestamp", "date", "datetime")
_PERHAPS_TIME = "t"  # or a temperature
_DECIMALS = re.compile(r"[+-]?\d*([.,])\d+([eE][+-]?\d+)?")
TRUTH = {"true": "1", "false": "0"}
_BOM = b"\xef\xbb\xbf"
_LONGEST_QUOTE = 40
csv.field_size_limit(max(csv.field_size_limit(), LONGEST))  # else a long quoted field is reported as bad quotes


class LineError(ValueError):
    """One line cannot be read. The message is the reason; the caller knows the line's number."""


@dataclass(frozen=True)
class TableOptions:
    """How a stream is to be read; what is None is found out from its first lines.

    Parameters
    ----------
    format : str, optional
        "csv" or "jsonl".
    delimiter, encoding, decimal : str, optional
        Of text with separators.
    time : str, optional
        The column of time stamps, which are passed on as they are written.
    columns, exclude : tuple of str
        Measure only these, or all but these. All columns of numbers if `columns` and `texts` are empty.
    texts : tuple of str
        Columns to be handed out as they are written.
    texts_if_there : tuple of str
        Further ones, which the stream may lack.
    day_first : bool, optional
        Whether 1/2/2024 is in February.
    time_format : str, optional
        How times are written, as `datetime.strptime` takes it.
    """

    format: str | None = None
    delimiter: str | None = None
    time: str | None = None
    columns: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    encoding: str | None = None
    decimal: str | None = None
    day_first: bool | None = None
    time_format: str | None = None
    texts_if_there: tuple[str, ...] = ()

    def for_columns(self, names: Sequence[str]) -> TableOptions:
        """Return these options for a stream with these columns: of `texts_if_there` those that it has are `texts`."""
        there = (name for name in self.texts_if_there if name in names)
        return replace(self, texts=(*self.texts, *there), texts_if_there=())


@dataclass(frozen=True)
class Columns:
    """All names of a table in order, and by their numbers: the time column (or None) and the measured variables.

    clock : the time of day, where it has a column beside that of the date.
    """

    names: tuple[str, ...]
    time: int | None
    variables: tuple[int, ...]
    texts: tuple[int, ...] = ()
    clock: int | None = None

    @property
    def variable_names(self) -> tuple[str, ...]:
        return tuple(self.names[number] for number in self.variables)

    def state(self) -> dict[str, Any]:
        """The same in plain values, for `restore`."""
        texts = {"texts": list(self.texts)} if self.texts else {}
        clock = {} if self.clock is None else {"clock": self.clock}
        return {"names": list(self.names), "time": self.time, "variables": list(self.variables), **texts, **clock}

    @classmethod
    def restore(cls, state: dict[str, Any]) -> Columns:
        """The columns whose `state()` this is; ValueError, TypeError or LookupError if it is none."""
        texts = tuple(state.get("texts", ()))
        columns = cls(tuple(state["names"]), state["time"], tuple(state["variables"]), texts, state.get("clock"))
        places = [*columns.variables, *texts, *(place for place in (columns.time, columns.clock) if place is not None)]
        if not (columns.variables or texts) or not all(isinstance(name, str) for name in columns.names):
            raise ValueError("the columns have no names")
        if not all(type(place) is int and 0 <= place < len(columns.names) for place in places):
            raise ValueError("there are fewer columns than are measured")
        return columns


@dataclass(frozen=True)
class RowLayout:
    """How lines of text become rows: decided once, from the first lines, and kept in snapshots.

    decimals : for each column the sign before decimals; None for either.
    booleans : columns written as true and false.
    header : its fields, None without one; `below` are lines of units and descriptions below it.
    above : how many lines are above the first row.
    day_first, numeric_time : how `RowSource.read_times` reads the time column.
    """

    columns: Columns
    delimiter: str
    decimals: tuple[str | None, ...]
    encoding: str = "utf-8"
    booleans: tuple[int, ...] = ()
    header: tuple[str, ...] | None = None
    below: tuple[tuple[str, ...], ...] = ()
    above: int = 1
    day_first: bool | None = None
    numeric_time: bool = False

    def state(self) -> dict[str, Any]:
        """The same in plain values, for `restore`."""
        plain = asdict(self)
        plain.pop("columns")
        return {"format": "csv", **{key: _as_lists(value) for key, value in plain.items()}, **self.columns.state()}

    @classmethod
    def restore(cls, state: dict[str, Any]) -> RowLayout:
        """The layout whose `state()` this is, or that of an earlier version, which knew less."""
        columns, delimiter = Columns.restore(state), state["delimiter"]
        if not isinstance(delimiter, str) or len(delimiter) != 1:
            raise ValueError("the delimiter is not one character")
        if "decimals" not in state:
            decimal = state.get("decimal", None if delimiter == ";" else ".")
            return cls(columns, delimiter, (decimal,) * len(columns.names), header=columns.names)
        if len(state["decimals"]) != len(columns.names):
            raise ValueError("decimals are not those of the columns")
        "".encode(state["encoding"])
        header = state["header"]
        return cls(
            columns,
            delimiter,
            tuple(state["decimals"]),
            state["encoding"],
            tuple(state["booleans"]),
            None if header is None else tuple(header),
            tuple(map(tuple, state["below"])),
            int(state["above"]),
            state["day_first"],
            bool(state["numeric_time"]),
        )


def learn_layout(lines: Sequence[bytes], options: TableOptions, notebook: Notebook, *, more: bool) -> RowLayout | None:
    """Decide how lines are read, from the first of them; None if `more` may come and no row has.

    The layout is that of `read_table`; InputError if it cannot be found.
    """
    name = notebook.source
    lines = [line if len(line) <= LONGEST else b"" for line in lines]
    try:
        text, encoding = _decoded_head(b"\n".join(lines), name, options.encoding)
        layout = find_layout(text, name, options.delimiter, options.decimal, ragged=True)
        if not layout.rows or (more and not layout.has_data):
            return None
        names, unnamed = column_names(layout, name)
    except (TableError, LookupError) as error:  # also of an encoding that is not known
        raise InputError(str(error)) from None
    rows = []
    for line in lines[layout.lines_above :]:
        with suppress(LineError):
            rows.append(split_line(line, layout.separator, encoding))
    rows = [fields for fields in rows if len(fields) == len(names)]
    if not rows:
        return None
    signs = [_decimal_sign([row[number].strip() for row in rows]) for number in range(len(names))]
    usual = layout.decimal if any(signs) or options.decimal else None
    signs = [options.decimal or sign or usual for sign in signs]
    frame = pd.DataFrame({each: _typed([row[n] for row in rows], signs[n]) for n, each in enumerate(names)})
    kept = without_fillers(RawTable(name, frame, unnamed=unnamed), notebook).frame
    has_header = layout.names is not None
    measured = [each for n, each in enumerate(names) if each in kept and _is_measured(frame[each], signs[n])]
    columns, day_first = _choose_columns(
        names, rows[0], kept, measured, unnamed if has_header else (), options, notebook
    )
    _note_layout(layout, name, notebook)
    numeric = columns.time is not None and frame[names[columns.time]].dtype.kind in "iuf"
    return RowLayout(
        columns,
        layout.separator,
        tuple(signs),
        encoding,
        tuple(number for number in columns.variables if frame[names[number]].dtype.kind == "b"),
        tuple(layout.names or ()) if has_header else None,
        tuple(tuple(clean_names(fields)) for fields in (layout.units, layout.description) if fields),
        layout.lines_above,
        day_first,
        numeric,
    )


def _decoded_head(head: bytes, name: str, encoding: str | None) -> tuple[str, str]:
    """The first lines as text, and their encoding."""
    encodings = [encoding] if encoding else likely_encodings(head[:4096], name)
    if encodings[0].startswith(("utf-16", "utf-32")) or b"\0" in head.partition(b"\n")[0]:
        raise InputError("The first line looks like UTF-16, or is no text at all; save the table as UTF-8.")
    for likely in encodings:
        with suppress(UnicodeDecodeError):
            text = head.removeprefix(_BOM).decode(likely, errors="replace" if encoding else "strict")
            return text.replace("\r\n", "\n"), likely
    raise TableError(f"{name} is in no encoding that is known here. Name its encoding.")


def _decimal_sign(values: Sequence[str]) -> str | None:
    return next((found[1] for value in values if (found := _DECIMALS.fullmatch(value))), None)


def _typed(values: Sequence[str], decimal: str | None) -> pd.Series[Any]:
    """A column as numbers or truth values if all are such, else as text; None where nothing is there."""
    texts = pd.Series([None if is_missing(value) else value.strip() for value in values], dtype="object")
    there = texts.notna()
    if there.any() and texts[there].str.lower().isin(TRUTH).all():
        return pd.Series(True, index=texts.index)
    spelled = [None if value is None else with_point(value, decimal) for value in texts]
    numbers = pd.to_numeric(pd.Series(spelled, dtype="object"), errors="coerce")
    return numbers if bool((numbers.notna() == there).all()) else texts


def _choose_columns(
    names: Sequence[str],
    first: Sequence[object],
    kept: pd.DataFrame,
    measured: Collection[str],
    unnamed: Sequence[str],
    options: TableOptions,
    notebook: Notebook,
) -> tuple[Columns, bool | None]:
    """The time and the variables among these columns, and whether the day comes first in the time.

    first : values of the first row. kept : the first rows without columns that hold nothing or number the rows.
    measured : those of numbers.
    """
    options = options.for_columns(names)
    check_options(names, options)
    told = () if options.time is None else (options.time,)
    taken = {*options.columns, *options.texts, *options.exclude}
    clock = Clock(None, None, ())
    try:
        if not told or told[0] in kept:
            form = TimeOptions(told, None, options.day_first, options.time_format)
            clock = find_clock(kept, form, taken, Notebook(notebook.source))
    except TableError as error:  # a column that is passed on as the time need not hold times
        if options.time_format is not None:
            raise InputError(str(error)) from None
    found = [names.index(name) for name in told or clock.columns]
    time = found[0] if found else time_by_name(names, first, unnamed, taken)
    beside = found[1] if len(found) == 2 and clock.times is not None else None
    used_up = {names[place] for place in (*found, *([] if time is None else [time]))}
    variables = [name for name in options.columns if name not in options.exclude]
    if not (options.columns or options.texts):
        variables = [name for name in names if name in kept and name not in (*used_up, *options.exclude)]
        if time not in (None, 0) and names[0] in unnamed and names[0] in variables:
            variables.remove(names[0])
            notebook.add("row numbers", "The first column has no name and another is the time: it is left out.", 1)
        texts = [name for name in variables if name not in measured]
        if texts:
            shown = ", ".join(map(quoted, texts[:5])) + (", …" if len(texts) > 5 else "")
            notebook.add("text", f"Left out, as the first lines hold text there: {shown}.", len(texts), tuple(texts))
            variables = [name for name in variables if name not in texts]
    if not (variables or options.texts):
        raise InputError(f"No column is left to measure anomalies in; the columns are {listed_names(names)}.")
    places, written = (tuple(names.index(name) for name in chosen) for chosen in (variables, options.texts))
    return Columns(tuple(names), time, places, written, beside), clock.day_first


def check_options(names: Sequence[str], options: TableOptions) -> None:
    """Raise for names that are no columns, and for columns that are named twice."""
    told = [] if options.time is None else [options.time]
    for name in (*options.columns, *options.texts, *options.exclude, *told):
        if name not in names:
            close = get_close_matches(name, names, n=1)
            hint = f" Did you mean {quoted(close[0])}?" if close else ""
            raise InputError(f"There is no column {quoted(name)}; the columns are {listed_names(names)}.{hint}")
    for option, chosen in (("--columns", options.columns), ("--exclude", options.exclude)):
        twice = next((name for name in chosen if chosen.count(name) > 1), None)
        if twice is not None:
            raise InputError(f"{option} names {quoted(twice)} more than once; name each column once.")
    if options.time is not None and options.time in options.columns:
        raise InputError(f"Column {quoted(options.time)} cannot be the time and a measurement; name it once.")


def time_by_name(
    names: Sequence[str], first: Sequence[object], unnamed: Sequence[str], taken: Collection[str]
) -> int | None:
    """A column to pass on as the time, though it cannot be read as one."""
    free = [number for number, name in enumerate(names) if name not in taken]
    for number in free:
        if names[number].strip().lower() in _TIME_NAMES:
            return number
    if 0 in free and _is_text(first[0]):
        return 0
    for number in free:
        if names[number].strip().lower() == _PERHAPS_TIME and (number == 0 or _is_text(first[number])):
            return number
    return 0 if 0 in free and names[0] in unnamed else None  # pandas writes its index under no name


def _is_measured(column: pd.Series[Any], decimal: str | None) -> bool:
    """Whether at least half of the values that are there are numbers."""
    if column.dtype.kind in "iufb":
        return True
    values = [with_point(value, decimal) for value in column.dropna()]
    return 2 * sum(map(is_number, values)) >= len(values)


def _note_layout(layout: Layout, name: str, notebook: Notebook) -> None:
    if layout.preamble:
        notebook.add("preamble", f"{counted(len(layout.preamble), 'line')} above the table in {name} left out.", 1)
    if layout.names is None:
        notebook.add("no header", f"{name} has no header; its columns are called 'column 1' and so on.", layout.width)


def is_missing(text: str) -> bool:
    """Whether a text stands for a reading that is not there."""
    return text.strip().lower() in MISSING


def is_number(value: object) -> bool:
    """Whether a value of a table is, or spells, a number."""
    if isinstance(value, str) and "_" in value:  # Python's own spelling, and a name for a sensor: 1_2
        return False
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def split_line(line: bytes, delimiter: str, encoding: str = "utf-8") -> list[str]:
    """The fields of a line; LineError if it is too long, in another encoding, or its quotes do not match."""
    text = decoded(line, encoding)
    if '"' not in text:
        return text.split() if delimiter == " " else text.split(delimiter)
    try:
        return next(csv.reader([text], delimiter=delimiter, strict=True, skipinitialspace=True))
    except csv.Error as error:
        raise LineError(f"its quotes do not match ({error})") from None


def decoded(line: bytes, encoding: str = "utf-8") -> str:
    """The text of a line, without a carriage return at its end and the mark that some programs put before UTF-8."""
    if len(line) > LONGEST:
        raise LineError(f"longer than {LONGEST:,} bytes")
    try:
        return line.removesuffix(b"\r").removeprefix(_BOM).decode(encoding)
    except UnicodeDecodeError as error:
        raise LineError(f"not {encoding.upper()} at byte {error.start + 1}") from None


def quoted(text: object) -> str:
    """A value as it is shown in a message: in quotes, on one line, not too long.

    >>> quoted("x" * 99) == '"' + "x" * 40 + '…"'
    True
    """
    shown = str(text)
    return json.dumps(f"{shown[:_LONGEST_QUOTE]}…" if len(shown) > _LONGEST_QUOTE else shown, ensure_ascii=False)


def with_point(field: str, decimal: str | None) -> str:
    if decimal == "." or ("," not in field and decimal is None):
        return field
    return (field if decimal is None else field.replace(".", "?")).replace(",", ".")


def _is_text(value: object) -> bool:
    return isinstance(value, str) and not is_missing(value) and not is_number(value)


def clean_names(names: Sequence[str]) -> list[str]:
    return [" ".join(name.split()) for name in names]


def _as_lists(value: Any) -> Any:
    return [_as_lists(each) for each in value] if isinstance(value, tuple) else value


def listed_names(names: Sequence[str], most: int = 20) -> str:
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown}, … ({len(names)} in all)"
