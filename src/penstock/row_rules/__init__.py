"""A small, safe language that says which rows are meant: `power > 5 and state == running`.

A text becomes tokens (`_tokens.py`), tokens become conditions (`_parse.py`, `_conditions.py`), and conditions look at
the columns of a table (`_operands.py`, `_stamps.py`). Where a reading that decides is missing, a rule neither holds nor
fails (`_truth.py`). Nothing of a text is ever executed.
"""

from penstock.row_rules._errors import RuleError
from penstock.row_rules.durations import parse_duration
from penstock.row_rules.rule import RowRule, parse_rule

__all__ = ["RowRule", "RuleError", "parse_duration", "parse_rule"]
