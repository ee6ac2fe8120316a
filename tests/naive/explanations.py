"""Explanations by the book: shares, paths along trees, rules and splits counted row by row."""

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


def nearest_normal(n_nodes, edges, lengths, rows, is_normal, n):
    """(length, node, steps) of the n normal nodes nearest to any of `rows`, by walking the whole tree from each."""
    neighbors = [[] for _ in range(n_nodes)]
    for (a, b), length in zip(edges, lengths, strict=True):
        neighbors[a].append((b, length))
        neighbors[b].append((a, length))
    best = {}
    for row in rows:
        waiting, seen = [(row, 0.0, 0)], {row}
        while waiting:
            node, length, steps = waiting.pop()
            best[node] = min(best.get(node, (math.inf, 0)), (length, steps))
            for other, step in neighbors[node]:
                if other not in seen:
                    seen.add(other)
                    waiting.append((other, length + step, steps + 1))
    found = [(length, node, steps) for node, (length, steps) in best.items() if is_normal[node] and node not in rows]
    return sorted(found)[:n]


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


def paths(column, threshold, below, above, node=0, before=()):
    """The conditions on the way to each node of a tree given by arrays."""
    found = [before] if before else []
    if below[node] >= 0:
        for child, operator in ((below[node], "<="), (above[node], ">")):
            more = ((column[node], operator, threshold[node]),) if math.isfinite(threshold[node]) else ()
            found += paths(column, threshold, below, above, child, before + more)
    return found


def balanced_gini(rows, is_event, column, threshold):
    """The impurity after a split of rows without NaN, each class weighing one half."""
    weights = {True: 0.5 / sum(is_event), False: 0.5 / (len(rows) - sum(is_event))}
    impurity = 0.0
    for side in (True, False):
        part = [e for row, e in zip(rows, is_event, strict=True) if (row[column] > threshold) == side]
        total = sum(weights[bool(e)] for e in part)
        if total > 0:
            share = sum(weights[True] for e in part if e) / total
            impurity += total * 2 * share * (1 - share)
    return impurity


def best_gini(rows, is_event):
    """The smallest impurity of all splits of all columns."""
    return min(
        balanced_gini(rows, is_event, column, value)
        for column in range(len(rows[0]))
        for value in {r[column] for r in rows}
    )


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


def is_tree(n_nodes, edges):
    """Whether the edges join all nodes without a cycle."""
    leader = list(range(n_nodes))

    def find(i):
        while leader[i] != i:
            i = leader[i]
        return i

    for i, j in edges:
        a, b = find(i), find(j)
        if a == b:
            return False
        leader[a] = b
    return len(edges) == n_nodes - 1


def hangs_together(edges, members):
    """Whether some nodes of a tree are joined by edges among themselves."""
    inside = sum(a in members and b in members for a, b in edges)
    return inside == len(members) - 1
