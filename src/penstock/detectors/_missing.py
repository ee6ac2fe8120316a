"""Tables with holes at the door: what no detector can do without."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock._types import FloatArray
from penstock.detectors._input import column_name, row_name
from penstock.graph.shared import refuse_strangers


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


def refuse_unrelated_rows(table: FloatArray, X: Any) -> None:
    """Raise if two rows have no column in common, so that there is no distance between them."""
    if np.isnan(table).any():
        refuse_strangers(table, lambda row: row_name(X, row))
