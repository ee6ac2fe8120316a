"""Views of rows, compiled; each row by itself, in an order that does not depend on the other rows."""

from __future__ import annotations

import math

import numpy as np

from penstock._jit import kernel
from penstock._types import FloatArray, IndexArray

_FARTHEST = 1e300


@kernel
def encode_rows(A: FloatArray, unit: FloatArray, center: FloatArray, spread: FloatArray, out: FloatArray) -> None:
    """sign(z)·log(1 + |z|) with z = (a/unit − center)/spread; NaN stays NaN."""
    for i in range(A.shape[0]):
        for d in range(A.shape[1]):
            z = (A[i, d] / unit[d] - center[d]) / spread[d]
            if z >= 0.0:
                out[i, d] = math.log1p(min(z, _FARTHEST))
            elif z < 0.0:
                out[i, d] = -math.log1p(min(-z, _FARTHEST))
            else:
                out[i, d] = math.nan


@kernel
def _distance(a: FloatArray, b: FloatArray, bound: float) -> float:
    """Σ|a − b| of rows without holes, or something ≥ `bound` as soon as it is known to be that large."""
    p = a.shape[0]
    s0 = s1 = s2 = s3 = 0.0
    d = 0
    while d + 8 <= p:
        s0 += abs(a[d] - b[d])
        s1 += abs(a[d + 1] - b[d + 1])
        s2 += abs(a[d + 2] - b[d + 2])
        s3 += abs(a[d + 3] - b[d + 3])
        s0 += abs(a[d + 4] - b[d + 4])
        s1 += abs(a[d + 5] - b[d + 5])
        s2 += abs(a[d + 6] - b[d + 6])
        s3 += abs(a[d + 7] - b[d + 7])
        d += 8
        if (s0 + s1) + (s2 + s3) >= bound:
            return math.inf
    while d < p:
        s0 += abs(a[d] - b[d])
        d += 1
    return (s0 + s1) + (s2 + s3)


@kernel
def _shared_distance(a: FloatArray, b: FloatArray) -> float:
    """Σ|a − b| over the entries that both have, scaled up to all of them; infinite if there are none."""
    total = 0.0
    shared = 0
    for d in range(a.shape[0]):
        gap = abs(a[d] - b[d])
        if not math.isnan(gap):
            total += gap
            shared += 1
    return total * (a.shape[0] / shared) if shared else math.inf


@kernel
def has_hole(a: FloatArray) -> bool:
    return bool(np.isnan(a).any())


@kernel
def nearest_in_draw(
    a: FloatArray, nodes: FloatArray, members: IndexArray, twin: int, holes: bool
) -> tuple[int, float, int, float]:
    """The nearest node of one draw but for the twin, its distance; and the same with the twin. −1: none is near."""
    other = own = -1
    least_other = least_own = math.inf
    for s in range(nodes.shape[0]):
        distance = _shared_distance(a, nodes[s]) if holes else _distance(a, nodes[s], least_other)
        if members[s] == twin:
            if distance < least_own:
                own, least_own = s, distance
        elif distance < least_other:
            other, least_other = s, distance
    if least_other <= least_own:
        own, least_own = other, least_other
    return other, least_other, own, least_own


@kernel
def mean_to_nodes(
    Q: FloatArray,
    nodes: FloatArray,
    members: IndexArray,
    nodes_have_holes: bool,
    twins: IndexArray,
    apart: FloatArray,
    start: int,
    stop: int,
    out: FloatArray,
) -> None:
    """Mean distance to the nearest node over the draws: without the twin where apart is 0, with it where it is 1.

    NaN where no draw has a node that a row shares a column with.
    """
    for i in range(start, stop):
        holes = nodes_have_holes or has_hole(Q[i])
        without = with_twin = 0.0
        n_without = n_with = 0
        for t in range(nodes.shape[0]):
            _, far, _, near = nearest_in_draw(Q[i], nodes[t], members[t], twins[i], holes)
            if far < math.inf:
                without += far
                n_without += 1
            if near < math.inf:
                with_twin += near
                n_with += 1
        mean_without = without / n_without if n_without else math.nan
        mean_with = with_twin / n_with if n_with else math.nan
        if apart[i] == 0.0 or n_with == 0:
            out[i] = mean_without
        elif apart[i] == 1.0 or n_without == 0:
            out[i] = mean_with
        else:
            out[i] = (1.0 - apart[i]) * mean_without + apart[i] * mean_with


