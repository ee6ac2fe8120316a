"""Whether methods differ over many data sets: ranks, Friedman's test, pairwise tests and counts of wins.

A table has a row per data set and a column per method; higher is better. A data set has one row: average the runs of
one before, since the tests take rows to be independent. Values that should tie must be equal to the last bit: see
`without_last_bits`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from penstock._types import FloatArray

Correction = Literal["bonferroni", "holm"] | None
DIGITS = 12


@dataclass(frozen=True, eq=False)
class FriedmanResult:
    """Friedman's test: `n` data sets, `k` methods. `uncorrected` is the statistic that takes no notice of ties."""

    statistic: float
    p_value: float
    degrees_of_freedom: int
    n: int
    k: int
    mean_ranks: pd.Series[float]
    uncorrected: float


def without_last_bits(values: npt.ArrayLike) -> FloatArray:
    """The values to 12 significant digits, so that those that differ by the rounding of a division or a mean tie.

    >>> without_last_bits([0.1 + 0.2, 0.3, np.nan]).tolist()
    [0.3, 0.3, nan]
    """
    given = np.asarray(values, dtype=np.float64)
    # By way of text: scaling by a power of ten is itself rounded, and could part what should tie.
    rounded = np.array([float(f"{value:.{DIGITS}g}") for value in given.ravel()], dtype=np.float64)
    return rounded.reshape(given.shape)


def mean_ranks(table: pd.DataFrame) -> pd.Series[float]:
    """Mean rank of each method over the data sets: 1 is the best, ties share the average of their ranks.

    >>> from penstock.bench import paper
    >>> mean_ranks(paper.true_positives[["NS-NMF", "NMF", "GNMF", "SNMF"]]).to_dict()
    {'NS-NMF': 1.2, 'NMF': 3.1, 'GNMF': 2.6, 'SNMF': 3.1}
    """
    return pd.Series(_ranks(_checked(table)).mean(axis=0), index=table.columns, name="mean rank")


