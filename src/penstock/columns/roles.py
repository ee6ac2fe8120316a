"""The roles of columns: what each is to the plant, as its values say or as the user says.

A role is decided once, by `check_columns`; `give_roles` lets the user change it. Everything after asks the role.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock._messages import quoted
from penstock._types import FloatArray
from penstock.io import TableError
from penstock.registry import did_you_mean

SENSOR, STATE, SETTING, DRIVER = "sensor", "state", "setting", "driver"
CONSTANT, COUNTER, QUALITY, LABEL, TEXT = "constant", "counter", "quality", "label", "text"
EMPTY, TIME = "empty", "time"
GIVEN = (SENSOR, STATE, SETTING, DRIVER, COUNTER, QUALITY, LABEL)  # roles that a user may give
ROLES = (SENSOR, STATE, SETTING, DRIVER, CONSTANT, COUNTER, QUALITY, LABEL, TEXT, EMPTY)
_PLURALS = {QUALITY: "quality columns", TEXT: "columns of text", EMPTY: "empty columns"}
_SINGULARS = {QUALITY: "quality column", TEXT: "column of text", EMPTY: "empty column"}
_PERCENT = ("%", "percent", "pct")


@dataclass(frozen=True)
class InputRole:
    """What is known of an input: its role, whether it is scored and named, and what it can be.

    role : one of "sensor", "state", "setting", "driver", "constant", and others that the user keeps as inputs.
    scored : whether it is scored over time; if not, it explains others.
    named : whether it may be named as a cause.
    levels : of a state, ascending.
    low, high : the smallest and largest value in the rows fitted to; NaN where that is not known.
    """

    role: str = SENSOR
    scored: bool = True
    named: bool = True
    levels: tuple[float, ...] = ()
    low: float = np.nan
    high: float = np.nan

    @property
    def is_reading(self) -> bool:
        """Whether it is neither a state nor a column that never moved."""
        return not self.levels and self.role != CONSTANT

    def plausible(self, expected: FloatArray, unit: str = "") -> FloatArray:
        """Return expected values as they can be shown: a state at one of its levels, others within what they can be.

        Never below 0 where nothing was in the rows fitted to, and no share above 100 % likewise.

        >>> InputRole("state", levels=(0.0, 1.0)).plausible(np.array([0.7027, 0.2, np.nan]))
        array([ 1.,  0., nan])
        >>> InputRole(low=0.0, high=90.0).plausible(np.array([-5.7, 101.0]), "%")
        array([  0., 100.])
        """
        if self.levels:
            levels = np.array(self.levels)
            nearest = levels[np.abs(expected[:, None] - levels).argmin(axis=1)]
            return np.where(np.isnan(expected), np.nan, nearest)
        shown = np.maximum(expected, 0.0) if self.low >= 0 else expected
        return np.minimum(shown, 100.0) if unit in _PERCENT and self.high <= 100 else shown

    def in_words(self, value: float) -> str:
        """Return a value of a state in words: "on", "off", or "at 2" if it has more than two levels.

        >>> pump, tap = InputRole("state", levels=(0.0, 1.0)), InputRole("state", levels=(1.0, 2.0, 3.0))
        >>> pump.in_words(1.0), pump.in_words(0.0), tap.in_words(2.0)
        ('on', 'off', 'at 2')
        """
        if len(self.levels) == 2 and self.levels[0] == 0 and value in self.levels:
            return "on" if value == self.levels[1] else "off"
        return "not known" if np.isnan(value) else f"at {value:g}"


def read_roles(given: Any) -> dict[str, str]:
    """Return roles by column, from a mapping, "column=role", or several of these.

    >>> read_roles(["valve=state", "a=b=sensor"]), read_roles({"valve": "state"})
    ({'valve': 'state', 'a=b': 'sensor'}, {'valve': 'state'})
    """
    if isinstance(given, Mapping):
        found = {str(name): str(role) for name, role in given.items()}
    else:
        found = {}
        for text in [given] if isinstance(given, str) else given:
            name, sign, role = (part.strip() for part in str(text).rpartition("="))
            if not sign or not name:
                raise TableError(f"{quoted(text)} is no role. Write column=role, such as valve=state.", "roles")
            if found.setdefault(name, role) != role:
                raise TableError(f"Column {quoted(name)} has two roles, {found[name]} and {role}. Give one.", "roles")
    for name, role in found.items():
        if role not in GIVEN:
            hint = did_you_mean(role, GIVEN)
            message = f"{quoted(role)}, given to column {quoted(name)}, is no role.{hint} Roles are {', '.join(GIVEN)}."
            raise TableError(message, "roles")
    return found


def count_roles(used: Iterable[str], left_out: Iterable[str]) -> str:
    """Return how many columns have which role, and which of them are left out.

    >>> count_roles(["sensor"] * 9 + ["state", "state", "setting"], ["counter"])
    '9 sensors, 2 states, 1 setting, 1 counter left out'
    >>> count_roles(["sensor"], ["counter", "label", "text"])
    '1 sensor; left out: 1 counter, 1 label, 1 column of text'
    """
    words, others = _counts(list(used)), _counts(list(left_out))
    if len(others) == 1:
        return ", ".join([*words, f"{others[0]} left out"])
    return "; left out: ".join(", ".join(each) for each in (words, others) if each)


def _counts(roles: list[str]) -> list[str]:
    counts = {role: roles.count(role) for role in ROLES if role in roles}
    names = {role: _SINGULARS if count == 1 else _PLURALS for role, count in counts.items()}
    plain = {role: role if count == 1 else f"{role}s" for role, count in counts.items()}
    return [f"{count:,} {names[role].get(role, plain[role])}" for role, count in counts.items()]
