"""Loops over rows that give the same bits for any cut of a series into pieces.

A matrix product of a library sums in an order that depends on the number of rows; these kernels do not.
"""

from __future__ import annotations

from math import exp, isnan, sqrt

import numpy as np

from penstock._jit import Array, kernel

_SLOW, _FAST = 1 / 1000, 200  # the weight of a row in a slow level: 1/(rows so far + 200), and at least 1/1000
_LARGEST_STEP, _LARGEST_SIZE = 0.5, 1.5  # what counts of a residual in its slow level, and in its slow spread
_USUAL_SIZE = 0.8  # of |residual|: the mean, for normal noise
_LARGEST_SQUARE = 100.0
_NEARLY = 1 - 1e-9  # a product spares a quotient that could not count
_MOST, _LEAST = 3.0, 2.0  # a mean or a size over past rows is at most so many times the present residual, or this
FADED = 0.3  # what is left of a residual after a row: noise and oscillation pass through zero, and are not over then


@kernel
def multiply_rows(A: Array, M: Array, out: Array) -> None:
    """out = A M, each row by itself: for (n, p) and (p, q)."""
    n, p = A.shape
    q = M.shape[1]
    for i in range(n):
        for j in range(q):
            out[i, j] = 0.0
        for k in range(p):
            value = A[i, k]
            if value != 0.0:
                for j in range(q):
                    out[i, j] += value * M[k, j]


@kernel
def residual_rows(Z: Array, mean: Array, precision: Array, holed: Array, out: Array) -> int:
    """Residuals of rows without holes, as in `LeaveOneOut`; `holed` (n,) are the others, and their number returned."""
    n, p = Z.shape
    count = 0
    for i in range(n):
        holed[i] = False
        for j in range(p):
            out[i, j] = 0.0
            holed[i] |= isnan(Z[i, j])
        if holed[i]:
            count += 1
            continue
        for k in range(p):
            away = Z[i, k] - mean[k]
            if away != 0.0:
                for j in range(p):
                    out[i, j] += away * precision[k, j]
        for j in range(p):
            out[i, j] /= precision[j, j]
    return count


@kernel
def moving_means(values: Array, starts: Array, shares: Array, state: Array, out: Array) -> None:
    """Exponentially weighted means of each column, `shares` (n,) the weights of new values.

    `state` (p,) goes in and out, and counts as 0 where `starts[i]`.
    """
    n, p = values.shape
    for i in range(n):
        for j in range(p):
            before = 0.0 if starts[i] else state[j]
            state[j] = before + shares[i] * (values[i, j] - before)
            out[i, j] = state[j]


@kernel
def two_sided_means(
    values: Array, starts: Array, shares: Array, ends: Array, shares_back: Array, state: Array, out: Array
) -> None:
    """The smaller of the moving means before and after each row if both have one sign, else 0.

    `ends` and `shares_back` (n,) are `starts` and `shares` of the rows when time runs backwards, the last row first;
    `state` (p,) is overwritten.
    """
    n, p = values.shape
    moving_means(values, starts, shares, state, out)
    for k in range(n):
        i = n - 1 - k
        for j in range(p):
            before = 0.0 if ends[k] else state[j]
            after = before + shares_back[k] * (values[i, j] - before)
            state[j] = after
            before = out[i, j]
            out[i, j] = min(abs(before), abs(after)) if (before > 0.0) == (after > 0.0) else 0.0


@kernel
def activity_rows(
    places: Array, starts: Array, shares: Array, last: Array, means: Array, since: int, out: Array
) -> int:
    """The six features of `Activity` (n, 6) from the places of rows (n, d); returns the rows since the history began.

    `shares` (2, n) are the weights of new rows over 4 and 16 rows; `last` (d,) and `means` (2, 1) go in and out.
    """
    n, d = places.shape
    for i in range(n):
        moved = 0.0
        if starts[i]:
            since = 0
            means[0, 0], means[1, 0] = 0.0, 0.0
        else:
            since += 1
            for j in range(d):
                moved += (places[i, j] - last[j]) ** 2
            moved /= max(d, 1)
        for k in range(2):
            means[k, 0] += shares[k, i] * (moved - means[k, 0])
        for j in range(d):
            last[j] = places[i, j]
        out[i, 0], out[i, 1], out[i, 2], out[i, 3] = 1.0, moved, means[0, 0], means[1, 0]
        out[i, 4], out[i, 5] = exp(-since / 4), exp(-since / 24)
    return since


