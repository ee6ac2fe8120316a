"""Compare the paper's tables of detections and run times with ours. All functions take the rows of a study."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from penstock.bench.results import missing_cells, pivot
from penstock.bench.significance import check_table, mean_ranks
from studies.ahmed2021 import paper
from studies.ahmed2021.rows import rename_to_columns

PAPER_TABLES = {"TPR": "true_positives", "TPRL": "lomst_true_positives", "TPRDL": "deep_true_positives"}
OFFLINE = list(paper.OFFLINE)  # a list, to choose columns with
MANY_ATTRIBUTES = 20


@dataclass(frozen=True, eq=False)
class Performance:
    """Compare the paper's Table 3 (tbl:3) with ours: data sets on which each method is Better, Equal, Close, Worse.

    `ours` is over `datasets`, on which all of the methods ran; `left_out` says which did not, and why. A method that
    ran nowhere is in `methods_missing`, and the others are compared without it.
    """

    paper: pd.DataFrame
    ours: pd.DataFrame
    datasets: list[str]
    left_out: pd.DataFrame
    methods_missing: list[str]


def tolerance(paper: float) -> float:
    """Return how far a count may lie from the paper's and still match it: 2, or 10 % of it.

    >>> tolerance(7), tolerance(193)
    (2.0, 19.3)
    """
    return max(2.0, 0.1 * paper)


def detections(rows: pd.DataFrame, paper_table: str = "TPR") -> pd.DataFrame:
    """True detections compared with the paper's, tbl:TPR, tbl:TPRL or tbl:TPRDL; a line per data set and method.

    `median` and `best` (the most) are over the seeds that ran, `runs` many. `matches` says whether the median lies
    within `tolerance` of the paper's figure, `best_matches` the same of the most; both are NA where nothing ran.
    """
    expected = paper_figures(paper_table)
    ours = rename_to_columns(rows, list(expected.columns))
    median, best = (pivot(ours, statistic=kind).reindex_like(expected) for kind in ("median", "max"))
    done = ours[(ours["status"] == "ok") & ours["true_detections"].notna()]
    runs = done.groupby(["dataset", "method"]).size()
    why = missing_cells(ours, median).set_index(["dataset", "method"])["why"]
    cells = [(dataset, method) for dataset in expected.index for method in expected.columns]
    found = pd.DataFrame(cells, columns=["dataset", "method"])
    found["paper"] = expected.to_numpy().ravel()
    found["median"] = median.to_numpy().ravel()
    found["best"] = best.to_numpy().ravel()
    found["runs"] = [int(runs.get(cell, 0)) for cell in cells]
    found["matches"] = within(found["median"], found["paper"])
    found["best_matches"] = within(found["best"], found["paper"])
    found["why"] = [str(why.get(cell, "")) for cell in cells]
    return found


def paper_figures(paper_table: str) -> pd.DataFrame:
    """Return one of the paper's tables of true detections by its short name.

    >>> paper_figures("TPRL").loc["Glass"].to_dict()
    {'NS-NMF': 4, 'LoMST': 3}
    """
    if paper_table not in PAPER_TABLES:
        raise ValueError(f"There is no table {paper_table!r} of detections; there are {', '.join(PAPER_TABLES)}.")
    figures: pd.DataFrame = getattr(paper, PAPER_TABLES[paper_table])
    return figures


def within(ours: pd.Series, figures: pd.Series) -> pd.Series:
    """Tell whether each of our counts matches the paper's; NA where we have none.

    >>> within(pd.Series([5.0, np.nan, 10.0]), pd.Series([7, 7, 7])).tolist()
    [True, <NA>, False]
    """
    near = (ours - figures).abs() <= figures.map(tolerance).astype("float64")
    return near.astype("boolean").mask(ours.isna())


def match_counts(found: pd.DataFrame) -> pd.DataFrame:
    """Per method of `detections`: on how many data sets the median matches the paper, is its very number, and so on."""
    lines = {}
    for method, part in found.groupby("method", sort=False):
        difference = part["median"] - part["paper"]
        lines[method] = {
            "sets": len(part),
            "run": int(part["median"].notna().sum()),
            "matched": int(part["matches"].fillna(False).sum()),
            "exact": int((difference == 0).sum()),
            "best_matched": int(part["best_matches"].fillna(False).sum()),
            "mean_difference": float(difference.mean()),
            "mean_abs_difference": float(difference.abs().mean()),
        }
    return pd.DataFrame.from_dict(lines, orient="index").rename_axis(index="method")


def compare(table: pd.DataFrame, ours: str, close: float = 0.73) -> pd.DataFrame:
    """Count the data sets on which each method is best alone, best with others, close to the best, or worse.

    Close is a share of the best result of at least `close`. The paper says "within 20 %" (tbl:3), but its rows follow
    from its results (tbl:TPR) only with a cut between 0.728 and 0.735.

    >>> compare(paper.true_positives[["NMF", "NS-NMF", "GNMF", "SNMF"]], "NS-NMF")
            NS-NMF  NMF  GNMF  SNMF
    Better      16    1     0     0
    Equal        3    2     2     2
    Close        0    4     9     6
    Worse        1   13     9    12
    """
    values = check_table(table)
    if ours not in table.columns:
        raise ValueError(f"There is no method {ours!r} in the table; it has {', '.join(map(str, table.columns))}.")
    if not 0 < close <= 1:
        raise ValueError(f"close must be a share of the best result, above 0 and at most 1; got {close!r}.")
    if (values < 0).any():
        raise ValueError("A share of the best needs results of 0 or more; there is a negative one.")
    best = values.max(axis=1, keepdims=True)
    at_best = values == best
    alone = at_best & (at_best.sum(axis=1, keepdims=True) == 1)
    # Divided: close * best can round to just above a result that is exactly that share. A best of 0 is met by all.
    near = ~at_best & (values / np.where(best > 0, best, 1.0) >= close)
    counts = [kind.sum(axis=0) for kind in (alone, at_best & ~alone, near, ~at_best & ~near)]
    found = pd.DataFrame(counts, index=["Better", "Equal", "Close", "Worse"], columns=table.columns)
    return found[[ours, *(method for method in table.columns if method != ours)]]


def performance(rows: pd.DataFrame) -> Performance:
    """Compare the paper's Table 3 with ours: the four offline methods by median detections, and their mean ranks."""
    chosen = rename_to_columns(rows, OFFLINE)
    table = pivot(chosen).reindex(columns=OFFLINE)
    missing = [method for method in OFFLINE if table[method].isna().all()]
    table = table.drop(columns=missing)
    complete = table.dropna()
    return Performance(
        paper=_kinds(paper.true_positives[OFFLINE]),
        ours=_kinds(complete).reindex(columns=OFFLINE),
        datasets=list(complete.index),
        left_out=missing_cells(chosen, table),
        methods_missing=missing,
    )


