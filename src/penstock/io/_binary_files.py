"""Read Excel sheets and Parquet files (extras `excel` and `files`); what comes of them is counted while it is made."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from penstock._messages import listed, quoted
from penstock.io._combine import RawTable
from penstock.io._memory import from_pandas
from penstock.io._text import TextSource
from penstock.io.table import Notebook, TableError

_MOST_TEXT = 2**30  # bytes of one sheet, written as CSV
_MOST_ROWS = 2**20  # of a sheet of Excel
_MOST_CELLS = 2**27  # of one sheet, also empty ones: openpyxl makes them one by one
_NOTHING = (b"", 0)


def excel_as_text(path: Path, name: str, sheet: str | None, max_bytes: int, notebook: Notebook) -> TextSource:
    """One sheet of a workbook as a text with commas: the one named, or the first."""
    max_bytes = min(max_bytes, _MOST_TEXT)
    _refuse_other_archives(path, name, max_bytes)
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise TableError(
            f"{name} is an Excel file, and reading it needs openpyxl. Install it with: pip install 'penstock[excel]', "
            f"or save the sheet as CSV."
        ) from None
    try:
        book = load_workbook(path, read_only=True, data_only=True)
    except Exception as error:  # openpyxl raises whatever comes up in a damaged file
        raise TableError(f"{name} is a damaged Excel file ({str(error)[:150]}). Save it again.") from None
    try:
        names = [each.title for each in book.worksheets]
        if sheet is None and len(names) > 1:
            notebook.add("sheets", f"Of the sheets of {name}, {listed(names)}, the first was read.", len(names))
        if not names or (sheet is not None and sheet not in names):
            raise TableError(f"{name} has no such sheet with cells. Its sheets are {listed(names) or 'none'}.")
        chosen = book[sheet if sheet is not None else names[0]]
        chosen.reset_dimensions()  # what a sheet says of its size may be wrong
        content = _as_csv(chosen.iter_rows(values_only=True), name, max_bytes)
    finally:
        book.close()
    return TextSource(name, lambda: io.BytesIO(content), max_bytes)


def _refuse_other_archives(path: Path, name: str, max_bytes: int) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            files = archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise TableError(f"{name} is a damaged archive ({str(error)[:150]}). Copy it again.") from None
    if not any(file.filename.startswith("xl/") for file in files):
        held = listed([file.filename for file in files], most=3) or "nothing"
        raise TableError(f"{name} is a zip archive (of {held}). Unpack it and read what is inside.")
    size = sum(file.file_size for file in files)
    if size > 4 * max_bytes:
        raise TableError(f"{name} holds {size:,} bytes when unpacked. Save the sheet as CSV and read that.")


def _as_csv(rows: Iterator[tuple[Any, ...]], name: str, max_bytes: int) -> bytes:
    """The sheet as text. What comes of each row is counted before the next is made."""
    lines: list[tuple[bytes, int]] = []  # and how many cells each has
    size = made = width = 0
    most = min(_MOST_CELLS, max_bytes // 2)  # 8 bytes each, of four times max_bytes
    try:
        for row in rows:
            if len(lines) == _MOST_ROWS:
                raise _too_large(name, f"has more than {_MOST_ROWS:,} rows, which no sheet has")
            made += len(row)
            if max(made, width * (len(lines) + 1)) > most:
                raise _too_large(name, f"has more than {most:,} cells up to row {len(lines) + 1:,}")
            if row.count(None) == len(row):
                lines.append(_NOTHING)
                continue
            cells = ["" if cell is None else _as_field(_written(cell)) for cell in row]
            size += sum(map(len, cells))
            if size > max_bytes:
                raise _too_large(name, f"holds more than {max_bytes:,} bytes of text")
            width = max(width, len(cells))
            if width * (len(lines) + 1) > most:
                raise _too_large(name, f"has more than {most:,} cells up to row {len(lines) + 1:,}")
            lines.append((",".join(cells).replace("\0", "").encode("utf-8", errors="replace"), len(cells)))
    except TableError:
        raise
    except Exception as error:  # as above
        raise TableError(f"{name} is a damaged Excel file ({quoted(error, 150)}). Save it again.") from None
    return b"\n".join(line + b"," * (width - max(1, cells)) for line, cells in lines)


def _too_large(name: str, what: str) -> TableError:
    return TableError(f"{name} {what}; it may not fit into memory. Save the sheet as CSV and read that.")


def _written(cell: Any) -> str:
    return repr(cell) if isinstance(cell, float) else str(cell)


def _as_field(text: str) -> str:
    """What the csv module would write, in a fraction of the time if the text is long."""
    return '"' + text.replace('"', '""') + '"' if any(sign in text for sign in ',"\n\r') else text


def need_pyarrow(what: str) -> None:
    """Raise unless Parquet can be read and written here."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        raise TableError(f"{what} needs pyarrow. Install it with: pip install 'penstock[files]'") from None


