"""Read tables and streams as plants have them, and write verdicts.

Tables and streams share one layout finder (`_layout.py`): encoding, separator, decimal sign, lines above the header,
units, words for missing values, time. Tables: `read.py` reads files, folders or frames, combines them, reads times and
numbers and puts rows in order; each step adds notes on what it changed. Streams: `feeds.py` reads bytes as they
come, and `rows.py` makes rows of them and knows the position.
"""

from penstock.io._files import files_of, need_pyarrow, parquet_pieces
from penstock.io._layout import is_missing
from penstock.io._row_values import Columns, TableOptions, is_number, quoted
from penstock.io.align import AlignedRows, AlignedTag, Aligner, Alignment, AlignOptions
from penstock.io.aligned import AlignedSource, Aligning, AnySource, plain_alignment
from penstock.io.feeds import Feed, InputError, PipeFeed, open_feed
from penstock.io.read import read_table, source_name
from penstock.io.rows import MAX_AHEAD, BadLine, Batch, RowParser, RowSource, TimeProgress
from penstock.io.sinks import JsonLinesSink, OutputMark, continue_sink, open_sink
from penstock.io.sql import file_of_address, is_address, public_query
from penstock.io.table import DOUBTS, Note, ReadLog, Table, TableError, TagNote, refuse_unknown
from penstock.io.times import TimeOptions, TimeReader, as_zone, parse_duration

__all__ = [
    "DOUBTS",
    "MAX_AHEAD",
    "AlignOptions",
    "AlignedRows",
    "AlignedSource",
    "AlignedTag",
    "Aligner",
    "Aligning",
    "Alignment",
    "AnySource",
    "BadLine",
    "Batch",
    "Columns",
    "Feed",
    "InputError",
    "JsonLinesSink",
    "Note",
    "OutputMark",
    "PipeFeed",
    "ReadLog",
    "RowParser",
    "RowSource",
    "Table",
    "TableError",
    "TableOptions",
    "TagNote",
    "TimeOptions",
    "TimeProgress",
    "TimeReader",
    "as_zone",
    "continue_sink",
    "file_of_address",
    "files_of",
    "is_address",
    "is_missing",
    "is_number",
    "need_pyarrow",
    "open_feed",
    "open_sink",
    "parquet_pieces",
    "parse_duration",
    "plain_alignment",
    "public_query",
    "quoted",
    "read_table",
    "refuse_unknown",
    "source_name",
]  # fmt: skip
