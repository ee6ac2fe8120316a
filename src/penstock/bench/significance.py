"""Test whether methods differ over many data sets: ranks, Friedman's test and pairwise tests.

A table has a row per data set and a column per method; higher is better. A data set has one row: average the runs of
one before, since the tests take rows to be independent. Values that should tie must be equal to the last bit: see
`without_last_bits`. docs/decisions/0012-statistics.md says where SciPy is used and where it is not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from penstock._types import FloatArray

Correction = Literal["bonferroni", "holm"] | None
_DIGITS = 12


@dataclass(frozen=True, eq=False)
class FriedmanResult:
    """Friedman's test of `k` methods on `n` data sets. `uncorrected` is the statistic without a correction for ties."""

    statistic: float
    p_value: float
    degrees_of_freedom: int
    n: int
    k: int
    mean_ranks: pd.Series[float]
    uncorrected: float


@dataclass(frozen=True, eq=False)
class Comparison:
    """Tests on a table, complete data sets × methods, and what had to be left out of it.

    `mean_ranks` are in ascending order, the best first. `groups` are the methods that do not differ from each other by
    Conover's test at `alpha`. A test that could not be made is None, and `notes`
    say why; without Conover's, `groups` are by Nemenyi's, as `groups_by` then says ("Conover" or "Nemenyi").
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
    notes: list[str] = field(default_factory=list)


def compare_table(table: pd.DataFrame, alpha: float = 0.05, left_out: pd.DataFrame | None = None) -> Comparison:
    """Compare the columns of a table, data sets × methods, by all tests.

    Rows with a gap are left out. A column with nothing but gaps is left out first: otherwise one method that ran
    nowhere would leave no data set.

    Parameters
    ----------
    table : DataFrame
        Data sets × methods, higher is better.
    alpha : float, default=0.05
        Level of the groups.
    left_out : DataFrame, optional
        Why cells are missing: dataset, method, why. Kept in the result.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> table = pd.DataFrame({"A": [0.9, 0.8, 0.9, 0.7], "B": [0.5, 0.6, 0.4, 0.8], "C": [0.1, 0.2, 0.3, 0.1]})
    >>> compare_table(table).mean_ranks.to_dict()
    {'A': 1.25, 'B': 1.75, 'C': 3.0}
    """
    if left_out is None:
        left_out = pd.DataFrame(columns=["dataset", "method", "why"])
    missing = [str(method) for method in table.columns if table[method].isna().all()]
    complete = table.drop(columns=missing).dropna()
    left_out = left_out[~left_out["method"].isin(missing)].reset_index(drop=True)
    n, k = complete.shape
    if n < 2 or k < 2:
        note = f"There are {k} methods with results on {n} common data sets: nothing can be tested."
        nothing = pd.Series(dtype="float64", name="mean rank")
        return Comparison(complete, left_out, missing, alpha, nothing, notes=[note])
    ranks = mean_ranks(complete).sort_values(kind="stable")
    by_nemenyi = nemenyi(complete)
    notes: list[str] = []
    overall: FriedmanResult | None = None
    pairwise: pd.DataFrame | None = None
    try:
        overall = friedman(complete)
        pairwise = conover(complete)
    except ValueError as error:  # all methods tie, or all data sets rank them alike
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
        critical_difference=critical_difference(k, n, alpha),
        groups=alike(ranks, by_nemenyi if pairwise is None else pairwise, alpha),
        groups_by="Nemenyi" if pairwise is None else "Conover",
        notes=notes,
    )


def alike(ranks: pd.Series[float], p_values: pd.DataFrame, alpha: float) -> list[tuple[str, ...]]:
    """Find the longest runs of neighbours in the order of mean ranks of which no two differ at the level alpha."""
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


def without_last_bits(values: npt.ArrayLike) -> FloatArray:
    """Round to 12 significant digits, so that values that differ by the rounding of a division or a mean tie.

    >>> without_last_bits([0.1 + 0.2, 0.3, np.nan]).tolist()
    [0.3, 0.3, nan]
    """
    given = np.asarray(values, dtype=np.float64)
    # By way of text: scaling by a power of ten is itself rounded, and could part what should tie.
    rounded = np.array([float(f"{value:.{_DIGITS}g}") for value in given.ravel()], dtype=np.float64)
    return rounded.reshape(given.shape)


def mean_ranks(table: pd.DataFrame) -> pd.Series[float]:
    """Return the mean rank of each method over the data sets: 1 is the best, ties share the average of their ranks.

    >>> mean_ranks(pd.DataFrame({"A": [3, 5, 5], "B": [2, 5, 1]})).round(3).to_dict()
    {'A': 1.167, 'B': 1.833}
    """
    ranks = stats.rankdata(-check_table(table), axis=1)
    return pd.Series(ranks.mean(axis=0), index=table.columns, name="mean rank")


def friedman(table: pd.DataFrame) -> FriedmanResult:
    """Test by Friedman's test whether all methods rank alike. Ahmed et al. (2021), eq:frd.

    Differs: with the correction for ties, which eq:frd as printed lacks and the paper's p-value has. The p-value is
    that of the χ² distribution with k − 1 degrees of freedom, an approximation that is rough for few data sets.
    `scipy.stats.friedmanchisquare` gives the same, but takes three methods or more.

    >>> result = friedman(pd.DataFrame({"A": [9, 8, 9, 7], "B": [5, 6, 4, 8], "C": [1, 2, 3, 1]}))
    >>> f"{result.statistic:.3f} {result.p_value:.4f}"
    '6.500 0.0388'
    """
    ranks = _untied_ranks(table)
    n, k = ranks.shape
    means = ranks.mean(axis=0)
    between = n * float(((means - (k + 1) / 2) ** 2).sum())
    within_rows = float(((ranks - (k + 1) / 2) ** 2).sum()) / (k - 1)
    statistic = n * between / within_rows
    return FriedmanResult(
        statistic=statistic,
        p_value=float(stats.chi2.sf(statistic, k - 1)),
        degrees_of_freedom=k - 1,
        n=n,
        k=k,
        mean_ranks=pd.Series(means, index=table.columns, name="mean rank"),
        uncorrected=12 * between / (k * (k + 1)),
    )


def conover(table: pd.DataFrame, correction: Correction = "bonferroni") -> pd.DataFrame:
    """Test every pair by Conover's test after Friedman's; return a symmetric table of corrected p-values.

    Equal to `posthoc_conover_friedman` of scikit-posthocs, which the tests compare with; it is not used here because it
    needs statsmodels and matplotlib for these few lines.

    >>> conover(pd.DataFrame({"A": [9, 8, 9, 7], "B": [5, 6, 4, 8], "C": [1, 2, 3, 1]})).round(4).loc["A"].tolist()
    [1.0, 0.6211, 0.0077]
    """
    ranks = _untied_ranks(table)
    n, k = ranks.shape
    sums = ranks.sum(axis=0)
    # Ranks are multiples of one half, so this is exact, and zero only if it is.
    residual = n * float((ranks**2).sum()) - float((sums**2).sum())
    if residual == 0:
        raise ValueError(
            f"All {n} data sets rank the methods in the same way, which leaves Conover's test no variation to "
            "compare differences with. Use wilcoxon."
        )
    freedom = (n - 1) * (k - 1)
    first, second = np.triu_indices(k, 1)
    t = np.abs(sums[first] - sums[second]) / np.sqrt(2 * residual / freedom)
    return _square(table.columns, corrected(2 * stats.t.sf(t, freedom), correction))


def nemenyi(table: pd.DataFrame) -> pd.DataFrame:
    """Test every pair by Nemenyi's test; return a symmetric table of p-values, which allow for the number of methods.

    >>> nemenyi(pd.DataFrame({"A": [9, 8, 9, 7], "B": [5, 6, 4, 8], "C": [1, 2, 3, 1]})).round(4).loc["A"].tolist()
    [1.0, 0.7593, 0.0356]
    """
    ranks = mean_ranks(table).to_numpy()
    n, k = table.shape
    first, second = np.triu_indices(k, 1)
    apart = np.abs(ranks[first] - ranks[second]) / _standard_error(k, n)
    return _square(table.columns, stats.studentized_range.sf(apart, k, np.inf))


def critical_difference(k: int, n: int, alpha: float = 0.05) -> float:
    """Return the least difference of mean ranks of k methods over n data sets that Nemenyi's test finds significant."""
    return float(stats.studentized_range.isf(alpha, k, np.inf)) * _standard_error(k, n)


