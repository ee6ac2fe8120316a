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
_MOST, _LEAST = 3.0, 2.0  # a mean or a size over past rows is at most so many times the present residual, or this
FADED = 0.3  # what is left of a residual after a row: noise and oscillation pass through zero, and are not over then
MEANS, SIZES, BOTH_SIDES = 0, 1, 2  # kinds of channels; see `channel_rows`


@kernel
def multiply_rows(A: Array, M: Array, out: Array) -> None:
    """out = A M for (n, p) and (p, q); each number is summed in the order of M's rows, whatever block its row is in.

    Four rows of A meet four rows of M at a time, so that each number that is loaded is used four times.
    """
    n, p = A.shape
    q = M.shape[1]
    whole, last = n - n % 4, p - p % 4
    out[:] = 0.0
    for i in range(0, whole, 4):
        for k in range(0, last, 4):
            a, b, c, d = A[i, k], A[i, k + 1], A[i, k + 2], A[i, k + 3]
            e, f, g, h = A[i + 1, k], A[i + 1, k + 1], A[i + 1, k + 2], A[i + 1, k + 3]
            r, s, t, u = A[i + 2, k], A[i + 2, k + 1], A[i + 2, k + 2], A[i + 2, k + 3]
            v, w, x, y = A[i + 3, k], A[i + 3, k + 1], A[i + 3, k + 2], A[i + 3, k + 3]
            for j in range(q):
                m0, m1, m2, m3 = M[k, j], M[k + 1, j], M[k + 2, j], M[k + 3, j]
                out[i, j] = out[i, j] + a * m0 + b * m1 + c * m2 + d * m3
                out[i + 1, j] = out[i + 1, j] + e * m0 + f * m1 + g * m2 + h * m3
                out[i + 2, j] = out[i + 2, j] + r * m0 + s * m1 + t * m2 + u * m3
                out[i + 3, j] = out[i + 3, j] + v * m0 + w * m1 + x * m2 + y * m3
    for i in range(n):
        for k in range(last if i < whole else 0, p):
            value = A[i, k]
            for j in range(q):
                out[i, j] += value * M[k, j]


@kernel
def residual_rows(Z: Array, mean: Array, precision: Array, holed: Array, out: Array) -> int:
    """Residuals of rows without holes, as in `LeaveOneOut`; `holed` (n,) are the others, and their number returned."""
    n, p = Z.shape
    count, away = 0, np.empty((n, p))
    for i in range(n):
        holes = 0
        for j in range(p):
            holes += isnan(Z[i, j])
            away[i, j] = Z[i, j] - mean[j]
        holed[i] = holes > 0
        if holes > 0:
            count += 1
            away[i, :] = 0.0
    multiply_rows(away, precision, out)
    for i in range(n):
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
def channel_rows(
    kind: int,
    values: Array,
    starts: Array,
    shares: Array,
    state: Array,
    ends: Array,
    shares_back: Array,
    after: Array,
    out: Array,
) -> None:
    """One channel of the next rows of a series, (n, p).

    MEANS: |moving means|, at most three times the present |value|, or 2: what has ended is over.
    SIZES: roots of the moving means of squares, each at most 100, as noise and oscillation last so; at most three times
    the largest recent |value|, of which 0.3 is left after every row, or 2.
    BOTH_SIDES: the smaller of the moving means before and after each row if both have one sign, else 0.

    `state` (2, p), the moving means and the recent values, goes in and out, and begins anew where `starts[i]`; SIZES
    alone need the second row. `after` (p,), the means after the last row, goes in and out against time, and begins anew
    where `ends[i]`; `shares` and `shares_back` (n,) are the weights of the rows.
    """
    n, p = values.shape
    for i in range(n):
        if starts[i]:
            state[:] = 0.0
        share = shares[i]
        if kind == SIZES:
            for j in range(p):
                square = min(values[i, j] * values[i, j], _LARGEST_SQUARE)
                level = state[0, j] + share * (square - state[0, j])
                recent = max(abs(values[i, j]), FADED * state[1, j])
                state[0, j], state[1, j] = level, recent
                out[i, j] = min(sqrt(max(level, 0.0)), max(_MOST * recent, _LEAST))
        elif kind == MEANS:
            for j in range(p):
                level = state[0, j] + share * (values[i, j] - state[0, j])
                state[0, j] = level
                out[i, j] = min(abs(level), max(_MOST * abs(values[i, j]), _LEAST))
        else:
            for j in range(p):
                level = state[0, j] + share * (values[i, j] - state[0, j])
                state[0, j], out[i, j] = level, level
    for k in range(n if kind == BOTH_SIDES else 0):
        i = n - 1 - k
        if ends[i]:
            after[:] = 0.0
        share = shares_back[i]
        for j in range(p):
            before, level = out[i, j], after[j] + share * (values[i, j] - after[j])
            after[j] = level
            smaller = min(abs(before), abs(level))
            out[i, j] = smaller if (before > 0.0) == (level > 0.0) else 0.0


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
    channel: Array, by: Array, powers: Array, edges: Array, leads: Array, largest: float, found: Array, evidence: Array
) -> None:
    """Ratios of a channel (n, p) to `by` (p,), to the power `powers` (p,) above 1, cut at `largest`.

    A ratio is 0 where `by` is 0, as the sensor never moved; that of a sensor that does not lead (`leads`, (p,)) is at
    most the largest of those that do. `found` (n, 2) takes a row's largest ratio, and the mean of its largest five.
    `evidence` (n, p), if it has rows, is raised to the ratios to `edges` (p,).
    """
    n, p = channel.shape
    ratios, others = np.empty(p), 0
    for j in range(p):
        others += not leads[j]
    for i in range(n):
        above, most = 0, largest
        if len(evidence) > 0:
            for j in range(p):
                evidence[i, j] = max(evidence[i, j], channel[i, j] / edges[j] if edges[j] > 0.0 else 0.0)
        for j in range(p):
            ratios[j] = channel[i, j] / by[j] if by[j] > 0.0 else 0.0
            above += ratios[j] > 1.0
        if above > 0:
            for j in range(p):
                if ratios[j] > 1.0:
                    ratios[j] = min(ratios[j] ** powers[j], largest)
        if others > 0:
            most = 0.0
            for j in range(p):
                most = max(most, ratios[j] if leads[j] else 0.0)
        a = b = c = d = e = 0.0
        for j in range(p):
            ratio = ratios[j] if leads[j] else min(ratios[j], most)
            a, ratio = max(a, ratio), min(a, ratio)
            b, ratio = max(b, ratio), min(b, ratio)
            c, ratio = max(c, ratio), min(c, ratio)
            d, ratio = max(d, ratio), min(d, ratio)
            e = max(e, ratio)
        found[i, 0], found[i, 1] = a, (a + b + c + d + e) / min(5, p)


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
            residual, level, spread = residuals[i, j], levels[0, j], levels[1, j]
            counts, away = 0.0 if residual == 0.0 else share, residual - level
            out[i, j] = 0.0 if residual == 0.0 else away / max(1.0, spread)
            levels[0, j] = level + counts * min(max(away, -_LARGEST_STEP), _LARGEST_STEP)
            levels[1, j] = spread + counts * (min(abs(away), _LARGEST_SIZE) / _USUAL_SIZE - spread)
        rows += 1
    return rows


