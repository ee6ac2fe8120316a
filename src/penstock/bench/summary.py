"""Summarise the rows of a study: data sets × methods, each method in one line, what failed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import pandas as pd

from penstock.bench.results import STATUSES
from penstock.bench.significance import Comparison, compare_table, without_last_bits

Statistic = Literal["median", "mean", "max", "min"]
_MEASURES = ("precision_at_n", "average_precision", "roc_auc")


def pivot(rows: pd.DataFrame, measure: str = "true_detections", statistic: Statistic = "median") -> pd.DataFrame:
    """Return data sets × methods: a statistic of a measure over the seeds that ran; NaN where none did.

    Methods are told apart by name alone. All planned data sets and methods are there, in the order of their first row.
    Values are rounded to 12 digits: medians of shares that are equal tie in ranks and tests.

    Parameters
    ----------
    rows : DataFrame
        `Results.rows`.
    measure : str, default="true_detections"
        A column of numbers.
    statistic : {"median", "mean", "max", "min"}, default="median"

    Examples
    --------
    >>> from penstock.bench.results import COLUMNS
    >>> pivot(pd.DataFrame(columns=list(COLUMNS))).shape
    (0, 0)
    """
    if statistic not in ("median", "mean", "max", "min"):
        raise ValueError(f"statistic must be 'median', 'mean', 'max' or 'min'; got {statistic!r}.")
    datasets, methods = pd.unique(rows["dataset"]), pd.unique(rows["method"])
    done = rows[rows["status"] == "ok"]
    values = done[measure].astype("float64").groupby([done["dataset"], done["method"]]).agg(statistic)
    values = pd.Series(without_last_bits(values), index=values.index)
    table = values.unstack("method") if len(values) else pd.DataFrame()
    table = table.reindex(index=datasets, columns=methods).astype("float64")
    return table.rename_axis(index="dataset", columns="method")


def missing_cells(
    rows: pd.DataFrame, table: pd.DataFrame, otherwise: str = "ran, but the measure is not a number"
) -> pd.DataFrame:
    """List why each cell of a pivot is missing: dataset, method, why; `otherwise` if all its runs ended well.

    >>> from penstock.bench.results import COLUMNS
    >>> table = pd.DataFrame({"NMF": [np.nan]}, index=["Glass"])
    >>> missing_cells(pd.DataFrame(columns=list(COLUMNS)), table).to_dict("records")
    [{'dataset': 'Glass', 'method': 'NMF', 'why': 'not planned'}]
    """
    cells = rows.groupby(["dataset", "method"], sort=False).indices
    found = []
    for row, column in zip(*np.nonzero(table.isna().to_numpy()), strict=True):
        dataset, method = str(table.index[int(row)]), str(table.columns[int(column)])
        runs = rows.iloc[cells.get((dataset, method), [])]
        bad = runs[runs["status"] != "ok"]
        reasons = [f"{status}: {why}" if why else status for status, why in zip(bad["status"], bad["why"], strict=True)]
        why = "not planned" if runs.empty else "; ".join(dict.fromkeys(reasons)) or otherwise
        found.append((dataset, method, why))
    return pd.DataFrame(found, columns=["dataset", "method", "why"], dtype="object")


def compare_rows(
    rows: pd.DataFrame,
    methods: Sequence[str] | None = None,
    measure: str = "precision_at_n",
    statistic: Statistic = "median",
    alpha: float = 0.05,
) -> Comparison:
    """Compare the methods of a study by one number per data set, the median over the seeds.

    Parameters
    ----------
    rows : DataFrame
        `Results.rows`.
    methods : sequence of str, optional
        All by default.
    measure : str, default="precision_at_n"
    statistic : {"median", "mean", "max", "min"}, default="median"
        Over the seeds.
    alpha : float, default=0.05

    Examples
    --------
    >>> from penstock.bench.results import COLUMNS
    >>> compare_rows(pd.DataFrame(columns=list(COLUMNS))).notes
    ['There are 0 methods with results on 0 common data sets: nothing can be tested.']
    """
    table = pivot(rows, measure, statistic)
    if methods is not None:
        table = table.reindex(columns=pd.Index(methods, name="method"))
    return compare_table(table, alpha, missing_cells(rows, table))


def saw_labels(rows: pd.DataFrame) -> pd.Series[bool]:
    """Tell which rows are of a method that was given the labels: an oracle, not to be ranked with the others.

    >>> saw_labels(pd.DataFrame({"method": ["LoMST", "best"], "detail": [{}, {"uses_labels": True}]})).tolist()
    [False, True]
    """
    said = [isinstance(detail, dict) and bool(detail.get("uses_labels")) for detail in rows["detail"]]
    return pd.Series(said, index=rows.index, dtype="bool")


def distinct_cells(rows: pd.DataFrame) -> pd.DataFrame:
    """Keep each cell of each method once, also if it was planned more than once."""
    return rows.drop_duplicates(["method", "dataset", "seed", "key"])


def method_summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Summarise each method: means and medians over data sets of each measure, the mean rank by P@N, and failures.

    Means are over the data sets that a method finished, `datasets` of `planned`; mean ranks over those that all methods
    finished, `ranked_on` many. Compare means only where these agree. Methods that saw the labels have no rank, and the
    others are ranked without them.

    >>> from penstock.bench.results import COLUMNS
    >>> method_summary(pd.DataFrame(columns=list(COLUMNS))).shape[0]
    0
    """
    tables = {measure: pivot(rows, measure) for measure in _MEASURES}
    methods = tables["precision_at_n"].columns
    oracles = pd.unique(rows["method"][saw_labels(rows)])
    by_rank = compare_table(tables["precision_at_n"].drop(columns=oracles))
    found = pd.DataFrame(index=methods)
    found["datasets"] = tables["precision_at_n"].notna().sum()
    found["planned"] = rows.groupby("method")["dataset"].nunique().reindex(methods)
    for measure, table in tables.items():
        found[f"mean_{measure}"] = table.mean()
        found[f"median_{measure}"] = table.median()
    found["mean_rank"] = by_rank.mean_ranks.reindex(methods)
    found["ranked_on"] = len(by_rank.table) if len(by_rank.mean_ranks) else 0
    counts = failure_counts(rows).reindex(methods)
    found["failures"] = counts[["failed", "timed out", "killed"]].sum(axis=1)
    found["not_run"] = counts["not run"]
    return found.rename_axis(index="method")


