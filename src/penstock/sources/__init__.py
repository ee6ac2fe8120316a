"""Bytes → lines → rows: where the samples of a stream come from.

A feed hands out bytes as they come (`feeds.py`, `follow.py`), `lines.py` cuts them into complete lines, a parser makes
numbers of them (`csv_rows.py`, `json_rows.py`), and `rows.py` puts the three together and knows the position.
"""

from penstock.sources.columns import Columns, TableOptions
from penstock.sources.faults import Fault, InputError
from penstock.sources.feeds import Feed, PipeFeed, open_feed
from penstock.sources.rows import Batch, RowSource

__all__ = ["Batch", "Columns", "Fault", "Feed", "InputError", "PipeFeed", "RowSource", "TableOptions", "open_feed"]
