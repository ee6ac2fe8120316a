"""Which rows are read, fitted and scored: periods, durations, and label values, as users give them.

Texts and objects of users come in, with a table; which of its rows are meant goes out.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from penstock._messages import counted, listed
from penstock._types import BoolArray
from penstock.columns import RowRule, order_to_stamp
from penstock.detection.failures import Failure, read_failures
from penstock.explain import Truth, known_faults
from penstock.io import Note, Table, TableError, parse_duration
from penstock.options import ReadingOptions

_MOST_NAMES, _FIRST_NAMES = 20, 5
_FORM = "Write it like 2024-05-31 or '2024-05-31 13:40', or, where there is no time, as a row number (from 0)"


def read_duration(name: str, value: Any) -> pd.Timedelta | int | None:
    """Read a duration (a text, or an object of Python, NumPy or pandas) or a number of rows; None stays None."""
    if value is None:
        return None
    if isinstance(value, str):
        if value.isascii() and value.isdigit() and len(value) < 10:
            return int(value)
        try:
            return parse_duration(value)
        except ValueError as error:
            raise TableError(f"{name}: {error}", name) from None
    if isinstance(value, dt.timedelta | np.timedelta64) and pd.Timedelta(value) >= pd.Timedelta(0):  # NaT is not
        return pd.Timedelta(value)
    if isinstance(value, int | np.integer) and type(value) not in (bool, np.timedelta64) and value >= 0:
        return int(value)
    raise TableError(
        f"{name} must be a duration, such as '30 min', or a whole number of rows; got {value!r:.100}.", name
    )


@dataclass(frozen=True)
class UsedRows:
    """Which rows of a table count, and what is known of them.

    since, until : only rows from the one to the other. A moment is a time, where a day or a month stands for all of it;
        of a table without time it is a row number, from 0. All periods include both ends.
    exclude : periods that are neither fitted to nor scored.
    faults, unknown : values of the label that mean a fault, and those of rows of which nothing is known; see
        `known_faults`.
    failures : or a log of failures, in place of a label.
    """

    since: Any = None
    until: Any = None
    exclude: tuple[tuple[Any, Any], ...] = ()
    faults: tuple[Any, ...] = ()
    unknown: tuple[Any, ...] = ()
    failures: tuple[Failure, ...] = ()

    @classmethod
    def of(cls, options: ReadingOptions) -> UsedRows:
        """Check what a user gives, before a table is read."""
        for name in ("since", "until"):
            check_moment(name, getattr(options, name))
        return cls(
            options.since,
            options.until,
            read_periods("exclude_periods", options.exclude_periods),
            _several(options.fault_values),
            _several(options.unknown_values),
            read_failures(options.failures),
        )

    def take(self, table: Table) -> tuple[Table, Truth | None, BoolArray, list[Note]]:
        """Return the rows that are used, what is known of them, which to leave out, and a note on each such period."""
        table = self._between(table)
        truth = self._truth(table)
        return table, truth, *self._excluded(table)

    def _between(self, table: Table) -> Table:
        """Return the table from `since` until `until`, with a note on how many rows that leaves out."""
        if self.since is None and self.until is None:
            return table
        rows = _rows_between("since", self.since, "until", self.until, table)
        if not rows.any():
            raise TableError(f"No row is left {_in_words(self.since, self.until)}: {_extent(table)}.")
        out = int((~rows).sum())
        part = table.only(rows)
        if not out:
            return part
        message = (
            f"{out:,} of {counted(len(rows), 'row')} were not used: only those {_in_words(self.since, self.until)}. "
            f"Notes on how the table was read are about all rows."
        )
        return replace(part, notes=(*part.notes, Note("period", message, out, changed=True)))

    def _excluded(self, table: Table) -> tuple[BoolArray, list[Note]]:
        """Return the rows of the periods to leave out, and a note on each."""
        out = np.zeros(len(table.values), dtype=np.bool_)
        notes = []
        for first, last in self.exclude:
            rows = _rows_between("exclude_periods", first, "exclude_periods", last, table)
            words = _in_words(first, last)
            if not rows.any():
                raise TableError(f"There is no row to exclude {words}: {_extent(table)}.")
            message = f"{counted(int(rows.sum()), 'row')} {words} neither fitted to nor scored, as asked."
            notes.append(Note("excluded period", message, int(rows.sum()), changed=True))
            out |= rows
        if self.exclude and out.all():
            raise TableError(f"No row is left: the periods to exclude cover all {counted(len(out), 'row')}.")
        return out, notes

    def _truth(self, table: Table) -> Truth | None:
        """Read the label of a table, or the log of failures; None if there is neither."""
        if self.failures and table.label is not None:
            raise TableError("failures and a label exclude each other: findings are compared with one.", "failures")
        if self.failures:
            return self._logged(table)
        if table.label is not None:
            return known_faults(table.label, self.faults, self.unknown)
        if self.faults or self.unknown:
            given = "fault_values" if self.faults else "unknown_values"
            raise TableError(f"{given}: there is no label. Name the column that holds these values.", given)
        return None

    def _logged(self, table: Table) -> Truth:
        """Return which rows lie in a failure of the log."""
        rows = np.zeros(len(table.values), dtype=np.bool_)
        here = 0
        for each in self.failures:
            mine = _rows_between("failures", each.start, "failures", each.end, table)
            rows |= mine
            here += bool(mine.any())
        sentence = f"{counted(len(self.failures), 'failure')} in the log, {here:,} of them with rows of this table."
        return Truth(rows, np.zeros(len(rows), dtype=np.bool_), sentence)

    def described(self) -> dict[str, str | None]:
        return {
            "since": None if self.since is None else str(self.since),
            "until": None if self.until is None else str(self.until),
            "exclude_periods": shown_periods(self.exclude),
            "fault_values": shown_names(self.faults),
            "unknown_values": shown_names(self.unknown),
            "failures": counted(len(self.failures), "failure") if self.failures else None,
        }


def read_periods(name: str, given: Any) -> tuple[tuple[Any, Any], ...]:
    """Return the first and the last moment of periods: "START..END", or several of these or of pairs."""
    pairs = tuple(_as_pair(name, each) for each in ([given] if isinstance(given, str) else given))
    for moment in sum(pairs, ()):
        check_moment(name, moment)
    return pairs


def rows_of_period(table: Table, period: Any) -> BoolArray:
    """Return the rows of a period, given as in `exclude_periods`."""
    ((first, last),) = read_periods("exclude_periods", [period])
    return _rows_between("exclude_periods", first, "exclude_periods", last, table)


def training_rows(table: Table, until: Any, rule: RowRule | None, periods: Sequence[tuple[Any, Any]] = ()) -> BoolArray:
    """Return the rows to learn from: up to a moment, where a rule holds, or of periods; all if none is given."""
    if periods:
        rows = np.zeros(len(table.values), dtype=np.bool_)
        for first, last in periods:
            rows |= _rows_between("train_periods", first, "train_periods", last, table)
        words = ", ".join(_in_words(*pair) for pair in periods)
        otherwise = f"there is no row {words}, as {_extent(table)}"
    elif rule is not None:
        rows = rule.holds(table)
        otherwise = f"the rule {rule} holds for no row of {table.source}"
    elif until is not None:
        rows = ~_order("train_until", until, table)[1]
        otherwise = f"there is no row until {until}, as {_extent(table)}"
    else:
        return np.ones(len(table.values), dtype=np.bool_)
    if not rows.any():
        raise TableError(f"There is nothing to learn from: {otherwise}.")
    return np.asarray(rows, dtype=np.bool_)


def check_moment(name: str, moment: Any) -> None:
    """Raise if this can be neither a time nor a row number, before any table is read."""
    if moment is None or _row_number(moment) is not None:
        return
    if not isinstance(moment, str | dt.date | np.datetime64):
        raise TableError(f"{name} = {moment!r:.100} is not a time. {_FORM}.", name)
    try:
        order_to_stamp(pd.DatetimeIndex([], tz="UTC"), _text(moment))  # whether a zone fits depends on the table
    except ValueError:
        raise TableError(f"{name} is not a time; got {str(moment)!r:.100}. {_FORM}.", name) from None


def _order(name: str, moment: Any, table: Table) -> tuple[BoolArray, BoolArray]:
    """Return which rows are before a moment, and which after it."""
    check_moment(name, moment)
    if table.time is None:
        number = _row_number(moment)
        if number is None:
            raise TableError(
                f"{name}: {table.source} has no time stamps to compare {moment} with. Give a row number (from 0).", name
            )
        rows = table.values.index.to_numpy()
        return rows < number, rows > number
    if isinstance(moment, int | np.integer):
        raise TableError(f"{name}: {table.source} has time stamps, but {moment} is a row number. {_FORM}.", name)
    try:
        return order_to_stamp(table.time, _text(moment))
    except ValueError as error:
        raise TableError(f"{name}: {error}", name) from None


def _rows_between(first_name: str, first: Any, last_name: str, last: Any, table: Table) -> BoolArray:
    rows = np.ones(len(table.values), dtype=np.bool_)
    if first is not None:
        rows &= ~_order(first_name, first, table)[0]
    if last is not None:
        rows &= ~_order(last_name, last, table)[1]
    return rows


def _row_number(moment: Any) -> int | None:
    if isinstance(moment, int | np.integer) and not isinstance(moment, bool):
        return int(moment)
    return int(moment) if isinstance(moment, str) and moment.isascii() and moment.isdigit() else None


def _text(moment: Any) -> str:
    return moment.isoformat() if isinstance(moment, dt.date) else str(moment)


def _as_pair(name: str, period: Any) -> tuple[Any, Any]:
    if isinstance(period, str):
        first, dots, last = (part.strip() for part in period.partition(".."))
        pair = [first or None, last or None] if dots else []
    else:
        pair = list(period) if isinstance(period, tuple | list) else []
    if len(pair) != 2 or pair == [None, None]:
        raise TableError(
            f"{name}: {period!r:.100} is not a period. Write START..END, as in "
            f"2024-05-01..2024-05-03, '2024-05-01 08:00..2024-05-01 17:30', or rows 100..250 where there is no time.",
            name,
        )
    return pair[0], pair[1]


def _in_words(first: Any, last: Any) -> str:
    return " ".join(f"{word} {moment}" for word, moment in (("from", first), ("until", last)) if moment is not None)


def _extent(table: Table) -> str:
    if table.time is None:
        return f"{table.source} has the rows {table.values.index.min()} to {table.values.index.max()}"
    return f"{table.source} begins at {table.time.min()} and ends at {table.time.max()}"


def _several(values: Any) -> tuple[Any, ...]:
    return (values,) if isinstance(values, str) or not hasattr(values, "__iter__") else tuple(values)


def shown(value: Any) -> bool | int | float | str | None:
    """Return a value that can be written into any file: as it is, or as text."""
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def shown_periods(periods: Sequence[tuple[Any, Any]]) -> str | None:
    """Return periods as users write them; None for none."""
    ends = [["" if end is None else str(end) for end in pair] for pair in periods]
    return ", ".join(map("..".join, ends)) or None


def shown_names(names: Sequence[str]) -> str | None:
    """Return names as text; of many their number and the first few; None for none.

    >>> shown_names(["flow", "head"]), shown_names([f"s{n}" for n in range(30)])
    ("'flow', 'head'", "30: 's0', 's1', 's2', 's3', 's4' and 25 more")
    """
    if len(names) > _MOST_NAMES:
        return f"{len(names):,}: {listed(names, most=_FIRST_NAMES)}"
    return listed(names, most=_MOST_NAMES) or None
