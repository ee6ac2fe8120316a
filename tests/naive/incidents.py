"""Incidents, one row and one sensor after the other, straight from the definitions."""

from __future__ import annotations

import math
from itertools import pairwise

EDGE = 1.0


def excess(evidence, rows):
    """What lies above the edge of the usual, per sensor, as a mean over some rows."""
    return [sum(max(evidence[i][j] - EDGE, 0.0) for i in rows) / len(rows) for j in range(len(evidence[0]))]


def mean_evidence(evidence, rows):
    return [sum(evidence[i][j] for i in rows) / len(rows) for j in range(len(evidence[0]))]


def cosine(a, b):
    lengths = math.hypot(*a) * math.hypot(*b)
    return sum(x * y for x, y in zip(a, b, strict=True)) / lengths if lengths else None


def cause_changes(a, b):
    """Other sensors, and the strongest of either has lost more than half of its excess in the other."""
    similarity = cosine(a, b)
    if similarity is None or similarity >= 0.2:
        return False
    j, k = a.index(max(a)), b.index(max(b))
    return b[j] < 0.5 * a[j] and a[k] < 0.5 * b[k]


def split(rows, evidence, starts):
    """Lists of flagged rows: an event cut where history begins anew, and where 24 rows before and after differ."""
    pieces = [[rows[0]]]
    for before, row in pairwise(rows):
        if any(starts[before + 1 : row + 1]):
            pieces.append([])
        pieces[-1].append(row)
    found = []
    for piece in pieces:
        candidates = {}
        for cut in range(3, len(piece) - 2):
            a = excess(evidence, piece[max(cut - 24, 0) : cut])
            b = excess(evidence, piece[cut : cut + 24])
            if cause_changes(a, b):
                candidates[cut] = cosine(a, b)
        cuts = [0]
        while candidates:
            near = [min(candidates)]
            while near[-1] + 1 in candidates:
                near.append(near[-1] + 1)
            smallest = min(candidates[cut] for cut in near)
            best = next(cut for cut in near if candidates[cut] <= smallest + 1e-9)
            if best - cuts[-1] >= 3:
                cuts.append(best)
            candidates = {cut: value for cut, value in candidates.items() if cut not in near}
        found += [piece[a:b] for a, b in zip(cuts, [*cuts[1:], len(piece)], strict=True)]
    return found


def walk(evidence, starts, sensor, row, limit, step):
    """The farthest row that a sensor reaches from a row while it is out, short of a limit, in one history."""
    if evidence[row][sensor] < EDGE:
        return row
    while row + step != limit and 0 <= row + step < len(evidence) and evidence[row + step][sensor] >= EDGE:
        if starts[row if step < 0 else row + 1]:
            break
        row += step
    return row


def span(rows, evidence, starts, before, after):
    """From the first leading sensor that leaves its range to the last that comes back."""
    means = mean_evidence(evidence, rows)
    leading = [j for j, mean in enumerate(means) if mean >= EDGE and mean >= 0.7 * max(means)]
    if not leading:
        leading = [j for j, above in enumerate(excess(evidence, rows)) if above > 0]
    back = [walk(evidence, starts, j, rows[0], before, -1) for j in leading]
    on = [walk(evidence, starts, j, rows[-1], after, 1) for j in leading]
    return min([rows[0], *back]), max([rows[-1], *on])


def incidents(events, evidence, starts):
    """(flagged rows, start, end) of each incident, from the lists of flagged rows of the events."""
    parts = [piece for rows in events for piece in split(rows, evidence, starts)]
    done = []
    for number, part in enumerate(parts):
        rows = part
        after = parts[number + 1][0] if number + 1 < len(parts) else len(evidence)
        while True:
            before = done[-1][0][-1] if done else -1
            start, end = span(rows, evidence, starts, before, after)
            if not done or not one_cause(done[-1], (rows, start, end), evidence, starts):
                break
            rows = done.pop()[0] + rows
        done.append((rows, start, end))
    return done


def one_cause(one, other, evidence, starts):
    (rows_a, start_a, end_a), (rows_b, start_b, end_b) = one, other
    if any(starts[rows_a[-1] + 1 : rows_b[0] + 1]):
        return False
    similarity = cosine(excess(evidence, rows_a), excess(evidence, rows_b))
    apart = start_b - end_a - 1
    if apart <= 0:
        return similarity is None or similarity >= 0.2
    longer = max(end_a - start_a, end_b - start_b) + 1
    return apart <= max(6, longer) and similarity is not None and similarity >= 0.7


