"""Make rows of numbers from lines of text with separators, whose layout the first lines show."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from penstock._messages import counted
from penstock._types import FloatArray
from penstock.io._clock import TableClock, find_clock, is_millis_name
from penstock.io._combine import RawTable, without_fillers
from penstock.io._encodings import UTF8, find_encoding, marked_encoding
from penstock.io._layout import find_layout, is_missing, plain_number, refuse_foreign, unit_in_cells
from penstock.io._numbers import MissingCodes
from penstock.io._reading_columns import ReadingColumns, find_reading_columns, named_reading_columns
from penstock.io._readings import ValueOptions, pair_readings
from penstock.io._row_values import (
    BOM,
    Columns,
    Parsed,
    Quality,
    TableOptions,
    check_options,
    decoded,
    is_number,
    listed_names,
    quoted,
    time_by_name,
    to_number,
)
from penstock.io._text import OTHER_SIGN, are_groups, column_names, columns_with_groups
from penstock.io.feeds import LONGEST, InputError
from penstock.io.quality import is_quality, tag_of
from penstock.io.table import ReadLog, TableError
from penstock.io.times import TimeReader, joined_time

_DECIMALS = re.compile(r"[+-]?\d*([.,])\d+([eE][+-]?\d+)?")
_ENOUGH_STEPS, _NEARLY_ALL = 10, 0.8  # of the first rows, and share of them that go back, to call them newest first
_OF_NUMBERS = b"0123456789.+-eE"
TRUTH = {"true": "1", "false": "0"}
csv.field_size_limit(max(csv.field_size_limit(), LONGEST))  # else a long quoted field is reported as bad quotes


@dataclass(frozen=True)
class RowLayout:
    """How lines of text become rows: decided once, from the first lines, and kept in snapshots."""

    columns: Columns
    delimiter: str
    decimals: tuple[str | None, ...]  # for each column the sign before decimals; None for either
    encoding: str = "utf-8"
    booleans: tuple[int, ...] = ()  # columns written as true and false
    header: tuple[str, ...] | None = None  # its fields, None without one
    below: tuple[tuple[str, ...], ...] = ()  # lines of units and descriptions below the header
    above: int = 1  # how many lines are above the first row
    reader: TimeReader | None = None  # of the time column; None if the first lines hold no time
    units: tuple[str, ...] = ()  # what stands after each number of a column, as in "695.1 kW"; none: nothing anywhere
    thousands: str = ""  # the sign between thousands

    def state(self) -> dict[str, Any]:
        plain = asdict(self)
        plain.pop("columns")
        plain["reader"] = None if self.reader is None else self.reader.state()
        return {"format": "csv", **{key: _as_lists(value) for key, value in plain.items()}, **self.columns.state()}

    @classmethod
    def restore(cls, state: dict[str, Any]) -> RowLayout:
        """Return the layout whose `state()` this is; ValueError, TypeError or LookupError if it is none."""
        columns, delimiter = Columns.restore(state), state["delimiter"]
        if not isinstance(delimiter, str) or len(delimiter) != 1:
            raise ValueError("the delimiter is not one character")
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
            None if state["reader"] is None else TimeReader.restore(state["reader"]),
            tuple(map(str, state["units"])),
            str(state["thousands"]),
        )


def learn_layout(
    lines: Sequence[bytes],
    options: TableOptions,
    log: ReadLog,
    elsewhere: Callable[[], Sequence[bytes]] = tuple,
    *,
    more: bool,
) -> RowLayout | None:
    """Decide how lines are read, from the first of them; None if `more` may come and no row has.

    The layout is that of `read_table`; InputError if it cannot be found. Where the first lines do not tell the day from
    the month, lines from `elsewhere` in the file may.
    """
    name = log.source
    lines = [line if len(line) <= LONGEST else b"" for line in lines]
    try:
        text, encoding = _decoded_head(b"\n".join(lines), options.encoding, log)
        decimal = options.decimal or OTHER_SIGN.get(options.thousands or "")
        layout = find_layout(text, name, options.delimiter, decimal, ragged=True)
        if not layout.rows or (more and not layout.has_data):
            return None
        names, unnamed = column_names(layout, name)
    except (TableError, LookupError) as error:  # also of an encoding that is not known
        raise InputError(str(error)) from None
    rows = _cut_lines(lines[layout.lines_above :], layout.separator, encoding, len(names))
    if not rows:
        return None
    units = [unit_in_cells([row[n].strip() for row in rows if not is_missing(row[n])]) for n in range(len(names))]
    for row in rows if any(units) else ():
        row[:] = [field.strip().removesuffix(unit) for field, unit in zip(row, units, strict=True)]
    thousands = options.thousands
    signs, frame = _typed_columns(rows, names, layout.decimal, decimal, thousands)
    if thousands is None and decimal is None:
        suspects, shown, others = columns_with_groups({each: frame[each].to_numpy() for each in names})
        texts = {each: pd.Series([row[n] for row in rows], dtype=str) for n, each in enumerate(names)}
        signed = {each: texts[each][texts[each].str.contains(layout.decimal, regex=False)] for each in suspects}
        if shown and not others and all(are_groups(some, layout.decimal) for some in signed.values()):
            thousands = layout.decimal
            said = f"The {thousands!r} in numbers of {name} was read as standing between thousands, as numbers below"
            log.add("thousands", f"{said} 1000 have none; --decimal {thousands} changes it.", len(suspects))
            signs, frame = _typed_columns(rows, names, layout.decimal, OTHER_SIGN[thousands], thousands)
    kept = without_fillers(RawTable(name, frame, unnamed=unnamed), log).frame
    measured = [each for n, each in enumerate(names) if each in kept and _is_measured(frame[each], signs[n], thousands)]
    unnamed = () if layout.names is None else unnamed
    columns, reader = _choose_columns(names, rows[0], kept, measured, unnamed, options, log)
    if columns.time is not None and (reader is None or log.about("ambiguous dates")):
        cut = [] if reader is None else _cut_lines(elsewhere(), layout.separator, encoding, len(names))
        times = [_time_of(row, columns) for row in [*rows, *cut]]
        reader = TimeReader.learn(times, options.times, log)
    if columns.time is not None and reader is not None and not columns.reading:
        _refuse_newest_first(reader.seconds([_time_of(row, columns) for row in rows]), name)
    if layout.preamble:
        log.add("preamble", f"{counted(len(layout.preamble), 'line')} above the table in {name} left out.", 1)
    if layout.names is None:
        log.add("no header", f"{name} has no header; its columns are called 'column 1' and so on.", layout.width)
    return RowLayout(
        columns,
        layout.separator,
        tuple(signs),
        encoding,
        booleans=tuple(number for number in range(len(names)) if frame[names[number]].dtype.kind == "b"),
        header=layout.names,
        below=tuple(tuple(_clean_names(fields)) for fields in (layout.units, layout.description) if fields),
        above=layout.lines_above,
        reader=reader,
        units=tuple(units) if any(units) else (),
        thousands=thousands or "",
    )


def _typed_columns(
    rows: Sequence[Sequence[str]], names: Sequence[str], found: str, decimal: str | None, thousands: str | None
) -> tuple[list[str | None], pd.DataFrame]:
    """Return the sign before decimals of each column (None where no number shows one), and the columns.

    found, decimal : the sign that the layout shows, and the one that is known.
    """
    signs: list[str | None] = [decimal] * len(names)
    if decimal is None:
        for number in range(len(names)):
            matches = (_DECIMALS.fullmatch(plain_number(row[number])) for row in rows)
            signs[number] = next((match[1] for match in matches if match), None)
        signs = [sign or (found if any(signs) else None) for sign in signs]
    columns = {each: _typed([row[n] for row in rows], signs[n], thousands) for n, each in enumerate(names)}
    return signs, pd.DataFrame(columns)


def _refuse_newest_first(seconds: FloatArray, name: str) -> None:
    steps = np.diff(seconds[np.isfinite(seconds)])
    if len(steps) >= _ENOUGH_STEPS and (steps <= 0).all() and (steps < 0).mean() > _NEARLY_ALL:
        raise InputError(
            f"The rows of {name} are in order of time with the newest first, and a stream is read as its rows come. "
            f"Score it as a file (penstock score), or turn it round (tac)."
        )


def _cut_lines(lines: Sequence[bytes], separator: str, encoding: str, width: int) -> list[list[str]]:
    """Return the fields of those lines that have as many as there are columns."""
    rows = []
    for line in lines:
        with suppress(ValueError):
            rows.append(_split_line(line, separator, encoding))
    return [fields for fields in rows if len(fields) == width]


def _time_of(fields: Sequence[str], columns: Columns) -> str:
    """Return the time of a row as it is written, or its date and time of day."""
    time = fields[columns.time or 0]
    return time if columns.clock is None else joined_time(time, fields[columns.clock])


def _decoded_head(head: bytes, encoding: str | None, log: ReadLog) -> tuple[str, str]:
    """Return the first lines as text, and their encoding, which is noted if it was found and is not UTF-8."""
    marked = None if encoding else marked_encoding(head[:4096])
    if marked is not None or b"\0" in head.partition(b"\n")[0]:
        raise InputError("The first line looks like UTF-16, or is no text at all; save the table as UTF-8.")
    head = head.removeprefix(BOM)
    if encoding:
        return head.decode(encoding, errors="replace").replace("\r\n", "\n"), encoding
    refuse_foreign(head[:4096], log.source)
    found = UTF8
    try:
        text = head.decode()
    except UnicodeDecodeError:
        found = find_encoding([head])
        log.add("encoding", found.note(log.source), 1)
        text = head.decode(found.name, errors="replace")
    return text.replace("\r\n", "\n"), found.name


def _typed(values: Sequence[str], decimal: str | None, thousands: str | None) -> pd.Series[Any]:
    """Return a column as numbers or truth values if all are such, else as text; None where a value is missing."""
    texts = [None if is_missing(value) else value.strip() for value in values]
    there = [text for text in texts if text is not None]
    if there and all(text.lower() in TRUTH for text in there):
        return pd.Series([True] * len(texts))
    spelled = [None if text is None else _with_point(text, decimal, thousands) for text in texts]
    numbers = pd.to_numeric(pd.Series(spelled, dtype="object"), errors="coerce")
    return numbers if numbers.count() == len(there) else pd.Series(texts, dtype="object")


def _choose_columns(
    names: Sequence[str],
    first: Sequence[object],
    kept: pd.DataFrame,
    measured: Collection[str],
    unnamed: Sequence[str],
    options: TableOptions,
    log: ReadLog,
) -> tuple[Columns, TimeReader | None]:
    """Choose the time and the variables among these columns; return also how the time is read.

    first : values of the first row. kept : the first rows without columns that hold nothing or number the rows.
    measured : those of numbers.
    """
    options = options.for_columns(names)
    reading, clock = _find_reading(names, kept, measured, options, ReadLog(log.source))
    if reading is not None:
        return _reading_layout(names, kept, reading, clock, options, log)
    check_options(names, options)
    given = () if options.time is None else (options.time,)
    taken = {*options.columns, *options.texts, *options.exclude}
    raw = RawTable(log.source, kept, unnamed=tuple(name for name in unnamed if name in kept))
    plain = ValueOptions(None, MissingCodes.of(()))
    if not given and pair_readings(raw, options.times, set(options.exclude), plain, ReadLog(log.source)):
        raise InputError(
            f"{log.source} has a time beside each tag, so that its lines are not in order of time. Score it as a "
            f"file (penstock score), or stream a line for each reading: tag, time, value."
        )
    clock = TableClock(None, None, ())
    try:
        if not given or given[0] in kept:
            about_time = ReadLog(log.source)
            clock = find_clock(kept, replace(options.times, columns=given), taken, about_time)
            log.notes += [note for note in about_time.notes if note.kind == "ambiguous dates"]
    except TableError as error:  # a column that is passed on as the time need not hold times
        if options.times.format is not None:
            raise InputError(str(error)) from None
    beside = clock.columns[1:] if clock.times is not None else ()
    has_parts = any(kept[name].dtype.kind in "iuf" and not is_millis_name(name) for name in beside)
    if len(beside) > 1 or has_parts:
        raise InputError(
            f"The time of {log.source} is spread over {', '.join(map(quoted, clock.columns))}, which is not read "
            f"from a stream. Score it as a file (penstock score), or stream a column with the whole time."
        )
    found = [names.index(name) for name in (clock.columns if beside else given or clock.columns)]
    time = found[0] if found else time_by_name(names, first, unnamed, taken)
    time_of_day = found[1] if len(found) == 2 and clock.times is not None else None
    used_up = {names[place] for place in (*found, *([] if time is None else [time]))}
    variables = [name for name in options.columns if name not in options.exclude]
    qualities = _find_quality(names, kept, used_up)
    if not (options.columns or options.texts):
        chosen = {name for name in names if name in kept} - {*used_up, *options.exclude}
        variables = [name for name in names if name in chosen and qualities.get(name) not in chosen]
        if time not in (None, 0) and names[0] in unnamed and names[0] in variables:
            variables.remove(names[0])
            log.add("row numbers", "The first column has no name and another is the time: it is left out.", 1)
        texts = [name for name in variables if name not in measured]
        if texts:
            shown = ", ".join(map(quoted, texts[:5])) + (", …" if len(texts) > 5 else "")
            log.add("text", f"Left out, as the first lines hold text there: {shown}.", len(texts), tuple(texts))
            variables = [name for name in variables if name in measured]
    if not (variables or options.texts):
        raise InputError(f"No column is left to measure anomalies in; the columns are {listed_names(names)}.")
    place_of = {name: place for place, name in enumerate(names)}
    places, written = (tuple(place_of[name] for name in each) for each in (variables, options.texts))
    chosen = {*variables}
    quality = tuple(
        Quality(place_of[name], place_of[tag], _some_values(kept[name]), name)
        for name, tag in qualities.items()
        if tag in chosen and name not in chosen
    )
    return Columns(tuple(names), time, places, written, time_of_day, quality=quality), clock.reader


def _find_reading(
    names: Sequence[str], kept: pd.DataFrame, measured: Collection[str], options: TableOptions, log: ReadLog
) -> tuple[ReadingColumns | None, TableClock]:
    """Return the columns of tag and value, if each row of a stream is one reading, and its time."""
    asked, clock = set(options.columns), TableClock(None, None, ())
    if not asked.isdisjoint(names):
        return None, clock
    given = () if options.time is None or options.time not in kept else (options.time,)
    with suppress(TableError):
        clock = find_clock(kept, replace(options.times, columns=given), named_reading_columns(names), log)
    found = find_reading_columns(kept, clock.columns, options.exclude, asked if options.readings else ())
    if found is not None and not asked:
        alone = set(measured) - {*options.exclude, *clock.columns} == {found.value}
        found = found if found.named and alone and kept[found.tag].nunique() > 1 else None
    return found, clock


def _reading_layout(
    names: Sequence[str],
    kept: pd.DataFrame,
    reading: ReadingColumns,
    clock: TableClock,
    options: TableOptions,
    log: ReadLog,
) -> tuple[Columns, TimeReader | None]:
    if not options.readings:
        raise InputError(
            f"{log.source} has a row for each reading ({quoted(reading.tag)} and {quoted(reading.value)}). "
            f"Rows are made of them on a clock: that of a model that was fitted to such readings, or give --step and "
            f"the tags (--columns)."
        )
    if clock.times is None:
        raise InputError(f"{log.source} has a row for each reading, but no time that can be read (--time).")
    places = tuple(names.index(name) for name in (reading.tag, reading.value, *reading.quality))
    said = tuple(Quality(place, places[1], _some_values(kept[names[place]]), names[place]) for place in places[2:])
    when = [names.index(name) for name in clock.columns]
    clock_place = when[1] if len(when) > 1 else None
    return Columns(tuple(names), when[0], (), places, clock_place, reading=True, quality=said), clock.reader


def _some_values(column: pd.Series[Any]) -> tuple[str, ...]:
    return tuple(f"{value:g}" if isinstance(value, float) else str(value) for value in column.dropna().unique()[:50])


def _find_quality(names: Sequence[str], kept: pd.DataFrame, time: Collection[str]) -> dict[str, str]:
    """Return the columns that say which readings of another are bad, and that other one."""
    others = [name for name in names if name not in time]
    said = {name: tag_of(name, others) for name in kept.columns if name not in time and is_quality(name, kept[name])}
    return {name: tag for name, tag in said.items() if tag is not None and tag != name}


def _is_measured(column: pd.Series[Any], decimal: str | None, thousands: str | None) -> bool:
    if column.dtype.kind in "iufb":
        return True
    values = [_with_point(value, decimal, thousands) for value in column.dropna()]
    return 2 * sum(map(is_number, values)) >= len(values)


def _split_line(line: bytes, delimiter: str, encoding: str = "utf-8") -> list[str]:
    """Return the fields of a line; ValueError if it is too long, in another encoding, or its quotes do not match."""
    text = decoded(line, encoding)
    if '"' not in text:
        return text.split() if delimiter == " " else text.split(delimiter)
    try:
        return next(csv.reader([text], delimiter=delimiter, strict=True, skipinitialspace=True))
    except csv.Error as error:
        raise ValueError(f"its quotes do not match ({error})") from None


def _with_point(field: str, decimal: str | None, thousands: str | None = None) -> str:
    field = plain_number(field.replace(thousands, "") if thousands else field)
    if decimal == "." or ("," not in field and decimal is None):
        return field
    return (field if decimal is None else field.replace(".", "?")).replace(",", ".")


def _clean_names(names: Sequence[str]) -> list[str]:
    return [" ".join(name.split()) for name in names]


def _as_lists(value: Any) -> Any:
    return [_as_lists(each) for each in value] if isinstance(value, tuple) else value


class CsvRows:
    """Parse rows from lines of text with separators, one row a line."""

    def __init__(self, layout: RowLayout, missing: Collection[str] = ()) -> None:
        self.layout = layout
        self._missing = MissingCodes.of(tuple(missing))  # further texts and numbers for a missing reading
        self.columns = layout.columns
        self.reader = layout.reader  # of the time; None as long as no time was there that can be read
        signs = [layout.decimals[number] for number in self.columns.variables]
        self._has_commas = layout.delimiter != "," and all(sign == "," for sign in signs)
        # A number means the same in every column.
        self._is_plain = not layout.thousands and (self._has_commas or "," not in signs)
        self.has_lines_below = bool(layout.below)
        first = 0 if self.columns.time is None else 1
        every = tuple(range(first, len(self.columns.names)))
        in_order = self.columns.variables == every and self.columns.time in (None, 0)
        others = self.columns.texts or self.columns.quality or self.columns.clock is not None
        self._at_once = in_order and not others and self._is_plain and not self._has_commas and layout.delimiter != " "

    def state(self) -> dict[str, Any]:
        return replace(self.layout, reader=self.reader).state()

    def role_above(self, line: bytes, number: int) -> str:
        """Return what a line of a further file is, by its number from 0: "header", "units", "preamble" or "", a row.

        InputError for another header.
        """
        layout, names = self.layout, self.layout.header
        try:
            fields = _clean_names(_split_line(line, layout.delimiter, layout.encoding))
        except ValueError:
            return ""
        bare = [fields[0].removeprefix("#").strip(), *fields[1:]]
        if names is None or bare == list(names):
            return "" if names is None else "header"
        if tuple(fields) in layout.below:
            return "units"
        whole = len(fields) == len(self.columns.names)
        measured = [fields[place] for place in self.columns.variables] if whole else fields
        numbers = [is_number(_with_point(field, None)) for field in measured]
        if any(numbers):
            return ""  # a row, though perhaps a malformed one
        if number < layout.above - 1 - len(layout.below):
            return "preamble"
        if (whole and all(map(is_missing, measured))) or (len(fields) == 1 and not whole):
            return ""  # a row without readings, or the end of a torn line
        raise InputError(
            f"The columns have changed, from {quoted(layout.delimiter.join(names))} to "
            f"{quoted(layout.delimiter.join(fields))}. Watch the new table on its own."
        )

    def parse(self, lines: Sequence[bytes]) -> Parsed:
        """Parse lines, none of them blank; the result of a line does not depend on the other lines."""
        if self._at_once and (parsed := self._plain_lines(lines)) is not None:
            return parsed
        numbers, times, kept = list[list[float]](), list[str](), list[list[str]]()
        faults: dict[int, str] = {}
        for number, line in enumerate(lines):
            try:
                fields = self.fields(line)
                numbers.append(self._numbers(line, fields))
            except ValueError as fault:
                faults[number] = str(fault)
                continue
            kept.append(fields)
            times.append("" if self.columns.time is None else _time_of(fields, self.columns))
        values = np.array(numbers, dtype=np.float64).reshape(len(kept), len(self.columns.variables))
        if self._missing.numbers:
            values[np.isin(values, self._missing.numbers)] = np.nan
        texts: dict[str, list[str | None]] = {}
        if self.columns.texts or self.columns.quality:
            words = {
                place: [None if is_missing(row[place]) else row[place].strip() for row in kept]
                for place in (*self.columns.texts, *(each.place for each in self.columns.quality))
            }
            for each in self.columns.quality if not self.columns.reading else ():
                values[each.bad(words[each.place]), self.columns.variables.index(each.of)] = np.nan
            texts = {self.columns.names[place]: words[place] for place in self.columns.texts}
        return Parsed(values, None if self.columns.time is None else times, sorted(faults.items()), texts)

    def _plain_lines(self, lines: Sequence[bytes]) -> Parsed | None:
        """Return all rows, read at once; None if a number among them is not plainly written."""
        sign, width = self.layout.delimiter.encode(), len(self.columns.names)
        if any(line.count(sign) != width - 1 or len(line) > LONGEST for line in lines):
            return None
        times, rows = list[bytes](), list(lines)
        if self.columns.time is not None:
            parts = [line.partition(sign) for line in lines]
            times, rows = [part[0] for part in parts], [part[2] for part in parts]
        if rows and rows[0].endswith(b"\r"):
            rows = [row.removesuffix(b"\r") for row in rows]
        numbers, written = sign.join([b"", *rows, b""]), b"\n".join(times)
        if numbers.translate(None, _OF_NUMBERS + sign) or not written.isascii() or b'"' in written:
            return None
        numbers = numbers.replace(sign, b",")  # a tab would part numbers such as 1-2 too
        if b",," in numbers:  # a field without a reading
            numbers = numbers.replace(b",,", b",nan,").replace(b",,", b",nan,")
        with suppress(ValueError, DeprecationWarning):  # by the version of NumPy, where something is no number
            read = np.fromstring(numbers[1:-1], dtype=np.float64, sep=",")
            if len(read) == len(lines) * len(self.columns.variables) and not np.isinf(read).any():
                values = read.reshape(len(lines), -1)
                if self._missing.numbers:
                    values[np.isin(values, self._missing.numbers)] = np.nan
                return Parsed(values, None if self.columns.time is None else written.decode().split("\n"))
        return None

    def fields(self, line: bytes) -> list[str]:
        """Return the fields of a line; ValueError unless there is one for each column."""
        fields = _split_line(line, self.layout.delimiter, self.layout.encoding)
        if len(fields) != len(self.columns.names):
            raise ValueError(f"{len(fields)} fields instead of {len(self.columns.names)}")
        return fields

    def _numbers(self, line: bytes, fields: list[str]) -> list[float]:
        """Return the numbers of the variables; nearly always all of them are plainly written."""
        # Python reads 1_2, inf and digits of other scripts too.
        if self._is_plain and line.isascii() and b"_" not in line and b'"' not in line:
            plain = fields
            if self._has_commas:
                plain = line.replace(b".", b"?").replace(b",", b".").decode("ascii").split(self.layout.delimiter)
            with suppress(ValueError):
                found = [float(plain[place]) if plain[place] else math.nan for place in self.columns.variables]
                if math.isfinite(sum(found)) or not any(map(math.isinf, found)):
                    return found
        return [self._number(fields[place], column) for column, place in enumerate(self.columns.variables)]

    def _number(self, field: str, column: int) -> float:
        if not field or field.strip() in self._missing.texts:
            return math.nan
        place = self.columns.variables[column]
        plain = field.strip().removesuffix(self.layout.units[place]) if self.layout.units else field
        spelled = _with_point(plain, self.layout.decimals[place], self.layout.thousands)
        if place in self.layout.booleans:
            spelled = TRUTH.get(spelled.strip().lower(), spelled)
        return to_number(spelled, self.columns.names[place], shown=field)
