"""Comparisons of methods over data sets as slow loops. A table is a list of rows; higher is better."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

from scipy import stats


def ranks(row):
    """1 for the highest; those that tie share the average of the places they take."""
    found = []
    for value in row:
        above = sum(1 for other in row if other > value)
        tied = sum(1 for other in row if other == value)
        found.append(Fraction(2 * above + tied + 1, 2))
    return found


def mean_ranks(table):
    return [sum(column) / len(table) for column in zip(*[ranks(row) for row in table], strict=True)]


def uncorrected_friedman(table):
    """The statistic as printed, with the square of the mean rank. Ahmed et al. (2021), eq:frd."""
    n, k = len(table), len(table[0])
    total = sum(mean**2 for mean in mean_ranks(table))
    return Fraction(12 * n, k * (k + 1)) * (total - Fraction(k * (k + 1) ** 2, 4))


def friedman(table):
    """The statistic of eq:frd divided by the correction for ties, group of ties by group of ties, and its p-value."""
    n, k = len(table), len(table[0])
    tied = 0
    for row in table:
        for value in set(row):
            size = sum(1 for other in row if other == value)
            tied += size**3 - size
    statistic = uncorrected_friedman(table) / (1 - Fraction(tied, n * (k**3 - k)))
    return statistic, stats.chi2.sf(float(statistic), k - 1)


def conover(table, swapped=False):
    """Conover (1999), the t-tests after Friedman's, uncorrected: {(i, j): p}.

    `swapped` has n for k and k for n in one factor of the variance, as in the R package PMCMR of 2016.
    """
    n, k = len(table), len(table[0])
    all_ranks = [ranks(row) for row in table]
    sums = [sum(column) for column in zip(*all_ranks, strict=True)]
    squares = sum(rank**2 for row in all_ranks for rank in row)
    spread = squares - Fraction(n * k * (k + 1) ** 2, 4)
    statistic = (k - 1) * sum((total - Fraction(n * (k + 1), 2)) ** 2 for total in sums) / spread
    rows, columns = (k, n) if swapped else (n, k)
    freedom = (n - 1) * (k - 1)
    variance = 2 * rows * spread * (1 - statistic / (rows * (columns - 1))) / freedom
    found = {}
    for i, j in itertools.combinations(range(k), 2):
        found[i, j] = 2 * stats.t.sf(abs(sums[i] - sums[j]) / math.sqrt(variance), freedom)
    return found


def wilcoxon(first, second):
    """The share of all ways to give signs to the ranks that are at least as unequal as the signs seen."""
    differences = [a - b for a, b in zip(first, second, strict=True) if a != b]
    sizes = ranks([-abs(difference) for difference in differences])
    seen = abs(sum(math.copysign(1, d) * size for d, size in zip(differences, sizes, strict=True)))
    extreme = 0
    for signs in itertools.product((-1, 1), repeat=len(sizes)):
        extreme += abs(sum(sign * size for sign, size in zip(signs, sizes, strict=True))) >= seen
    return extreme / 2 ** len(sizes)


def bonferroni(p_values):
    return [min(1.0, len(p_values) * p) for p in p_values]


def holm(p_values):
    """Each p-value times the number of those not smaller, and never below the adjusted value of a smaller one."""
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    adjusted, so_far = [0.0] * len(p_values), 0.0
    for place, index in enumerate(order):
        so_far = max(so_far, (len(p_values) - place) * p_values[index])
        adjusted[index] = min(1.0, so_far)
    return adjusted


def compare(table, close):
    """For each method how often it is Better, Equal, Close and Worse."""
    counts = [[0, 0, 0, 0] for _ in table[0]]
    for row in table:
        best = max(row)
        for method, value in enumerate(row):
            if value == best:
                kind = 0 if row.count(best) == 1 else 1
            else:
                kind = 2 if Fraction(value) / Fraction(best) >= close else 3
            counts[method][kind] += 1
    return counts
