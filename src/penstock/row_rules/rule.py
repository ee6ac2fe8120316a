"""Rules about rows."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.io import Table
from penstock.row_rules._conditions import Condition
from penstock.row_rules._operands import Column, Name, side_of
from penstock.row_rules._parse import parse_condition
from penstock.row_rules._tokens import refuse_long
from penstock.row_rules._truth import BoolArray, Truth

_NO_COLUMN = ("time", "row")  # without backticks, unless the table has such a column


@dataclass(frozen=True)
class RowRule:
    """A condition on rows; `str` writes it down so that it can be read again."""

    condition: Condition

    def __str__(self) -> str:
        return str(self.condition)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names that are surely columns, in the order of the rule.

        Not `time` and `row` without backticks, nor a bare word after == or !=, which may be a text: for those see
        `columns_in`.
        """
        sure = (
            name.name for name in self._names() if not name.maybe_text and (name.ticked or name.name not in _NO_COLUMN)
        )
        return tuple(dict.fromkeys(sure))

    @property
    def perhaps_columns(self) -> tuple[str, ...]:
        """The bare words after == or !=, and `row`, which are columns only in a table that has them."""
        perhaps = (name.name for name in self._names() if name.maybe_text or (name.name == "row" and not name.ticked))
        return tuple(dict.fromkeys(perhaps))

    def resolved(self, table: Table) -> RowRule:
        """The rule as this table understands it, with bare words as columns in backticks or as texts in quotes.

        It means the same for a table with other columns.

        >>> import pandas as pd
        >>> from penstock.io import read_table
        >>> valve = pd.DataFrame({"state": ["on", "off"], "wanted": ["on", "on"], "power": [1.0, 0.0]})
        >>> print(parse_rule("state == wanted or state == off").resolved(read_table(valve)))
        state == `wanted` or state == 'off'
        """
        rule = RowRule(self.condition.resolved(table))
        refuse_long(str(rule))
        return rule

    def columns_in(self, table: Table) -> tuple[str, ...]:
        """The columns of this table that the rule looks at; raise if it names one that is not there."""
        sides = (side_of(name, table) for name in self._names())
        return tuple(
            dict.fromkeys(side.name for side in sides if isinstance(side, Column) and side.name in table.names)
        )

    def truth(self, table: Table) -> Truth:
        """For which rows the rule is true, false, or neither; raise if it does not fit the table."""
        return self.condition.truth(table)

    def holds(self, table: Table) -> BoolArray:
        """The rows for which the rule is true; raise if it does not fit the table."""
        return self.truth(table).true

    def unknown(self, table: Table) -> BoolArray:
        """The rows for which the rule is neither true nor false, as a reading that decides is missing."""
        return self.truth(table).unknown

    def _names(self) -> tuple[Name, ...]:
        return tuple(self.condition.names())


def parse_rule(text: str) -> RowRule:
    """Read a rule.

    Columns are compared with numbers, texts and each other (``>  >=  <  <=  ==  !=``), also in chains, and can be
    `is missing` or `is not missing`; comparisons are joined by `and`, `or`, `not` and parentheses. Names with other
    signs than letters, digits, ``_`` and ``.`` go in backticks, texts with spaces in quotes; a quote inside is written
    twice. `time` is compared with a time stamp in quotes, where a day or a month stands for all of it, and `row` is the
    number of the row in the source, from 0, unless the table has such a column.

    Raises
    ------
    RuleError
        With the place and what was expected there.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from penstock.io import read_table
    >>> plant = pd.DataFrame({"power [MW]": [2.0, 30.0, np.nan, 70.0], "state": ["off", "on", "on", None]})
    >>> rule = parse_rule("5 < `power [MW]` <= 60 and state == on")
    >>> rule.holds(read_table(plant)).tolist(), rule.unknown(read_table(plant)).tolist()
    ([False, True, False, False], [False, False, True, False])
    >>> rule.columns
    ('power [MW]', 'state')
    >>> parse_rule("power >")
    Traceback (most recent call last):
    penstock.row_rules._errors.RuleError: The rule cannot be read: after 'power >' a number, a text or a column is
    expected, but the rule ends.
    """
    rule = RowRule(parse_condition(text))
    refuse_long(str(rule))
    return rule
