"""Choose the inputs among the columns of a table, and encode text as numbers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from penstock._types import BoolArray, FloatArray
from penstock.columns._patterns import LIKE_A_LABEL, named_like_driver
from penstock.columns.check import SAYS_QUALITY, ColumnReport, check_columns
from penstock.columns.roles import (
    CONSTANT,
    COUNTER,
    DRIVER,
    LABEL,
    QUALITY,
    SENSOR,
    SETTING,
    STATE,
    TIME,
    InputRole,
)
from penstock.io import Table, TableError, refuse_unknown
from penstock.sensors.readings import changes_seldom

ONE_HOT, RARITY = "one-hot", "rarity"
LIKE_A_COUNTER = "It only rises, like a counter."
BY_NAME = "It is a driver by its name, which is like that of"
A_DRIVER = "It is a driver, which only a method that scores sensors over time can use."
_MOST_ONE_HOT = 10  # categories
_MOST_LEVELS = 50  # of a state that the user names
_MOST_RECOGNISED = 0.5  # of the sensors: with more, a table is about what acts from outside


@dataclass(frozen=True)
class Encoding:
    """How the categories of a column become numbers, fitted once and applied to any rows.

    "one-hot": a column for each category, named "state=on", which is 1 in its rows and 0 in others.
    "rarity": one column with log(rows ÷ rows of this category): 0 for a category of every row, 2.3 for one of a tenth
    of the rows, 6.9 for one of a thousandth.

    A category that was not there when this was fitted is 0 in all columns of one-hot, and rarer than any other in
    rarity. A missing value is missing in every column.
    """

    METHODS: ClassVar[tuple[str, ...]] = (ONE_HOT, RARITY)

    column: str
    method: str
    categories: tuple[str, ...]  # the most frequent first
    counts: tuple[int, ...]

    @property
    def names(self) -> tuple[str, ...]:
        if self.method == RARITY:
            return (self.column,)
        return tuple(f"{self.column}={category}" for category in self.categories)

    def apply(self, values: pd.Series[Any]) -> FloatArray:
        """Return the encoded values, (rows, `names`)."""
        codes = pd.Index(self.categories).get_indexer(pd.Index(values))
        missing = values.isna().to_numpy()
        if self.method == RARITY:
            total = sum(self.counts)
            rarity = np.log(total / np.append(np.array(self.counts, dtype=np.float64), total / (total + 1)))
            encoded: FloatArray = rarity[codes][:, None]
        else:
            encoded = (codes[:, None] == np.arange(len(self.categories))).astype(np.float64)
        encoded[missing] = np.nan
        return encoded


def learn_encoding(column: str, values: pd.Series[Any]) -> Encoding:
    """Learn an encoding: one-hot of few categories, else rarity."""
    counts = values.value_counts()
    method = ONE_HOT if len(counts) <= _MOST_ONE_HOT else RARITY
    return Encoding(column, method, tuple(counts.index), tuple(int(count) for count in counts))


@dataclass(frozen=True)
class LeftOut:
    """A column that is not used, and the reason in a sentence."""

    name: str
    reason: str


@dataclass(frozen=True)
class InputChoice:
    """The inputs made of the columns of a table; `apply` makes them of any table with the same columns."""

    as_they_are: tuple[str, ...]
    encoded: tuple[Encoding, ...]
    left_out: tuple[LeftOut, ...]
    roles: Mapping[str, InputRole] = field(default_factory=dict)  # of `names`; a sensor if it has none

    @property
    def counts(self) -> dict[str, int]:
        return {"as they are": len(self.as_they_are), "encoded": len(self.encoded), "left out": len(self.left_out)}

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the columns that `apply` returns."""
        return (*self.as_they_are, *(name for encoding in self.encoded for name in encoding.names))

    def role_of(self, name: str) -> InputRole:
        """Return the role of an input."""
        return self.roles.get(name, InputRole())

    def plausible(self, expected: FloatArray, units: Mapping[str, str]) -> FloatArray:
        """Return expected values (n, p) as they can be shown: within what each input can be; see `InputRole`."""
        columns = [
            self.role_of(name).plausible(expected[:, place], units.get(name, ""))
            for place, name in enumerate(self.names)
        ]
        return np.column_stack(columns) if columns else expected

    @cached_property
    def settings(self) -> tuple[str, ...]:
        """Inputs that are set rather than measured, and states that hardly ever switch: no causes."""
        return tuple(
            name for name in self.as_they_are if not self.role_of(name).named and self.role_of(name).role != DRIVER
        )

    @cached_property
    def drivers(self) -> tuple[str, ...]:
        """Inputs that explain others, and are never scored nor named."""
        return tuple(name for name in self.as_they_are if self.role_of(name).role == DRIVER)

    @property
    def explaining(self) -> tuple[int, ...]:
        """The numbers of inputs that explain others and are not scored over time; of drivers alone if none is left."""
        numbers = range(len(self.names))
        roles = [self.role_of(name) for name in self.names]
        if not any(role.scored and role.role != CONSTANT for role in roles):
            return tuple(number for number in numbers if roles[number].role == DRIVER)
        return tuple(number for number in numbers if not roles[number].scored)

    @cached_property
    def causes(self) -> tuple[str, ...]:
        """Those of `names` that may be the cause of an event: no settings, unless there is nothing else; no drivers."""
        drivers, settings = set(self.drivers), set(self.settings)
        others = tuple(name for name in self.names if name not in drivers)
        return tuple(name for name in others if name not in settings) or others

    def apply(self, table: Table) -> pd.DataFrame:
        """Return the inputs as float64 with NaN for missing values, under the index of the table's values."""
        values = table.values
        missing = [name for name in (*self.as_they_are, *(each.column for each in self.encoded)) if name not in values]
        if missing:
            raise TableError(f"{table.source} has no column {missing[0]!r}, which was an input before.")
        texts = [name for name in self.as_they_are if values[name].dtype.kind != "f"]
        if texts:
            raise TableError(f"{table.source}: column {texts[0]!r} held numbers before, and now holds text.")
        found = np.empty((len(values), len(self.names)))  # row by row, as detectors take it
        for place, name in enumerate(self.as_they_are):
            found[:, place] = values[name]
        parts = [encoding.apply(values[encoding.column]) for encoding in self.encoded]
        if parts:
            found[:, len(self.as_they_are) :] = np.hstack(parts)
        return pd.DataFrame(found, index=values.index, columns=list(self.names), copy=False)