def read_parquet(path: Path, name: str, max_bytes: int, notebook: Notebook) -> RawTable:
    """Read a Parquet file, unless it would not fit into memory: what comes of it is counted before it is made."""
    need_pyarrow(f"{name} is a Parquet file, and reading it")
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            cells = file.metadata.num_rows * file.metadata.num_columns
            columns = [file.metadata.schema.column(number) for number in range(file.metadata.num_columns)]
            schema = file.schema_arrow
        if cells > max_bytes // 2:  # 8 bytes each, of four times max_bytes
            raise TableError(f"{name} holds {cells:,} values. Read a part, or pass a larger max_bytes (--max-bytes).")
        texts = [column.path for column in columns if column.physical_type == "BYTE_ARRAY"]
        with parquet.ParquetFile(path, read_dictionary=texts) as file:  # a text that comes again is kept once
            frame = _counted(file, schema, name, max_bytes).to_pandas()
    except TableError:
        raise
    except Exception as error:  # pyarrow raises whatever comes up in a damaged file
        raise TableError(f"{name} is damaged or no Parquet table ({quoted(error, 150)}). Write it again.") from None
    return from_pandas(frame, name, notebook)


def _counted(file: Any, schema: Any, name: str, max_bytes: int) -> Any:
    """The table of this schema, unless there is more text in it than `max_bytes`."""
    import pyarrow

    batches, size, rows = [], 0, 0
    for batch in file.iter_batches():
        size += sum(_text_size(column) for column in batch.columns)
        rows += batch.num_rows
        if max(size, 2 * rows * batch.num_columns) > max_bytes:
            raise TableError(
                f"{name} holds more than {max_bytes:,} bytes of text, or half as many values, which may not fit into "
                f"memory. Read a part of it, or pass a larger max_bytes (--max-bytes)."
            )
        batches.append(batch)
    return pyarrow.Table.from_batches(batches, file.schema_arrow).cast(schema)


def _text_size(column: Any) -> int:
    """The bytes of the texts in a column, each as often as it comes, also of texts in lists and records."""
    import pyarrow
    from pyarrow import compute

    types = pyarrow.types
    if types.is_dictionary(column.type) and not types.is_primitive(column.type.value_type):
        lengths = compute.binary_length(column.dictionary)
        return compute.sum(lengths.take(column.indices)).as_py() or 0
    if types.is_struct(column.type):
        return sum(map(_text_size, column.flatten()))
    if types.is_map(column.type):
        return _text_size(column.keys) + _text_size(column.items)
    return _text_size(column.values) if types.is_nested(column.type) else 0


def parquet_pieces(frames: Iterable[pd.DataFrame]) -> Iterator[bytes]:
    """The bytes of a Parquet file with these tables one after another, without their indices; types as in the first.

    >>> pieces = list(parquet_pieces([pd.DataFrame({"score": [0.5]}), pd.DataFrame({"score": [0.75]})]))
    >>> pieces[0][:4], pieces[-1][-4:]
    (b'PAR1', b'PAR1')
    """
    need_pyarrow("Writing Parquet")
    import pyarrow
    from pyarrow import parquet

    sink, writer = _Sink(), None
    for frame in frames:
        schema = None if writer is None else writer.schema
        part = pyarrow.Table.from_pandas(frame, schema=schema, preserve_index=False)
        writer = writer or parquet.ParquetWriter(sink, part.schema)
        writer.write_table(part)
        yield sink.drain()
    if writer is not None:
        writer.close()
        yield sink.drain()


class _Sink(io.RawIOBase):
    """A file that is taken away piece by piece while it is written."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._position = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._pieces.append(bytes(data))
        self._position += len(self._pieces[-1])
        return len(self._pieces[-1])

    def tell(self) -> int:
        return self._position

    def drain(self) -> bytes:
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)
