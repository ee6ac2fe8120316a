"""Where rows come from: files, Zarr arrays, Dask collections and tables in memory, as pieces that tasks load."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from penstock._types import FloatArray
from penstock.scale._blocks import as_table, is_frame, is_instance_of
from penstock.scale._checks import SourceError, checked_wish
from penstock.scale._dask_pieces import DaskPiece, open_dask_array, open_dask_frame
from penstock.scale._memory_pieces import open_memory
from penstock.scale._parquet_pieces import open_parquet, parquet_files
from penstock.scale._pieces import FilePiece, Piece, Source
from penstock.scale._zarr_pieces import is_zarr_folder, open_zarr

__all__ = ["Piece", "Source", "SourceError", "as_table", "open_source", "read_piece"]

_ACCEPTED = (
    "Pass the path of a Parquet file, a folder or list of them, a Zarr array or its path, a Dask array or dataframe, "
    "or a NumPy array, pandas or polars DataFrame with folder=..."
)


def open_source(source: Any, *, columns: Sequence[str] | None = None, folder: str | Path | None = None) -> Source:
    """Rows in pieces, after all that can be checked without loading them.

    Parameters
    ----------
    source
        A Parquet file, a folder or list of such files; a 2-D Zarr array or its folder; a 2-D Dask array or a Dask
        dataframe; a NumPy array, pandas or polars DataFrame. Of Parquet files only the footers are read. A Zarr chunk
        that was never written counts as the array's fill value, as Zarr has it.
    columns
        Names of the columns to use, in this order; all if None.
    folder
        Where a table in memory is written in pieces, for all workers to read. They get paths, not rows: rows that were
        sent inside tasks or scattered are lost with a worker, files are loaded again by another.

    Raises
    ------
    SourceError
        If the rows cannot be used; the message names the file, row group and column as far as these are known. Missing
        and infinite values are found when a piece is loaded, those of a table in memory at once.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     source = open_source(np.arange(6).reshape(3, 2), folder=folder)
    ...     [piece.load() for piece in source.pieces]
    [array([[0., 1.],
           [2., 3.],
           [4., 5.]])]
    """
    wish = checked_wish(columns)
    if isinstance(source, str | os.PathLike):
        return _open_path(_path(source), wish)
    if isinstance(source, list | tuple):
        return open_parquet([_listed_path(entry) for entry in source], wish)
    if is_instance_of(source, "zarr", "Array"):
        return open_zarr(source, wish)
    if is_instance_of(source, "dask.array", "Array"):
        return open_dask_array(source, wish)
    if is_instance_of(source, "dask.dataframe", "DataFrame"):
        return open_dask_frame(source, wish)
    if isinstance(source, np.ndarray) or is_frame(source):
        return open_memory(source, wish, None if folder is None else Path(folder))
    raise SourceError(f"Rows cannot be taken from a {type(source).__module__}.{type(source).__name__}. {_ACCEPTED}.")


def read_piece(given: Any, label: str, columns: Sequence[str] | None = None) -> FloatArray:
    """The rows of what a task was given: a piece of a file is loaded, a block that Dask computed is checked.

    A task is made with `dask.delayed(task)(piece if piece.delayed is None else piece.delayed, ...)` and calls this.

    >>> read_piece(np.array([[1, 2]]), "block 0 of the Dask array")
    array([[1., 2.]])
    """
    if isinstance(given, FilePiece | DaskPiece):  # by class: a DataFrame may well have a column named "load"
        return given.load()
    return as_table(given, label, columns)


def _path(text: str | os.PathLike[str]) -> Path:
    if "://" in os.fspath(text):
        raise SourceError(
            f"{text} is an address, not a path. Open it with dask.dataframe.read_parquet or zarr.open_array, and pass "
            f"what these return."
        )
    return Path(text)


def _open_path(path: Path, wish: Sequence[str] | None) -> Source:
    if is_zarr_folder(path):
        return open_zarr(path, wish)
    return open_parquet(parquet_files(path) if path.is_dir() else [path], wish)


def _listed_path(entry: Any) -> Path:
    if isinstance(entry, str | os.PathLike):
        return _path(entry)
    raise SourceError(
        f"A list is taken for paths of Parquet files, but it holds a {type(entry).__name__} ({entry!r:.80}). For rows "
        f"in memory pass numpy.array(rows) with folder=..."
    )
