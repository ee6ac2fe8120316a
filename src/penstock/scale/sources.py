"""Sources of rows: Parquet files, Dask collections and tables in memory, in pieces that tasks load.

A task gets a piece of a file by its path. Rows that were sent inside tasks or scattered would be lost with a worker; a
file is loaded again by another. A task cannot run a Dask graph of its own, since it would wait for other tasks while
holding the thread they need: pieces of Dask collections carry a `delayed` block that becomes an argument.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from penstock._messages import listed
from penstock._types import FloatArray
from penstock.io import TableError
from penstock.scale import _pieces
from penstock.scale._pieces import (
    Piece,
    Source,
    as_table,
    brief,
    check_array,
    check_finite,
    taking_missing,
)

__all__ = ["Piece", "Source", "as_table", "open_source", "read_piece", "taking_missing"]

_ACCEPTED = (
    "Pass the path of a Parquet file, a folder or list of them, a Dask array or dataframe, or a NumPy array, pandas or "
    "polars DataFrame with folder=..."
)


def open_source(source: Any, *, columns: Sequence[str] | None = None, folder: str | Path | None = None) -> Source:
    """Open a source of rows in pieces, after all that can be checked without loading them.

    `source` is a Parquet file, a folder or list of such files (of which only the footers are read); a 2-D Dask array or
    a Dask dataframe; a NumPy array, pandas or polars DataFrame, which is written in pieces to `folder`, for all workers
    to read. `columns` are names, in this order; all if None.

    Raises `TableError` if the rows cannot be used, with the file, row group and column as far as these are known.
    Missing and infinite values are found when a piece is loaded, those of a table in memory at once.
    """
    wish = _pieces.check_names(columns)
    if isinstance(source, str | os.PathLike):
        path = _path(source)
        if path.suffix == ".zarr" or (path / "zarr.json").is_file() or (path / ".zarray").is_file():
            raise TableError(f"{path} is a Zarr array. Pass dask.array.from_zarr({str(path)!r}).")
        source = parquet_files(path) if path.is_dir() else [path]
    if isinstance(source, list | tuple):
        return open_parquet([_listed_path(entry) for entry in source], wish)
    if _pieces.is_instance_of(source, "dask.array", "Array"):
        return open_dask_array(source, wish)
    if _pieces.is_instance_of(source, "dask.dataframe", "DataFrame"):
        return open_dask_frame(source, wish)
    if isinstance(source, np.ndarray) or _pieces.is_frame(source):
        return open_memory(source, wish, None if folder is None else Path(folder))
    raise TableError(f"Rows cannot be taken from a {type(source).__module__}.{type(source).__name__}. {_ACCEPTED}.")


def read_piece(given: Any, label: str, columns: Sequence[str] | None = None) -> FloatArray:
    """Return the rows that a task was given: a piece of a file is loaded, a block that Dask computed is checked."""
    if isinstance(given, Piece):  # by class: a DataFrame may well have a column named "load"
        return given.load()
    return as_table(given, label, columns)


def _path(text: str | os.PathLike[str]) -> Path:
    if "://" in os.fspath(text):
        raise TableError(
            f"{text} is an address, not a path. Open it with dask.dataframe.read_parquet or dask.array.from_zarr, and "
            f"pass what these return."
        )
    return Path(text)


def _listed_path(entry: Any) -> Path:
    if isinstance(entry, str | os.PathLike):
        return _path(entry)
    raise TableError(
        f"A list is taken for paths of Parquet files, but it holds a {type(entry).__name__} ({entry!r:.80}). For rows "
        f"in memory pass numpy.array(rows) with folder=..."
    )


_COLUMNS_AT_ONCE = 8  # pyarrow takes several times what it reads: all of a row group at once would not fit


@dataclass(frozen=True)
class ParquetPiece(Piece):
    """One row group of a Parquet file, which is what a reader can take out of it without reading the rest."""

    label: str
    path: str
    row_group: int
    first_row: int
    n_rows: int
    columns: tuple[str, ...]

    def load(self) -> FloatArray:
        import pyarrow

        with _named(self.label), _opened_parquet(Path(self.path)) as file:
            if self.row_group >= file.num_row_groups:
                raise self._changed()
            table = np.empty((self.n_rows, len(self.columns)))
            for first in range(0, len(self.columns), _COLUMNS_AT_ONCE):
                names = list(self.columns[first : first + _COLUMNS_AT_ONCE])
                read = file.read_row_group(self.row_group, columns=names, use_threads=False)
                if read.num_rows != self.n_rows or not set(names) <= set(read.column_names):
                    raise self._changed()
                for number, name in enumerate(names, first):
                    table[:, number] = read.column(name).cast(pyarrow.float64(), safe=False).to_numpy()
        del read
        pyarrow.default_memory_pool().release_unused()  # it would keep for later what a worker near its limit lacks now
        check_finite(table, self.label, self.columns, self.first_row, f"row group {self.row_group}", "the file")
        return table

    def _changed(self) -> TableError:
        return TableError(f"{self.label}: the file was changed after it was opened as a source. Open the source again.")


def open_parquet(paths: Sequence[Path], wish: Sequence[str] | None) -> Source:
    """Open the row groups of these files, which must all have the same columns, in any order."""
    if not paths:
        raise TableError("The list of Parquet files is empty. Pass at least one path.")
    for path in paths:
        if path.is_dir():
            raise TableError(f"{path} is a folder. Pass a folder by itself, or list its files.")
        if not path.exists():
            raise TableError(f"{path} does not exist. Check the path; every worker must see the file under it.")
    columns: list[str] | None = None
    pieces: list[Piece] = []
    for path in paths:
        with _named(str(path)), _opened_parquet(path) as file:
            own = _usable_columns(file.schema_arrow, str(path), wish)
            columns = columns or own
            _check_same_columns(own, columns, path, paths[0])
            first_row = 0
            for number in range(file.metadata.num_row_groups):
                place, n_rows = f"{path}, row group {number}", file.metadata.row_group(number).num_rows
                pieces.append(ParquetPiece(place, str(path.absolute()), number, first_row, n_rows, tuple(columns)))
                first_row += n_rows
    assert columns is not None
    _pieces.check_any_rows(pieces, str(paths[0]) if len(paths) == 1 else f"The list of {len(paths):,} Parquet files")
    signature = _pieces.signature_of("parquet", columns, _pieces.file_facts(path.absolute() for path in paths))
    return Source(pieces, columns, len(columns), signature)


def parquet_files(folder: Path) -> list[Path]:
    """List the visible Parquet files of a folder (no . or _ first) in natural order: part-2 before part-10."""
    files = [
        path for path in folder.iterdir() if path.suffix.lower() == ".parquet" and not path.name.startswith((".", "_"))
    ]
    if not files:
        deeper = next(folder.glob("*/**/*.parquet"), None)
        hint = f" There are some in its folders ({deeper}): pass a list of their paths." if deeper else ""
        raise TableError(f"The folder {folder} has no files named *.parquet.{hint or ' Check the path.'}")
    return sorted(files, key=lambda path: _natural(path.name))


def _natural(name: str) -> tuple[list[tuple[str, int]], str]:
    """Split a name into texts and numbers in turn; the name itself distinguishes part-1 and part-01."""
    parts = re.split(r"(\d+)", name)
    return [(text, int(number or 0)) for text, number in zip(parts[::2], [*parts[1::2], ""], strict=True)], name


@contextmanager
def _opened_parquet(path: Path) -> Iterator[Any]:
    try:
        from pyarrow import parquet
    except ImportError:
        raise _pieces.missing_extra("Reading Parquet") from None
    with parquet.ParquetFile(path, page_checksum_verification=True) as file:
        yield file


@contextmanager
def _named(label: str) -> Iterator[None]:
    """Add the place to errors of pyarrow, which say what is wrong, but not where."""
    try:
        yield
    except TableError:
        raise
    except FileNotFoundError:
        raise TableError(
            f"{label}: the file is gone, or this machine does not see it. Put it where every worker can read it under "
            f"the same path."
        ) from None
    except PermissionError as error:
        raise TableError(f"{label}: the file may not be read here ({error}). Allow it to every worker.") from None
    except MemoryError as error:
        raise TableError(
            f"{label}: does not fit into the memory of this worker, or is damaged ({brief(error)}). Write the file "
            f"with smaller row groups."
        ) from None
    except (OSError, ValueError, TypeError, KeyError, RuntimeError, OverflowError) as error:
        raise TableError(
            f"{label}: damaged, or no Parquet table ({brief(error)}). Write the file again, or leave it out."
        ) from None


def _usable_columns(schema: Any, label: str, wish: Sequence[str] | None) -> list[str]:
    """Return the columns to use, all of numbers; what pandas stored as an index is used only if asked for."""
    from pyarrow import types

    known = list(schema.names)
    if wish is None:
        index = {name for name in (schema.pandas_metadata or {}).get("index_columns", []) if isinstance(name, str)}
        known = [name for name in known if name not in index]
    chosen = [known[k] for k in _pieces.chosen_positions(known, wish, label)]
    numeric = (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean)
    for name in chosen:
        kind = schema.field(name).type
        if not any(test(kind) for test in numeric):
            _pieces.raise_column_type(label, name, str(kind))
    return chosen


def _check_same_columns(own: Sequence[str], columns: Sequence[str], path: Path, first: Path) -> None:
    known, wanted = set(own), set(columns)
    missing = [name for name in columns if name not in known]
    extra = [name for name in own if name not in wanted]
    if not missing and not extra:
        return
    differences = [f"lacks {listed(missing)}"] * bool(missing) + [f"has {listed(extra)} besides"] * bool(extra)
    raise TableError(
        f"{path} has other columns than {first}: it {' and '.join(differences)}. Leave the file out, or pass "
        f"columns=[...] with names that all files have."
    )


@dataclass(frozen=True)
class DaskPiece(Piece):
    """One block of a Dask collection."""

    label: str
    n_rows: int | None
    n_columns: int
    columns: tuple[str, ...] | None
    delayed: Any = field(repr=False)

    def load(self) -> FloatArray:
        """Compute the rows by Dask; not for use inside a task, which takes `delayed` as an argument instead."""
        return as_table(self.delayed.compute(), self.label, self.columns, n_columns=self.n_columns)


def open_dask_array(array: Any, wish: Sequence[str] | None) -> Source:
    """Open the blocks of a 2-D Dask array, joined along the columns where these are in several chunks."""
    label = "The Dask array"
    check_array(array, label, wish)
    whole_rows = array.rechunk({1: -1}) if array.numblocks[1] > 1 else array
    sizes, n_columns = whole_rows.chunks[0], int(array.shape[1])
    starts = accumulate(sizes, initial=0)
    pieces: list[Piece] = []
    for number, (start, size, block) in enumerate(zip(starts, sizes, whole_rows.to_delayed()[:, 0], strict=False)):
        known, place = not np.isnan(start + size), f"block {number:,} of the Dask array"
        place += f" (rows {int(start):,} to {int(start + size) - 1:,})" if known else ""
        pieces.append(DaskPiece(place, None if np.isnan(size) else int(size), n_columns, None, block))
    _pieces.check_any_rows(pieces, label)
    return Source(pieces, None, n_columns, _pieces.signature_of("dask array", _token(array)))


def open_dask_frame(frame: Any, wish: Sequence[str] | None) -> Source:
    """Open the partitions of a Dask dataframe; how many rows each has is not known before it is computed."""
    label = "The Dask dataframe"
    names = [str(name) for name in frame.columns]
    positions = _pieces.chosen_positions(names, wish, label)
    _pieces.check_frame_types(names, list(frame.dtypes), positions, label)
    chosen = frame if wish is None else frame[[frame.columns[k] for k in positions]]
    columns = tuple(names[k] for k in positions)
    pieces: list[Piece] = [
        DaskPiece(f"partition {number:,} of the Dask dataframe", None, len(columns), columns, block)
        for number, block in enumerate(chosen.to_delayed())
    ]
    return Source(
        pieces, _pieces.frame_names(chosen), len(columns), _pieces.signature_of("dask frame", columns, _token(frame))
    )


def _token(collection: Any) -> str:
    """Return Dask's name for what a collection computes: the same for the same data and steps, if Dask can tell."""
    from dask.base import tokenize

    return str(tokenize(collection))