@kernel
def compare_channel(
    channel: Array, by: Array, powers: Array, edges: Array, leads: Array, largest: float, tops: Array, evidence: Array
) -> None:
    """Ratios of |channel| (n, p) to `by` (p,), to the power `powers` (p,) above 1, cut at `largest`.

    A ratio is 0 where `by` is 0, as the sensor never moved; that of a sensor that does not lead (`leads`, (p,)) is at
    most the largest of those that do. `tops` (n, 5) takes the five largest ratios of a row, and 0 if there are fewer.
    `evidence` (n, p) is raised to the ratios to `edges` (p,).
    """
    n, p = channel.shape
    turns = 1
    for j in range(p):
        if not leads[j]:
            turns = 2
    for i in range(n):
        for k in range(5):
            tops[i, k] = 0.0
        limit = largest
        for turn in range(turns):  # those that lead first
            for j in range(p):
                if leads[j] != (turn == 0):
                    continue
                size = abs(channel[i, j])
                if size > _NEARLY * evidence[i, j] * edges[j] and edges[j] > 0.0:
                    evidence[i, j] = max(evidence[i, j], size / edges[j])
                if size < _NEARLY * tops[i, 4] * by[j]:
                    continue  # not among the five: a power of at most 1 makes it no larger
                ratio = size / by[j] if by[j] > 0.0 else 0.0
                if ratio > 1.0:
                    ratio = ratio ** powers[j]
                ratio = min(ratio, limit)
                k = 4
                if ratio > tops[i, k]:
                    while k > 0 and ratio > tops[i, k - 1]:
                        tops[i, k] = tops[i, k - 1]
                        k -= 1
                    tops[i, k] = ratio
            limit = tops[i, 0]


@kernel
def take_out_slow_changes(residuals: Array, runs: Array, levels: Array, rows: int, out: Array) -> int:
    """Residuals (n, q) less a level, over a spread, which follow each sensor slowly.

    Both are bounded: in 1,000 rows the level moves by at most half the usual spread, and the spread at most doubles.
    So a season is taken out, and a fault that lasts stays visible. A residual of 0 stays 0, as the reading is missing
    (or, of scores, not above the usual), and says nothing of the level. `levels` (2, q), level and spread, go in and
    out, and begin as 0 and 1 where another run does (`runs`, (n,)). `rows` were followed since; the number after these
    is returned. `out` may be `residuals`.
    """
    n, q = residuals.shape
    for i in range(n):
        if runs[i]:
            rows = 0
            levels[0, :], levels[1, :] = 0.0, 1.0
        share = max(_SLOW, 1.0 / (rows + _FAST))
        for j in range(q):
            if residuals[i, j] == 0.0:
                out[i, j] = 0.0
                continue
            away = residuals[i, j] - levels[0, j]
            out[i, j] = away / max(1.0, levels[1, j])
            levels[0, j] += share * min(max(away, -_LARGEST_STEP), _LARGEST_STEP)
            levels[1, j] += share * (min(abs(away), _LARGEST_SIZE) / _USUAL_SIZE - levels[1, j])
        rows += 1
    return rows


@kernel
def moving_sizes(values: Array, starts: Array, shares: Array, state: Array, out: Array) -> None:
    """Roots of the moving means of squares, each at most 100, as in `moving_means`: noise and oscillation last so."""
    n, p = values.shape
    for i in range(n):
        for j in range(p):
            before = 0.0 if starts[i] else state[j]
            square = min(values[i, j] * values[i, j], _LARGEST_SQUARE)
            state[j] = before + shares[i] * (square - before)
            out[i, j] = sqrt(max(state[j], 0.0))


@kernel
def faded_sizes(values: Array, starts: Array, state: Array, out: Array) -> None:
    """The largest recent |value| of each column, of which 0.3 is left after every row; `state` as in `moving_means`."""
    n, q = values.shape
    for i in range(n):
        for j in range(q):
            before = 0.0 if starts[i] else FADED * state[j]
            state[j] = max(abs(values[i, j]), before)
            out[i, j] = state[j]


