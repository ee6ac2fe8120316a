"""How long the methods took, and beside the paper's words on one data set."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from penstock.bench import paper
from penstock.bench.chosen_rows import rename_to_columns
from penstock.bench.tables import missing_cells, pivot

_COSTS = ["fit_seconds", "cpu_seconds", "peak_memory_mb"]
_TIMED = "ALOI"


def run_times(rows: pd.DataFrame) -> pd.DataFrame:
    """Medians of time and memory over the runs that ended well, a line per data set and method.

    >>> from penstock.bench.results import COLUMNS
    >>> run_times(pd.DataFrame(columns=list(COLUMNS))).columns.tolist()[-3:]
    ['peak_memory_mb', 'runs', 'mark']
    """
    columns = ["dataset", "method", "n", "p", *_COSTS, "runs", "mark"]
    done = rows[rows["status"] == "ok"]
    if done.empty:
        return pd.DataFrame(columns=columns)
    groups = done.groupby(["dataset", "method"], sort=False)
    found = groups[["n", "p"]].first().join(groups[_COSTS].median())
    found["runs"] = groups.size()
    found["mark"] = groups["mark"].agg(_all_marks)
    return found.reset_index()[columns]


def aloi_times(rows: pd.DataFrame) -> pd.DataFrame:
    """Minutes on ALOI beside the paper's, per method of the paper; `ratio` is the paper's over ours.

    Other machines, other programs: a ratio of one method says little, those of two methods to each other say more.

    >>> from penstock.bench.results import COLUMNS
    >>> aloi_times(pd.DataFrame(columns=list(COLUMNS)))["paper_minutes"].to_dict()["SNMF"]
    480.0
    """
    theirs = paper.run_times
    methods = list(theirs.index)
    chosen = rename_to_columns(rows, methods)
    chosen = chosen[chosen["dataset"] == _TIMED]
    fit, cpu = (pivot(chosen, cost).reindex(index=[_TIMED], columns=methods) for cost in _COSTS[:2])
    found = theirs.rename(columns={"minutes": "paper_minutes"})
    found["our_minutes"] = fit.loc[_TIMED] / 60
    found["cpu_minutes"] = cpu.loc[_TIMED] / 60
    found["ratio"] = found["paper_minutes"] / found["our_minutes"]
    found["mark"] = [_all_marks(chosen["mark"][chosen["method"] == method]) for method in methods]
    gaps = missing_cells(chosen, fit)
    why = dict(zip(gaps["method"], gaps["why"], strict=True))
    found["why"] = [why.get(method, "") for method in methods]
    return found


def speed_ups(rows: pd.DataFrame) -> pd.DataFrame:
    """How many times faster than SNMF on ALOI: offline and online NS-NMF, in the paper and here.

    >>> from penstock.bench.results import COLUMNS
    >>> speed_ups(pd.DataFrame(columns=list(COLUMNS)))["paper"].to_dict()
    {'Online NS-NMF': 32.0, 'NS-NMF': 4.0}
    """
    times = aloi_times(rows)
    minutes = times[["paper_minutes", "our_minutes"]].astype("float64").set_axis(["paper", "ours"], axis=1)
    return 1 / minutes.loc[["Online NS-NMF", "NS-NMF"]].div(minutes.loc["SNMF"], axis=1)


def _all_marks(marks: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(mark for mark in marks if mark))
