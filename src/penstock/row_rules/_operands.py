"""What is compared: numbers, texts, columns and the time."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from penstock._messages import quoted
from penstock.io import Table, TableError, refuse_unknown
from penstock.row_rules._errors import RuleError
from penstock.row_rules._stamps import order_to_stamp
from penstock.row_rules._truth import Truth, where_known

Sign = Literal[">", ">=", "<", "<=", "==", "!="]
_COMPARE: dict[Sign, Callable[[Any, Any], Any]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
}
_MIRRORED: dict[Sign, Sign] = {">": "<", ">=": "<=", "<": ">", "<=": ">=", "==": "==", "!=": "!="}


@dataclass(frozen=True)
class Number:
    value: float

    def __str__(self) -> str:
        whole = self.value.is_integer() and abs(self.value) < 1e15
        return str(int(self.value)) if whole else repr(self.value)


@dataclass(frozen=True)
class Text:
    value: str

    def __str__(self) -> str:
        return "'" + self.value.replace("'", "''") + "'"


@dataclass(frozen=True)
class Name:
    """A column, or `time` or `row` (its number) if not in backticks; a `maybe_text` is a text if it is none of them."""

    name: str
    ticked: bool = False
    maybe_text: bool = False

    def __str__(self) -> str:
        return "`" + self.name.replace("`", "``") + "`" if self.ticked else self.name


Operand = Number | Text | Name


@dataclass(frozen=True)
class Time:
    """The time stamps of a table."""

    stamps: pd.DatetimeIndex


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    name: str
    values: pd.Series[Any]

    @property
    def holds_numbers(self) -> bool:
        return self.values.dtype.kind == "f"


Side = Number | Text | Time | Column


def sides_of(operands: Sequence[Operand], table: Table) -> list[Side]:
    """What the operands of a comparison are in this table."""
    sides: list[Side] = []
    for operand in operands:
        before = sides[-1] if sides else None
        if isinstance(operand, Name) and isinstance(before, Column) and before.holds_numbers:
            operand = replace(operand, maybe_text=False)  # noqa: PLW2901 - what a number is compared with is no text
        sides.append(side_of(operand, table))
    return sides


def side_of(operand: Operand, table: Table) -> Side:
    if not isinstance(operand, Name):
        return operand
    if operand.name in table.names:
        return Column(operand.name, table.values[operand.name])
    is_time = operand.name == "time" and not operand.ticked
    if is_time and table.time is not None:
        return Time(table.time)
    if operand.name == "row" and not operand.ticked:
        return Column("row", pd.Series(table.values.index.to_numpy(dtype=np.float64)))
    if operand.maybe_text:
        return Text(operand.name)
    if is_time:
        raise RuleError(f"{table.source} has no time to compare with, nor a column 'time'.")
    try:
        refuse_unknown([operand.name], table.names, "part of a rule", table.source)
    except TableError as error:
        raise RuleError(str(error)) from None
    raise AssertionError("an unknown name is refused")  # pragma: no cover


def resolve(operand: Operand, side: Side) -> Operand:
    """An operand that means in every table what it means in this one, where it is `side`."""
    if not isinstance(operand, Name) or not operand.maybe_text:
        return operand
    if isinstance(side, Text):
        return side
    return Name(operand.name, ticked=isinstance(side, Column))


def is_missing(side: Side, n: int) -> Truth:
    missing = side.values.isna().to_numpy() if isinstance(side, Column) else np.zeros(n, dtype=np.bool_)
    return where_known(missing, np.ones(n, dtype=np.bool_))


def compare(left: Side, sign: Sign, right: Side) -> Truth:
    """Compare two sides, at least one of them from the table."""
    if isinstance(left, Number | Text) or isinstance(right, Time):
        left, sign, right = right, _MIRRORED[sign], left
    if isinstance(left, Time):
        return _compare_time(left, sign, right)
    assert isinstance(left, Column)
    assert not isinstance(right, Time)
    _refuse_unlike(left, sign, right)
    values = right.values if isinstance(right, Column) else right.value
    known = left.values.notna().to_numpy()
    if isinstance(right, Column):
        known = known & right.values.notna().to_numpy()
    return where_known(np.asarray(_COMPARE[sign](_plain(left.values), _plain(values)), dtype=np.bool_), known)


def _plain(values: Any) -> Any:
    """Numbers, or texts as objects, "" for missing ones: not every kind of text column can be compared with another."""
    if not isinstance(values, pd.Series) or values.dtype.kind == "f":
        return np.asarray(values) if isinstance(values, pd.Series) else values
    return values.to_numpy(dtype=object, na_value="")


def _compare_time(left: Time, sign: Sign, right: Side) -> Truth:
    if not isinstance(right, Text):
        raise RuleError("The time is compared with a time stamp in quotes, such as '2024-05-31' or '2024-05-31 14:30'.")
    before, after = order_to_stamp(left.stamps, right.value)
    order = after.astype(np.int8) - before.astype(np.int8)
    return where_known(_COMPARE[sign](order, 0), np.ones(len(order), dtype=np.bool_))


def _refuse_unlike(left: Column, sign: Sign, right: Side) -> None:
    """Raise where numbers meet texts, and where texts are to be larger or smaller."""
    name = quoted(left.name)
    if isinstance(right, Column) and left.holds_numbers != right.holds_numbers:
        numbers, texts = (left, right) if left.holds_numbers else (right, left)
        raise RuleError(f"Column {quoted(numbers.name)} holds numbers, but column {quoted(texts.name)} holds text.")
    if left.holds_numbers and isinstance(right, Text):
        raise RuleError(f"Column {name} holds numbers, but {quoted(right.value)} is a text.")
    if not left.holds_numbers and isinstance(right, Number):
        raise RuleError(f"Column {name} holds text, but {right} is a number. Write '{right}' in quotes.")
    if not left.holds_numbers and sign not in ("==", "!="):
        raise RuleError(f"Column {name} holds text, which is only equal or not: use == or !=, not {sign}.")
