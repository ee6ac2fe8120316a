"""Views of rows, compiled; each row by itself, in an order that does not depend on the other rows."""

from __future__ import annotations

import math

import numpy as np

from penstock._jit import Array, inlined_kernel, kernel
from penstock.graph.distance_kernels import TILE

_FARTHEST = 1e300
_FACTORS, _LARGEST_FACTOR = 16, 1e18  # whose product takes one logarithm; larger ones would overflow


@kernel
def encode_rows(A: Array, unit: Array, center: Array, spread: Array, out: Array) -> None:
    """sign(z)·log(1 + |z|) with z = (a/unit − center)/spread; NaN stays NaN.

    log(w)·y/(w − 1) with w = 1 + y as rounded is log1p(y) to a few units of the last place, in a fifth of its time.
    """
    for i in range(A.shape[0]):
        for d in range(A.shape[1]):
            z = (A[i, d] / unit[d] - center[d]) / spread[d]
            if math.isnan(z):
                out[i, d] = z
                continue
            y = min(abs(z), _FARTHEST)
            w = 1.0 + y
            out[i, d] = math.copysign(y if w == 1.0 else math.log(w) * (y / (w - 1.0)), z)


@kernel
def add_columns(A: Array, start: int, stop: int, unit: Array, mean: Array, squared: bool, out: Array) -> None:
    """Add a/unit − mean of the rows start..stop, or its square, to `out`, per column, without missing values."""
    for i in range(start, stop):
        for d in range(A.shape[1]):
            value = A[i, d] / unit[d] - mean[d]
            if squared:
                value *= value
            out[d] += 0.0 if math.isnan(value) else value


@kernel
def take_different(members: Array, first: int) -> None:
    """Make the numbers of each row different: column s, drawn up to `first` + s, is that where it was drawn before."""
    for t in range(members.shape[0]):
        for s in range(1, members.shape[1]):
            for other in range(s):
                if members[t, other] == members[t, s]:
                    members[t, s] = first + s
                    break


@kernel
def distances_to_nodes(Q: Array, start: int, stop: int, tiles: Array, nodes_have_holes: bool, out: Array) -> None:
    """Σ|q − node| of the rows start..stop and all nodes, over the entries that both have, scaled up to all of them.

    `tiles` has the nodes as (tile, dimension, slot). Infinite where a row and a node share no entry. Each distance is
    summed by itself in fours, in the order of the entries.
    """
    n_tiles, p = tiles.shape[0], tiles.shape[1]
    whole = p - p % 4
    total, holes = np.empty(TILE), np.empty(TILE)
    has_holes = np.empty(stop - start, np.bool_)
    for i in range(start, stop):
        has_holes[i - start] = nodes_have_holes or np.isnan(Q[i]).any()
    for k in range(n_tiles):
        tile = tiles[k]
        for i in range(start, stop):
            for t in range(TILE):
                total[t] = 0.0
                holes[t] = 0.0
            if has_holes[i - start]:
                for d in range(0, whole, 4):
                    q0, q1, q2, q3 = Q[i, d], Q[i, d + 1], Q[i, d + 2], Q[i, d + 3]
                    for t in range(TILE):
                        g0, g1 = abs(q0 - tile[d, t]), abs(q1 - tile[d + 1, t])
                        g2, g3 = abs(q2 - tile[d + 2, t]), abs(q3 - tile[d + 3, t])
                        # max(0, NaN) is 0 in this order of the two
                        total[t] += (max(0.0, g0) + max(0.0, g1)) + (max(0.0, g2) + max(0.0, g3))
                        holes[t] += (int(np.isnan(g0)) + int(np.isnan(g1))) + (int(np.isnan(g2)) + int(np.isnan(g3)))
                for d in range(whole, p):
                    for t in range(TILE):
                        gap = abs(Q[i, d] - tile[d, t])
                        total[t] += max(0.0, gap)
                        holes[t] += int(np.isnan(gap))
            else:
                for d in range(0, whole, 4):
                    q0, q1, q2, q3 = Q[i, d], Q[i, d + 1], Q[i, d + 2], Q[i, d + 3]
                    for t in range(TILE):
                        total[t] += (abs(q0 - tile[d, t]) + abs(q1 - tile[d + 1, t])) + (
                            abs(q2 - tile[d + 2, t]) + abs(q3 - tile[d + 3, t])
                        )
                for d in range(whole, p):
                    for t in range(TILE):
                        total[t] += abs(Q[i, d] - tile[d, t])
            for t in range(TILE):
                shared = p - holes[t]
                out[i - start, k * TILE + t] = total[t] * (p / shared) if shared > 0 else math.inf