def friedman(table: pd.DataFrame) -> FriedmanResult:
    """Friedman's test that all methods rank alike. Ahmed et al. (2021), eq:frd.

    Differs: with the correction for ties, which eq:frd as printed lacks and the paper's p-value has
    (docs/decisions/0012-statistics.md). The p-value is that of the χ² distribution with k − 1 degrees of freedom, an
    approximation that is rough for few data sets.

    >>> from penstock.bench import paper
    >>> result = friedman(paper.true_positives[["NS-NMF", "NMF", "GNMF", "SNMF"]])
    >>> f"{result.statistic:.3f} {result.p_value:.2e} {result.uncorrected:.2f}"
    '34.988 1.23e-07 29.04'
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
    """Conover's pairwise tests after Friedman's: a symmetric table of p-values, corrected for the number of pairs.

    The p-values of the paper (tbl:11: 7.11e-21, 3.40e-15, 7.11e-21) are far smaller than these. They are what an early
    version of the R package PMCMR gives (3.38e-15 for the second), which has n and k the wrong way round in the
    standard error.

    >>> from penstock.bench import paper
    >>> p = conover(paper.true_positives[["NS-NMF", "NMF", "GNMF", "SNMF"]])
    >>> [f"{p.loc['NS-NMF', other]:.2e}" for other in ("NMF", "GNMF", "SNMF")]
    ['1.24e-09', '2.84e-06', '1.24e-09']
    """
    ranks = _untied_ranks(table)
    n, k = ranks.shape
    sums = ranks.sum(axis=0)
    # Ranks are multiples of one half, so this is exact, and zero only if it is.
    residual = n * float((ranks**2).sum()) - float((sums**2).sum())
    if residual == 0:
        raise ValueError(
            f"All {n} data sets rank the methods in the same way, which leaves Conover's test no variation to judge "
            "differences by. Use wilcoxon."
        )
    freedom = (n - 1) * (k - 1)
    first, second = np.triu_indices(k, 1)
    t = np.abs(sums[first] - sums[second]) / np.sqrt(2 * residual / freedom)
    return _square(table.columns, 2 * stats.t.sf(t, freedom), correction)


def wilcoxon(table: pd.DataFrame, correction: Correction = "holm") -> pd.DataFrame:
    """Wilcoxon's signed-rank test of every pair: a symmetric table of exact two-sided p-values, corrected.

    Data sets on which two methods tie are left out of that pair; methods that tie on all have p = 1. Differences are
    ranked by size across data sets: give shares such as P@N, not counts, or the sets with many anomalies weigh most.
    Differences that agree to 12 digits of the largest value tie.

    >>> table = pd.DataFrame({"A": [0.9, 0.8, 0.7, 0.6, 0.5], "B": [0.1, 0.3, 0.4, 0.2, 0.4]})
    >>> float(wilcoxon(table).loc["A", "B"])
    0.0625
    """
    values = _checked(table)
    pairs = zip(*np.triu_indices(values.shape[1], 1), strict=True)
    p_values = np.array([_signed_rank_p_value(_differences(values[:, i], values[:, j])) for i, j in pairs])
    return _square(table.columns, p_values, correction)


def compare(table: pd.DataFrame, ours: str, close: float = 0.73) -> pd.DataFrame:
    """On how many data sets each method is best alone, best with others, close to the best, or worse; `ours` first.

    Close is a share of the best result of at least `close`. The paper says "within 20 %" (tbl:3), but its rows follow
    from its results (tbl:TPR) only with a cut between 0.728 and 0.735.

    >>> from penstock.bench import paper
    >>> compare(paper.true_positives[["NMF", "NS-NMF", "GNMF", "SNMF"]], "NS-NMF")
            NS-NMF  NMF  GNMF  SNMF
    Better      16    1     0     0
    Equal        3    2     2     2
    Close        0    4     9     6
    Worse        1   13     9    12
    """
    values = _checked(table)
    if ours not in table.columns:
        raise ValueError(f"There is no method {ours!r} in the table; it has {', '.join(map(str, table.columns))}.")
    if not 0 < close <= 1:
        raise ValueError(f"close must be a share of the best result, above 0 and at most 1; got {close!r}.")
    if (values < 0).any():
        raise ValueError(f"A share of the best needs results of 0 or more; {_places(table, values < 0)} is negative.")
    best = values.max(axis=1, keepdims=True)
    at_best = values == best
    alone = at_best & (at_best.sum(axis=1, keepdims=True) == 1)
    # Divided: close * best can round to just above a result that is exactly that share. A best of 0 is met by all.
    near = ~at_best & (values / np.where(best > 0, best, 1.0) >= close)
    counts = [kind.sum(axis=0) for kind in (alone, at_best & ~alone, near, ~at_best & ~near)]
    found = pd.DataFrame(counts, index=["Better", "Equal", "Close", "Worse"], columns=table.columns)
    return found[[ours, *(method for method in table.columns if method != ours)]]


def _checked(table: pd.DataFrame) -> FloatArray:
    """The values of a table that can be compared; raise for one that cannot."""
    if not isinstance(table, pd.DataFrame):
        raise TypeError(f"The table must be a DataFrame, data sets by methods; got {type(table).__name__}.")
    n, k = table.shape
    if k < 2:
        raise ValueError(f"A comparison needs at least 2 methods (columns); got {k}.")
    if n < 2:
        raise ValueError(f"A comparison needs at least 2 data sets (rows); got {n}.")
    for names, kind in ((table.columns, "Method"), (table.index, "Data set")):
        if not names.is_unique:
            raise ValueError(f"{kind} {names[names.duplicated()][0]!r} is there more than once.")
    wrong = [column for column in table.columns if table[column].dtype.kind not in "fiu"]
    if wrong:
        raise ValueError(f"Results must be numbers; those of method {wrong[0]!r} are {table[wrong[0]].dtype}.")
    values = table.to_numpy(dtype=np.float64, na_value=np.nan)
    if np.isnan(values).any():
        raise ValueError(f"Results must not have gaps; {_places(table, np.isnan(values))} is NaN.")
    if np.isinf(values).any():
        raise ValueError(f"Results must be finite; {_places(table, np.isinf(values))} is infinite.")
    return values


def _places(table: pd.DataFrame, where: np.ndarray) -> str:
    """The first of the marked places, by name, and how many others there are."""
    rows, columns = np.nonzero(where)
    more = f" (and {len(rows) - 1} more)" if len(rows) > 1 else ""
    return f"method {table.columns[columns[0]]!r} on data set {table.index[rows[0]]!r}{more}"


def _ranks(values: FloatArray) -> FloatArray:
    """Ranks within each row, 1 for the highest value."""
    ranks: FloatArray = stats.rankdata(-values, axis=1)
    return ranks


def _untied_ranks(table: pd.DataFrame) -> FloatArray:
    """Ranks within each row; raise if they say nothing about the methods."""
    values = _checked(table)
    if (values == values[:, :1]).all():
        raise ValueError(f"All methods tie on all {len(values)} data sets: there is nothing to test.")
    return _ranks(values)


def _differences(first: FloatArray, second: FloatArray) -> FloatArray:
    """Differences in units of the largest value, without the last digits: equal steps such as 0.3 - 0.2 and 0.1 tie."""
    largest = max(float(np.abs(first).max()), float(np.abs(second).max()))
    rounded: FloatArray = np.round((first - second) / (largest or 1.0), 12)
    return rounded


def _signed_rank_p_value(differences: FloatArray) -> float:
    """Two-sided chance, over all signs of the differences, of rank sums at least as unequal."""
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


def _square(methods: pd.Index, p_values: FloatArray, correction: Correction) -> pd.DataFrame:
    """Pairwise p-values, in the order of `np.triu_indices`, corrected and laid out as a symmetric table."""
    square = np.ones((len(methods), len(methods)))
    first, second = np.triu_indices(len(methods), 1)
    square[first, second] = square[second, first] = corrected(p_values, correction)
    return pd.DataFrame(square, index=methods, columns=methods)


def corrected(p_values: FloatArray, correction: Correction) -> FloatArray:
    """P-values of several tests, corrected for their number.

    >>> corrected(np.array([0.01, 0.02, 0.5]), "holm").tolist()
    [0.03, 0.04, 0.5]
    """
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
