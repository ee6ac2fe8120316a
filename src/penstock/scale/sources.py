"""Sources of rows: Parquet files, Dask collections and tables in memory, as row groups of Parquet files.

A task gets a piece by the path of its file: rows that were sent inside tasks would be lost with a worker, a file is
loaded again by another. Blocks of a Dask collection and tables in memory are therefore first written to files, so that
there is one kind of piece, and one place where columns and values are checked.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from penstock._messages import counted, listed, quoted
from penstock._types import FloatArray
from penstock.io import TableError, refuse_unknown

PIECE_BYTES = 32 << 20  # large enough that loading outweighs the scheduling, small enough that many fit into a worker
_COLUMNS_AT_ONCE = 8  # pyarrow takes several times what it reads: all of a row group at once would not fit
_TIME_TYPES = ("datetime", "timestamp", "timedelta", "duration", "period", "date", "time")
_CHOOSE = "pass columns=[...] with the names of those to use"
_ACCEPTED = (
    "Pass the path of a Parquet file, a folder or list of them, a Dask array or dataframe, a NumPy array, or a pandas "
    "or polars DataFrame"
)


@dataclass(frozen=True)
class Piece:
    """A row group of a Parquet file: what a reader can take out of it without reading the rest."""

    label: str  # what messages call it: the file and which part of it
    path: str
    row_group: int
    first_row: int
    n_rows: int
    columns: tuple[str, ...]

    def load(self, *, takes_missing: bool = False) -> FloatArray:
        """Load the rows, C-contiguous float64; raise `TableError` naming the label, row and column of a bad value."""
        import pyarrow

        with _named(self.label), _opened_parquet(Path(self.path)) as file:
            if self.row_group >= file.num_row_groups:
                raise self._changed()
            rows = np.empty((self.n_rows, len(self.columns)))
            for first in range(0, len(self.columns), _COLUMNS_AT_ONCE):
                names = list(self.columns[first : first + _COLUMNS_AT_ONCE])
                read = file.read_row_group(self.row_group, columns=names, use_threads=False)
                if read.num_rows != self.n_rows or not set(names) <= set(read.column_names):
                    raise self._changed()
                for number, name in enumerate(names, first):
                    rows[:, number] = read.column(name).cast(pyarrow.float64(), safe=False).to_numpy()
        del read
        pyarrow.default_memory_pool().release_unused()  # it would keep for later what a worker near its limit lacks now
        _check_finite(rows, self.label, self.columns, takes_missing, self.first_row)
        return rows

    def _changed(self) -> TableError:
        return TableError(f"{self.label}: the file was changed after it was opened as a source. Open the source again.")


@dataclass(frozen=True)
class Source:
    """Rows in pieces."""

    pieces: list[Piece]  # in the order of the rows
    columns: list[str] | None  # names; None if there are none, or not all of them are texts
    n_columns: int
    # A hex digest that changes with the source: by the paths, sizes and times of change of files, the content of
    # arrays, or Dask's token of a collection.
    signature: str


def open_source(
    source: Any, folder: Path, cluster: Any, *, columns: Sequence[str] | None = None, takes_missing: bool = False
) -> Source:
    """Open a source of rows in pieces, after all that can be checked without loading them.

    `source` is a Parquet file, a folder or list of such files (of which only the footers are read); a 2-D Dask array or
    a Dask dataframe, whose blocks tasks of the cluster write to `folder`; a NumPy array, pandas or polars DataFrame,
    which is written there from here. `columns` are names, in this order; all if None.

    Raises `TableError` if the rows cannot be used, with the file, row group and column as far as these are known. Bad
    values in Parquet files are found when a piece is loaded.
    """
    wish = _check_names(columns)
    if isinstance(source, str | os.PathLike):
        path = _path(source)
        if path.suffix == ".zarr" or (path / "zarr.json").is_file() or (path / ".zarray").is_file():
            raise TableError(f"{path} is a Zarr array. Pass dask.array.from_zarr({str(path)!r}).")
        source = _parquet_files(path) if path.is_dir() else [path]
    if isinstance(source, list | tuple):
        return _open_parquet([_listed_path(entry) for entry in source], wish)
    if _is_instance_of(source, "dask.array", "Array") or _is_instance_of(source, "dask.dataframe", "DataFrame"):
        return _open_dask(source, wish, folder, cluster, takes_missing)
    if isinstance(source, np.ndarray | pd.DataFrame) or _is_instance_of(source, "polars", "DataFrame"):
        return _open_memory(source, wish, folder, takes_missing)
    raise TableError(f"Rows cannot be taken from a {type(source).__module__}.{type(source).__name__}. {_ACCEPTED}.")


def _check_names(columns: Sequence[str] | None) -> list[str] | None:
    """Return the names that were asked for as a list; raise if they cannot be meant."""
    if columns is None:
        return None
    if isinstance(columns, str):
        raise TableError(f"columns is a list of names; for one column pass columns=[{columns!r}].")
    wish = list(columns)
    if not all(isinstance(name, str) for name in wish):
        raise TableError(f"columns is a list of names, texts each; got {wish!r:.200}.")
    if not wish:
        raise TableError("columns=[] leaves no column. Name at least one, or leave out columns to use all.")
    _check_unique(wish, "columns=[...]")
    return wish


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
        f"in memory pass numpy.array(rows)."
    )


def _is_instance_of(value: Any, module: str, name: str) -> bool:
    """Tell whether a value is of a class whose package may be missing: what is not loaded cannot have made it."""
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(value, getattr(loaded, name))


def _signature(*facts: object) -> str:
    """Compute a digest of facts that differ in their `repr`."""
    return hashlib.blake2b(repr(facts).encode(errors="surrogateescape"), digest_size=16).hexdigest()


# Columns and values: the checks that rows of every kind pass.


def _chosen_positions(known: Sequence[str], wish: Sequence[str] | None, label: str) -> list[int]:
    """Return the positions of the columns to use among those that there are; all if none were asked for."""
    positions = {name: position for position, name in enumerate(known)}
    refuse_unknown([name for name in wish or () if name not in positions], known, "columns", label)
    if not known:
        raise TableError(f"{label} has no columns. A detector needs at least one column of numbers.")
    wanted = set(known if wish is None else wish)
    _check_unique([name for name in known if name in wanted], label)
    return list(range(len(known))) if wish is None else [positions[name] for name in wish]


def _check_unique(names: Sequence[str], label: str) -> None:
    """Raise if a name stands for two columns: which one is meant would be ambiguous."""
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise TableError(f"{label} has more than one column named {listed(repeated)}. Give each its own name.")


def _raise_column_type(label: str, column: str, type_name: str) -> None:
    """Raise for a column that holds no numbers, with the way out."""
    if type_name.lower().startswith(_TIME_TYPES):
        raise TableError(
            f"{label}: column {quoted(column)} holds times ({type_name}), not measurements. Leave it out: {_CHOOSE}."
        )
    raise TableError(
        f"{label}: column {quoted(column)} holds {type_name}, but a detector needs numbers. Encode it as numbers, or "
        f"leave it out: {_CHOOSE}."
    )


def _check_finite(
    rows: FloatArray, label: str, columns: Sequence[str], takes_missing: bool, first_row: int = 0
) -> None:
    """Raise if a value is infinite, or missing unless that is taken, naming the first."""
    bad = np.isinf(rows) if takes_missing else ~np.isfinite(rows)
    if not bad.any():
        return
    row, column = (int(index) for index in np.argwhere(bad)[0])
    place = f"row {row:,}" if first_row == 0 else f"row {row:,} (row {first_row + row:,} of the whole)"
    n_rows = counted(int(bad.any(axis=1).sum()), "row")
    if np.isnan(rows[row, column]):
        what = "no value (null or NaN)"
        way_out = (
            f"Missing values are not taken here: fill them, leave out such rows ({n_rows} here), or fit on one machine "
            f"with detector.fit, which takes them."
        )
    else:
        what = f"{rows[row, column]} (infinity)"
        way_out = f"Replace such values by finite numbers, or leave out such rows ({n_rows} here)."
    raise TableError(
        f"{label}: {place}, column {quoted(columns[column])}, holds {what}, the first of "
        f"{counted(int(bad.sum()), 'such value')} among {rows.size:,}. {way_out}"
    )


def _open_parquet(paths: Sequence[Path], wish: Sequence[str] | None) -> Source:
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
            pieces += _row_groups(file, str(path), path, columns)
    assert columns is not None
    _check_any_rows(pieces, str(paths[0]) if len(paths) == 1 else f"The list of {len(paths):,} Parquet files")
    facts = [(str(path.absolute()), path.stat().st_size, path.stat().st_mtime_ns) for path in paths]
    return Source(pieces, columns, len(columns), _signature("parquet", columns, facts))


def _row_groups(file: Any, label: str, path: Path, columns: Sequence[str]) -> Iterator[Piece]:
    first_row = 0
    for number in range(file.metadata.num_row_groups):
        n_rows = file.metadata.row_group(number).num_rows
        yield Piece(f"{label}, row group {number}", str(path.absolute()), number, first_row, n_rows, tuple(columns))
        first_row += n_rows


def _check_any_rows(pieces: Sequence[Piece], label: str) -> None:
    """Raise if there are no rows at all; single pieces may be empty."""
    if not any(piece.n_rows for piece in pieces):
        raise TableError(f"{label} has no rows. A detector needs some to be fitted to.")


def _parquet_files(folder: Path) -> list[Path]:
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
        raise TableError("Reading Parquet needs the extra 'dask': pip install 'penstock[dask]'") from None
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
            f"{label}: does not fit into the memory of this worker, or is damaged ({_brief(error)}). Write the file "
            f"with smaller row groups."
        ) from None
    except (OSError, ValueError, TypeError, KeyError, RuntimeError, OverflowError) as error:
        raise TableError(
            f"{label}: damaged, or no Parquet table ({_brief(error)}). Write the file again, or leave it out."
        ) from None


def _brief(error: BaseException) -> str:
    """Return the message of another package's error on one line of at most 150 characters."""
    return " ".join(str(error).split())[:150]


