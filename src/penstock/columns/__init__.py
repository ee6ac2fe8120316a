"""Check the columns of a table, decide their roles, choose and encode the inputs among them, and select rows by rules.

A table comes in; a `ColumnReport` of each column, with its role, and an `InputChoice` go out. The one idea: a role is
decided here, once, and everything after asks it.
"""

from penstock.columns._patterns import LIKE_A_LABEL
from penstock.columns.check import ColumnReport, check_columns
from penstock.columns.choose import (
    A_DRIVER,
    BY_NAME,
    LIKE_A_COUNTER,
    Encoding,
    InputChoice,
    LeftOut,
    choose_inputs,
    give_roles,
)
from penstock.columns.roles import ROLES, InputRole, count_roles, read_roles
from penstock.columns.rules import RowRule, parse_rule, quote_name, quote_text
from penstock.columns.times import order_to_stamp

__all__ = [
    "A_DRIVER", "BY_NAME", "LIKE_A_COUNTER", "LIKE_A_LABEL", "ROLES", "ColumnReport", "Encoding", "InputChoice",
    "InputRole", "LeftOut", "RowRule", "check_columns", "choose_inputs", "count_roles", "give_roles",
    "order_to_stamp", "parse_rule", "quote_name", "quote_text", "read_roles",
]  # fmt: skip
