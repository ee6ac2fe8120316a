"""Lines of comma-separated values → rows."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock._types import FloatArray, IndexArray
from penstock.io._csv_kernels import POWERS, read_lines
from penstock.io.columns import Columns, TableOptions, choose_columns, is_missing, is_number
from penstock.io.faults import InputError, LineError, quoted
from penstock.io.lines import LONGEST
from penstock.io.parsed import Parsed, decoded, to_number, to_numbers, to_text

DELIMITERS = (",", ";", "\t", "|")
_DECIMALS = re.compile(r"[+-]?\d*([.,])\d+([eE][+-]?\d+)?")
_TIME = re.compile(r"\d:\d\d|\d[-/.]\d+[-/.]\d|\d[-. ]+[^\W\d]{3,9}[-., ]+\d|[^\W\d]{3,9} \d\d?, \d{4}")
_DECIMALS = re.compile(r"[+-]?\d*([.,])\d+([eE][+-]?\d+)?")
_TIME = re.compile(r"\d:\d\d|\d[-/.]\d+[-/.]\d|\d[-. ]+[^\W\d]{3,9}[-., ]+\d|[^\W\d]{3,9} \d\d?, \d{4}")
csv.field_size_limit(max(csv.field_size_limit(), LONGEST))  # else a long quoted field is reported as bad quotes


@dataclass
class _Reading:
    """What was read from lines in one go: `values` and `times` where they are `plain`, and `fields` left over."""

    values: FloatArray
    times: list[str]
    plain: NDArray[np.bool_]
    places: IndexArray  # line and column of each of the fields
    fields: list[str]


class CsvRows:
    """Reads rows below a header line. A row is one line.

    With ";" between fields decimals follow a comma or a point: what the first row has, or either if it has none.

    >>> rows = CsvRows(TableOptions())
    >>> rows.prepare(b"time;flow;head"), rows.prepare(b"10:00;1,5;20")
    (True, False)
    >>> parsed = rows.parse([b"10:00;1,5;20", b"10:01;;21"])
    >>> parsed.values.tolist(), parsed.times
    ([[1.5, 20.0], [nan, 21.0]], ['10:00', '10:01'])
    """

    def __init__(self, options: TableOptions) -> None:
        self._options = options
        self._names: list[str] = []
        self._delimiter = options.delimiter or ","
        self._decimal: str | None = "."  # before decimals; None for either
        self.columns: Columns | None = None

    def prepare(self, line: bytes) -> bool:
        """The first line is the header; the first row with as many fields tells where the time is."""
        if not self._names:
            self._read_header(line)
            return True
        fields = self._fields(line)
        if _clean(fields) == self._names:  # a logger that was started twice
            return True
        self._refuse_other_layouts(fields)
        columns = choose_columns(self._names, fields, self._options)
        self._settle(columns)
        if self._delimiter == ";":
            measured = [fields[number].strip() for number in columns.variables]
            signs = {found[1] for field in measured if (found := _DECIMALS.fullmatch(field))}
            self._decimal = signs.pop() if len(signs) == 1 else None
        return False

    def is_header(self, line: bytes) -> bool:
        """Whether the names of the header come again; InputError if others do."""
        assert self.columns is not None
        try:
            fields = _clean(self._split(decoded(line)))
        except LineError:
            return False
        if fields == self._names:
            return True
        whole = len(fields) == len(self._names)
        measured = [fields[number] for number in self.columns.variables] if whole else fields
        numbers = [is_number(self._with_point(field)) for field in measured]
        if any(numbers) or (whole and all(map(is_missing, measured))):
            return False  # a row, though perhaps a malformed one
        if len(fields) == 1 and not whole:
            return False  # rather the end of a torn line
        raise InputError(
            f"The columns have changed, from {quoted(self._delimiter.join(self._names))} to "
            f"{quoted(self._delimiter.join(fields))}. Watch the new table on its own."
        )

    def parse(self, lines: Sequence[bytes]) -> Parsed:
        """All lines at once; then, with care, the lines and fields that are not plain."""
        assert self.columns is not None
        lines = [line.removesuffix(b"\r") for line in lines]
        read = self._read_plain(lines)
        faults = self._read_deferred(read)
        for number in np.flatnonzero(~read.plain).tolist():
            try:
                fields = self._fields(lines[number])
                read.values[number] = self._numbers([fields[field] for field in self.columns.variables])
            except LineError as fault:
                faults[number] = str(fault)
            else:
                read.times[number] = fields[self.columns.time or 0]
        kept = [number for number in range(len(lines)) if number not in faults] if faults else slice(None)
        times = read.times if isinstance(kept, slice) else [read.times[number] for number in kept]
        texts: dict[str, list[str | None]] = {}
        if self.columns.texts:
            rows = [self._fields(lines[number]) for number in range(len(lines)) if number not in faults]
            texts = {self._names[n]: [to_text(fields[n]) for fields in rows] for n in self.columns.texts}
        return Parsed(read.values[kept], None if self.columns.time is None else times, sorted(faults.items()), texts)

    def state(self) -> dict[str, Any]:
        assert self.columns is not None
        return {"format": "csv", "delimiter": self._delimiter, "decimal": self._decimal, **self.columns.state()}

    @classmethod
    def restore(cls, state: dict[str, Any], options: TableOptions) -> CsvRows:
        """The parser whose `state()` this is."""
        rows = cls(options)
        rows._delimiter = state["delimiter"]
        rows._decimal = state.get("decimal", None if rows._delimiter == ";" else ".")
        rows._settle(Columns.restore(state))
        return rows

    def _read_header(self, line: bytes) -> None:
        try:
            text = decoded(line)
            self._delimiter = self._options.delimiter or _sniffed(text)
            self._decimal = None if self._delimiter == ";" else "."
            names = _clean(self._split(text))
            names[0] = names[0].removeprefix("#").strip()
        except LineError as fault:
            raise InputError(f"The header line cannot be read: {fault}.") from None
        if all(is_number(name) or is_missing(name) for name in names):
            raise InputError(
                f"The first line holds numbers ({quoted(text)}); a header line with the names of the columns is needed."
            )
        if _is_like_a_row([self._with_point(name) for name in names]):
            raise InputError(_no_header(text))
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice == [""]:
            raise InputError(
                f"The first line has {names.count('')} fields without a name ({quoted(text)}). Lines above the header "
                f"cannot be read here: remove them, and name every column."
            )
        if twice:
            raise InputError(f"The header names {quoted(twice[0])} more than once; give each column a name of its own.")
        self._names = names

    def _refuse_other_layouts(self, fields: Sequence[str]) -> None:
        """Raise for what `penstock detect` reads otherwise than it would be here; `fields` are of the first row."""
        names, shown = self._names, quoted(self._delimiter.join(fields))
        parts = fields[0].split()
        if len(fields) == 1 and len(parts) > 1 and any(is_number(part.replace(",", ".")) for part in parts):
            raise InputError(
                f"There are blanks between the columns ({shown}). Put , ; | or a tab there, and a line with their "
                f"names above; 'penstock detect' reads such tables."
            )
        data = [self._is_data(field) for field in fields]
        texts = [not self._is_data(name) and not is_missing(name) for name in names]
        if any(map(self._is_data, names)) and not any(text and row for text, row in zip(texts, data, strict=True)):
            raise InputError(_no_header(self._delimiter.join(names)))
        if not any(data) and not all(map(is_missing, fields)):
            raise InputError(
                f"The line below the first holds no number and no time ({shown}). Units below the header, and lines "
                f"above it, cannot be read here: remove them. 'penstock detect' reads such tables."
            )

    def _is_data(self, field: str) -> bool:
        """Whether this is a number or a time."""
        return (is_number(self._with_point(field)) or _TIME.search(field) is not None) and not is_missing(field)

    def _settle(self, columns: Columns) -> None:
        self.columns = columns
        self._names = list(columns.names)
        self._column_of_field = np.full(len(columns.names), -1, dtype=np.intp)
        self._column_of_field[list(columns.variables)] = np.arange(len(columns.variables))

    def _split(self, text: str) -> list[str]:
        if '"' not in text:
            return text.split(self._delimiter)
        try:
            return next(csv.reader([text], delimiter=self._delimiter, strict=True))
        except csv.Error as error:
            raise LineError(f"its quotes do not match ({error})") from None

    def _fields(self, line: bytes) -> list[str]:
        fields = self._split(decoded(line))
        if len(fields) != len(self._names):
            raise LineError(f"{len(fields)} fields instead of {len(self._names)}")
        return fields

    def _read_plain(self, lines: list[bytes]) -> _Reading:
        assert self.columns is not None
        n, p, time = len(lines), len(self.columns.variables), self.columns.time
        if max(map(len, lines)) > LONGEST:
            lines = [line if len(line) <= LONGEST else b'"' for line in lines]  # not plain: see _fields
        together = b"\n".join(lines)
        values, plain = np.full((n, p), np.nan), np.empty(n, dtype=np.bool_)
        bounds, deferred = np.zeros((n, 2), dtype=np.intp), np.empty((n * p, 4), dtype=np.intp)
        count = read_lines(
            np.frombuffer(together, dtype=np.uint8),
            ord(self._delimiter),
            self._decimal != ",",
            self._decimal != ".",
            self._column_of_field,
            -1 if time is None else time,
            POWERS,
            values,
            plain,
            bounds,
            deferred,
        )
        text = together.decode("ascii", errors="replace")  # one sign for each byte
        times = [text[start:stop] for start, stop in bounds.tolist()]
        fields = [text[start:stop] for start, stop in deferred[:count, 2:].tolist()]
        return _Reading(values, times, plain, deferred[:count, :2], fields)

    def _read_deferred(self, read: _Reading) -> dict[int, str]:
        """Fill in the fields that are not plain numbers; returns by line what is wrong with those that cannot be."""
        if not read.fields:
            return {}
        lines, columns = read.places.T
        try:
            read.values[lines, columns] = self._numbers(read.fields, columns.tolist())
            return {}
        except LineError:
            pass
        faults: dict[int, str] = {}
        for line, column, field in zip(lines.tolist(), columns.tolist(), read.fields, strict=True):
            try:
                read.values[line, column] = self._numbers([field], [column])[0]
            except LineError as fault:
                faults.setdefault(line, str(fault))
        return faults

    def _numbers(self, fields: Sequence[str], columns: Sequence[int] | None = None) -> list[float]:
        """The numbers that fields spell; `columns` says of which variables, else of all in turn."""
        assert self.columns is not None
        spelt = fields if self._decimal == "." else [self._with_point(field) for field in fields]
        quick = to_numbers(spelt)
        if quick is not None:
            return quick
        names = self.columns.variable_names
        where = range(len(names)) if columns is None else columns
        return [
            to_number(number, names[column], shown=field)
            for number, field, column in zip(spelt, fields, where, strict=True)
        ]

    def _with_point(self, field: str) -> str:
        if self._decimal == ".":
            return field
        return (field if self._decimal is None else field.replace(".", "?")).replace(",", ".")


def _clean(names: Sequence[str]) -> list[str]:
    return [" ".join(name.split()) for name in names]


def _no_header(line: str) -> str:
    return (
        f"There seems to be no header line: the first line is {quoted(line)}. Put a line with the names of the columns "
        f"before it."
    )


def _sniffed(header: str) -> str:
    """The delimiter that a header uses most, outside quotes."""
    outside = "".join(header.split('"')[::2])
    return max(DELIMITERS, key=outside.count)


def _is_like_a_row(names: Sequence[str]) -> bool:
    """Whether names are a time and numbers. Whole numbers alone may be names: those of sensors."""
    texts = [name for name in names if not (is_number(name) or is_missing(name))]
    numbers = [name for name in names if is_number(name)]
    if len(texts) != 1 or not numbers:
        return False
    return texts[0][:1].isdigit() or not all(number.isalnum() for number in numbers)  # 1.5, -1, 1e-3; not 17 or NaN