def failures(rows: pd.DataFrame) -> pd.DataFrame:
    """List all cells that did not end well, alike ones in one line: method, dataset, status, why, cells.

    >>> from penstock.bench.results import COLUMNS
    >>> len(failures(pd.DataFrame(columns=list(COLUMNS))))
    0
    """
    return _counted(rows[rows["status"] != "ok"], ["method", "dataset", "status", "why"])


def failure_counts(rows: pd.DataFrame) -> pd.DataFrame:
    """Count how the cells of each method ended: ok, failed, timed out, killed, not run.

    >>> from penstock.bench.results import COLUMNS
    >>> failure_counts(pd.DataFrame(columns=list(COLUMNS))).columns.tolist()
    ['ok', 'failed', 'timed out', 'killed', 'not run']
    """
    others = [status for status in pd.unique(rows["status"]) if status not in STATUSES]
    counted = distinct_cells(rows).groupby(["method", "status"], sort=False).size()
    table = counted.unstack("status") if len(counted) else pd.DataFrame()
    index = pd.Index(pd.unique(rows["method"]), name="method")
    return table.reindex(index=index, columns=pd.Index([*STATUSES, *others])).fillna(0).astype("int64")


def marks(rows: pd.DataFrame) -> pd.DataFrame:
    """List all cells that were computed in a documented other way: method, dataset, mark, cells.

    >>> from penstock.bench.results import COLUMNS
    >>> marks(pd.DataFrame(columns=list(COLUMNS))).columns.tolist()
    ['method', 'dataset', 'mark', 'cells']
    """
    return _counted(rows[rows["mark"] != ""], ["method", "dataset", "mark"])


def _counted(rows: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    counts = distinct_cells(rows).groupby(columns, sort=False).size().rename("cells").reset_index()
    return counts.reindex(columns=[*columns, "cells"]).astype({"cells": "int64"})