def quantile(values, share):
    """By linear interpolation between the ordered values."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def median_around(apart, starts, row):
    """The median of five rows around one, without missing ones and in one history; None if all are missing."""
    near = []
    for other in range(max(row - 2, 0), min(row + 2, len(apart) - 1) + 1):
        low, high = min(row, other), max(row, other)
        if not any(starts[low + 1 : high + 1]) and not math.isnan(apart[other]):
            near.append(apart[other])
    return quantile(near, 0.5) if near else None


def off(sensor, readings, expected, starts, elsewhere):
    """How many times each row exceeds the limit of a sensor; above 1 it is off."""
    n = len(readings)
    apart = [readings[i][sensor] - expected[i][sensor] for i in range(n)]
    known = [apart[i] for i in elsewhere if not math.isnan(apart[i])]
    if len(known) < 30:
        return [0.0] * n
    center = quantile(known, 0.5)
    smooth = [median_around(apart, starts, i) for i in range(n)]
    least = 1e-9 * max(abs(readings[i][sensor]) for i in elsewhere if not math.isnan(readings[i][sensor])) + 1e-300
    single = max(least, *(abs(value - center) for value in known))
    limit = max(least, quantile([abs(smooth[i] - center) for i in elsewhere if smooth[i] is not None], 0.995))
    sizes = []
    for i in range(n):
        if math.isnan(apart[i]):
            sizes.append(0.0)
            continue
        own, around = apart[i] - center, smooth[i] - center
        both = min(abs(own), abs(around)) if own * around > 0 else 0.0
        sizes.append(max(abs(own) / single, both / limit))
    return sizes


def joined(rows, pause=6):
    runs = []
    for row in rows:
        if runs and row - runs[-1][1] <= pause:
            runs[-1] = (runs[-1][0], row)
        else:
            runs.append((row, row))
    return runs


def runs_of(incident, before, sizes, starts):
    """The runs of rows in which a sensor is off; `sizes` are those of the sensors that decide, row by row."""
    rows, start, end = incident
    first = max(start - max(4, end - start), before + 1, 0)
    window = [i for i in range(first, end + 1) if not any(starts[min(i, rows[0]) + 1 : max(i, rows[0]) + 1])]
    every = {i: max((each[i] for each in sizes), default=0.0) for i in window}
    size = {i: 0.0 if every[i] < 0.1 * max(every.get(i + k, 0.0) for k in (-2, -1, 1, 2)) else every[i] for i in window}
    found = joined([i for i in window if size[i] > 1], 1)
    if not found:
        return joined(rows)
    strength = [sum(size[i] - 1 for i in range(a, b + 1)) for a, b in found]
    kept = [
        (a, b)
        for (a, b), power in zip(found, strength, strict=True)
        if power >= 0.05 * max(strength) or max(size[i] for i in range(a, b + 1)) >= 2
    ]
    done = kept[:1]
    for a, b in kept[1:]:
        if a - done[-1][1] - 1 <= max(6, 0.25 * (done[-1][1] - done[-1][0] + 1)):
            done[-1] = (done[-1][0], b)
        else:
            done.append((a, b))
    return [run for run in done if run[1] >= start] or joined(rows)


def deciding(rows, evidence):
    """The at most eight sensors with most evidence that are out on average and not merely drawn along."""
    means = mean_evidence(evidence, rows)
    left = [j for j in range(len(means)) if any(evidence[i][j] >= EDGE for i in rows)]
    first = sorted(left, key=lambda j: -means[j])[:8]
    return [j for j in first if means[j] >= max(EDGE, 0.4 * max(means))] or left


def onset(sensor, rows, start, runs, evidence, starts, sizes):
    """The row in which a sensor left its range, None if it is out in no flagged row."""
    out = [row for row in rows if evidence[row][sensor] >= EDGE]
    if not out:
        return None
    for a, b in runs:
        for row in range(a, b + 1):
            if sizes[row] > 1:
                return row
    walked = walk(evidence, starts, sensor, out[0], start - 1, -1)
    return min(max(walked, runs[0][0]), runs[-1][1])


def ranking(rows, onsets, runs, evidence):
    """Sensors that left their range by mean evidence × (1 − onset / 4), onset in shares of the incident."""
    start, end = runs[0][0], runs[-1][1]
    means = mean_evidence(evidence, rows)
    keys = {
        j: means[j] * (1 - 0.25 * (row - start) / (end - start + 1)) for j, row in enumerate(onsets) if row is not None
    }
    return sorted(keys, key=lambda j: -keys[j])


def new_state(rows, readings, expected, elsewhere):
    """Whether at least three sensors are at new levels, and little of that contradicts the others."""
    far, wrong = [], []
    for j in range(len(readings[0])):
        values = [readings[i][j] for i in elsewhere if not math.isnan(readings[i][j])]
        apart = [abs(readings[i][j] - expected[i][j]) for i in elsewhere]
        apart = [value for value in apart if not math.isnan(value)]
        if len(values) < 30:
            continue
        low, high = quantile(values, 0.005), quantile(values, 0.995)
        limit = quantile(apart, 0.99) if len(apart) >= 30 else 0.0
        width = high - low
        if width == 0:
            width = max(abs(row[j] - low) for row in readings if not math.isnan(row[j]))
        if width == 0:
            continue
        beyond = [max(low - readings[i][j], readings[i][j] - high, 0.0) / width for i in rows]
        excess_ = [max(abs(readings[i][j] - expected[i][j]) - limit, 0.0) / width for i in rows]
        far.append(quantile([0.0 if math.isnan(value) else value for value in beyond], 0.5))
        wrong.append(quantile([0.0 if math.isnan(value) else value for value in excess_], 0.5))
    return sum(value > 0.02 for value in far) >= 3 and sum(wrong) < 0.2 * (sum(wrong) + sum(far))