@kernel
def _mean_of_least(distances: Array, draws: Array) -> float:
    """The mean over draws of the least distance to one of its nodes; NaN where all are infinite."""
    total = 0.0
    count = 0
    for t in range(draws.shape[0]):
        least = math.inf
        for s in range(draws.shape[1]):
            least = min(least, distances[draws[t, s]])
        if least < math.inf:
            total += least
            count += 1
    return total / count if count else math.nan


@kernel
def mean_to_nodes(distances: Array, draws: Array, twin: int, apart: float) -> float:
    """Mean distance to the nearest node over the draws: without the twin where apart is 0, with it where it is 1.

    `distances` are those of one row to all nodes; −1 if the twin is none of them. NaN where no draw has a node that
    the row shares a column with.
    """
    if twin < 0 or apart == 1.0:
        mean = _mean_of_least(distances, draws)
        if twin < 0 or not math.isnan(mean):
            return mean
    kept = distances[twin]
    distances[twin] = math.inf
    without = _mean_of_least(distances, draws)
    distances[twin] = kept
    if apart == 0.0:
        return without
    together = _mean_of_least(distances, draws)
    if math.isnan(without) or math.isnan(together):
        return without if math.isnan(together) else together
    return (1.0 - apart) * without + apart * together


@kernel
def means_to_nodes(distances: Array, draws: Array, twins: Array, apart: Array, start: int, out: Array) -> None:
    """`mean_to_nodes` of rows from `start` on."""
    for i in range(distances.shape[0]):
        out[start + i] = mean_to_nodes(distances[i], draws, twins[start + i], apart[start + i])


@kernel
def add_gaps(a: Array, b: Array, total: Array) -> None:
    """Add |a − b| to `total`, where both are there, scaled up as distances are."""
    p = a.shape[0]
    shared = 0
    for d in range(p):
        shared += not math.isnan(a[d] - b[d])
    for d in range(p):
        gap = abs(a[d] - b[d])
        if not math.isnan(gap):
            total[d] += gap * (p / shared)


@kernel
def _gaps_of_least(q: Array, nodes: Array, distances: Array, draws: Array, out: Array) -> bool:
    """What each variable adds to `_mean_of_least`; whether there is any."""
    out[:] = 0.0
    count = 0
    for t in range(draws.shape[0]):
        nearest = draws[t, 0]
        for s in range(draws.shape[1]):
            if distances[draws[t, s]] < distances[nearest]:
                nearest = draws[t, s]
        if distances[nearest] < math.inf:
            add_gaps(q, nodes[nearest], out)
            count += 1
    for d in range(out.shape[0]):
        out[d] /= max(count, 1)
    return count > 0


@kernel
def gaps_to_nodes(
    Q: Array, nodes: Array, distances: Array, draws: Array, twins: Array, apart: Array, start: int, out: Array
) -> None:
    """What each variable adds to `means_to_nodes`: the sum of a row is that, to rounding."""
    p = Q.shape[1]
    without, together = np.empty(p), np.empty(p)
    for i in range(start, start + distances.shape[0]):
        its = distances[i - start]
        mixed = apart[i]
        any_together = _gaps_of_least(Q[i], nodes, its, draws, together)
        any_without = False
        if twins[i] >= 0:
            its[twins[i]] = math.inf
            any_without = _gaps_of_least(Q[i], nodes, its, draws, without)
        else:
            mixed = 1.0
        if any_together and not any_without and mixed > 0.0:
            mixed = 1.0
        for d in range(p):
            out[i, d] = mixed * together[d] if mixed == 1.0 else (1.0 - mixed) * without[d] + mixed * together[d]


