"""Four views of a row, on one scale, as slow loops straight from their definitions. Imports nothing of ours."""

from __future__ import annotations

import math

from naive.incomplete import first_copies, kruskal, nearest, shared_distance

NAN = math.nan


def readings(column):
    return [float(value) for value in column if not math.isnan(value)]


def min_max(X, rows):
    """(x − smallest)/(largest − smallest) of each column of X, for other rows; a constant counts in units of itself."""
    scaled = [[] for _ in rows]
    for d in range(len(X[0])):
        known = readings(row[d] for row in X)
        low, high = min(known), max(known)
        unit = 1.0 if math.isfinite(high - low) else 0.5
        span = high * unit - low * unit or abs(low) or 1.0
        for out, row in zip(scaled, rows, strict=True):
            out.append(min(max((float(row[d]) * unit - low * unit) / span, -1e300), 1e300))
    return scaled


def learn_encoding(A):
    """Of each column: the largest absolute value, and in units of it the median and the standard deviation.

    Of a constant, in place of the latter, what counts as a move: a thousandth of its level, or of 1.
    """
    columns = []
    for d in range(len(A[0])):
        known = readings(row[d] for row in A)
        unit = max(abs(value) for value in known) or 1.0
        scaled = sorted(value / unit for value in known)
        n = len(scaled)
        median = (scaled[(n - 1) // 2] + scaled[n // 2]) / 2
        mean = math.fsum(scaled) / n
        deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in scaled) / n)
        varies = scaled[0] < scaled[-1] and deviation > 0
        columns.append((unit, median, deviation if varies else 1e-3, not varies))
    return columns


def encode(columns, row):
    """sign(z)·log(1 + |z|) with z = (x − median)/standard deviation."""
    out = []
    for value, (unit, median, deviation, constant) in zip(row, columns, strict=True):
        z = (float(value) / unit - median) / deviation
        if constant and abs(z) < 1:
            z = 0.0  # rounding
        out.append(z if math.isnan(z) else math.copysign(math.log1p(min(abs(z), 1e300)), z))
    return out


def same(a, b):
    return all(x == y or (math.isnan(x) and math.isnan(y)) for x, y in zip(a, b, strict=True))


