"""Check tables and single rows that users pass to detectors.

`read_table` is for whole tables; `read_rows` and `read_row` are for streams, where scikit-learn's checks would take
longer than scoring a row. Messages name rows and columns as the user's table does.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import validate_data

from penstock._messages import warn_caller
from penstock._types import FloatArray, SparseMatrix
from penstock.graph.distance_kernels import LARGEST_SIMILARITY
from penstock.graph.rows import check_connected, find_incomparable

LARGEST_VALUE = 1e70  # the squares of W are as large as the data
LARGEST_DENSE = 2_000_000_000  # bytes that a sparse table may take when it is written out
_ASYMMETRY = 1e-8  # of the largest entry: what counts as rounding in a graph
_TIME_TYPES = ("datetime", "timedelta", "duration", "period", "date", "time")


def read_table(
    estimator: Any, X: Any, *, reset: bool, allow_missing: bool = False, allow_empty: bool = False
) -> FloatArray:
    """Return X as a C-contiguous float64 array of finite numbers, or raise an error that says where it is wrong.

    NaN passes if `allow_missing`, a table without rows if `allow_empty`; what a masked array hides counts as NaN. A
    sparse table is written out if the estimator `_takes_sparse`. Notes the number and names of columns on the estimator
    (`reset`), or compares with those it knows.
    """
    if type(X) is np.ndarray and X.dtype == np.float64 and X.ndim == 2 and X.size:
        # Plain numbers: what scikit-learn would do, without its checks of what else a table may be.
        if reset:
            estimator.n_features_in_ = X.shape[1]
            vars(estimator).pop("feature_names_in_", None)
        if X.shape[1] == estimator.n_features_in_ and not hasattr(estimator, "feature_names_in_"):
            check_finite(X, X, allow_missing=allow_missing)
            return np.ascontiguousarray(X)
    _check_no_times(X)
    if isinstance(X, np.ma.MaskedArray):
        X = np.ma.filled(X.astype(np.float64), np.nan)
    try:
        table: FloatArray = validate_data(
            estimator,
            X,
            reset=reset,
            accept_sparse=getattr(estimator, "_takes_sparse", False),
            dtype=np.float64,
            order="C",
            ensure_all_finite=False,
            ensure_min_samples=0 if allow_empty else 1,
        )
    except (TypeError, ValueError) as error:
        if "could not convert" in str(error) or "argument must be" in str(error):
            raise type(error)(f"{_describe_text(X)} ({error})") from error
        raise
    if sparse.issparse(table):
        table = _written_out(table)
    check_finite(table, X, allow_missing=allow_missing)
    return table


def _written_out(table: Any) -> FloatArray:
    n, p = table.shape
    if 8 * n * p > LARGEST_DENSE:
        raise ValueError(
            f"The sparse table of {n:,} rows and {p:,} columns would take {8e-9 * n * p:.1f} GB when written out, as a "
            f"detector needs it; at most {1e-9 * LARGEST_DENSE:.0f} GB are allowed. Use fewer columns (for example "
            f"sklearn.decomposition.TruncatedSVD), or score rows in parts."
        )
    return np.ascontiguousarray(table.toarray())


def read_graph(graph: Any, n: int) -> SparseMatrix:
    """Return a user's graph of n rows as a symmetric sparse array, or raise an error that says where it is wrong."""
    if not sparse.issparse(graph):
        try:
            graph = np.asarray(graph, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"graph must be an n × n table of numbers, sparse or dense ({error}).") from None
    if graph.shape != (n, n):
        raise ValueError(f"graph must be n × n for the n = {n} rows passed to fit; got shape {graph.shape}.")
    S: SparseMatrix = sparse.csr_array(graph, dtype=np.float64, copy=True)
    S.sum_duplicates()
    bad = ~((S.data >= 0) & (S.data <= LARGEST_SIMILARITY))
    if bad.any():
        first = int(np.flatnonzero(bad)[0])
        row = int(np.searchsorted(S.indptr, first, side="right")) - 1
        raise ValueError(
            f"graph must hold similarities, finite and ≥ 0 (0: not joined); {int(bad.sum())} entries are not, the "
            f"first, {S.data[first]:g}, in row {row}, column {S.indices[first]}."
        )
    gap = abs(S - S.T).tocoo()
    if gap.nnz and gap.data.max() > _ASYMMETRY * S.data.max():
        worst = int(np.argmax(gap.data))
        i, j = int(gap.coords[0][worst]), int(gap.coords[1][worst])
        raise ValueError(
            f"graph must be symmetric: the largest difference, {gap.data[worst]:g}, is between entry ({i}, {j}), "
            f"{S[i, j]:g}, and entry ({j}, {i}), {S[j, i]:g}. Use (S + S.T) / 2, or S.maximum(S.T)."
        )
    S = sparse.csr_array((S + S.T) / 2)
    S.eliminate_zeros()
    S.sort_indices()
    return S


def read_rows(estimator: Any, X: Any, *, first: bool, scaled: bool) -> FloatArray:
    """Return rows of a stream as a table with NaN for missing readings.

    first : whether to note the number and names of columns on the estimator, or to compare with those it knows.
    scaled : whether values of any sign and size may come.
    """
    table = read_table(estimator, X, reset=first, allow_missing=True, allow_empty=not first)
    if not scaled:
        check_nonnegative(table, X, type(estimator).__name__)
        check_not_huge(table)
    return table if table.flags.writeable else table.copy()  # kernels are compiled for the writeable kind