@kernel
def add_gaps(a: FloatArray, b: FloatArray, total: FloatArray) -> None:
    """Add |a − b| to `total`, where both are there, scaled up as `_shared_distance` is."""
    p = a.shape[0]
    shared = 0
    for d in range(p):
        shared += not math.isnan(a[d] - b[d])
    for d in range(p):
        gap = abs(a[d] - b[d])
        if not math.isnan(gap):
            total[d] += gap * (p / shared)


@kernel
def gaps_to_nodes(
    Q: FloatArray,
    nodes: FloatArray,
    members: IndexArray,
    nodes_have_holes: bool,
    twins: IndexArray,
    apart: FloatArray,
    out: FloatArray,
) -> None:
    """What each variable adds to `mean_to_nodes`: the sum of a row is that, to rounding."""
    p = Q.shape[1]
    without, with_twin = np.empty(p), np.empty(p)
    for i in range(Q.shape[0]):
        holes = nodes_have_holes or has_hole(Q[i])
        n_without = n_with = 0
        without[:] = 0.0
        with_twin[:] = 0.0
        for t in range(nodes.shape[0]):
            other, _, own, _ = nearest_in_draw(Q[i], nodes[t], members[t], twins[i], holes)
            if other >= 0:
                add_gaps(Q[i], nodes[t, other], without)
                n_without += 1
            if own >= 0:
                add_gaps(Q[i], nodes[t, own], with_twin)
                n_with += 1
        mixed = 1.0 if n_without == 0 and apart[i] > 0.0 else apart[i]
        for d in range(p):
            out[i, d] = (1.0 - mixed) * without[d] / max(n_without, 1) + mixed * with_twin[d] / max(n_with, 1)


@kernel
def surprises_of(
    Q: FloatArray,
    low: FloatArray,
    width: FloatArray,
    counts: FloatArray,
    total: FloatArray,
    out: FloatArray,
) -> None:
    """−log of the share of readings like this one, per entry: a histogram's, interpolated between its bins.

    `counts` has an empty bin on either side of the others. NaN stays NaN.
    """
    bins = counts.shape[1] - 2
    for i in range(Q.shape[0]):
        for d in range(Q.shape[1]):
            place = (Q[i, d] - low[d]) / width[d] + 0.5
            if math.isnan(place):
                out[i, d] = math.nan
                continue
            place = min(max(place, 0.0), bins + 1.0)
            bin = min(int(place), bins)
            rest = place - bin
            count = (1.0 - rest) * counts[d, bin] + rest * counts[d, bin + 1]
            out[i, d] = -math.log((count + 0.5) / (total[d] + 0.5 * bins))


@kernel
def standardise(values: FloatArray, floor: float, mean: float, spread: float, out: FloatArray) -> None:
    """(log max(value, floor) − mean)/spread; 0 for NaN, which says nothing."""
    for i in range(values.shape[0]):
        out[i] = 0.0 if math.isnan(values[i]) else (math.log(max(values[i], floor)) - mean) / spread


@kernel
def two_largest(parts: FloatArray, out: FloatArray) -> None:
    """The two largest numbers of each row in their places, 0 elsewhere; of equal ones the first."""
    for i in range(parts.shape[0]):
        first = second = -1
        for v in range(parts.shape[1]):
            if first < 0 or parts[i, v] > parts[i, first]:
                first, second = v, first
            elif second < 0 or parts[i, v] > parts[i, second]:
                second = v
        for v in range(parts.shape[1]):
            out[i, v] = parts[i, v] if v in (first, second) else 0.0
