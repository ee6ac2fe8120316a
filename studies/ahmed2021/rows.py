"""Choose the rows of the study that a table is made of."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from penstock.bench import results
from penstock.bench.results import distinct_cells

LABELS = ("part", "paper", "sweep", "base", "value")  # columns of the study in addition to those of penstock.bench
COLUMNS = (*LABELS, *results.COLUMNS)
# Parts whose methods are variants of others, in tables of their own; in the rest each method is what its name says.
SIDE_PARTS = ("readings", "nearest", "sensitivity", "central claim", "variants")


def main_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of methods as such: no sweeps, no variants; a cell that several parts share once."""
    return distinct_cells(rows[(rows["sweep"] == "") & ~rows["part"].isin(SIDE_PARTS)])


def rows_of_column(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return the rows held against a column of the paper's tables: those of the method of that very name.

    If none has it, those of the one other method that names the column in `paper`; if there are several, it cannot be
    decided which is meant, and the frame is empty.
    """
    return _held_against(main_rows(rows), column)


def _held_against(candidates: pd.DataFrame, column: str) -> pd.DataFrame:
    named = candidates[candidates["method"] == column]
    if len(named):
        return named
    others = candidates[candidates["paper"] == column]
    return others if others["method"].nunique() == 1 else others.iloc[:0]


def rename_to_columns(rows: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Return the rows held against these columns, in their order, with the paper's names for the methods."""
    candidates = main_rows(rows)
    parts = [_held_against(candidates, column).assign(method=column) for column in columns]
    parts = [part for part in parts if len(part)]
    return pd.concat(parts, ignore_index=True) if parts else rows.iloc[:0]
