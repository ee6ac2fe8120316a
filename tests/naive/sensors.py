"""Sensors scored by each other over time, as slow loops straight from the formulas."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

RIDGE = 0.01


def residual(z, mean, covariance, j):
    """Reading j minus its ridge regression on the other readings of the row that are there."""
    others = [k for k in range(len(z)) if k != j and not math.isnan(z[k])]
    if math.isnan(z[j]):
        return 0.0
    if not others:
        return z[j] - mean[j]
    C = covariance + RIDGE * np.eye(len(z))
    coefficients = np.linalg.solve(C[np.ix_(others, others)], C[others, j])
    return z[j] - mean[j] - sum(c * (z[k] - mean[k]) for c, k in zip(coefficients, others, strict=True))


def comparable_residual(z, mean, covariance, j):
    """The residual over how much wider it usually is where the same readings are missing: var(a·z) = a·C·aᵀ."""
    if math.isnan(z[j]):
        return 0.0

    def variance(there):
        others, a = [k for k in there if k != j], np.zeros(len(z))
        a[j] = 1.0
        C = covariance + RIDGE * np.eye(len(z))
        if others:
            a[others] = -np.linalg.solve(C[np.ix_(others, others)], C[others, j])
        return float(a @ covariance @ a)

    there = [k for k in range(len(z)) if not math.isnan(z[k])]
    return residual(z, mean, covariance, j) / math.sqrt(max(1.0, variance(there) / variance(range(len(z)))))


def moving_mean(values, starts, horizon):
    """m ← m + (x − m)/horizon, from 0 wherever the history begins anew."""
    found, mean = [], 0.0
    for x, start in zip(values, starts, strict=True):
        mean = 0.0 if start else mean
        mean += (x - mean) / horizon
        found.append(mean)
    return found


def moving_mean_in_time(values, time, horizon, step, gap):
    """The same where a value t steps later weighs 1 − (1 − 1/horizon)^t; equal stamps count as 0.1 steps apart."""
    found, mean = [], 0.0
    for i, x in enumerate(values):
        passed = time[i] - time[i - 1] if i else 0.0
        begins = i == 0 or passed < 0 or (step > 0 and passed > gap)
        steps = 1.0 if begins or step == 0 else max(passed / step, 0.1)
        mean = 0.0 if begins else mean
        mean += (1 - (1 - 1 / horizon) ** steps) * (x - mean)
        found.append(mean)
    return found


def two_sided(values, starts, horizon):
    """The smaller of the means before and after a row, if both have one sign."""
    before = moving_mean(values, starts, horizon)
    ends = [*starts[1:], True]
    after = moving_mean(values[::-1], ends[::-1], horizon)[::-1]
    return [min(abs(b), abs(a)) if b * a > 0 else 0.0 for b, a in zip(before, after, strict=True)]


def block_maxima(values, most=50, fewest_rows=20):
    count = min(most, max(4, len(values) // fewest_rows), len(values))
    edges = [int(k * len(values) / count) for k in range(count + 1)]
    return [max(values[a:b]) for a, b in pairwise(edges)]


def slow_changes_taken_out(residuals, starts):
    """(e − level)/max(1, spread) of one sensor; level and spread follow e with weight max(1/1000, 1/(row + 200)).

    The level follows e − level cut at ±0.5, the spread |e − level|/0.8, of which at most 1.5 counts.
    """
    found, level, spread, row = [], 0.0, 1.0, -1
    for e, start in zip(residuals, starts, strict=True):
        row += 1
        if start:
            level, spread, row = 0.0, 1.0, 0
        if e == 0:  # missing
            found.append(0.0)
            continue
        share, away = max(1 / 1000, 1 / (row + 200)), e - level
        found.append(away / max(1.0, spread))
        level += share * max(-0.5, min(0.5, away))
        spread += share * (min(abs(away), 1.5) / 0.8 - spread)
    return found


def moving_size(values, starts, horizon):
    """The root of the moving mean of squares, each at most 100."""
    return [math.sqrt(mean) for mean in moving_mean([min(x * x, 100.0) for x in values], starts, horizon)]


def later_mean(values, starts, horizon):
    """|moving mean|, at most three times the present |value|, or 2."""
    return [
        min(abs(m), max(3 * abs(x), 2.0)) for m, x in zip(moving_mean(values, starts, horizon), values, strict=True)
    ]


def later_size(values, starts, horizon):
    """The moving size, at most three times the largest |value|, of each of which 0.3 is left after every row, or 2."""
    found, begin = [], 0
    for i, size in enumerate(moving_size(values, starts, horizon)):
        begin = i if starts[i] else begin
        recent = max(abs(values[k]) * 0.3 ** (i - k) for k in range(begin, i + 1))
        found.append(min(size, max(3 * recent, 2.0)))
    return found


def courses(values, starts):
    """A reading and those 1, 2, 4, 8 and 16 rows before it; the first since the history began where there are fewer."""
    found, begin = [], 0
    for i in range(len(values)):
        begin = i if starts[i] else begin
        found.append([values[max(i - lag, begin)] for lag in (0, 1, 2, 4, 8, 16)])
    return found


def time_layer(channels, leads, quantile=0.95):
    """Channels per horizon, each (n, p) → two sizes per row: of many sensors and channels, and of the largest of all.

    A sensor that does not lead counts at most as much as the largest of those that do; all lead if none does.

    Ratios above 1 are taken to a power: 0.15 / log(third quartile of the block maxima / their median), from 0.5 to 1.
    """
    n, p = np.shape(channels[0])
    squares, highest = [0.0] * n, [0.0] * n
    for channel in channels:
        maxima = [block_maxima([channel[i][j] for i in range(n)]) for j in range(p)]
        by = [np.quantile(each, quantile) for each in maxima]
        tails = [math.log(max(np.quantile(each, 0.75), 1e-12) / max(np.median(each), 1e-12)) for each in maxima]
        powers = [max(0.5, min(1.0, 0.15 / max(tail, 1e-12))) for tail in tails]
        ratios = [[channel[i][j] / by[j] if by[j] > 0 else 0.0 for j in range(p)] for i in range(n)]
        ratios = [[min(r**power, 20.0) if r > 1 else r for r, power in zip(row, powers, strict=True)] for row in ratios]
        first = [j for j in range(p) if leads[j]] or list(range(p))
        ratios = [
            [r if j in first else min(r, max(row[k] for k in first)) for j, r in enumerate(row)] for row in ratios
        ]
        for top in (1, 5):
            means = [sum(sorted(row)[::-1][:top]) / min(top, p) for row in ratios]
            scale = np.quantile(block_maxima(means), quantile) or 1.0
            squares = [total + (mean / scale) ** 2 for total, mean in zip(squares, means, strict=True)]
            if top == 1:
                highest = [max(before, mean / scale) for before, mean in zip(highest, means, strict=True)]
    return [[math.sqrt(total / (2 * len(channels))), one] for total, one in zip(squares, highest, strict=True)]


def largest_surprise(sizes):
    """The larger of the surprises at the sizes of each row."""
    return [max(pair) for pair in zip(*(surprise(list(column)) for column in zip(*sizes, strict=True)), strict=True)]


def later_score(views):
    """The largest view of a row, and of each other that is above 0 at most 5."""
    first, *others = sorted(views, reverse=True)
    return first + sum(min(max(view, 0.0), 5.0) for view in others)


def surprise(scores):
    """How far the logarithm of a score is above the median of the block maxima, in their spread (at least 0.1)."""
    maxima = [math.log(max(each, 1e-12)) for each in block_maxima(scores)]
    median = float(np.median(maxima))
    spread = max(0.1, 1.4826 * float(np.median([abs(each - median) for each in maxima])))
    return [(math.log(max(score, 1e-12)) - median) / spread for score in scores]


def third_nearest(rows, places, references, reference_places, zone):
    """Distance to the third nearest reference at least `zone` rows away, or to the farthest of fewer; 0 if none."""
    found = []
    for row, place in zip(rows, places, strict=True):
        allowed = [r for r, q in zip(references, reference_places, strict=True) if abs(place - q) >= zone]
        distances = sorted(math.dist(row, other) for other in allowed)[:3]
        found.append(distances[-1] if distances else 0.0)
    return found


def against_past(column, least, floor):
    """(x − mean of earlier readings) / their standard deviation, cut at ±20; 0 before `least` readings."""
    found, earlier = [], []
    for x in column:
        if math.isnan(x):
            found.append(0.0)
            continue
        spread = max(float(np.std(earlier)), floor) if len(earlier) >= least else 0.0
        found.append(min(max((x - float(np.mean(earlier))) / spread, -20.0), 20.0) if spread > 0 else 0.0)
        earlier.append(x)
    return found


def rebuilt_residual(z, rebuilt, w, H, Q, j, least=0.05):
    """r_j/(1 − h_j), h_j = H_jᵀ(HHᵀ + Q)⁻¹H_j over the rows of H with w > 0 and the readings that are there."""
    if math.isnan(z[j]):
        return 0.0
    active = [k for k in range(len(w)) if w[k] > 0]
    there = [i for i in range(len(z)) if not math.isnan(z[i])]
    h = 0.0
    if active:
        gram = np.array([[sum(H[a][i] * H[b][i] for i in there) + Q[a][b] for b in active] for a in active])
        column = np.array([H[a][j] for a in active])
        h = float(column @ np.linalg.pinv(gram) @ column)
    return (z[j] - rebuilt[j]) / max(1 - h, least)


def memory(scores):
    """The first of the lags 1, 2, 3, … (each at least 1.2 times the last) at which high scores hardly go together.

    High is above the 0.9 quantile; the autocorrelation of being high is below 0.3 there.
    """
    n, high = len(scores), float(np.quantile(scores, 0.9))
    above = [float(score > high or score == max(scores)) for score in scores]
    mean = sum(above) / n
    above = [each - mean for each in above]
    variance = sum(each * each for each in above) / n or 1.0
    lag = 1
    while lag < n // 2:
        products = [above[i] * above[i - lag] for i in range(lag, n)]
        if sum(products) / len(products) / variance < 0.3:
            break
        lag = max(lag + 1, int(1.2 * lag))
    return lag


def episode_rate(scores, block, measured, only_counted, tail):
    """Start, L there, spread and power of the tail of maxima over blocks, the highest of which only count.

    From the maximum of rank j = K/4 on to that of rank h = measured·K, or K − only_counted, the excesses are summed,
    those above cut there.
    For Gumbel's distribution the sum over the number of maxima between is κ slopes, by numerical integration. Three
    more maxima have the slope of the quartiles.
    """
    count = len(scores) // block
    edges = [int(k * len(scores) / count) for k in range(count + 1)]
    maxima = sorted(max(scores[a:b]) for a, b in pairwise(edges))
    j = int(count / 4)
    h = min(math.ceil(measured * count), count - only_counted)
    start = maxima[j - 1]
    total = sum(min(m, maxima[h - 1]) - start for m in maxima[j:])
    x = -math.log(-math.log(j / count))
    top = -math.log(-math.log(h / count)) if h < count else 40.0
    step, kappa = (top - x) / 20_000, 0.0
    for k in range(20_000):
        kappa += step * (1 - math.exp(-math.exp(-(x + (k + 0.5) * step))))
    kappa /= (h - j) / count
    body = max((float(np.quantile(maxima, 0.75)) - float(np.quantile(maxima, 0.25))) / 1.5725, 0.05)
    spread = max((3 * body + total / kappa) / (3 + h - j), 0.05)
    return start, -math.log(j / count), spread, 1 / (1 / (3 + h - j) + 1 / tail)


def expected(score, start, rate, spread, tail, block, rows):
    """Blocks in so many rows, at least one, whose maximum is at least this score."""
    share = 1.0
    if score > start:
        share = 1 - math.exp(-rate * (1 + (score - start) / (tail * spread)) ** -tail)
    return max(rows / block, 1) * share
