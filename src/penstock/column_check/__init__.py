"""Is each column of a table fit to be an input? A report with a grade for each, and the choice that follows."""

from penstock.column_check._encoding import Encoding
from penstock.column_check._labels import LIKE_A_LABEL
from penstock.column_check._report import ColumnReport
from penstock.column_check.check import check_columns
from penstock.column_check.choose import InputChoice, LeftOut, choose_inputs

__all__ = ["LIKE_A_LABEL", "ColumnReport", "Encoding", "InputChoice", "LeftOut", "check_columns", "choose_inputs"]
