"""Sources of rows: Parquet files and tables in memory, as row groups of Parquet files.

A task gets a piece by the path of its file: rows that were sent inside tasks would be lost with a worker, a file is
loaded again by another. A table in memory is therefore first written to a file, so that there is one kind of piece, and
one place where columns and values are checked.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from penstock._messages import counted, listed, quoted
from penstock._types import FloatArray
from penstock.io import TableError, refuse_unknown

PIECE_BYTES = 32 << 20  # large enough that loading outweighs the scheduling, small enough that many fit into a worker
_COLUMNS_AT_ONCE = 8  # pyarrow takes several times what it reads: all of a row group at once would not fit
_ACCEPTED = (
    "Pass the path of a Parquet file, a folder or list of them, a NumPy array, or a pandas or polars DataFrame. Write "
    "a Dask dataframe to files first, with to_parquet"
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
    # A hex digest that changes with the source: by the paths, sizes and times of change of files, or by the content of
    # a table in memory.
    signature: str


def open_source(source: Any, folder: Path, *, columns: Sequence[str] | None = None) -> Source:
    """Open a source of rows in pieces, after all that can be checked without loading them.

    `source` is a Parquet file, a folder or list of such files (of which only the footers are read), or a table in
    memory, which is written to `folder`. `columns` are names, in this order; all if None.

    Raises `TableError` if the rows cannot be used, with the file, row group and column as far as these are known. Bad
    values are found when a piece is loaded.
    """
    wish = _check_names(columns)
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        source = _parquet_files(path) if path.is_dir() else [path]
    if isinstance(source, list | tuple) and all(isinstance(entry, str | os.PathLike) for entry in source):
        paths = [Path(entry) for entry in source]
        return _open_parquet(paths, list(map(str, paths)), wish)
    if isinstance(source, np.ndarray | pd.DataFrame) or _is_polars(source):
        return _open_memory(source, wish, folder)
    raise TableError(f"Rows cannot be taken from a {type(source).__module__}.{type(source).__name__}. {_ACCEPTED}.")


def _check_names(columns: Sequence[str] | None) -> list[str] | None:
    """Return the names that were asked for as a list; raise if they cannot be meant."""
    if columns is None:
        return None
    if isinstance(columns, str):
        raise TableError(f"columns is a list of names; for one column pass columns=[{columns!r}].")
    wish = list(columns)
    if not wish:
        raise TableError("columns=[] leaves no column. Name at least one, or leave out columns to use all.")
    _check_unique(wish, "columns=[...]")
    return wish


def _is_polars(table: Any) -> bool:
    """Tell whether a table is one of polars, which may be missing: what is not loaded cannot have made it."""
    loaded = sys.modules.get("polars")
    return loaded is not None and isinstance(table, loaded.DataFrame)


def _signature(*facts: object) -> str:
    """Compute a digest of facts that differ in their `repr`."""
    return hashlib.blake2b(repr(facts).encode(errors="surrogateescape"), digest_size=16).hexdigest()


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


def _open_parquet(paths: Sequence[Path], labels: Sequence[str], wish: Sequence[str] | None) -> Source:
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
    for path, label in zip(paths, labels, strict=True):
        with _named(label), _opened_parquet(path) as file:
            own = _usable_columns(file.schema_arrow, label, wish)
            columns = columns or own
            _check_same_columns(own, columns, path, paths[0])
            pieces += _row_groups(file, label, path, columns)
    assert columns is not None
    if not any(piece.n_rows for piece in pieces):  # single pieces may be empty
        what = labels[0] if len(paths) == 1 else f"The list of {len(paths):,} Parquet files"
        raise TableError(f"{what} has no rows. A detector needs some to be fitted to.")
    facts = [(str(path.absolute()), path.stat().st_size, path.stat().st_mtime_ns) for path in paths]
    return Source(pieces, columns, len(columns), _signature("parquet", columns, facts))


def _row_groups(file: Any, label: str, path: Path, columns: Sequence[str]) -> Iterator[Piece]:
    first_row = 0
    for number in range(file.metadata.num_row_groups):
        n_rows = file.metadata.row_group(number).num_rows
        yield Piece(f"{label}, row group {number}", str(path.absolute()), number, first_row, n_rows, tuple(columns))
        first_row += n_rows


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
            raise TableError(
                f"{label}: column {quoted(name)} holds {kind}, but a detector needs numbers. Encode it as numbers, or "
                f"leave it out: pass columns=[...] with the names of those to use."
            )
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


def _open_memory(table: Any, wish: Sequence[str] | None, folder: Path) -> Source:
    """Open an array or DataFrame, which is first written to `folder`, under a name that tells its content."""
    label = f"The {type(table).__module__.split('.')[0]} {type(table).__name__}"
    written = _write(_as_arrow(table, wish, label), folder)
    opened = _open_parquet([written], [label], wish)
    has_names = not isinstance(table, np.ndarray) and all(isinstance(name, str) for name in table.columns)
    return replace(
        opened,
        columns=opened.columns if has_names else None,  # as for scikit-learn, which wants all of them to be texts
        signature=_signature("memory", opened.columns, written.name),
    )


def _as_arrow(table: Any, wish: Sequence[str] | None, label: str) -> Any:
    """Return the table as one of pyarrow; the columns of an array are called by their numbers."""
    import pyarrow

    try:
        if _is_polars(table):
            return table.to_arrow()
        if isinstance(table, pd.DataFrame):
            names = [str(name) for name in table.columns]
            kept = _chosen_positions(names, wish, label)
            return pyarrow.Table.from_pandas(table.set_axis(names, axis=1).iloc[:, kept], preserve_index=False)
        if wish is not None:
            raise TableError(
                f"{label} has no column names, so {listed(wish)} (given as columns) cannot be found. Leave out "
                f"columns, and pass an array of the wanted columns only."
            )
        if table.ndim != 2:
            raise TableError(
                f"{label} has {counted(table.ndim, 'dimension')} (shape {table.shape}), but a table of rows × columns "
                f"needs 2. For a single column use reshape(-1, 1)."
            )
        if isinstance(table, np.ma.MaskedArray):
            table = np.ma.filled(table.astype(np.float64), np.nan)
        if table.dtype.kind == "f":
            with np.errstate(over="ignore"):  # what is too large for float64 becomes inf, and is refused by name
                table = table.astype(np.float64, copy=False)
        return pyarrow.table(list(table.T), names=[str(number) for number in range(table.shape[1])])
    except (pyarrow.ArrowException, TypeError) as error:
        raise TableError(f"{label} is no table of numbers ({_brief(error)}).") from None


def _write(table: Any, folder: Path) -> Path:
    """Write a table, wholly or not at all, to a file that is named by its content; one that is there is kept."""
    from pyarrow import parquet

    draft = folder / f".{os.getpid()}.tmp"
    size = max(1, PIECE_BYTES // (8 * max(1, table.num_columns)))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        parquet.write_table(table, draft, row_group_size=size, compression="none", use_dictionary=False)
        with draft.open("rb") as stream:
            digest = hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
        path = folder / f"{digest}.parquet"
        if not path.exists():
            draft.replace(path)
        return path
    except OSError as error:
        raise TableError(f"{folder} cannot be written to ({error}). Make room, or pass another folder=...") from None
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
