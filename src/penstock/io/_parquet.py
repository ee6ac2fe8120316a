"""Parquet files; needs the extra `files`."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from penstock._messages import quoted
from penstock.io._errors import TableError
from penstock.io._memory import from_pandas
from penstock.io._notes import Notebook
from penstock.io._raw import RawTable


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
            raise TableError(f"{name} holds {cells:,} values. Read a part, or pass a larger max_bytes.")
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
                f"memory. Read a part of it, or pass a larger max_bytes."
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