def give_roles(
    reports: Sequence[ColumnReport],
    table: Table,
    roles: Mapping[str, str],
    drivers: Sequence[str],
    *,
    recognise: bool = False,
) -> tuple[ColumnReport, ...]:
    """Return the reports with the roles that the user gives; a TableError for what is no column, or cannot have one.

    recognise : whether sensors that are named like something that acts on the plant from outside (the weather, the
        inflow, the grid, a set point) become drivers, unless the user gives them a role. They stay sensors where they
        are more than half of them, as in the record of a weather station.

    >>> from penstock.io import read_table
    >>> table = read_table({"flow": [1.0, 2.0, 1.5], "valve": [0.0, 0.0, 1.0], "Tamb": [3.0, 3.5, 4.0]})
    >>> [report.role for report in give_roles(check_columns(table), table, {"valve": "setting"}, ["flow"])]
    ['driver', 'setting', 'sensor']
    >>> [report.role for report in give_roles(check_columns(table), table, {}, [], recognise=True)]
    ['sensor', 'sensor', 'driver']
    """
    for parameter, names in (("roles", list(roles)), ("drivers", list(drivers))):
        try:
            refuse_unknown(names, table.names, parameter, table.source)
        except TableError as error:
            raise TableError(str(error), parameter) from None
    both = next((name for name in drivers if roles.get(name, DRIVER) != DRIVER), None)
    if both is not None:
        raise TableError(f"Column {both!r} is given as a driver and as a {roles[both]}. Give one role.", "drivers")
    given = {**roles, **dict.fromkeys(drivers, DRIVER)}
    found = [_given_role(report, given, table) for report in reports]
    sensors = [place for place, report in enumerate(found) if report.role == SENSOR]
    acting = {place: named_like_driver(found[place].name) for place in sensors if found[place].name not in given}
    acting = {place: what for place, what in acting.items() if what and recognise}
    if len(acting) <= _MOST_RECOGNISED * len(sensors):
        for place, what in acting.items():
            reasons = (*found[place].reasons, f"{BY_NAME} {what}.")
            found[place] = replace(found[place], role=DRIVER, scored=False, named=False, reasons=reasons)
    return tuple(found)


def _given_role(report: ColumnReport, given: Mapping[str, str], table: Table) -> ColumnReport:
    role = given.get(report.name)
    if role is None or report.role == TIME:
        return report
    values = table.values[report.name]
    text = values.dtype.kind != "f"
    if text and role in (SENSOR, SETTING, DRIVER):
        parameter = "drivers" if role == DRIVER else "roles"
        raise TableError(f"Column {report.name!r} holds text: it can be no {role}, but a state.", parameter)
    levels = report.levels
    if role == STATE and not text and not levels:
        levels = tuple(np.unique(values.dropna()).tolist())
        if len(levels) > _MOST_LEVELS:
            raise TableError(f"Column {report.name!r} has {len(levels):,} different values: it is no state.", "roles")
    if role == STATE:
        return replace(report, role=role, levels=levels)
    apart = role in (SETTING, DRIVER)
    return replace(report, role=role, levels=(), scored=not apart, named=not apart)


