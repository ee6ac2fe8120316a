"""Each method in one line: how good, how it ranks, what failed."""

from __future__ import annotations

import pandas as pd

from penstock.bench.chosen_rows import STATUSES, distinct_cells, saw_labels
from penstock.bench.comparison import compare_table
from penstock.bench.tables import pivot

_MEASURES = ("precision_at_n", "average_precision", "roc_auc")
_FAILED = ("failed", "timed out", "killed")


def method_summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Mean and median over data sets of each measure (of the medians over seeds), the mean rank by P@N, and failures.

    Means are over the data sets that a method finished, `datasets` of `planned`; mean ranks over those that all
    methods finished, `ranked_on` many. Compare means only where these agree. Methods that saw the labels have no rank,
    and the others are ranked without them.

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
    found["failures"] = counts[list(_FAILED)].sum(axis=1)
    found["not_run"] = counts["not run"]
    return found.rename_axis(index="method")


def failures(rows: pd.DataFrame) -> pd.DataFrame:
    """All cells that did not end well, alike ones in one line: method, dataset, status, why, cells.

    A cell that several parts list counts once; one that several methods share counts for each of them.

    >>> from penstock.bench.results import COLUMNS
    >>> len(failures(pd.DataFrame(columns=list(COLUMNS))))
    0
    """
    return _counted(rows[rows["status"] != "ok"], ["method", "dataset", "status", "why"])


def failure_counts(rows: pd.DataFrame) -> pd.DataFrame:
    """How many cells of each method ended how: ok, failed, timed out, killed, not run; those in several parts once.

    >>> from penstock.bench.results import COLUMNS
    >>> failure_counts(pd.DataFrame(columns=list(COLUMNS))).columns.tolist()
    ['ok', 'failed', 'timed out', 'killed', 'not run']
    """
    others = [status for status in pd.unique(rows["status"]) if status not in STATUSES]
    columns = pd.Index([*STATUSES, *others])
    counted = distinct_cells(rows).groupby(["method", "status"], sort=False).size()
    table = counted.unstack("status") if len(counted) else pd.DataFrame()
    table = table.reindex(index=pd.Index(pd.unique(rows["method"]), name="method"), columns=columns)
    return table.fillna(0).astype("int64")


def marks(rows: pd.DataFrame) -> pd.DataFrame:
    """All cells that were computed in a documented other way: method, dataset, mark, cells.

    >>> from penstock.bench.results import COLUMNS
    >>> marks(pd.DataFrame(columns=list(COLUMNS))).columns.tolist()
    ['method', 'dataset', 'mark', 'cells']
    """
    return _counted(rows[rows["mark"] != ""], ["method", "dataset", "mark"])


def _counted(rows: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    counts = distinct_cells(rows).groupby(columns, sort=False).size().rename("cells").reset_index()
    return counts.reindex(columns=[*columns, "cells"]).astype({"cells": "int64"})
