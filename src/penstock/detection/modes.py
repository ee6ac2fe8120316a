"""Assign operating modes to rows, by a column or by rules; rows around a change of mode are not scored."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from penstock._messages import quoted
from penstock._parameters import ParameterError
from penstock._types import BoolArray, IndexArray
from penstock.columns import RowRule, parse_rule, quote_name, quote_text
from penstock.detection._parts import ALL
from penstock.io import Table, TableError, refuse_unknown
from penstock.options import errors_name

OTHER, UNKNOWN, CHANGING = "other", "unknown", "changing"
_RESERVED = (OTHER, UNKNOWN, CHANGING, ALL)  # what rows of no mode are called
_MOST_VALUES = 20  # of a column of modes
MOST_RULES = 50
_LONGEST_NAME = 80  # of a mode: every row carries it

ModeSpec = str | Sequence[str] | Mapping[str, str]


@dataclass(frozen=True)
class ModePlan:
    """How modes are assigned to rows.

    settle : after a change of mode the machine is neither in the one nor in the other for so long. The last row before
        the change, and those less than this after the first row of the new mode (itself included), are "changing" and
        not scored. A number counts rows: 3 are the first three of the new mode, and 0 is none of them.

    A row without the reading that decides is "unknown" and not scored; it is no change of mode.
    """

    column: str | None = None  # each of its values is a mode
    rules: tuple[tuple[str, RowRule], ...] = ()  # by name; the first that holds gives the mode, without one "other"
    skip: tuple[str, ...] = ()  # modes that are not scored
    settle: pd.Timedelta | int | None = None

    def assign(self, table: Table) -> NDArray[np.str_]:
        if self.column is not None:
            names, codes = _values_of(table, self.column)
            modes = np.array([*names, UNKNOWN])[codes]  # the code of a missing value is −1
        elif self.rules:
            by_rule = np.full(len(table.values), OTHER, dtype=object)
            open_rows = np.ones(len(table.values), dtype=np.bool_)
            for name, rule in self.rules:
                true, unknown = rule.truth(table)
                by_rule[open_rows & unknown] = UNKNOWN  # whether a later rule counts is unknown too
                by_rule[open_rows & true] = name
                open_rows &= ~(true | unknown)
            modes = by_rule.astype(np.str_)
        else:
            return np.full(len(table.values), ALL)
        if self.settle is None:
            return modes
        time = table.time
        spans = [_with_changes(modes[rows], None if time is None else time[rows], self.settle) for rows in table.spans]
        return np.concatenate(spans)

    def resolved(self, table: Table) -> ModePlan:
        """Return the plan with rules that mean for every table what they mean for this one."""
        return replace(self, rules=tuple((name, rule.resolved(table)) for name, rule in self.rules))

    def refuse_unknown_skips(self, table: Table) -> None:
        """Raise for a mode to skip that is none; only where modes are fitted, as new data need not show each."""
        names = [name for name, _ in self.rules] if self.column is None else _values_of(table, self.column)[0]
        known = {*names, *((OTHER,) if self.rules else ())}
        for name in self.skip:
            if name not in known | {UNKNOWN, CHANGING}:
                raise TableError(f"There is no mode {name!r} to skip; there are {', '.join(sorted(known))}.")

    def is_scored(self, modes: NDArray[np.str_]) -> BoolArray:
        return ~np.isin(modes, [*self.skip, UNKNOWN, CHANGING])

    @property
    def separates(self) -> bool:
        return self.column is not None or bool(self.rules)

    def __str__(self) -> str:
        how = f"by column {self.column}" if self.column else ", ".join(f"{name}: {rule}" for name, rule in self.rules)
        skipped = f"; not scored: {', '.join(self.skip)}" if self.skip else ""
        settled = f"; settling: {self.settle}" if self.settle is not None else ""
        return f"{how}{skipped}{settled}"


def plan_modes(
    modes: ModeSpec, columns: Sequence[str], *, skip: Sequence[str] = (), settle: pd.Timedelta | int | None = None
) -> ModePlan:
    """Make a plan from what users write: a column, rules, or rules with names."""
    skip = (skip,) if isinstance(skip, str) else tuple(skip)
    if isinstance(modes, Mapping):
        rules = tuple((str(name).strip(), parse_rule(rule)) for name, rule in modes.items())
    else:
        specs = _texts(modes)
        if len(specs) == 1 and specs[0] in columns:
            return ModePlan(specs[0], (), skip, settle)
        rules = (_only_rule(specs[0], columns),) if len(specs) == 1 else tuple(map(_named_rule, specs))
    if not rules and (skip or settle is not None):
        name = "skip_modes" if skip else "settle"
        raise TableError(f"{name} needs modes: name a column, or rules.", name)
    refuse_names([name for name, _ in rules])
    return ModePlan(None, rules, skip, settle) if rules else ModePlan()


_COMPARES = re.compile(r"[<>]|[=!]=")  # names of columns may begin with =, as =MKA10


def check_modes(modes: ModeSpec, skip: Sequence[str], settle: pd.Timedelta | int | None) -> None:
    """Raise for rules that cannot be read; whether a single word is a column is not known before the table is read."""
    with errors_name("modes"):
        if isinstance(modes, Mapping) or len(_texts(modes)) != 1:
            plan_modes(modes, (), skip=skip, settle=settle)
        elif _COMPARES.search(_texts(modes)[0]):
            _named_rule(_texts(modes)[0])


def refuse_names(names: Sequence[str]) -> None:
    """Raise for too many names, for one that is given twice, that rows of no mode have, or that is too long."""
    if len(names) > MOST_RULES:
        raise TableError(
            f"There are {len(names):,} modes, too many to learn each by itself (at most {MOST_RULES}). Join some of "
            f"them with 'or'."
        )
    for name in names:
        if name in (OTHER, UNKNOWN, CHANGING):
            raise TableError(f"A mode cannot be called {name!r}, as rows of no mode are. Choose another name.")
        if names.count(name) > 1:
            raise TableError(f"Two modes are called {name!r}. Give each a name of its own, as in 'running: power > 5'.")
        _refuse_long(name)


def _refuse_long(name: str) -> None:
    if len(name) > _LONGEST_NAME:
        raise TableError(
            f"The name of a mode may have {_LONGEST_NAME} characters; {quoted(name)} has {len(name):,}. "
            f"Write a short name before the rule, as in 'running: power > 5'."
        )


def columns_of(modes: ModeSpec) -> tuple[list[str], list[str]]:
    """Return the columns that decide modes, and the bare words in rules that are columns if the table has them.

    A text that is no rule counts as a column; if it is none, reading the table says so.
    """
    specs = list(modes.values()) if isinstance(modes, Mapping) else _texts(modes)
    named: list[str] = []
    perhaps: list[str] = []
    for spec in specs:
        try:
            rule = _named_rule(spec)[1]
        except ParameterError:
            named.append(spec)
        else:
            named += rule.columns
            perhaps += rule.perhaps_columns
    return named, perhaps


def _texts(modes: str | Sequence[str]) -> list[str]:
    return [modes] if isinstance(modes, str) else list(modes)


def _named_rule(spec: str) -> tuple[str, RowRule]:
    """Parse "running: power > 5", or a rule that is its own name."""
    name, colon, rule = spec.partition(":")
    if colon and name.strip():
        try:
            return name.strip(), parse_rule(rule)
        except ParameterError as error:
            try:
                return spec.strip(), parse_rule(spec)
            except ParameterError:
                raise error from None
    return spec.strip(), parse_rule(spec)


def _only_rule(spec: str, columns: Sequence[str]) -> tuple[str, RowRule]:
    """Return the rule of a single text that is no column."""
    try:
        return _named_rule(spec)
    except ParameterError as error:
        close = get_close_matches(spec, columns, n=1)
        hint = f" Did you mean {quoted(close[0])}?" if close else ""
        said = f" cannot be {quoted(spec)}: it is not a column.{hint} And the {error}"
        raise ParameterError("modes", said) from None


def _values_of(table: Table, column: str) -> tuple[list[str], IndexArray]:
    """Return the values of a column as names of modes, and for each row which of them, −1 where it is missing."""
    refuse_unknown([column], table.names, "modes", table.source)
    codes, distinct = pd.factorize(table.values[column])
    if len(distinct) > _MOST_VALUES:
        first = distinct[0]
        part = f"> {mode_name(first)}" if isinstance(first, float) else f"== {quote_text(str(first))}"
        raise TableError(
            f"Column {column!r} has {len(distinct):,} different values, too many to be modes (at most {_MOST_VALUES}). "
            f'Use a rule, such as "{quote_name(column)} {part}".'
        )
    names = [mode_name(value) for value in distinct]
    for name in names:
        if name in _RESERVED:
            raise TableError(
                f"Column {column!r} has the value {name!r}, which is what rows of no mode are called. Use rules with "
                f'other names, such as "mode {name}: {quote_name(column)} == {quote_text(name)}".'
            )
        _refuse_long(name)
    return names, codes


def mode_name(value: float | str) -> str:
    """Return the name of the mode of rows with this value in the column of modes."""
    return repr(float(value)).removesuffix(".0") if isinstance(value, float) else str(value)


def _with_changes(
    modes: NDArray[np.str_], time: pd.DatetimeIndex | None, settle: pd.Timedelta | int
) -> NDArray[np.str_]:
    """Return modes with "changing" from the last row before a change to less than `settle` after the row after it."""
    if isinstance(settle, pd.Timedelta) and time is None:
        said = "settle is a duration, but the table has no time stamps. Give a number of rows instead."
        raise TableError(said, "settle")
    if isinstance(settle, int) or time is None:
        places, span = np.arange(len(modes)), int(settle)  # type: ignore[arg-type]
    else:
        places = time.asi8
        span = -(-settle // pd.Timedelta(1, unit=time.unit))
    known = np.flatnonzero(modes != UNKNOWN)  # a missing reading is no change of mode
    kinds = modes[known]
    changes = np.flatnonzero(kinds[1:] != kinds[:-1]) + 1
    before, first = known[changes - 1], known[changes]
    span = min(span, np.iinfo(np.int64).max)
    latest = np.iinfo(np.int64).max - span  # no sum beyond what int64 holds
    ends = np.searchsorted(places, np.minimum(places[first], latest) + span, side="left")
    ends = np.maximum(ends, before + 1)
    marks = np.zeros(len(modes) + 1, dtype=np.int64)
    np.add.at(marks, before, 1)
    np.add.at(marks, ends, -1)
    return np.where((np.cumsum(marks[:-1]) > 0) & (modes != UNKNOWN), CHANGING, modes)
