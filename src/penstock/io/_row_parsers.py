"""Make rows of numbers from lines: of text with separators, whose layout the first lines tell, or of JSON objects."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock._types import FloatArray
from penstock.io._csv_kernels import POWERS, read_lines
from penstock.io._row_layout import (
    TRUTH,
    Columns,
    LineError,
    RowLayout,
    TableOptions,
    check_options,
    clean_names,
    decoded,
    is_missing,
    is_number,
    listed_names,
    quoted,
    split_line,
    time_by_name,
    with_point,
)
from penstock.io.feeds import LONGEST, InputError


@dataclass
class Parsed:
    """Rows of numbers (NaN: no reading), their times as written, and the lines that could not be read."""

    values: FloatArray
    times: list[Any] | None
    faults: list[tuple[int, str]] = field(default_factory=list)  # number of the line among those given, reason
    texts: dict[str, list[str | None]] = field(default_factory=dict)  # columns that are not numbers, None: missing


class CsvRows:
    """Reads rows from lines of text with separators. A row is one line.

    >>> layout = RowLayout(Columns(("time", "flow", "head"), 0, (1, 2)), ";", (None, ",", None))
    >>> parsed = CsvRows(layout).parse([b"10:00;1,5;20", b"10:01;;21"])
    >>> parsed.values.tolist(), parsed.times
    ([[1.5, 20.0], [nan, 21.0]], ['10:00', '10:01'])
    """

    def __init__(self, layout: RowLayout) -> None:
        self.layout = layout
        self.columns = layout.columns
        self._column_of_field = np.full(len(self.columns.names), -1, dtype=np.intp)
        self._column_of_field[list(self.columns.variables)] = np.arange(len(self.columns.variables))
        signs = [layout.decimals[number] for number in self.columns.variables]
        self._points = np.array([sign != "," for sign in signs], dtype=np.bool_)
        self._commas = np.array([sign != "." for sign in signs], dtype=np.bool_)
        self.has_lines_below = bool(layout.below)

    def state(self) -> dict[str, Any]:
        """Plain values from which `restore_parser` makes this parser again."""
        return self.layout.state()

    def role_above(self, line: bytes, number: int) -> str:
        """What the line is that comes as this one (from 0) in a further file: "header", "units", "preamble", "" a row.

        InputError for another header.
        """
        layout, names = self.layout, self.layout.header
        try:
            fields = clean_names(split_line(line, layout.delimiter, layout.encoding))
        except LineError:
            return ""
        bare = [fields[0].removeprefix("#").strip(), *fields[1:]]
        if names is None or bare == list(names):
            return "" if names is None else "header"
        if tuple(fields) in layout.below:
            return "units"
        whole = len(fields) == len(self.columns.names)
        measured = [fields[place] for place in self.columns.variables] if whole else fields
        numbers = [is_number(with_point(field, None)) for field in measured]
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
        """Numbers from lines, none of them blank. What a line gives does not depend on the other lines.

        All lines at once; then, with care, the lines and fields that are not plain.
        """
        if self.layout.delimiter == " ":
            lines = [b" ".join(line.split()) for line in lines]
        else:
            lines = [line.removesuffix(b"\r") for line in lines]
        values, times, plain, places, spelled = self._read_plain(lines)
        faults: dict[int, str] = {}
        for (line, column), text in zip(places.tolist(), spelled, strict=True):
            try:
                values[line, column] = self._number(text, column)
            except LineError as fault:
                faults.setdefault(line, str(fault))
        for line in np.flatnonzero(~plain).tolist():
            try:
                fields = self.fields(lines[line])
                values[line] = [self._number(fields[n], column) for column, n in enumerate(self.columns.variables)]
                times[line] = self._time(fields)
            except LineError as fault:
                faults[line] = str(fault)
        kept = [number for number in range(len(lines)) if number not in faults]
        if faults:
            values, times = values[kept], [times[number] for number in kept]
        texts: dict[str, list[str | None]] = {}
        if self.columns.texts:
            rows = [self.fields(lines[number]) for number in kept]
            for place in self.columns.texts:
                texts[self.columns.names[place]] = [
                    None if is_missing(row[place]) else row[place].strip() for row in rows
                ]
        return Parsed(values, None if self.columns.time is None else times, sorted(faults.items()), texts)

    def fields(self, line: bytes) -> list[str]:
        """The fields of a line; LineError unless there is one for each column."""
        fields = split_line(line, self.layout.delimiter, self.layout.encoding)
        if len(fields) != len(self.columns.names):
            raise LineError(f"{len(fields)} fields instead of {len(self.columns.names)}")
        return fields

    def _time(self, fields: Sequence[str]) -> str:
        time, clock = self.columns.time or 0, self.columns.clock
        return fields[time] if clock is None else f"{fields[time]} {fields[clock]}"

    def _read_plain(
        self, lines: Sequence[bytes]
    ) -> tuple[FloatArray, list[str], NDArray[np.bool_], NDArray[np.intp], list[str]]:
        """Values and times of all lines; which lines these are good for; places and texts of fields left over."""
        n, p, columns = len(lines), len(self.columns.variables), self.columns
        if max(map(len, lines)) > LONGEST:
            lines = [line if len(line) <= LONGEST else b'"' for line in lines]  # not plain: see `fields`
        together = b"\n".join(lines)
        values, plain = np.full((n, p), np.nan), np.empty(n, dtype=np.bool_)
        bounds, deferred = np.zeros((n, 4), dtype=np.intp), np.empty((n * p, 4), dtype=np.intp)
        count = read_lines(
            np.frombuffer(together, dtype=np.uint8),
            ord(self.layout.delimiter),
            self._points,
            self._commas,
            self._column_of_field,
            -1 if columns.time is None else columns.time,
            -1 if columns.clock is None else columns.clock,
            POWERS,
            values,
            plain,
            bounds,
            deferred,
        )
        text = together.decode("ascii", errors="replace")  # one sign for each byte
        times = [text[start:stop] for start, stop in bounds[:, :2].tolist()]
        if columns.clock is not None:
            clocks = [text[start:stop] for start, stop in bounds[:, 2:].tolist()]
            times = [f"{date} {clock}" for date, clock in zip(times, clocks, strict=True)]
        fields = [text[start:stop] for start, stop in deferred[:count, 2:].tolist()]
        return values, times, plain, deferred[:count, :2], fields

    def _number(self, field: str, column: int) -> float:
        """The number that a field of a variable spells."""
        place = self.columns.variables[column]
        spelled = with_point(field, self.layout.decimals[place])
        if place in self.layout.booleans:
            spelled = TRUTH.get(spelled.strip().lower(), spelled)
        return to_number(spelled, self.columns.names[place], shown=field)


class JsonRows:
    """Reads rows from objects. The keys of the first are the columns; one that is absent later, or null, is missing.

    >>> rows = JsonRows.of(b'{"time": 1, "flow": 2.5}', TableOptions())
    >>> parsed = rows.parse([b'{"time": 1, "flow": 2.5}', b'{"time": 2}', b'{"flaw": 2}'])
    >>> parsed.values.tolist(), parsed.times
    ([[2.5], [nan]], [1, 2])
    >>> parsed.faults
    [(2, 'key "flaw" was not in the first object')]
    """

    has_lines_below = False

    def __init__(self, columns: Columns, options: TableOptions) -> None:
        self.columns = columns
        self._names = columns.variable_names
        # With --columns, other keys do not matter; without, a new one is a column that is not watched.
        self._known = None if options.columns or options.texts else frozenset(columns.names)

    @classmethod
    def of(cls, line: bytes, options: TableOptions) -> JsonRows:
        """The parser for the columns that the first object names; LineError if the line holds none."""
        first = _object(line)
        if not first:
            raise LineError("an object without any key")
        names = list(first)
        options = options.for_columns(names)
        check_options(names, options)
        values = [str(value) if isinstance(value, str) else "1" for value in first.values()]
        taken = {*options.columns, *options.texts, *options.exclude}
        time = names.index(options.time) if options.time is not None else time_by_name(names, values, ("",), taken)
        others = () if options.texts else tuple(name for number, name in enumerate(names) if number != time)
        variables = tuple(names.index(name) for name in options.columns or others if name not in options.exclude)
        if not (variables or options.texts):
            raise InputError(f"No column is left to measure anomalies in; the columns are {listed_names(names)}.")
        return cls(Columns(tuple(names), time, variables, tuple(map(names.index, options.texts))), options)

    def role_above(self, line: bytes, number: int) -> str:
        """Always a row: objects name their columns themselves."""
        return ""

    def parse(self, lines: Sequence[bytes]) -> Parsed:
        """Numbers from objects, one a line."""
        time = None if self.columns.time is None else self.columns.names[self.columns.time]
        faults, kept, times = [], [], []
        texts: dict[str, list[str | None]] = {self.columns.names[number]: [] for number in self.columns.texts}
        for number, line in enumerate(lines):
            try:
                values = _object(line)
                row, when = self._row(values), None if time is None else _json_time(values.get(time))
            except LineError as fault:
                faults.append((number, str(fault)))
            else:
                kept.append(row)
                times.append(when)
                for name, column in texts.items():
                    value = values.get(name)
                    text = value if isinstance(value, str) else json.dumps(value)
                    column.append(None if value is None or is_missing(text) else text.strip())
        table = np.array(kept, dtype=np.float64).reshape(len(kept), len(self._names))
        return Parsed(table, None if time is None else times, faults, texts)

    def state(self) -> dict[str, Any]:
        """Plain values from which `restore_parser` makes this parser again."""
        return {"format": "jsonl", **self.columns.state()}

    def _row(self, values: dict[str, Any]) -> list[float]:
        if self._known is not None and not self._known.issuperset(values):
            new = next(key for key in values if key not in self._known)
            raise LineError(f"key {quoted(new)} was not in the first object")
        return [_json_number(values.get(name), name) for name in self._names]


RowParser = CsvRows | JsonRows


def restore_parser(state: dict[str, Any], options: TableOptions) -> RowParser:
    """The parser whose `state()` this is; ValueError, TypeError or LookupError if it is none."""
    if state["format"] == "jsonl":
        return JsonRows(Columns.restore(state), options)
    if state["format"] != "csv":
        raise ValueError(f"there is no format {state['format']!r}")
    return CsvRows(RowLayout.restore(state))


def to_number(text: str, name: str, shown: str | None = None) -> float:
    """The number that a field spells, NaN for a reading that is not there; `shown` is how the input spells it.

    >>> to_number("2.5", "flow"), to_number("NA", "flow")
    (2.5, nan)
    >>> to_number("off", "flow")
    Traceback (most recent call last):
    penstock.io._row_layout.LineError: column "flow" holds "off", which is not a number
    """
    try:
        value = float(text)
    except ValueError:
        if is_missing(text):
            return math.nan
        value = None
    if value is None or "_" in text or not text.isascii():  # Python's own spelling, which no instrument writes
        raise LineError(
            f"column {quoted(name)} holds {quoted(text if shown is None else shown)}, which is not a number"
        )
    return _finite(value, name)


def _finite(value: float, name: str) -> float:
    if math.isinf(value):
        raise LineError(f"column {quoted(name)} holds an infinite value or one too large for a float")
    return value


def _object(line: bytes) -> dict[str, Any]:
    text = decoded(line)
    try:
        value = json.loads(text, object_pairs_hook=_without_repeats)
    except LineError:
        raise
    except (ValueError, RecursionError) as error:
        raise LineError(f"not JSON ({error})") from None
    if not isinstance(value, dict):
        raise LineError("not a JSON object")
    return value


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        keys = [key for key, _ in pairs]
        raise LineError(f"key {quoted(next(key for key in keys if keys.count(key) > 1))} comes more than once")
    return values


def _json_time(value: object) -> object:
    """Any text or number; what JSON should not hold (NaN) is no time."""
    if isinstance(value, dict | list):
        raise LineError("its time is neither a text nor a number")
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _json_number(value: object, name: str) -> float:
    if value is None:
        return math.nan
    if isinstance(value, str):
        return to_number(value, name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise LineError(f"column {quoted(name)} holds {quoted(json.dumps(value))}, which is not a number")
    try:
        return _finite(float(value), name)
    except OverflowError:
        return _finite(math.inf, name)
