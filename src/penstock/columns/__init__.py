"""Check the columns of a table, choose and encode the inputs among them, and select rows by rules."""

from penstock.columns._patterns import LIKE_A_LABEL
from penstock.columns.check import ColumnReport, check_columns
from penstock.columns.choose import Encoding, InputChoice, LeftOut, choose_inputs
from penstock.columns.rules import RowRule, RuleError, parse_rule, quote_name, quote_text
from penstock.columns.times import order_to_stamp

__all__ = [
    "LIKE_A_LABEL", "ColumnReport", "Encoding", "InputChoice", "LeftOut", "RowRule", "RuleError", "check_columns",
    "choose_inputs", "order_to_stamp", "parse_rule", "quote_name", "quote_text",
]  # fmt: skip