@kernel
def standard_rows(
    residuals: Array, features: Array, coefficients: Array, floors: Array, scored: Array, out: Array
) -> None:
    """Residuals (n, p) of some columns, `scored` (q,), in units of the spread that is usual for `features` (n, 6)."""
    variances = np.empty((len(features), coefficients.shape[1]))
    multiply_rows(features, coefficients, variances)
    for i in range(len(out)):
        for k in range(len(scored)):
            j = scored[k]
            out[i, k] = residuals[i, j] / sqrt(max(variances[i, j], floors[j]))


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
    rows: Array, places: Array, references: Array, reference_places: Array, zone: int | np.int64, out: Array
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
    E, channel, largest_of_rows = np.empty((n, q)), np.empty((n, q)), np.empty((n, 2))
    standard_rows(residuals, features, coefficients, floors, scored, E)
    rows = take_out_slow_changes(E, runs, levels, rows, E)
    sizes[:] = 0.0
    for h in range(len(by)):
        kind = MEANS if h < len(by) - 1 else SIZES
        state_of_kind = horizons[h : h + 1 + kind]  # sizes have two rows, the last of all
        channel_rows(kind, E, starts, shares[2 + h], state_of_kind, starts, shares[2 + h], horizons[h], channel)
        compare_channel(channel, by[h], powers[h], edges[h], leads, largest, largest_of_rows, evidence)
        for i in range(n):
            one, five = largest_of_rows[i, 0] / usual_tops[h, 0], largest_of_rows[i, 1] / usual_tops[h, 1]
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
    rows, none, distances = np.empty((n, directions.shape[1])), np.zeros(n, dtype=np.int64), np.empty(n)
    multiply_rows(Z - center, directions, rows)
    third_nearest(rows, none, references, places, np.int64(0), distances)
    for i in range(n):
        distances[i] = sqrt(max(distances[i], 0.0))
    means, levels = np.empty(n), np.empty(n)
    moving_means(distances.reshape((n, 1)), starts, shares, mean, means.reshape((n, 1)))
    slow_levels(means, slow, usual, level, levels)
    for i in range(n):
        out[i] = means[i] / levels[i]
