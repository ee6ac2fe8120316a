"""Make rows of numbers from JSON objects, one a line."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.io._row_values import (
    Columns,
    LineError,
    Parsed,
    TableOptions,
    check_options,
    decoded,
    finite,
    is_missing,
    listed_names,
    quoted,
    time_by_name,
    to_number,
)
from penstock.io.feeds import InputError


class JsonRows:
    """Parse rows from JSON objects. The keys of the first are the columns; a later one may lack some of them.

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
        """Return the parser for the columns that the first object names; LineError if the line holds none."""
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
        """Return "", a row: objects name their columns themselves."""
        return ""

    def parse(self, lines: Sequence[bytes]) -> Parsed:
        """Parse objects, one a line."""
        time = None if self.columns.time is None else self.columns.names[self.columns.time]
        faults, kept, times = [], [], []
        texts: dict[str, list[str | None]] = {self.columns.names[number]: [] for number in self.columns.texts}
        for number, line in enumerate(lines):
            try:
                values = _object(line)
                if self._known is not None and not self._known.issuperset(values):
                    new = next(key for key in values if key not in self._known)
                    raise LineError(f"key {quoted(new)} was not in the first object")
                row = [_json_number(values.get(name), name) for name in self._names]
                when = None if time is None else values.get(time)
                if isinstance(when, dict | list):
                    raise LineError("its time is neither a text nor a number")
                if isinstance(when, float) and not math.isfinite(when):  # NaN and infinities are not JSON
                    when = None
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
        """Return plain values for `restore_parser`."""
        return {"format": "jsonl", **self.columns.state()}


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


def _json_number(value: object, name: str) -> float:
    if value is None:
        return math.nan
    if isinstance(value, str):
        return to_number(value, name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise LineError(f"column {quoted(name)} holds {quoted(json.dumps(value))}, which is not a number")
    try:
        return finite(float(value), name)
    except OverflowError:
        return finite(math.inf, name)
