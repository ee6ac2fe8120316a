"""Pieces of a source that a task can load by itself, and the checks that every piece passes."""

from __future__ import annotations

import hashlib
import os
import sys
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from penstock._messages import counted, listed, quoted
from penstock._types import FloatArray
from penstock.io import TableError, refuse_unknown

PIECE_BYTES = 32 << 20  # large enough that loading outweighs the scheduling, small enough that many fit into a worker


class Piece(ABC):
    """A run of consecutive rows that a task can load by itself, again and again."""

    label: str  # what messages call it: the file and which part of it
    n_rows: int | None  # None if that is not known before loading
    delayed: Any = None  # for pieces of a Dask collection the `dask.delayed` block to pass to a task

    @abstractmethod
    def load(self) -> FloatArray:
        """Load the rows, C-contiguous float64 and finite; raise `TableError` naming the label, row and column."""


@dataclass(frozen=True)
class Source:
    """Rows in pieces."""

    # In the order of the rows. Those of Dask carry their graph: pass their `delayed` to tasks, not the pieces.
    pieces: list[Piece]
    columns: list[str] | None  # names; None if there are none, or not all of them are texts
    n_columns: int
    # A hex digest that changes with the source: by the paths, sizes and times of change of files, the content of
    # arrays, or Dask's token of a collection.
    signature: str


def signature_of(*facts: object) -> str:
    """Compute a digest of facts that differ in their `repr`."""
    return hashlib.blake2b(repr(facts).encode(errors="surrogateescape"), digest_size=16).hexdigest()


def file_facts(paths: Iterable[Path]) -> list[tuple[str, int, int]]:
    """Return the path, size and time of change of each file, which differ when a file was written anew."""
    facts = []
    for path in paths:
        status = path.stat()
        facts.append((os.fspath(path), status.st_size, status.st_mtime_ns))
    return facts


def check_any_rows(pieces: Iterable[Piece], label: str) -> None:
    """Raise if it is known before loading that there are no rows at all; single pieces may be empty."""
    if all(piece.n_rows == 0 for piece in pieces):
        raise TableError(f"{label} has no rows. A detector needs some to learn from.")


def as_table(
    block: Any, label: str, columns: Sequence[str] | None = None, *, n_columns: int | None = None
) -> FloatArray:
    """Return a computed block as a C-contiguous float64 array of finite numbers; raise if it is not one.

    `columns` are chosen by name from a DataFrame and only name those of an array. What Dask says of a block before it
    is computed is a promise of the code that makes it, so types and the number of columns are looked at again. The
    array may share memory with the block, which belongs to Dask, so do not write into it; what arrives read-only is
    copied, since kernels are compiled for the ordinary kind.
    """
    table = frame_table(block, label, columns) if is_frame(block) else array_table(block, label)
    expected = n_columns if columns is None else len(columns)
    if expected is not None and table.shape[1] != expected:
        raise TableError(
            f"{label} has {table.shape[1]:,} columns, but {expected:,} were announced. Make all blocks alike."
        )
    check_finite(table, label, columns)
    return table if table.flags.writeable else table.copy()


def is_instance_of(value: Any, module: str, name: str) -> bool:
    """Tell whether a value is of a class whose package may be missing: what is not loaded cannot have made it."""
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(value, getattr(loaded, name))


def is_frame(value: Any) -> bool:
    """Tell whether a value is a DataFrame of pandas or polars."""
    return is_instance_of(value, "pandas", "DataFrame") or is_instance_of(value, "polars", "DataFrame")


def array_table(block: Any, label: str) -> FloatArray:
    """Return an array as float64; masked values are missing."""
    if isinstance(block, np.ma.MaskedArray):
        check_array(block, label)
        block = np.ma.filled(block.astype(np.float64), np.nan)
    try:
        values = np.asarray(block)
    except (TypeError, ValueError) as error:
        raise TableError(f"{label} is a {type(block).__name__}, which is no table of numbers ({error}).") from None
    check_array(values, label)
    with np.errstate(over="ignore"):  # what is too large for float64 becomes inf, and is refused by name
        return np.ascontiguousarray(values, dtype=np.float64)


def frame_table(frame: Any, label: str, columns: Sequence[str] | None) -> FloatArray:
    """Return the chosen columns of a DataFrame as float64, NaN where a value is missing; without its index."""
    names = [str(name) for name in frame.columns]
    positions = chosen_positions(names, columns, label)
    check_frame_types(names, list(frame.dtypes), positions, label)
    table = np.empty((len(frame), len(positions)))
    for number, position in enumerate(positions):
        table[:, number] = _column_values(frame, position)
    return table


def check_frame_types(names: Sequence[str], dtypes: Sequence[Any], positions: Sequence[int], label: str) -> None:
    """Raise for a column of a DataFrame (pandas, polars or Dask) that holds anything but real numbers or booleans."""
    for position in positions:
        if not _is_numeric(dtypes[position]):
            raise_column_type(label, names[position], str(dtypes[position]))


def frame_names(frame: Any) -> list[str] | None:
    """Return the names of the columns, None unless all are texts, as for scikit-learn."""
    names = list(frame.columns)
    return [str(name) for name in names] if all(isinstance(name, str) for name in names) else None


def _is_numeric(dtype: Any) -> bool:
    if is_instance_of(dtype, "polars", "DataType") or is_instance_of(dtype, "polars.datatypes", "DataTypeClass"):
        return bool(dtype.is_numeric()) or str(dtype) == "Boolean"
    from pandas.api import types

    return bool(types.is_numeric_dtype(dtype)) and not types.is_complex_dtype(dtype)