def _usable_columns(schema: Any, label: str, wish: Sequence[str] | None) -> list[str]:
    """Return the columns to use, all of numbers; what pandas stored as an index is used only if asked for."""
    from pyarrow import types as arrow_types

    known = list(schema.names)
    if wish is None:
        index = {name for name in (schema.pandas_metadata or {}).get("index_columns", []) if isinstance(name, str)}
        known = [name for name in known if name not in index]
    chosen = [known[k] for k in _chosen_positions(known, wish, label)]
    numeric = (arrow_types.is_integer, arrow_types.is_floating, arrow_types.is_decimal, arrow_types.is_boolean)
    for name in chosen:
        kind = schema.field(name).type
        if not any(test(kind) for test in numeric):
            _raise_column_type(label, name, str(kind))
    return chosen


def _check_same_columns(own: Sequence[str], columns: Sequence[str], path: Path, first: Path) -> None:
    missing = [name for name in columns if name not in set(own)]
    extra = [name for name in own if name not in set(columns)]
    if not missing and not extra:
        return
    differences = [f"lacks {listed(missing)}"] * bool(missing) + [f"has {listed(extra)} besides"] * bool(extra)
    raise TableError(
        f"{path} has other columns than {first}: it {' and '.join(differences)}. Leave the file out, or pass "
        f"columns=[...] with names that all files have."
    )


