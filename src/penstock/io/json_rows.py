"""Lines that hold a JSON object each → rows."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from penstock.io.columns import Columns, TableOptions, choose_columns
from penstock.io.faults import LineError, quoted
from penstock.io.parsed import Parsed, as_rows, decoded, finite, to_number, to_text


class JsonRows:
    """Reads rows from objects. The keys of the first are the columns; one that is absent later, or null, is missing.

    >>> rows = JsonRows(TableOptions())
    >>> rows.prepare(b'{"time": 1, "flow": 2.5}')
    False
    >>> parsed = rows.parse([b'{"time": 1, "flow": 2.5}', b'{"time": 2}', b'{"flaw": 2}'])
    >>> parsed.values.tolist(), parsed.times
    ([[2.5], [nan]], [1, 2])
    >>> parsed.faults
    [(2, 'key "flaw" was not in the first object')]
    """

    def __init__(self, options: TableOptions) -> None:
        self._options = options
        self.columns: Columns | None = None

    def prepare(self, line: bytes) -> bool:
        """The first object that can be read names the columns."""
        first = _object(line)
        if not first:
            raise LineError("an object without any key")
        self._settle(choose_columns(list(first), list(first.values()), self._options))
        return False

    def is_header(self, line: bytes) -> bool:
        """Never: objects name their columns themselves."""
        return False

    def parse(self, lines: Sequence[bytes]) -> Parsed:
        assert self.columns is not None
        time = None if self.columns.time is None else self.columns.names[self.columns.time]
        faults, kept, times = [], [], []
        texts: dict[str, list[str | None]] = {self.columns.names[number]: [] for number in self.columns.texts}
        for number, line in enumerate(lines):
            try:
                values = _object(line)
                row, when = self._row(values), None if time is None else _time(values.get(time))
            except LineError as fault:
                faults.append((number, str(fault)))
            else:
                kept.append(row)
                times.append(when)
                for name, column in texts.items():
                    value = values.get(name)
                    column.append(
                        to_text("" if value is None else value if isinstance(value, str) else json.dumps(value))
                    )
        return Parsed(as_rows(kept, self.columns), None if time is None else times, faults, texts)

    def state(self) -> dict[str, Any]:
        assert self.columns is not None
        return {"format": "jsonl", **self.columns.state()}

    @classmethod
    def restore(cls, state: dict[str, Any], options: TableOptions) -> JsonRows:
        """The parser whose `state()` this is."""
        rows = cls(options)
        rows._settle(Columns.restore(state))
        return rows

    def _settle(self, columns: Columns) -> None:
        self.columns = columns
        self._names = columns.variable_names
        # With --columns, other keys do not matter; without, a new one is a column that nobody watches.
        chosen = self._options.columns or self._options.texts
        self._known = None if chosen else frozenset(columns.names)

    def _row(self, values: dict[str, Any]) -> list[float]:
        if self._known is not None and not values.keys() <= self._known:
            new = next(key for key in values if key not in self._known)
            raise LineError(f"key {quoted(new)} was not in the first object")
        return [_number(values.get(name), name) for name in self._names]


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


def _time(value: object) -> object:
    """Any text or number; what JSON should not hold (NaN) is no time."""
    if isinstance(value, dict | list):
        raise LineError("its time is neither a text nor a number")
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _number(value: object, name: str) -> float:
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