def _column_values(frame: Any, position: int) -> FloatArray:
    if is_instance_of(frame, "polars", "DataFrame"):
        values = frame.to_series(position).cast(float).to_numpy()
    else:
        values = frame.iloc[:, position].to_numpy(dtype=np.float64, na_value=np.nan)
    return np.asarray(values, dtype=np.float64)


_TIME_TYPES = ("datetime", "timestamp", "timedelta", "duration", "period", "date", "time")
_CHOOSE = "pass columns=[...] with the names of those to use"


def missing_extra(what: str) -> TableError:
    """Return the error for a package that is not installed."""
    return TableError(f"{what} needs the extra 'dask': pip install 'penstock[dask]'")


def brief(error: BaseException) -> str:
    """Return the message of another package's error on one line of at most 150 characters."""
    return " ".join(str(error).split())[:150]


def check_names(columns: Sequence[str] | None) -> list[str] | None:
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
    check_unique(wish, "columns=[...]")
    return wish


def chosen_positions(known: Sequence[str], wish: Sequence[str] | None, label: str) -> list[int]:
    """Return the positions of the columns to use among those that there are; all if none were asked for."""
    positions = {name: position for position, name in enumerate(known)}
    refuse_unknown([name for name in wish or () if name not in positions], known, "columns", label)
    if not known:
        raise TableError(f"{label} has no columns. A detector needs at least one column of numbers.")
    wanted = set(known if wish is None else wish)
    check_unique([name for name in known if name in wanted], label)
    return list(range(len(known))) if wish is None else [positions[name] for name in wish]


def check_unique(names: Sequence[str], label: str) -> None:
    """Raise if a name stands for two columns: which one is meant would be ambiguous."""
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise TableError(f"{label} has more than one column named {listed(repeated)}. Give each its own name.")


def raise_column_type(label: str, column: str, type_name: str) -> None:
    """Raise for a column that holds no numbers, with the way out."""
    if type_name.lower().startswith(_TIME_TYPES):
        raise TableError(
            f"{label}: column {quoted(column)} holds times ({type_name}), not measurements. Leave it out: {_CHOOSE}."
        )
    raise TableError(
        f"{label}: column {quoted(column)} holds {type_name}, but a detector needs numbers. Encode it as numbers, or "
        f"leave it out: {_CHOOSE}."
    )


def check_array(array: Any, label: str, wish: Sequence[str] | None = None) -> None:
    """Raise unless an array is a table of real numbers or truth values, and no columns are asked for by name.

    The number of rows may be unknown (NaN).
    """
    shape, dtype = array.shape, array.dtype
    if wish is not None:
        raise TableError(
            f"{label} has no column names, so {listed(wish)} (given as columns) cannot be found. Leave out columns, "
            f"and pass an array of the wanted columns only."
        )
    if len(shape) != 2:
        raise TableError(
            f"{label} has {counted(len(shape), 'dimension')} (shape {tuple(shape)}), but a table of rows × columns "
            f"needs 2. For a single column use reshape(-1, 1)."
        )
    if np.isnan(shape[1]):
        raise TableError(f"{label} has an unknown number of columns. Call its compute_chunk_sizes() first.")
    if shape[1] == 0:
        raise TableError(f"{label} has no columns. A detector needs at least one column of numbers.")
    if dtype.kind not in "biuf":
        what = "times" if dtype.kind in "mM" else "values"
        raise TableError(
            f"{label} holds {what} of type {dtype}, but a detector needs real numbers. Convert it, for example with "
            f"astype(float), or leave out what is no measurement."
        )


_takes_missing: ContextVar[bool] = ContextVar("missing values are taken", default=False)


@contextmanager
def taking_missing(taken: bool = True) -> Iterator[None]:
    """Let `check_finite` pass missing values inside this block."""
    token = _takes_missing.set(taken)
    try:
        yield
    finally:
        _takes_missing.reset(token)


def check_finite(
    table: FloatArray, label: str, columns: Sequence[str] | None, first_row: int = 0, part: str = "", whole: str = ""
) -> None:
    """Raise if a value is missing or infinite, naming the first.

    The rows are a `part` of a `whole` in which they begin at `first_row`; without a part, rows are counted in what the
    label names.
    """
    bad = np.isinf(table) if _takes_missing.get() else ~np.isfinite(table)
    if not bad.any():
        return
    row, column = (int(index) for index in np.argwhere(bad)[0])
    place = f"row {row:,} of {part} (row {first_row + row:,} of {whole})" if part else f"row {first_row + row:,}"
    name = f"{column:,}" if columns is None else quoted(columns[column])
    missing, n_rows = bool(np.isnan(table[row, column])), counted(int(bad.any(axis=1).sum()), "row")
    what = "no value (null or NaN)" if missing else f"{table[row, column]} (infinity)"
    way_out = (
        f"Missing values are not taken here: fill them, leave out such rows ({n_rows} here), or fit on one machine "
        f"with detector.fit, which takes them."
        if missing
        else f"Replace such values by finite numbers, or leave out such rows ({n_rows} here)."
    )
    raise TableError(
        f"{label}: {place}, column {name}, holds {what}, the first of "
        f"{counted(int(bad.sum()), 'such value')} among {table.size:,}. {way_out}"
    )
