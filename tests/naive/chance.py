"""How many rows would score as high by chance, straight from the formulas, as loops. Imports nothing of ours."""

from __future__ import annotations

import math


def expected(scores, s):
    """E(s) = j·(1 + (t(s) − t(d_j))/(Nσ))^(−N), t(s) = (s − d_i)^1.3, σ = [Σ t(d_k) + j·t(d_j)]/N, for s ≥ d_j.

    The k-th highest score below that is expected k times.
    """
    d = [None, *sorted(set(scores), reverse=True)]  # counted from 1, as in the formula
    m = len(d) - 1
    i = (m + 1) // 2
    j = math.ceil(6 * m / 100) if 6 * m % 100 else 6 * m // 100
    N = i - j
    if s < d[j]:
        return d.index(s)

    def t(score):
        return (score - d[i]) ** 1.3

    sigma = (math.fsum(t(d[k]) for k in range(j + 1, i)) + j * t(d[j])) / N
    return j * (1 + (t(s) - t(d[j])) / (N * sigma)) ** -N


def assess(scores):
    """(expected of each row, whether it is called, q, verdict)."""
    different = sorted(set(scores), reverse=True)
    if len(different) < 40:
        return [math.nan] * len(scores), [False] * len(scores), math.nan, "too few"
    E = {score: expected(scores, score) for score in different}
    q = min(E[score] / (place + 1) for place, score in enumerate(different))
    last = max([0] + [place + 1 for place, score in enumerate(different) if 10 * E[score] <= place + 1])
    called = [score in different[:last] for score in scores]
    verdict = "nothing" if q > 0.10 else "some" if q > 0.01 else "clearly"
    return [E[score] for score in scores], called, q, verdict


def without_the_highest(make, X, first):
    """Scores without the n // 10 highest rows (of equal ones at the cut: with all) say which rows are called.

    The first scores if none is; else scores without those.
    """
    limit = sorted(first, reverse=True)[len(X) // 10]
    called = assess(scores_without(make, X, [score > limit for score in first]))[1]
    return scores_without(make, X, called) if any(called) else first


def scores_without(make, X, aside):
    kept = [row for row in range(len(X)) if not aside[row]]
    detector = make().fit([X[row] for row in kept])
    of_kept = dict(zip(kept, detector.scores_.tolist(), strict=True))
    return [of_kept[row] if row in of_kept else float(detector.anomaly_score([X[row]])[0]) for row in range(len(X))]
