"""What `_base.py` checks at the door: a table of finite numbers, and parameters within their bounds."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from penstock._types import FloatArray

LARGEST_VALUE = 1e70  # the squares of W are as large as the data
_TIME_TYPES = ("datetime", "timedelta", "duration", "period", "date", "time")


def read_table(
    estimator: Any, X: Any, *, reset: bool, allow_missing: bool = False, allow_empty: bool = False
) -> FloatArray:
    """X as a C-contiguous float64 array of finite numbers, or an error that says where the trouble is.

    NaN passes if `allow_missing`, a table without rows if `allow_empty`; what a masked array hides counts as NaN. Notes
    the number and names of columns on the estimator (`reset`), or compares with those it knows.
    """
    _refuse_time_columns(X)
    if isinstance(X, np.ma.MaskedArray):
        X = np.ma.filled(X.astype(np.float64), np.nan)
    try:
        table: FloatArray = validate_data(
            estimator,
            X,
            reset=reset,
            dtype=np.float64,
            order="C",
            ensure_all_finite=False,
            ensure_min_samples=0 if allow_empty else 1,
        )
    except (TypeError, ValueError) as error:
        if "could not convert" in str(error) or "argument must be" in str(error):
            raise type(error)(f"{_describe_text(X)} ({error})") from error
        raise
    refuse_nonfinite(table, X, allow_missing=allow_missing)
    return table


def own(table: FloatArray) -> FloatArray:
    """The table, or a copy where it cannot be written to: kernels are compiled for the ordinary kind."""
    return table if table.flags.writeable else table.copy()


def table_of_one(row: Any) -> Any:
    """One sample as a table of one row: a pandas Series as a DataFrame, so that its labels are compared."""
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(row, pandas.Series):
        return row.to_frame().T.infer_objects()
    if isinstance(row, np.ma.MaskedArray):
        row = np.ma.filled(row.astype(np.float64), np.nan)
    values = np.asarray(row)
    if values.dtype.kind in "mMc":
        raise ValueError(f"A sample holds real numbers, not {values.dtype}.")
    if values.ndim != 1:
        raise ValueError(f"update takes one sample, p numbers in a row; got shape {values.shape}.")
    try:
        return np.array(values, dtype=np.float64, order="C").reshape(1, -1)
    except (TypeError, ValueError) as error:
        raise ValueError(f"A sample holds numbers, NaN for a missing reading; got {row!r:.200} ({error}).") from None


def pandas_index(X: Any) -> Any:
    """The index of a pandas table, None for anything else; pandas itself is loaded only if the caller uses it."""
    pandas = sys.modules.get("pandas")
    return X.index if pandas is not None and isinstance(X, pandas.DataFrame) else None


def refuse_negative(A: FloatArray, X: Any, name: str) -> None:
    """Raise unless all values are ≥ 0, naming the first that is not."""
    if not (A < 0).any():
        return
    row, column = np.argwhere(A < 0)[0]
    raise ValueError(
        f"Negative values in data passed to {name}: {int((A < 0).sum())} in all, the first ({A[row, column]:g}) in "
        f"{_place(X, int(row), int(column))}. With scale=None the data must be ≥ 0; scale='minmax' takes any numbers."
    )


def refuse_huge(A: FloatArray) -> None:
    """Raise if values are so large that the objective, with its fourth powers of W, would overflow."""
    if (A > LARGEST_VALUE).any():
        raise ValueError(
            f"Values up to {np.nanmax(A):g} are too large to be squared twice. Use scale='minmax' or divide the data."
        )


def row_name(X: Any, row: int) -> str:
    """How a message calls a row: by its number and, if a pandas table says more, by its index."""
    index = pandas_index(X)
    return f"row {row}" if index is None or index[row] == row else f"row {row} (index {index[row]})"


def column_name(X: Any, column: int) -> str:
    """How a message calls a column."""
    columns = getattr(X, "columns", None)
    return f"column {column if columns is None else repr(columns[column])}"


def _place(X: Any, row: int, column: int) -> str:
    return f"{row_name(X, row)}, {column_name(X, column)}"


def refuse_nonfinite(table: FloatArray, X: Any, *, allow_missing: bool) -> None:
    """Raise if the table holds inf or, unless `allow_missing`, NaN, naming the first."""
    bad = np.isinf(table) if allow_missing else ~np.isfinite(table)
    if not bad.any():
        return
    row, column = np.argwhere(bad)[0]
    kind = "NaN (missing values)" if np.isnan(table[bad]).all() else "inf (infinity)"
    if np.isnan(table[bad]).any() and np.isinf(table[bad]).any():
        kind = "NaN and inf"
    raise ValueError(
        f"Input X contains {kind}: {int(bad.sum())} of {table.size} values, the first in "
        f"{_place(X, int(row), int(column))}. {_way_out(int(bad.any(axis=1).sum()), allow_missing)}"
    )


def _way_out(n_rows: int, allow_missing: bool) -> str:
    if allow_missing:
        return f"Replace them by NaN, a missing reading, or leave out these {n_rows} rows."
    return f"Fill them (for example with sklearn.impute.SimpleImputer) or leave out these {n_rows} rows."


def _refuse_time_columns(X: Any) -> None:
    if getattr(getattr(X, "dtype", None), "kind", "") in ("m", "M"):
        raise ValueError(
            f"The table holds times ({X.dtype}), not measurements. Leave them out, or use them as an index."
        )
    if not (hasattr(X, "columns") and hasattr(X, "dtypes")):
        return
    for name, dtype in zip(X.columns, X.dtypes, strict=True):
        if str(dtype).lower().startswith(_TIME_TYPES):
            raise ValueError(
                f"Column {name!r} holds times ({dtype}), not measurements. Make it the index of a pandas DataFrame, "
                f"and top() will show it, or leave it out."
            )


def _describe_text(X: Any) -> str:
    """Which column holds text."""
    values = X.to_numpy() if hasattr(X, "to_numpy") else np.asarray(X, dtype=object)
    for column in range(values.shape[1] if values.ndim == 2 else 0):
        for row, value in enumerate(values[:, column]):
            try:
                float(value)
            except (TypeError, ValueError):
                where = _place(X, row, column)
                return f"A detector needs numbers, but {where} holds {value!r}. Encode or leave out this column."
    return "A detector needs numbers."
