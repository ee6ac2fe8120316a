"""How many rows would score as high by chance, straight from the formulas, as loops. Imports nothing of ours."""

from __future__ import annotations

import math


def expected(scores, s):
    """E(s) = j·(1 + (t(s) − t(d_j))/(Nσ))^(−N), t(s) = (s − d_i)^1.3, σ = [Σ t(d_k) + j·t(d_j)]/N, for s ≥ d_j."""
    d = [None, *sorted(set(scores), reverse=True)]  # counted from 1, as in the formula
    m = len(d) - 1
    i = (m + 1) // 2
    j = math.ceil(6 * m / 100) if 6 * m % 100 else 6 * m // 100
    N = i - j
    if s < d[j]:
        return math.inf

    def t(score):
        return (score - d[i]) ** 1.3

    sigma = (math.fsum(t(d[k]) for k in range(j + 1, i)) + j * t(d[j])) / N
    return j * (1 + (t(s) - t(d[j])) / (N * sigma)) ** -N


def judge(scores):
    """(expected of each row, whether it is called, q, verdict)."""
    different = sorted(set(scores), reverse=True)
    if len(different) < 40:
        return [math.inf] * len(scores), [False] * len(scores), math.nan, "too few"
    E = {score: expected(scores, score) for score in different}
    q = min(E[score] / (place + 1) for place, score in enumerate(different))
    last = max([0] + [place + 1 for place, score in enumerate(different) if 10 * E[score] <= place + 1])
    called = [score in different[:last] for score in scores]
    verdict = "nothing" if q > 0.10 else "some" if q > 0.01 else "clearly"
    return [E[score] for score in scores], called, q, verdict


def without_the_highest(make, X, first):
    """Scores by a detector that learns from the rows but the n // 10 highest, of equal ones at the cut from all."""
    n = len(X)
    limit = sorted(first, reverse=True)[n // 10]
    kept = [row for row in range(n) if first[row] <= limit]
    detector = make().fit([X[row] for row in kept])
    of_kept = dict(zip(kept, detector.scores_, strict=True))
    return [of_kept[row] if row in of_kept else detector.anomaly_score([X[row]])[0] for row in range(n)]
