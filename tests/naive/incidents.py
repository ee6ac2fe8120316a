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


def onset(sensor, rows, start, evidence, starts):
    """The row in which a sensor left its range, None if it is out in no flagged row."""
    out = [row for row in rows if evidence[row][sensor] >= EDGE]
    return walk(evidence, starts, sensor, out[0], start - 1, -1) if out else None


def ranking(rows, start, end, evidence, starts):
    """Sensors that left their range by mean evidence × (1 − onset / 4), onset in shares of the incident."""
    keys = {}
    for j, mean in enumerate(mean_evidence(evidence, rows)):
        row = onset(j, rows, start, evidence, starts)
        if row is not None:
            keys[j] = mean * (1 - 0.25 * (row - start) / (end - start + 1))
    return sorted(keys, key=lambda j: -keys[j])