@kernel
def bound_by_present(channel: Array, values: Array) -> None:
    """|channel| (n, q), in place, at most three times the present |value|, or 2: what has ended is over."""
    n, q = channel.shape
    for i in range(n):
        for j in range(q):
            channel[i, j] = min(abs(channel[i, j]), max(_MOST * abs(values[i, j]), _LEAST))


@kernel
def slow_levels(values: Array, share: float, floor: float, state: Array, out: Array) -> None:
    """The slowly followed level of `values` (n,) before each row, at least `floor`; peaks count as at most 3 levels."""
    level = state[0]
    for i in range(len(values)):
        out[i] = max(level, floor)
        level += share * (min(values[i], 3.0 * level) - level)
    state[0] = level


@kernel
def compare_with_past(values: Array, least: float, floors: Array, state: Array, out: Array) -> None:
    """Distance of each value from the mean of all earlier ones in their standard deviations; NaN gives 0.

    `state` (3, p) holds count, mean and sum of squared deviations; columns with fewer than `least` values give 0.
    """
    n, p = values.shape
    for i in range(n):
        for j in range(p):
            x = values[i, j]
            out[i, j] = 0.0
            if isnan(x):
                continue
            count, mean, squares = state[0, j], state[1, j], state[2, j]
            if count >= least:
                spread = max((squares / count) ** 0.5, floors[j])
                if spread > 0.0:
                    out[i, j] = min(max((x - mean) / spread, -20.0), 20.0)
            count += 1.0
            step = x - mean
            mean += step / count
            state[0, j], state[1, j], state[2, j] = count, mean, squares + step * (x - mean)


@kernel
def third_nearest(
    rows: Array, places: Array, references: Array, reference_places: Array, zone: int, out: Array
) -> None:
    """Squared distance to the third nearest reference at least `zone` rows away, or to the last there is.

    `references` (groups, d, size of a group) are in the order of `reference_places` (m,), which rise; the last group
    may have room for more. Those closer than `zone` rows are left out, as a lasting fault would be near itself; −1
    where none is left. The group in which the row before found its nearest is looked at first, and a group that is too
    far away is left early: neither changes the distance found.
    """
    m = len(reference_places)
    groups, d, group = references.shape
    totals = np.empty(group)
    nearest, least = 0, np.inf
    for number in range(groups if len(rows) else 0):  # one of each group, for the first row
        total = 0.0
        for j in range(d):
            total += (rows[0, j] - references[number, j, 0]) ** 2
        if total < least:
            nearest, least = number, total
    for i in range(len(rows)):
        first, second, third = -1.0, -1.0, -1.0
        begin = nearest
        for number in range(groups):
            chosen = begin if number == 0 else (number - 1 if number <= begin else number)
            low = chosen * group
            count = min(group, m - low)
            if (
                abs(places[i] - reference_places[low]) < zone
                and abs(places[i] - reference_places[low + count - 1]) < zone
            ):
                continue
            for k in range(count):
                totals[k] = 0.0
            near, j = 1, 0
            while j < d and near:
                if j + 4 <= d:
                    v0, v1, v2, v3 = rows[i, j], rows[i, j + 1], rows[i, j + 2], rows[i, j + 3]
                    for k in range(count):
                        total = totals[k] + (v0 - references[chosen, j, k]) ** 2
                        total += (v1 - references[chosen, j + 1, k]) ** 2
                        total += (v2 - references[chosen, j + 2, k]) ** 2
                        totals[k] = total + (v3 - references[chosen, j + 3, k]) ** 2
                    j += 4
                else:
                    for k in range(count):
                        totals[k] += (rows[i, j] - references[chosen, j, k]) ** 2
                    j += 1
                if third >= 0.0:
                    near = 0
                    for k in range(count):
                        near += totals[k] < third
            if not near:
                continue
            for k in range(count):
                total = totals[k]
                if (third >= 0.0 and total >= third) or abs(places[i] - reference_places[low + k]) < zone:
                    continue
                if first < 0.0 or total < first:
                    first, second, third = total, first, second
                    nearest = chosen
                elif second < 0.0 or total < second:
                    second, third = total, second
                elif third < 0.0 or total < third:
                    third = total
        out[i] = third if third >= 0.0 else (second if second >= 0.0 else first)


