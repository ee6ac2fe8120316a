"""Read tables and streams as plants have them, and write verdicts and snapshots.

Tables and streams share one layout finder (`_layout.py`): encoding, separator, decimal sign, lines above the header,
units, words for missing values, time. Tables: `read.py` reads files, folders or frames, combines them, reads times and
numbers and puts rows in order; each step adds notes on what it changed. Streams: `feeds.py` reads bytes as they
come, and `rows.py` makes rows of them and knows the position.
"""

from penstock.io._clock import TimeOptions, as_zone
from penstock.io._files import files_of, need_pyarrow, parquet_pieces
from penstock.io._row_values import Columns, TableOptions, is_number, quoted
from penstock.io._time_texts import read_stamps
from penstock.io.align import AlignedRows, AlignedTag, Aligner, Alignment, AlignOptions
from penstock.io.durations import parse_duration
from penstock.io.feeds import Feed, InputError, PipeFeed, open_feed
from penstock.io.read import read_table
from penstock.io.rows import Batch, Fault, RowSource, check_position
from penstock.io.sinks import JsonLinesSink, OutputError, OutputMark, continue_sink, open_sink
from penstock.io.snapshots import SnapshotError, Snapshots, differences
from penstock.io.table import Note, Notebook, Table, TableError, TagNote, refuse_unknown

__all__ = [
    "AlignOptions", "AlignedRows", "AlignedTag", "Aligner", "Alignment", "Batch", "Columns", "Fault", "Feed",
    "InputError", "JsonLinesSink", "Note", "Notebook", "OutputError", "OutputMark", "PipeFeed", "RowSource",
    "SnapshotError", "Snapshots", "Table", "TableError", "TableOptions", "TagNote", "TimeOptions", "as_zone",
    "check_position", "continue_sink", "differences", "files_of", "is_number", "need_pyarrow", "open_feed",
    "open_sink", "parquet_pieces", "parse_duration", "quoted", "read_stamps", "read_table", "refuse_unknown",
]  # fmt: skip
