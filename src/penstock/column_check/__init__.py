"""Is each column of a table fit to be an input? A report with a grade for each, and the choice that follows."""

from penstock.column_check._encoding import Encoding
from penstock.column_check._report import ColumnReport
from penstock.column_check.check import check_columns
from penstock.column_check.choose import InputChoice, LeftOut, choose_inputs

__all__ = ["ColumnReport", "Encoding", "InputChoice", "LeftOut", "check_columns", "choose_inputs"]