@kernel
def follow_residuals(
    residuals: Array,
    Z: Array,
    starts: Array,
    runs: Array,
    shares: Array,
    activity: tuple[Array, Array, Array, Array, Array],
    scored: Array,
    calibration: tuple[Array, Array, Array, Array, Array],
    largest: float,
    state: tuple[Array, Array, Array, Array],
    since: int,
    rows: int,
    sizes: Array,
    evidence: Array,
) -> tuple[int, int]:
    """Sizes (n, 2), as `Calibration.score` gives them, and evidence (n, q) of rows by what came before.

    `shares` (2 + h, n) are the weights of new rows over 4 and 16 rows and over the horizons; `activity`, `calibration`
    and `scored` (q,), as numbers of columns, are parts of a `TimeLayer`. `state` is the last place (d,), the means of
    movement (2, 1), of the channels and the faded sizes (h + 1, q), and the slow levels (2, q), which followed so many
    `rows`: it goes in and out, as does `evidence`, which begins as 0. Returns the rows since the history began, and
    those followed.
    """
    center, directions, typical, coefficients, floors = activity
    by, powers, edges, usual_tops, leads = calibration
    last, means, horizons, levels = state
    n, q = len(Z), len(scored)
    places, features = np.empty((n, directions.shape[1])), np.empty((n, 6))
    multiply_rows(Z - center, directions, places)
    since = activity_rows(places, starts, shares, last, means, since, features)
    features /= typical
    variances, E = np.empty((n, coefficients.shape[1])), np.empty((n, q))
    multiply_rows(features, coefficients, variances)
    for i in range(n):
        for k in range(q):
            j = scored[k]
            E[i, k] = residuals[i, j] / sqrt(max(variances[i, j], floors[j]))
    rows = take_out_slow_changes(E, runs, levels, rows, E)
    channel, recent, tops = np.empty((n, q)), np.empty((n, q)), np.empty((n, 5))
    sizes[:] = 0.0
    for h in range(len(by)):
        if h < len(by) - 1:
            moving_means(E, starts, shares[2 + h], horizons[h], channel)
            bound_by_present(channel, E)
        else:
            moving_sizes(E, starts, shares[2 + h], horizons[h], channel)
            faded_sizes(E, starts, horizons[h + 1], recent)
            bound_by_present(channel, recent)
        compare_channel(channel, by[h], powers[h], edges[h], leads, largest, tops, evidence)
        for i in range(n):
            five = 0.0
            for k in range(5):
                five += tops[i, k]
            one, five = tops[i, 0] / usual_tops[h, 0], five / min(5, q) / usual_tops[h, 1]
            sizes[i, 0] += one * one + five * five
            sizes[i, 1] = max(sizes[i, 1], one)
    for i in range(n):
        sizes[i, 0] = sqrt(sizes[i, 0] / usual_tops.size)
    return since, rows


@kernel
def follow_states(
    Z: Array,
    starts: Array,
    shares: Array,
    states: tuple[Array, Array, Array, Array],
    slow: float,
    usual: float,
    state: tuple[Array, Array],
    out: Array,
) -> None:
    """Distances of new rows to the third nearest reference, their moving means over their slow level (n,).

    `states` are center (p,), directions (p, d), references (in groups) and their places (m,) of a `Novelty`; `state`,
    the moving mean (1,) and the slow level (1,), goes in and out.
    """
    center, directions, references, places = states
    mean, level = state
    n = len(Z)
    rows, none, distances = np.empty((n, directions.shape[1])), np.zeros(n, dtype=np.int64), np.empty((n, 1))
    multiply_rows(Z - center, directions, rows)
    third_nearest(rows, none, references, places, 0, distances[:, 0])
    for i in range(n):
        distances[i, 0] = sqrt(max(distances[i, 0], 0.0))
    means, levels = np.empty((n, 1)), np.empty(n)
    moving_means(distances, starts, shares, mean, means)
    slow_levels(means[:, 0], slow, usual, level, levels)
    for i in range(n):
        out[i] = means[i, 0] / levels[i]
