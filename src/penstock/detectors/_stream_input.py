"""Rows for a stream, checked at the door, but without the checks that take longer than scoring a sample."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from penstock._types import FloatArray
from penstock.detectors._input import check_finite, check_nonnegative, check_not_huge, own, read_table, table_of_one

if TYPE_CHECKING:
    from penstock.detectors.online import OnlineNSNMF


def read_first_rows(detector: OnlineNSNMF, X: Any, scale: str | None) -> FloatArray:
    """X as a table; the number and names of its columns are noted on the detector."""
    table = read_table(detector, X, reset=True, allow_missing=True)
    _check_values(detector, table, X, scale)
    return own(table)


def read_later_rows(detector: OnlineNSNMF, X: Any, scale: str | None) -> FloatArray:
    """X as a table, with or without rows, whose columns are those that the detector knows."""
    table: FloatArray
    if _is_plain(detector, X):
        table = np.ascontiguousarray(X)
        check_finite(table, X, allow_missing=True)
    else:
        table = read_table(detector, X, reset=False, allow_missing=True, allow_empty=True)
    _check_values(detector, table, X, scale)
    return own(table)


def read_later_row(detector: OnlineNSNMF, row: Any, scale: str | None) -> FloatArray:
    """One sample without labels as a table of one row, checked without the cost of a table."""
    table: FloatArray = table_of_one(row)
    if table.shape[1] != detector.n_features_in_:
        raise ValueError(
            f"The sample has {table.shape[1]} features, but {type(detector).__name__} is expecting "
            f"{detector.n_features_in_} features as input."
        )
    check_finite(table, table, allow_missing=True)
    _check_values(detector, table, table, scale)
    return table


def _is_plain(detector: OnlineNSNMF, X: Any) -> bool:
    """Whether scikit-learn's checks, which take longer than scoring a sample, could find nothing."""
    fits = type(X) is np.ndarray and X.dtype == np.float64 and X.ndim == 2
    return fits and X.shape[1] == detector.n_features_in_ and not hasattr(detector, "feature_names_in_")


def _check_values(detector: OnlineNSNMF, table: FloatArray, X: Any, scale: str | None) -> None:
    if scale is None:
        check_nonnegative(table, X, type(detector).__name__)
        check_not_huge(table)