class Joining:
    """How rows join the spanning tree of the others."""

    def __init__(self, rows, tree=None, times=None):
        self.rows = rows
        pairs = [(*edge, length) for edge, length in zip(*kruskal(rows), strict=True)] if tree is None else tree
        edges = [[] for _ in rows]
        for i, j, length in pairs:
            edges[i].append((length, j))
            edges[j].append((length, i))
        positive = sorted(length for _, _, length in pairs if length > 0)
        n = len(positive)
        median = (positive[(n - 1) // 2] + positive[n // 2]) / 2 if n else 1.0
        self.reach = [0.1 * min((length for length, _ in at if length > 0), default=median) for at in edges]
        self.around = [math.fsum(length for length, _ in at) / max(len(at), 1) for at in edges]
        self.own, self.joins = [], []
        for i, at in enumerate(edges):
            length, j = min(at, default=(0.0, i))
            others = [other for other, k in edges[j] if k != i]
            if not others:  # without row i, row j would join a row that is as far as i or farther
                bounds = [shared_distance(rows[j], rows[k]) for _, k in at if k != j]
                others = [length / 2 + max(length, min((d for d in bounds if d is not None), default=length)) / 2]
            self.own.append(length + math.fsum(others) / len(others))
            self.joins.append(j)
        if times is not None and sum(times) >= 3 * len(rows):  # mostly copies
            self.own = [value / count for value, count in zip(self.own, times, strict=True)]

    def place(self, query, likely):
        """The nearest row, its distance, and how far apart from it the query counts, from 0 to 1."""
        equal = [i for i, row in enumerate(self.rows) if same(row, query)]
        if equal:
            return (likely if likely in equal else equal[0]), 0.0, 0.0
        found = nearest(self.rows, query, 1)
        if not found:
            return -1, math.inf, 1.0
        distance, near = found[0]
        return near, distance, min(1.0, distance / self.reach[near])

    def value(self, place):
        near, distance, apart = place
        if near < 0:
            return NAN
        return (1 - apart) * self.own[near] + apart * (distance + self.around[near])

    def gaps(self, query, place):
        """The squares that the edge is made of, over the largest of them."""
        near, _, apart = place
        if near < 0:
            return [0.0] * len(query)
        other = self.rows[self.joins[near] if apart == 0 else near]
        gaps = [0.0 if math.isnan(x - y) else abs(x - y) for x, y in zip(query, other, strict=True)]
        return [(gap / (max(gaps) or 1.0)) ** 2 for gap in gaps]


def manhattan(a, b):
    """Σ|a − b| over the columns that both rows have, scaled up to all; infinite if there are none."""
    gaps = [abs(x - y) for x, y in zip(a, b, strict=True) if not math.isnan(x - y)]
    return sum(gaps) * (len(a) / len(gaps)) if gaps else math.inf


def with_copies(place, times):
    """A place among rows of which one of `times` equal ones is left out: the others stay."""
    near, distance, apart = place
    return near, distance, 1 - (1 - apart) / (times[near] if near >= 0 else 1)


def mean_to_nearest(query, rows, members, place):
    """The mean over draws of the distance to the nearest member, the nearest fitted row left out where it is the query.

    In between, as much of both as the query is apart from it.
    """
    near, _, apart = place
    without, together = [], []
    for draw in members:
        without.append(min((manhattan(query, rows[k]) for k in draw if k != near), default=math.inf))
        together.append(min(manhattan(query, rows[k]) for k in draw))
    means = []
    for values in (without, together):
        finite = [value for value in values if value < math.inf]
        means.append(math.fsum(finite) / len(finite) if finite else NAN)
    if apart == 0 or math.isnan(means[1]):
        return means[0]
    return means[1] if apart == 1 or math.isnan(means[0]) else (1 - apart) * means[0] + apart * means[1]


def gaps_to_nearest(query, rows, members, place):
    """What each column adds to that."""
    near, _, apart = place
    means = []
    for left_out in (near, None):
        found = [
            min(((manhattan(query, rows[k]), k) for k in draw if k != left_out), default=(math.inf, -1))
            for draw in members
        ]
        gaps = [_scaled_gaps(query, rows[k]) for distance, k in found if distance < math.inf]
        means.append([math.fsum(column) / len(gaps) for column in zip(*gaps, strict=True)] if gaps else None)
    if apart == 0 or means[1] is None:
        return means[0] or [0.0] * len(query)
    if apart == 1 or means[0] is None:
        return means[1]
    return [(1 - apart) * one + apart * other for one, other in zip(*means, strict=True)]


def _scaled_gaps(query, row):
    gaps = [abs(x - y) for x, y in zip(query, row, strict=True)]
    shared = sum(not math.isnan(gap) for gap in gaps)
    return [0.0 if math.isnan(gap) else gap * len(gaps) / shared for gap in gaps]


class Margins:
    """Histograms of about log₂ n bins, and the mean surprise of what they were made of."""

    def __init__(self, rows):
        bins = max(5, round(math.log2(len(rows)) + 1))
        self.columns = []
        for d in range(len(rows[0])):
            known = readings(row[d] for row in rows)
            low, high = min(known), max(known)
            low, width = (low, (high - low) / bins) if high > low else (low - 0.5, 1.0)
            counts = [0] * (bins + 2)
            for value in known:
                counts[1 + min(int((value - low) / width), bins - 1)] += 1
            self.columns.append((low, width, counts, len(known), 0.0))
            usual = math.fsum(self.surprise(d, value, value, 1.0) for value in known) / len(known) + 1e-12
            self.columns[d] = (low, width, counts, len(known), usual)

    def surprise(self, d, value, own, share):
        """−log of the share of readings like this one, interpolated between the middles of the bins.

        As much as `share` of the reading `own`, one of those in the histogram, is taken out of it before.
        """
        low, width, counts, total, _ = self.columns[d]
        bins = len(counts) - 2
        counts = [float(count) for count in counts]
        if not math.isnan(own):
            counts[1 + max(0, min(int((own - low) / width), bins - 1))] -= share
            total -= share
        place = min(max((value - low) / width + 0.5, 0.0), bins + 1.0)
        left = min(int(place), bins)
        count = (left + 1 - place) * counts[left] + (place - left) * counts[left + 1]
        return -math.log((max(count, 0.0) + 0.5) / (total + 0.5 * bins))

    def excesses(self, row, own, share):
        """How much more surprising than usual each reading is; 0 for those that are missing."""
        return [
            0.0 if math.isnan(x) else max(0.0, self.surprise(d, x, y, share) - self.columns[d][4])
            for d, (x, y) in enumerate(zip(row, own, strict=True))
        ]

    def value(self, row, own, share):
        return math.fsum(self.excesses(row, own, share)) * len(row) / len(readings(row))


class LogStandard:
    """(log value − mean)/standard deviation of the values fitted to, with a floor of half the smallest above 0."""

    def __init__(self, values):
        known = [value for value in values if not math.isnan(value)]
        positive = [value for value in known if value > 0]
        self.floor = max(min(positive) / 2, 2.0**-1022) if positive else 1e-6
        logs = [math.log(max(value, self.floor)) for value in known] or [0.0]
        self.mean, self.spread = logs[0], 1.0
        if max(logs) - min(logs) > 1e-6:
            self.mean = math.fsum(logs) / len(logs)
            self.spread = math.sqrt(math.fsum((value - self.mean) ** 2 for value in logs) / len(logs))

    def of(self, value):
        return 0.0 if math.isnan(value) else (math.log(max(value, self.floor)) - self.mean) / self.spread


def two_largest(parts):
    """The two largest of some numbers in their places, of equal ones the first; 0 elsewhere."""
    kept = sorted(range(len(parts)), key=lambda v: (-parts[v], v))[:2]
    return [part if v in kept else 0.0 for v, part in enumerate(parts)]


def shares(gaps, seen):
    total = math.fsum(gaps)
    if total == 0:
        gaps, total = seen, sum(seen)
    return [gap / total for gap in gaps]


class Twin:
    """The whole detector.

    A : rows, scaled if they are to be.
    coarse, fine : the draws, lists of numbers of distinct rows, in the order of their first appearance.
    apply : the encoding of a list of rows; the one of this file if None.
    trees : the spanning trees of the distinct rows and of the encoded ones as (i, j, length), where ties leave several.
    """

    def __init__(self, A, coarse, fine, apply=None, trees=(None, None)):
        A = [[float(value) for value in row] for row in A]
        columns = learn_encoding(A)
        self.apply = apply or (lambda rows: [encode(columns, row) for row in rows])
        original = first_copies(A)
        kept = sorted(set(original))
        rows = [A[i] for i in kept]
        self.encoded = self.apply(rows)
        self.draws = (coarse, fine)
        self.times = [original.count(i) for i in kept]
        self.plain = Joining(rows, trees[0], self.times)
        self.logged = Joining(self.encoded, trees[1], self.times)
        self.margins = Margins(self.apply(A))
        raw = [self._raw(row, (i, 0.0, 0.0), (i, 0.0, 0.0)) for i, row in enumerate(self.encoded)]
        raw = [raw[kept.index(i)] for i in original]
        self.standards = [LogStandard(values) for values in zip(*raw, strict=True)]
        self.parts_ = [self._on_one_scale(values) for values in raw]
        self.scores_ = [sum(two_largest(parts)) for parts in self.parts_]

    def _raw(self, encoded, at, log_at):
        among = with_copies(log_at, self.times)
        return (
            *(mean_to_nearest(encoded, self.encoded, members, among) for members in self.draws),
            self.plain.value(at),
            self.logged.value(log_at),
            self.margins.value(encoded, self.encoded[log_at[0]], 1 - log_at[2]),
        )

    def _on_one_scale(self, raw):
        coarse, fine, plain, logged, marginal = (s.of(value) for s, value in zip(self.standards, raw, strict=True))
        return [coarse, fine, (plain + logged) / 2, marginal]

    def _places(self, row):
        encoded = self.apply([row])[0]
        at = self.plain.place(row, -1)
        return encoded, at, self.logged.place(encoded, at[0])

    def parts(self, row):
        return self._on_one_scale(self._raw(*self._places(row)))

    def score(self, row):
        return sum(two_largest(self.parts(row)))

    def shares(self, row):
        """Each column's share of what each view says."""
        encoded, at, log_at = self._places(row)
        seen, among = [float(not math.isnan(value)) for value in row], with_copies(log_at, self.times)
        local = zip(
            shares(self.plain.gaps(row, at), seen), shares(self.logged.gaps(encoded, log_at), seen), strict=True
        )
        return [
            *(shares(gaps_to_nearest(encoded, self.encoded, members, among), seen) for members in self.draws),
            [(one + other) / 2 for one, other in local],
            shares(self.margins.excesses(encoded, self.encoded[log_at[0]], 1 - log_at[2]), seen),
        ]


def tree_length(rows):
    return math.fsum(kruskal(rows)[1])


def length_of(rows, i, j):
    return shared_distance(rows[i], rows[j])