def wilcoxon(table: pd.DataFrame, correction: Correction = "holm") -> pd.DataFrame:
    """Test every pair by Wilcoxon's signed-rank test; return a symmetric table of corrected exact two-sided p-values.

    Data sets on which two methods tie are left out of that pair; methods that tie on all have p = 1. Differences are
    ranked by size across data sets: give shares such as P@N, not counts, or the sets with many anomalies weigh most.
    Differences that agree to 12 digits of the largest value tie. `scipy.stats.wilcoxon` is not used because it is exact
    only without ties, or by going through all 2ⁿ signs.

    >>> table = pd.DataFrame({"A": [0.9, 0.8, 0.7, 0.6, 0.5], "B": [0.1, 0.3, 0.4, 0.2, 0.4]})
    >>> float(wilcoxon(table).loc["A", "B"])
    0.0625
    """
    values = check_table(table)
    p_values = []
    for i, j in zip(*np.triu_indices(values.shape[1], 1), strict=True):
        largest = float(np.abs(values[:, [i, j]]).max()) or 1.0
        p_values.append(_signed_rank_p_value(np.round((values[:, i] - values[:, j]) / largest, _DIGITS)))
    return _square(table.columns, corrected(np.array(p_values), correction))


def resample_means(table: pd.DataFrame, n_draws: int = 10_000) -> pd.DataFrame:
    """Return the means of each method over data sets drawn with replacement (draws × methods): a bootstrap.

    Quantiles of a column are an interval of its mean, those of the difference of two columns one of their difference.
    """
    n = len(table)
    drawn = np.random.default_rng(0).integers(0, n, (n_draws, n))
    counts = np.stack([np.bincount(row, minlength=n) for row in drawn])
    return pd.DataFrame(counts @ table.to_numpy(dtype=np.float64) / n, columns=table.columns)