@dataclass(frozen=True)
class ArrayPiece(Piece):
    """Consecutive rows of a table that was in memory, in a file of their own."""

    label: str
    path: str
    first_row: int
    n_rows: int
    n_columns: int
    columns: tuple[str, ...] | None

    def load(self) -> FloatArray:
        try:
            table = np.load(self.path, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise TableError(
                f"{self.label}: {self.path} cannot be read ({brief(error)}). Open the source again with a folder "
                f"that every worker can read under the same path."
            ) from None
        if table.shape != (self.n_rows, self.n_columns) or table.dtype != np.float64:
            raise TableError(f"{self.label}: {self.path} is not what was written. Open the source again.")
        check_finite(table, self.label, self.columns, self.first_row, "these rows", "the whole")
        return np.ascontiguousarray(table)


def open_memory(table: Any, wish: Sequence[str] | None, folder: Path | None) -> Source:
    """Open the rows of an array or DataFrame, which are checked and written to `folder` at once."""
    label = f"The {type(table).__module__.split('.')[0]} {type(table).__name__}"
    columns, names, n_columns = _checked_columns(table, wish, label)
    if folder is None:
        raise TableError(
            f"{label} lies in memory, where the workers cannot read it. Pass folder=..., a folder that all of them "
            f"see, to which its rows are written in pieces."
        )
    pieces: list[Piece] = []
    digests: list[str] = []
    for start, stop in _row_runs(len(table), n_columns):
        rows = _rows(table, start, stop, columns, label)
        check_finite(rows, label, columns, start)
        digests.append(hashlib.blake2b(np.ascontiguousarray(rows).data, digest_size=16).hexdigest())
        path = _written(rows, folder.absolute() / f"rows-{start}-{digests[-1]}.npy")
        own = f"{label}, rows {start:,} to {stop - 1:,}"
        pieces.append(ArrayPiece(own, str(path), start, stop - start, n_columns, columns))
    _pieces.check_any_rows(pieces, label)
    return Source(pieces, names, n_columns, _pieces.signature_of("memory", len(table), columns, digests))


def _checked_columns(
    table: Any, wish: Sequence[str] | None, label: str
) -> tuple[tuple[str, ...] | None, list[str] | None, int]:
    """Check types; return the columns as messages call them, their names if these are texts, and their number."""
    if not _pieces.is_frame(table):
        check_array(table, label, wish)
        return None, None, table.shape[1]
    known = [str(name) for name in table.columns]
    positions = _pieces.chosen_positions(known, wish, label)
    columns = tuple(known[k] for k in positions)
    _pieces.check_frame_types(known, list(table.dtypes), positions, label)
    return columns, None if _pieces.frame_names(table) is None else list(columns), len(columns)


def _row_runs(n_rows: int, n_columns: int) -> Iterator[tuple[int, int]]:
    """Return where runs of rows begin and end, each of the size of a piece."""
    step = max(1, _pieces.PIECE_BYTES // max(1, 8 * n_columns))
    return ((start, min(start + step, n_rows)) for start in range(0, n_rows, step))


def _rows(table: Any, start: int, stop: int, columns: tuple[str, ...] | None, label: str) -> FloatArray:
    if columns is None:
        return _pieces.array_table(table[start:stop], label)
    rows = table.iloc[start:stop] if hasattr(table, "iloc") else table.slice(start, stop - start)
    return _pieces.frame_table(rows, label, columns)


def _written(rows: FloatArray, path: Path) -> Path:
    """Write a piece under a name that tells its content, wholly or not at all; one that is there already is kept."""
    draft = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and path.stat().st_size > rows.nbytes:
            return path
        with draft.open("wb") as file:
            np.save(file, rows)
        draft.replace(path)
    except OSError as error:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise TableError(f"{path} cannot be written ({error}). Make room, or pass another folder=...") from None
    return path
