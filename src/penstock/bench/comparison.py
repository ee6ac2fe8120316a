"""Whether methods differ over the data sets of a study: all tests on the data sets that all of them finished."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from penstock.bench.nemenyi import critical_difference, nemenyi
from penstock.bench.significance import FriedmanResult, conover, friedman, mean_ranks, wilcoxon
from penstock.bench.tables import Statistic, missing_cells, pivot


@dataclass(frozen=True, eq=False)
class Comparison:
    """Tests on a table, complete data sets × methods, and what had to be left out of it.

    `mean_ranks` are in ascending order, the best first. `groups` are the methods that do not differ from each other by
    Conover's test at `alpha`, as drawn in a critical-difference diagram, `nemenyi_groups` those by Nemenyi's. A test
    that could not be made is None, and `notes` say why; without Conover's, `groups` are by Nemenyi's, as `groups_by`
    then says ("Conover" or "Nemenyi").
    """

    table: pd.DataFrame
    left_out: pd.DataFrame
    methods_missing: list[str]
    alpha: float
    mean_ranks: pd.Series[float]
    friedman: FriedmanResult | None = None
    conover: pd.DataFrame | None = None
    wilcoxon: pd.DataFrame | None = None
    nemenyi: pd.DataFrame | None = None
    critical_difference: float = float("nan")
    groups: list[tuple[str, ...]] = field(default_factory=list)
    groups_by: str = "Conover"
    nemenyi_groups: list[tuple[str, ...]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def compare_rows(
    rows: pd.DataFrame,
    methods: Sequence[str] | None = None,
    measure: str = "precision_at_n",
    statistic: Statistic = "median",
    alpha: float = 0.05,
) -> Comparison:
    """Compare the methods of a study by one number per data set, the median over the seeds.

    >>> from penstock.bench.results import COLUMNS
    >>> compare_rows(pd.DataFrame(columns=list(COLUMNS))).notes
    ['There are 0 methods with results on 0 common data sets: nothing can be tested.']
    """
    table = pivot(rows, measure, statistic)
    if methods is not None:
        table = table.reindex(columns=pd.Index(methods, name="method"))
    return compare_table(table, alpha, missing_cells(rows, table))


def compare_table(table: pd.DataFrame, alpha: float = 0.05, left_out: pd.DataFrame | None = None) -> Comparison:
    """Compare the columns of a table, data sets × methods, higher is better; rows with a gap are left out.

    A column with nothing but gaps is left out first: otherwise one method that ran nowhere would leave no data set.

    >>> from penstock.bench import paper
    >>> found = compare_table(paper.true_positives[["NS-NMF", "NMF", "GNMF", "SNMF"]])
    >>> found.groups, round(found.critical_difference, 3)
    ([('GNMF', 'NMF', 'SNMF')], 1.049)
    """
    if left_out is None:
        left_out = missing_cells(pd.DataFrame(columns=["dataset", "method", "status", "why"]), table)
    missing = [str(method) for method in table.columns if table[method].isna().all()]
    complete = table.drop(columns=missing).dropna()
    left_out = left_out[~left_out["method"].isin(missing)].reset_index(drop=True)
    n, k = complete.shape
    if n < 2 or k < 2:
        note = f"There are {k} methods with results on {n} common data sets: nothing can be tested."
        nothing = pd.Series(dtype="float64", name="mean rank")
        return Comparison(complete, left_out, missing, alpha, nothing, notes=[note])
    return _tested(complete, left_out, missing, alpha)


def _tested(complete: pd.DataFrame, left_out: pd.DataFrame, missing: list[str], alpha: float) -> Comparison:
    ranks = mean_ranks(complete).sort_values(kind="stable")
    by_nemenyi = nemenyi(complete)
    notes: list[str] = []
    overall: FriedmanResult | None = None
    pairwise: pd.DataFrame | None = None
    try:
        overall = friedman(complete)
        pairwise = conover(complete)
    except ValueError as error:  # all tie, or all data sets rank alike: what it says is what a reader needs
        notes.append(str(error))
    return Comparison(
        table=complete,
        left_out=left_out,
        methods_missing=missing,
        alpha=alpha,
        mean_ranks=ranks,
        friedman=overall,
        conover=pairwise,
        wilcoxon=wilcoxon(complete),
        nemenyi=by_nemenyi,
        critical_difference=critical_difference(len(ranks), len(complete), alpha),
        groups=alike(ranks, by_nemenyi if pairwise is None else pairwise, alpha),
        groups_by="Nemenyi" if pairwise is None else "Conover",
        nemenyi_groups=alike(ranks, by_nemenyi, alpha),
        notes=notes,
    )


def alike(ranks: pd.Series[float], p_values: pd.DataFrame, alpha: float) -> list[tuple[str, ...]]:
    """The largest runs of neighbours in the order of mean ranks of which no two differ at the level alpha.

    >>> ranks = pd.Series({"A": 1.0, "B": 2.0, "C": 3.0})
    >>> alike(ranks, pd.DataFrame([[1, 0.5, 0.01], [0.5, 1, 0.5], [0.01, 0.5, 1]], ranks.index, ranks.index), 0.05)
    [('A', 'B'), ('B', 'C')]
    """
    order = list(ranks.sort_values(kind="stable").index)
    differ = p_values.loc[order, order].to_numpy(dtype="float64") <= alpha
    found: list[tuple[str, ...]] = []
    reached = 0
    for start in range(len(order)):
        end = start + 1
        while end < len(order) and not np.any(differ[start:end, end]):
            end += 1
        if end - start > 1 and end > reached:
            found.append(tuple(order[start:end]))
        reached = max(reached, end)
    return found
