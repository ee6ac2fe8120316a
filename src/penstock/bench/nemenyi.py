"""Nemenyi's test after Friedman's: the least difference of mean ranks that is significant."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import stats

from penstock.bench.significance import mean_ranks


def critical_difference(k: int, n: int, alpha: float = 0.05) -> float:
    """Mean ranks of two of k methods over n data sets that are further apart differ at the level alpha.

    >>> round(critical_difference(4, 20), 4)
    1.0488
    """
    return float(stats.studentized_range.isf(alpha, k, np.inf)) * _standard_error(k, n)


def nemenyi(table: pd.DataFrame) -> pd.DataFrame:
    """Nemenyi's pairwise tests: a symmetric table of p-values, which allow for the number of methods by themselves.

    >>> from penstock.bench import paper
    >>> p = nemenyi(paper.true_positives[["NS-NMF", "NMF", "GNMF", "SNMF"]])
    >>> [f"{p.loc['NS-NMF', other]:.1e}" for other in ("NMF", "GNMF", "SNMF")]
    ['1.9e-05', '3.4e-03', '1.9e-05']
    """
    ranks = mean_ranks(table)
    n, k = table.shape
    apart = np.abs(np.subtract.outer(ranks.to_numpy(), ranks.to_numpy())) / _standard_error(k, n)
    square = np.ones((k, k))
    first, second = np.triu_indices(k, 1)
    square[first, second] = square[second, first] = stats.studentized_range.sf(apart[first, second], k, np.inf)
    return pd.DataFrame(square, index=table.columns, columns=table.columns)


def _standard_error(k: int, n: int) -> float:
    """Of a mean rank: the studentized range is in these units, not in those of a difference of two."""
    return float(np.sqrt(k * (k + 1) / (12 * n)))