def _kinds(table: pd.DataFrame) -> pd.DataFrame:
    """Better, Equal, Close, Worse and mean ranks; NaN where there is nothing to compare."""
    index = ["Better", "Equal", "Close", "Worse", "mean rank"]
    if min(table.shape) < 2:
        return pd.DataFrame(np.nan, index=index, columns=table.columns)
    kinds = compare(table, table.columns[0]).astype("float64")
    kinds.loc["mean rank"] = mean_ranks(table)
    return kinds.rename_axis(columns="method")


_TIMED = "ALOI"


def aloi_times(rows: pd.DataFrame) -> pd.DataFrame:
    """Compare minutes on ALOI with the paper's, per method of the paper; `ratio` is the paper's over ours.

    Ours are of processor time: cells run on one thread, and other work on the machine does not count. Other
    machines, other programs: a ratio of one method says little, those of two methods to each other say more.
    """
    theirs = paper.run_times
    methods = list(theirs.index)
    chosen = rename_to_columns(rows, methods)
    chosen = chosen[chosen["dataset"] == _TIMED]
    cpu = pivot(chosen, "cpu_seconds").reindex(index=[_TIMED], columns=methods)
    found = theirs.rename(columns={"minutes": "paper_minutes"})
    found["our_minutes"] = cpu.loc[_TIMED] / 60
    found["ratio"] = found["paper_minutes"] / found["our_minutes"]
    marks = {method: dict.fromkeys(chosen["mark"][chosen["method"] == method]) for method in methods}
    found["mark"] = ["; ".join(filter(None, marks[method])) for method in methods]
    gaps = missing_cells(chosen, cpu)
    why = dict(zip(gaps["method"], gaps["why"], strict=True))
    found["why"] = [why.get(method, "") for method in methods]
    return found
