"""Parquet files; needs the extra `files`."""

from __future__ import annotations

from pathlib import Path

from penstock.tables._errors import TableError
from penstock.tables._memory import from_pandas
from penstock.tables._notes import Notebook
from penstock.tables._raw import RawTable


def read_parquet(path: Path, name: str, max_bytes: int, notebook: Notebook) -> RawTable:
    """Read a Parquet file, unless what it says of itself would not fit into memory."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise TableError(
            f"{name} is a Parquet file, and reading it needs pyarrow. Install it with: pip install 'penstock[files]'"
        ) from None
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