def choose_inputs(
    table: Table,
    reports: Sequence[ColumnReport] | None = None,
    *,
    keep: Collection[str] = (),
    strict: bool = False,
    labels: bool = False,
    constants: bool = False,
    drivers: bool = True,
    fitted: BoolArray | None = None,
) -> InputChoice:
    """Choose the inputs by the reports: numbers as they are, text of few kinds encoded, useless columns left out.

    Left out are columns of grade D (no values, always the same, free text), copies of an earlier column, which would
    count double, counters, and columns of quality or that look like a label. Doubtful columns stay. Numbers go in as
    they are also when few of them are different, as they have an order.

    reports : of `check_columns`, made if None.
    keep : columns of numbers that are inputs whatever the report says, and columns that look like a label.
    strict : raise instead of leaving out or encoding anything.
    labels : take columns that look like a label for inputs.
    constants : take columns that never changed for inputs: that one moves later is news.
    drivers : take drivers for inputs; else they are left out, where a method would score them.
    fitted : (n,) the rows that are fitted to, all if None: as in `check_columns`.
    """
    known = {report.name: report for report in (check_columns(table) if reports is None else reports)}
    plain: list[str] = []
    encoded: list[Encoding] = []
    left_out: list[LeftOut] = []
    for name in table.values.columns:
        report = known[name]
        numeric = table.values[name].dtype.kind == "f"
        reason = _reason_to_leave_out(report, name in keep, labels, constants, drivers)
        if name in keep and numeric:
            plain.append(name)
        elif reason:
            left_out.append(LeftOut(name, reason))
        elif numeric:
            plain.append(name)
        else:
            encoded.append(learn_encoding(name, table.values[name]))
    roles = {name: _input_role(known[name]) for name in plain}
    for encoding in encoded:
        values = table.values[encoding.column]
        roles |= _encoded_roles(encoding, values if fitted is None else values[fitted])
    if strict and (left_out or encoded):
        odd = [f"{each.name!r} ({each.reason})" for each in left_out]
        odd += [f"{each.column!r} (It is text.)" for each in encoded]
        shown = ", ".join(odd[:3]) + (" …" if odd[3:] else "")
        raise TableError(
            f"{table.source}: {len(odd)} columns cannot be inputs as they are: {shown}. Exclude them, or do without "
            f"strict."
        )
    if not any(known[name].n_distinct > 1 for name in (*plain, *(each.column for each in encoded))):
        reasons = "; ".join(f"{each.name!r}: {each.reason}" for each in left_out[:3])
        raise TableError(f"{table.source} has no column that can be an input ({reasons}). Choose other columns.")
    return InputChoice(tuple(plain), tuple(encoded), tuple(left_out), roles)


def _reason_to_leave_out(report: ColumnReport, kept: bool, labels: bool, constants: bool, drivers: bool) -> str:
    """Return why a column is no input; "" if it is one. `kept`: the user wants it."""
    if report.n_distinct == 1 and constants and report.role in (CONSTANT, SETTING):
        return ""
    if report.grade == "D":
        return report.reasons[0]
    if report.duplicate_of is not None:
        return f"It says the same as column {report.duplicate_of!r}."
    reasons = {QUALITY: SAYS_QUALITY, COUNTER: LIKE_A_COUNTER}
    if not labels and not kept:
        reasons[LABEL] = LIKE_A_LABEL
    if not drivers:
        reasons[DRIVER] = A_DRIVER
    return reasons.get(report.role, "")


def _encoded_roles(encoding: Encoding, values: pd.Series[Any]) -> dict[str, InputRole]:
    """Return the roles of the columns that text becomes: each is a state, on or off, or how rare the text is."""
    one_hot, starts = encoding.method == ONE_HOT, np.arange(len(values)) == 0
    role = CONSTANT if len(encoding.categories) == 1 else STATE
    levels = (0.0, 1.0) if one_hot and role == STATE else ()
    high = 1.0 if one_hot else float(np.log(sum(encoding.counts) / min(encoding.counts)))
    return {
        name: InputRole(role, not changes_seldom(column, starts), True, levels, 0.0, high)
        for name, column in zip(encoding.names, encoding.apply(values).T, strict=True)
    }


def _input_role(report: ColumnReport) -> InputRole:
    return InputRole(report.role, report.scored, report.named, report.levels, report.low, report.high)
