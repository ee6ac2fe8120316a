"""Which rows of a study a table is made of."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

STATUSES = ("ok", "failed", "timed out", "killed", "not run")
# Parts whose methods are variants of others, in tables of their own; in the rest each method is what its name says.
SIDE_PARTS = ("nearest", "sensitivity", "central claim", "convergence", "variants")
_SAME_CELL = ["method", "dataset", "seed", "key"]


def main_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of methods as such: no sweeps, no variants; a cell that several parts share is there once.

    >>> from penstock.bench.results import COLUMNS
    >>> main_rows(pd.DataFrame(columns=list(COLUMNS))).empty
    True
    """
    kept = rows[(rows["sweep"] == "") & ~rows["part"].isin(SIDE_PARTS)]
    return distinct_cells(kept)


def distinct_cells(rows: pd.DataFrame) -> pd.DataFrame:
    """Each cell of each method once, also if several parts list it. Methods that share a cell keep it each.

    >>> from penstock.bench.results import COLUMNS
    >>> distinct_cells(pd.DataFrame(columns=list(COLUMNS))).empty
    True
    """
    return rows.drop_duplicates(_SAME_CELL)


def saw_labels(rows: pd.DataFrame) -> pd.Series[bool]:
    """Whether each row is of a method that was given the labels: an oracle, not to be ranked with the others.

    >>> saw_labels(pd.DataFrame({"method": ["LoMST", "best"], "detail": [{}, {"uses_labels": True}]})).tolist()
    [False, True]
    """
    said = [isinstance(detail, dict) and bool(detail.get("uses_labels")) for detail in rows["detail"]]
    return pd.Series(said, index=rows.index, dtype="bool")


def fair_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of methods that did not see the labels.

    >>> rows = pd.DataFrame({"method": ["LoMST", "best"], "detail": [{}, {"uses_labels": True}]})
    >>> fair_rows(rows)["method"].tolist()
    ['LoMST']
    """
    return rows[~saw_labels(rows)]


def rows_of_column(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    """The rows held against a column of the paper's tables: those of the method of that very name.

    If none has it, those of the one other method that says it is held against the column; if there are several,
    there is no saying which is meant, and the frame is empty.

    >>> from penstock.bench.results import COLUMNS
    >>> rows_of_column(pd.DataFrame(columns=list(COLUMNS)), "NMF").empty
    True
    """
    return _held_against(main_rows(rows), column)


def _held_against(candidates: pd.DataFrame, column: str) -> pd.DataFrame:
    named = candidates[candidates["method"] == column]
    if len(named):
        return named
    others = candidates[candidates["paper"] == column]
    return others if others["method"].nunique() == 1 else others.iloc[:0]


def rename_to_columns(rows: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """The rows held against these columns, in their order, with the paper's names for the methods.

    >>> from penstock.bench.results import COLUMNS
    >>> len(rename_to_columns(pd.DataFrame(columns=list(COLUMNS)), ["NMF", "GNMF"]))
    0
    """
    candidates = main_rows(rows)
    parts = [_held_against(candidates, column).assign(method=column) for column in columns]
    parts = [part for part in parts if len(part)]
    return pd.concat(parts, ignore_index=True) if parts else rows.iloc[:0]