# Tables in memory and blocks of Dask are written to Parquet files.


def _open_memory(table: Any, wish: Sequence[str] | None, folder: Path, takes_missing: bool) -> Source:
    """Open the rows of an array or DataFrame, which are checked and written to `folder` at once."""
    label = f"The {type(table).__module__.split('.')[0]} {type(table).__name__}"
    if isinstance(table, np.ndarray):
        _refuse_names(wish, label)
    rows, columns = _rows_of(table, wish, label)
    _check_finite(rows, label, columns, takes_missing)
    digest = hashlib.blake2b(rows.data, digest_size=16).hexdigest()
    signature = _signature("memory", columns, rows.shape, digest)
    file = folder / f"{signature}.parquet"
    _write(file, rows, columns)
    with _opened_parquet(file) as opened:
        pieces = list(_row_groups(opened, label, file, columns))
    _check_any_rows(pieces, label)
    return Source(pieces, _text_names(table, columns), len(columns), signature)


def _open_dask(collection: Any, wish: Sequence[str] | None, folder: Path, cluster: Any, takes_missing: bool) -> Source:
    """Open the blocks of a 2-D Dask array or the partitions of a Dask dataframe; tasks write them to files.

    A task cannot compute a block itself, since it would wait for other tasks while holding the thread they need: the
    block is an argument. Blocks that are written already are not computed again.
    """
    if hasattr(collection, "columns"):
        label, kind = "The Dask dataframe", "partition {} of the Dask dataframe"
        known = [str(name) for name in collection.columns]
        positions = _chosen_positions(known, wish, label)
        blocks = collection[[collection.columns[position] for position in positions]].to_delayed()
        columns = [known[position] for position in positions]
    else:
        label, kind = "The Dask array", "block {} of the Dask array"
        _refuse_names(wish, label)
        _check_shape(collection.shape, label)
        blocks = collection.rechunk({1: -1}).to_delayed()[:, 0]  # columns may be in several chunks
        columns = _numbers(collection.shape[1])
    signature = _signature("dask", columns, _token(collection))
    folder.mkdir(parents=True, exist_ok=True)
    labels = [kind.format(number) for number in range(len(blocks))]
    files = [folder / f"{signature}-{number}.parquet" for number in range(len(blocks))]
    tasks = [
        (block, label, columns, takes_missing, file)
        for block, label, file in zip(blocks, labels, files, strict=True)
        if not file.exists()
    ]
    cluster.run("taking rows from Dask", store_block, tasks)
    pieces: list[Piece] = []
    for own, file in zip(labels, files, strict=True):
        with _opened_parquet(file) as opened:
            pieces += _row_groups(opened, own, file, columns)
    _check_any_rows(pieces, label)
    return Source(pieces, _text_names(collection, columns), len(columns), signature)


