"""The tables that people have → columns of numbers and texts with their time stamps, and notes on what is odd.

A path, a folder or a table in memory becomes raw columns (`_files.py`, `_memory.py`); several are combined
(`_combine.py`); the time is found and read (`_time_column.py`); numbers are made (`_numbers.py`); rows are put in order
(`_order.py`). Each step tells a notebook what it changed.
"""

from penstock.tables._errors import TableError
from penstock.tables._notes import Note
from penstock.tables._table import Table
from penstock.tables.read import read_table

__all__ = ["Note", "Table", "TableError", "read_table"]
