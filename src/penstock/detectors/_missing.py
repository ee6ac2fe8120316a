"""Tables with holes at the door: what no detector can do without."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from penstock._types import FloatArray
from penstock.detectors._input import column_name, row_name
from penstock.graph.rows import check_connected, find_incomparable


def refuse_empty_rows(table: FloatArray, X: Any) -> None:
    """Raise if a row has no reading at all, naming the first."""
    empty = np.flatnonzero(np.isnan(table).all(axis=1))
    if len(empty):
        others = f" ({len(empty)} such rows in all)" if len(empty) > 1 else ""
        raise ValueError(
            f"Input X contains NaN (missing values) only in {row_name(X, int(empty[0]))}{others}: there is nothing to "
            f"score. Leave out rows without any reading."
        )


def refuse_empty_columns(table: FloatArray, X: Any) -> None:
    """Raise if a column has no reading at all, naming it: nothing can be learnt of it."""
    empty = np.flatnonzero(np.isnan(table).all(axis=0))
    if len(empty):
        named = ", ".join(column_name(X, int(column)) for column in empty[:5])
        more = f" and {len(empty) - 5} more" if len(empty) > 5 else ""
        raise ValueError(f"Input X contains NaN (missing values) only in {named}{more}. Leave out such columns.")


def compare_rows(table: FloatArray, X: Any) -> None:
    """Warn if two rows have no column in common; raise if the rows fall apart into groups that have none."""
    if not np.isnan(table).any():
        return
    check_connected(table, lambda row: row_name(X, row))
    pair = find_incomparable(~np.isnan(table))
    if pair is not None:
        one, other = (row_name(X, row) for row in pair)
        warnings.warn(
            f"R{one[1:]} and {other} have no column in common and were never compared; what is said of them rests on "
            f"rows that share a column with the one or the other. Leave out one of them, or columns that are seldom "
            f"read, to compare all rows with each other.",
            stacklevel=4,
        )