def store_block(block: Any, label: str, columns: Sequence[str], takes_missing: bool, file: Path) -> None:
    """Task: check a computed block, and write it to its file.

    What Dask says of a block before it is computed is a promise of the code that makes it.
    """
    rows, names = _rows_of(block, columns if hasattr(block, "columns") else None, label)
    if len(names) != len(columns):
        raise TableError(f"{label} has {len(names):,} columns, but {len(columns):,} were announced.")
    _check_finite(rows, label, columns, takes_missing)
    _write(file, rows, columns)


def _rows_of(table: Any, wish: Sequence[str] | None, label: str) -> tuple[FloatArray, list[str]]:
    """Return the rows of an array or DataFrame as float64, NaN where a value is missing, and the columns used."""
    import pyarrow

    try:
        if _is_instance_of(table, "polars", "DataFrame"):
            arrow = table.to_arrow()
        elif isinstance(table, pd.DataFrame):
            names = [str(name) for name in table.columns]
            chosen = table.set_axis(names, axis=1).iloc[:, _chosen_positions(names, wish, label)]
            arrow = pyarrow.Table.from_pandas(chosen, preserve_index=False)
        else:
            arrow = _array_as_arrow(table, label)
    except (pyarrow.ArrowException, TypeError, ValueError) as error:
        raise TableError(f"{label} is no table of numbers ({_brief(error)}).") from None
    columns = _usable_columns(arrow.schema, label, wish)
    rows = np.empty((arrow.num_rows, len(columns)))
    for number, name in enumerate(columns):
        rows[:, number] = arrow.column(name).cast(pyarrow.float64(), safe=False).to_numpy()
    return rows, columns


def _array_as_arrow(array: Any, label: str) -> Any:
    import pyarrow

    if isinstance(array, np.ma.MaskedArray):
        array = np.ma.filled(array.astype(np.float64), np.nan)
    values = np.asarray(array)
    _check_shape(values.shape, label)
    if values.dtype.kind == "f":
        with np.errstate(over="ignore"):  # what is too large for float64 becomes inf, and is refused by name
            values = values.astype(np.float64, copy=False)
    return pyarrow.table(list(values.T), names=_numbers(values.shape[1]))


def _numbers(n: int) -> list[str]:
    return [str(number) for number in range(n)]


def _refuse_names(wish: Sequence[str] | None, label: str) -> None:
    if wish is not None:
        raise TableError(
            f"{label} has no column names, so {listed(wish)} (given as columns) cannot be found. Leave out columns, "
            f"and pass an array of the wanted columns only."
        )


def _check_shape(shape: Sequence[float], label: str) -> None:
    if len(shape) != 2:
        raise TableError(
            f"{label} has {counted(len(shape), 'dimension')} (shape {tuple(shape)}), but a table of rows × columns "
            f"needs 2. For a single column use reshape(-1, 1)."
        )
    if np.isnan(shape[1]):
        raise TableError(f"{label} has an unknown number of columns. Call its compute_chunk_sizes() first.")
    if shape[1] == 0:
        raise TableError(f"{label} has no columns. A detector needs at least one column of numbers.")


def _text_names(table: Any, columns: list[str]) -> list[str] | None:
    """Return the names of the columns, None unless all of the table's are texts, as for scikit-learn."""
    has_names = hasattr(table, "columns") and all(isinstance(name, str) for name in table.columns)
    return columns if has_names else None


def _token(collection: Any) -> str:
    """Return Dask's name for what a collection computes: the same for the same data and steps, if Dask can tell."""
    from dask.base import tokenize

    return str(tokenize(collection))


def _write(path: Path, rows: FloatArray, columns: Sequence[str]) -> None:
    """Write rows, wholly or not at all, under a name that tells their content; a file that is there is kept."""
    import pyarrow
    from pyarrow import parquet

    if path.exists():
        return
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    table = pyarrow.table(list(rows.T), names=list(columns))
    size = max(1, PIECE_BYTES // (8 * len(columns)))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        parquet.write_table(table, draft, row_group_size=size, compression="none", use_dictionary=False)
        draft.replace(path)
    except OSError as error:
        raise TableError(f"{path} cannot be written ({error}). Make room, or pass another folder=...") from None
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
