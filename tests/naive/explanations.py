"""Explanations by the book: shares, rules and groups counted row by row."""

from __future__ import annotations

import math
from fractions import Fraction


def shares(actual, expected, scale):
    """Each column's share of the squared scaled residuals; None entries have no say."""
    sums = [0.0] * len(scale)
    for a_row, e_row in zip(actual, expected, strict=True):
        for j, (a, e) in enumerate(zip(a_row, e_row, strict=True)):
            if not (math.isnan(a) or math.isnan(e)):
                sums[j] += ((a - e) / scale[j]) ** 2
    total = sum(sums)
    return [s / total for s in sums] if total > 0 else sums


def meets(row, conditions):
    """Whether a row meets all (column, operator, value); NaN meets none."""
    for column, operator, value in conditions:
        reading = row[column]
        if math.isnan(reading) or (reading > value) != (operator == ">"):
            return False
    return True


def f1(rows, is_event, conditions):
    """The F1 of a rule, by its definition."""
    met = [meets(row, conditions) for row in rows]
    hits = sum(m and e for m, e in zip(met, is_event, strict=True))
    if hits == 0:
        return 0.0
    precision, recall = hits / sum(met), hits / sum(is_event)
    return 2 * precision * recall / (precision + recall)


def best_bound(rows, is_event):
    """The highest F1 of a single bound on one column that at least half of the rows that meet it earn; 0 if none."""
    n_events, best = sum(is_event), 0.0
    for column in range(len(rows[0])):
        readings = [
            (row[column], event) for row, event in zip(rows, is_event, strict=True) if not math.isnan(row[column])
        ]
        for value in {reading for reading, _ in readings}:
            for operator in (">", "<="):
                met = [event for reading, event in readings if (reading > value) == (operator == ">")]
                if 2 * sum(met) >= len(met) and 0 < len(met) < len(readings):
                    best = max(best, 2 * sum(met) / (len(met) + n_events))
    return best


def fewest_digits(low, high):
    """The fewest significant digits of a number in [low, high), both as exact decimal texts."""
    low, high = Fraction(low), Fraction(high)
    if low <= 0 < high:
        return 1
    power = 20
    while True:
        unit = Fraction(10) ** power
        multiple = math.ceil(low / unit)
        if multiple * unit < high:
            return len(str(abs(multiple)))
        power -= 1


def group_of_row(W, H):
    """The group with the largest w_k·‖H_k‖, −1 if all are 0."""
    groups = []
    for w in W:
        sizes = [w[k] * math.sqrt(sum(h * h for h in H[k])) for k in range(len(H))]
        groups.append(sizes.index(max(sizes)) if max(sizes) > 0 else -1)
    return groups


def mean_reconstruction(W, H, rows):
    """The mean of W·H over some rows."""
    p = len(H[0])
    sums = [0.0] * p
    for i in rows:
        for j in range(p):
            sums[j] += sum(W[i][k] * H[k][j] for k in range(len(H)))
    return [s / len(rows) for s in sums]
