"""Parquet files; needs the extra `files`."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from penstock.tables._errors import TableError
from penstock.tables._memory import from_pandas
from penstock.tables._notes import Notebook
from penstock.tables._raw import RawTable


def need_pyarrow(what: str) -> None:
    """Raise unless Parquet can be read and written here."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        raise TableError(f"{what} needs pyarrow. Install it with: pip install 'penstock[files]'") from None


def read_parquet(path: Path, name: str, max_bytes: int, notebook: Notebook) -> RawTable:
    """Read a Parquet file, unless what it says of itself would not fit into memory."""
    need_pyarrow(f"{name} is a Parquet file, and reading it")
    import pyarrow
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            size = 8 * file.metadata.num_rows * file.metadata.num_columns
            if size > 4 * max_bytes:
                raise TableError(
                    f"{name} holds about {size:,} bytes of numbers. Read a part, or pass a larger max_bytes."
                )
            frame = file.read().to_pandas()
    except (pyarrow.ArrowException, OSError, ValueError, TypeError, OverflowError) as error:
        if isinstance(error, TableError):
            raise
        raise TableError(f"{name} is damaged or no Parquet table ({str(error)[:150]}). Write it again.") from None
    return from_pandas(frame, name, notebook)


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
