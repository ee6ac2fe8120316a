"""Tables of other libraries that are in memory already: pandas, polars, NumPy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from penstock.io._combine import RawTable, own_names
from penstock.io.table import Notebook, TableError


def is_in_memory(source: object) -> bool:
    """Whether this is a table rather than the place of one."""
    return isinstance(source, pd.DataFrame | pd.Series | np.ndarray | Mapping) or (
        hasattr(source, "to_pandas") or hasattr(source, "collect")
    )


def from_memory(source: Any, notebook: Notebook) -> RawTable:
    """A table of any of these libraries; the source itself stays as it is."""
    if hasattr(source, "collect"):  # polars' lazy tables
        source = source.collect()
    if isinstance(source, np.ndarray):
        return _from_numpy(source)
    if isinstance(source, pd.Series):
        return from_pandas(
            source.to_frame(source.name if source.name is not None else "values"), "the series", notebook
        )
    if isinstance(source, pd.DataFrame):
        return from_pandas(source, "the table", notebook)
    if hasattr(source, "get_columns"):
        return _from_polars(source)
    try:
        frame = source.to_pandas() if hasattr(source, "to_pandas") else pd.DataFrame(dict(source))
    except (ValueError, TypeError) as error:
        raise TableError(f"The table cannot be read ({error}). Pass a pandas table.") from None
    return from_pandas(frame, "the table", notebook)


def from_pandas(frame: pd.DataFrame, name: str, notebook: Notebook) -> RawTable:
    """A pandas table; an index that says more than the number of the row becomes a column."""
    kept = [level for level in range(frame.index.nlevels) if _says_more(frame.index.get_level_values(level))]
    if not kept and not isinstance(frame.index, pd.RangeIndex) and not frame.index.equals(pd.RangeIndex(len(frame))):
        notebook.add("index", f"The index of {name} has no name and holds numbers; it is left out.", 1)
    levels = [frame.index.get_level_values(level) for level in kept]
    names = [_index_name(level, [str(column) for column in frame.columns]) for level in levels]
    called, unnamed = own_names([*names, *map(_as_name, frame.columns)], name)
    copy = frame.reset_index(drop=True)
    columns = [pd.Series(level, index=copy.index) for level in levels]
    if columns:
        copy = pd.concat([*columns, copy], axis=1)
    copy.columns = pd.Index(called)
    return RawTable(name, copy, unnamed=unnamed)


def _says_more(index: pd.Index[Any]) -> bool:
    if isinstance(index, pd.RangeIndex) and index.name is None:
        return False
    return index.name is not None or index.dtype.kind not in "iuf"


def _index_name(index: pd.Index[Any], taken: list[str]) -> str:
    wanted = index.name if index.name is not None else "time" if isinstance(index, pd.DatetimeIndex) else "index"
    return f"index {wanted}" if str(wanted) in taken else str(wanted)


def _as_name(name: object) -> str:
    if isinstance(name, tuple):  # of several levels
        return " ".join(str(part) for part in name if str(part))
    return f"column {name + 1}" if isinstance(name, int | np.integer) else str(name).strip()


def _from_numpy(array: np.ndarray[Any, Any]) -> RawTable:
    if array.dtype.names:
        return RawTable("the array", pd.DataFrame({name: array[name] for name in array.dtype.names}))
    if array.ndim != 2:
        raise TableError(
            f"The array has {array.ndim} dimensions; a table has two, rows and columns. For a single column use "
            f"X.reshape(-1, 1)."
        )
    if array.dtype.kind not in "biufOUS":
        raise TableError(f"The array holds {array.dtype}, not numbers or text. Convert it, or pass a pandas table.")
    frame = pd.DataFrame(array.astype(str) if array.dtype.kind == "S" else array)
    frame.columns = pd.Index([f"column {number}" for number in range(1, array.shape[1] + 1)])
    return RawTable("the array", frame)


def _from_polars(table: Any) -> RawTable:
    """Column by column, without pyarrow, which polars' own way to pandas needs."""
    columns: dict[str, Any] = {}
    for column in table.get_columns():
        kind = str(column.dtype)
        if column.dtype.is_numeric() and not kind.startswith("Decimal"):
            columns[column.name] = column.to_numpy()
        elif kind.startswith("Datetime"):
            times = pd.DatetimeIndex(column.to_numpy())
            zone = getattr(column.dtype, "time_zone", None)
            columns[column.name] = times if zone is None else times.tz_localize("UTC").tz_convert(zone)
        elif kind == "Date" or kind.startswith("Duration"):
            columns[column.name] = column.to_numpy()
        else:
            columns[column.name] = pd.Series(column.to_list())
    names, _ = own_names(list(columns), "the table")
    return RawTable("the table", pd.DataFrame(dict(zip(names, columns.values(), strict=True))))