@kernel
def count_bins(Q: Array, low: Array, width: Array, counts: Array) -> None:
    """Count each reading in its bin; `counts` has an empty bin on either side of the others."""
    for i in range(Q.shape[0]):
        for d in range(Q.shape[1]):
            if not math.isnan(Q[i, d]):
                counts[d, _bin_at((Q[i, d] - low[d]) / width[d], counts.shape[1] - 2)] += 1.0


@inlined_kernel
def _bin_at(place: float, bins: int) -> int:
    return 1 + int(min(max(place, 0.0), bins - 1.0))


@inlined_kernel
def _commonness(value: float, own: float, share: float, low: float, width: float, counts: Array, total: float) -> float:
    """The share of readings like this one: a histogram's, interpolated between its bins.

    As much as `share` of the reading `own`, which is in the histogram, is left out of it.
    """
    bins = counts.shape[0] - 2
    exact = (value - low) / width
    place = min(max(exact + 0.5, 0.0), bins + 1.0)
    bin = min(int(place), bins)
    rest = place - bin
    count = (1.0 - rest) * counts[bin] + rest * counts[bin + 1]
    if share > 0.0 and not math.isnan(own):
        at = _bin_at(exact if own == value else (own - low) / width, bins)
        # products instead of branches, of which every other one would be guessed wrong
        count -= share * ((1.0 - rest) * int(at == bin) + rest * int(at == bin + 1))
        total -= share
    common: float = (max(count, 0.0) + 0.5) / (total + 0.5 * bins)
    return common


@kernel
def surprises_of(
    Q: Array, own: Array, share: Array, low: Array, width: Array, counts: Array, total: Array, out: Array
) -> None:
    """The surprise of each entry, −log of how common it is; NaN stays NaN."""
    for i in range(Q.shape[0]):
        for d in range(Q.shape[1]):
            out[i, d] = math.nan
            if not math.isnan(Q[i, d]):
                out[i, d] = -math.log(_commonness(Q[i, d], own[i, d], share[i], low[d], width[d], counts[d], total[d]))


@kernel
def add_surprises(
    A: Array, start: int, stop: int, low: Array, width: Array, counts: Array, total: Array, out: Array
) -> None:
    """Add the surprises of the rows start..stop, each without itself, to `out`, per column."""
    product = np.ones(A.shape[1])
    for i in range(start, stop):
        for d in range(A.shape[1]):
            if not math.isnan(A[i, d]):
                product[d] *= _commonness(A[i, d], A[i, d], 1.0, low[d], width[d], counts[d], total[d])
        if (i + 1 - start) % _FACTORS == 0 or i + 1 == stop:
            for d in range(A.shape[1]):
                out[d] -= math.log(product[d])
                product[d] = 1.0


@kernel
def sum_excesses(
    Q: Array, own: Array, share: Array, low: Array, width: Array, counts: Array, total: Array, usual: Array, out: Array
) -> None:
    """Σ max(0, surprise − usual) of each row, scaled up to all entries where some are missing.

    `usual` is how common readings usually are, e^(−usual surprise): the sum of logarithms is that of a product.
    """
    p = Q.shape[1]
    for i in range(Q.shape[0]):
        value = 0.0
        seen = 0
        product = 1.0
        for d in range(p):
            if not math.isnan(Q[i, d]):
                seen += 1
                common = _commonness(Q[i, d], own[i, d], share[i], low[d], width[d], counts[d], total[d])
                product *= min(max(1.0, usual[d] / common), _LARGEST_FACTOR)
            if (d + 1) % _FACTORS == 0 or d + 1 == p:
                value += math.log(product)
                product = 1.0
        out[i] = value * (p / seen)


@kernel
def standardise(values: Array, floor: float, mean: float, spread: float, out: Array) -> None:
    """(log max(value, floor) − mean)/spread; 0 for NaN, which says nothing."""
    for i in range(values.shape[0]):
        out[i] = 0.0 if math.isnan(values[i]) else (math.log(max(values[i], floor)) - mean) / spread


@kernel
def two_largest(parts: Array, out: Array) -> None:
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