def read_row(estimator: Any, row: Any, *, scaled: bool) -> FloatArray:
    """Return one row of a stream as a table of one row; the estimator knows its columns."""
    table = table_of_one(row)
    if not isinstance(table, np.ndarray):  # with labels, which are compared
        return read_rows(estimator, table, first=False, scaled=scaled)
    if table.shape[1] != estimator.n_features_in_:
        raise ValueError(
            f"The sample has {table.shape[1]} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input."
        )
    check_finite(table, table, allow_missing=True)
    if not scaled:
        check_nonnegative(table, table, type(estimator).__name__)
        check_not_huge(table)
    return table


def table_of_one(row: Any) -> Any:
    """Return one sample as a table of one row: a pandas Series as a DataFrame, so that its labels are compared."""
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
    """Return the index of a pandas table, None for anything else; pandas is not imported if the caller has not."""
    pandas = sys.modules.get("pandas")
    return X.index if pandas is not None and isinstance(X, pandas.DataFrame) else None


def check_finite(table: FloatArray, X: Any, *, allow_missing: bool) -> None:
    """Raise if the table holds inf or, unless `allow_missing`, NaN, naming the first."""
    bad = np.isinf(table) if allow_missing else ~np.isfinite(table)
    if not bad.any():
        return
    row, column = np.argwhere(bad)[0]
    n_rows = int(bad.any(axis=1).sum())
    kind = "NaN (missing values)" if np.isnan(table[bad]).all() else "inf (infinity)"
    if np.isnan(table[bad]).any() and np.isinf(table[bad]).any():
        kind = "NaN and inf"
    advice = "Fill them (for example with sklearn.impute.SimpleImputer)"
    if allow_missing:
        advice = "Replace them by NaN, a missing reading,"
    raise ValueError(
        f"Input X contains {kind}: {int(bad.sum())} of {table.size} values, the first in "
        f"{_place(X, int(row), int(column))}. {advice} or leave out these {n_rows} rows."
    )


def check_nonnegative(A: FloatArray, X: Any, name: str) -> None:
    """Raise unless all values are ≥ 0, naming the first that is not."""
    if (A < 0).any():
        row, column = np.argwhere(A < 0)[0]
        raise ValueError(
            f"Negative values in data passed to {name}: {int((A < 0).sum())} in all, the first ({A[row, column]:g}) in "
            f"{_place(X, int(row), int(column))}. With scale=None the data must be ≥ 0; scale='minmax' takes any "
            f"numbers."
        )


def check_not_huge(A: FloatArray) -> None:
    """Raise if values are so large that the objective, with its fourth powers of W, would overflow."""
    if (A > LARGEST_VALUE).any():
        raise ValueError(
            f"Values up to {np.nanmax(A):g} are too large to be squared twice. Use scale='minmax' or divide the data."
        )


def check_rows_seen(table: FloatArray, X: Any) -> None:
    """Raise if a row has no reading at all, naming the first."""
    empty = np.flatnonzero(np.isnan(table).all(axis=1))
    if len(empty):
        others = f" ({len(empty)} such rows in all)" if len(empty) > 1 else ""
        raise ValueError(
            f"Input X contains NaN (missing values) only in {_row_name(X, int(empty[0]))}{others}: there is nothing to "
            f"score. Leave out rows without any reading."
        )


def check_columns_seen(table: FloatArray, X: Any) -> None:
    """Raise if a column has no reading at all, naming it."""
    empty = np.flatnonzero(np.isnan(table).all(axis=0))
    if len(empty):
        named = ", ".join(_column_name(X, int(column)) for column in empty[:5])
        more = f" and {len(empty) - 5} more" if len(empty) > 5 else ""
        raise ValueError(f"Input X contains NaN (missing values) only in {named}{more}. Leave out such columns.")


def check_comparable(table: FloatArray, X: Any) -> None:
    """Warn if two rows have no column in common; raise if the rows fall apart into groups that have none."""
    check_connected(table, lambda row: _row_name(X, row))
    pair = find_incomparable(~np.isnan(table))
    if pair is not None:
        one, other = (_row_name(X, row) for row in pair)
        warn_caller(
            f"R{one[1:]} and {other} have no column in common and were not compared with each other, only with rows "
            f"that share a column with one of them. Leave out one of the two, or columns that are seldom read, to "
            f"compare all rows with each other."
        )


def _row_name(X: Any, row: int) -> str:
    index = pandas_index(X)
    return f"row {row}" if index is None or index[row] == row else f"row {row} (index {index[row]})"


def _column_name(X: Any, column: int) -> str:
    columns = getattr(X, "columns", None)
    return f"column {column if columns is None else repr(columns[column])}"


def _place(X: Any, row: int, column: int) -> str:
    return f"{_row_name(X, row)}, {_column_name(X, column)}"


def _check_no_times(X: Any) -> None:
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
    """Return a sentence on the first cell that is no number."""
    values = X.to_numpy() if hasattr(X, "to_numpy") else np.asarray(X, dtype=object)
    for column in range(values.shape[1] if values.ndim == 2 else 0):
        for row, value in enumerate(values[:, column]):
            try:
                float(value)
            except (TypeError, ValueError):
                where = _place(X, row, column)
                return f"A detector needs numbers, but {where} holds {value!r}. Encode or leave out this column."
    return "A detector needs numbers."