def corrected(p_values: FloatArray, correction: Correction) -> FloatArray:
    """Correct the p-values of several tests for their number."""
    m = len(p_values)
    if correction is None:
        return p_values
    if correction == "bonferroni":
        return np.minimum(1.0, m * p_values)
    if correction == "holm":
        order = np.argsort(p_values, kind="stable")
        stepped = np.maximum.accumulate(np.arange(m, 0, -1) * p_values[order])
        adjusted = np.empty(m)
        adjusted[order] = np.minimum(1.0, stepped)
        return adjusted
    raise ValueError(f"correction must be 'bonferroni', 'holm' or None; got {correction!r}.")


def check_table(table: pd.DataFrame) -> FloatArray:
    """Return the values of a table of data sets × methods; raise for one that cannot be compared."""
    if not isinstance(table, pd.DataFrame):
        raise TypeError(f"The table must be a DataFrame, data sets by methods; got {type(table).__name__}.")
    for size, what in ((table.shape[1], "methods (columns)"), (table.shape[0], "data sets (rows)")):
        if size < 2:
            raise ValueError(f"A comparison needs at least 2 {what}; got {size}.")
    for names, kind in ((table.columns, "Method"), (table.index, "Data set")):
        if not names.is_unique:
            raise ValueError(f"{kind} {names[names.duplicated()][0]!r} is there more than once.")
    for column in table.columns:
        if table[column].dtype.kind not in "fiu":
            raise ValueError(f"Results must be numbers; those of method {column!r} are {table[column].dtype}.")
    values = table.to_numpy(dtype=np.float64, na_value=np.nan)
    rows, columns = np.nonzero(~np.isfinite(values))
    if len(rows):
        more = f" (and {len(rows) - 1} more)" if len(rows) > 1 else ""
        place = f"method {table.columns[columns[0]]!r} on data set {table.index[rows[0]]!r}{more}"
        raise ValueError(f"Results must be finite numbers without gaps; {place} is {values[rows[0], columns[0]]}.")
    return values


def _untied_ranks(table: pd.DataFrame) -> FloatArray:
    """Rank within each row, 1 for the highest value; raise where all tie."""
    values = check_table(table)
    if (values == values[:, :1]).all():
        raise ValueError(f"All methods tie on all {len(values)} data sets: there is nothing to test.")
    return np.asarray(stats.rankdata(-values, axis=1))


def _standard_error(k: int, n: int) -> float:
    """Return that of a mean rank: the studentized range is in these units, not in those of a difference of two."""
    return float(np.sqrt(k * (k + 1) / (12 * n)))


def _signed_rank_p_value(differences: FloatArray) -> float:
    """Return the two-sided probability, over all signs of the differences, of rank sums at least as unequal."""
    kept = differences[differences != 0]
    if len(kept) == 0:
        return 1.0
    doubled = np.rint(2 * stats.rankdata(np.abs(kept))).astype(np.int64)  # ties have half ranks: count in halves
    chances = np.zeros(int(doubled.sum()) + 1)
    chances[0] = 1.0
    for rank in doubled:
        halved = chances / 2
        chances = halved.copy()
        chances[rank:] += halved[:-rank]
    smaller = int(min(doubled[kept > 0].sum(), doubled[kept < 0].sum()))
    return min(1.0, 2 * float(chances[: smaller + 1].sum()))


def _square(methods: pd.Index, p_values: FloatArray) -> pd.DataFrame:
    """Lay out pairwise p-values, in the order of `np.triu_indices`, as a symmetric table."""
    square = np.ones((len(methods), len(methods)))
    first, second = np.triu_indices(len(methods), 1)
    square[first, second] = square[second, first] = p_values
    return pd.DataFrame(square, index=methods, columns=methods)
