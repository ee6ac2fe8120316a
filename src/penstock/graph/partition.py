"""Partition rows into parts of near neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock._types import FloatArray, IndexArray
from penstock.graph._kdtree_kernels import assign_rows, order_points
from penstock.graph.rows import hash_rows

_PER_PART = 512  # rows of the sample for each part: sizes are then even to about 5 %
_FEWEST_SAMPLED = 4096
_ROWS_AT_ONCE = 1 << 14  # rows scaled at once, so that no second copy of a part is needed
_UNEVEN = 0.1  # of the rows at a cut may be on the wrong side of an even cut before another column is tried


@dataclass(frozen=True)
class Partition:
    """Cuts along columns, in preorder: a node over m parts gives ⌈m/2⌉ of them to the child that follows it directly.

    A row's part depends on that row alone, so that equal rows are in the same part.
    """

    columns: NDArray[np.int64]
    cuts: FloatArray

    @property
    def n_parts(self) -> int:
        return len(self.cuts) + 1

    def assign(self, X: FloatArray) -> IndexArray:
        """Return the part of each row."""
        part = np.empty(len(X), dtype=np.int64)
        assign_rows(np.ascontiguousarray(X, dtype=np.float64), self.columns, self.cuts, part)
        return part


def sample_size(n_parts: int) -> int:
    """Return how many sampled rows a partition is planned from."""
    return max(_FEWEST_SAMPLED, _PER_PART * n_parts)


def sample_distinct(X: FloatArray, size: int, seed: int = 0) -> FloatArray:
    """Draw a sample of the different rows of X, at most `size`, by their content.

    It takes the rows with the smallest hash values: neither the order of the rows nor copies of them matter, and the
    sample of several tables' samples is the sample of the tables.
    """
    # The finishing steps of splitmix64, so that the order of the hashes is independent of the rows.
    keys = hash_rows(X) + np.uint64((0x9E3779B97F4A7C15 * (seed + 1)) % 2**64)
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    _, first = np.unique(keys ^ (keys >> np.uint64(31)), return_index=True)
    return np.ascontiguousarray(X[first[:size]])


def merge_samples(samples: Sequence[FloatArray], size: int, seed: int = 0) -> FloatArray:
    """Return the sample of all the rows that the samples were drawn from."""
    return sample_distinct(np.concatenate(list(samples)), size, seed)


def plan_partition(sample: FloatArray, n_parts: int) -> Partition:
    """Plan cuts into `n_parts` parts of about equal size, always along the column with the widest spread.

    Where values repeat so much that such a cut would be uneven, another column is cut; where all rows are equal, a part
    stays empty.
    """
    if n_parts < 1:
        raise ValueError(f"n_parts must be at least 1, but is {n_parts!r}.")
    if len(sample) == 0:
        raise ValueError("A partition is planned by a sample of the rows, but it is empty.")
    columns, cuts = np.zeros(n_parts - 1, dtype=np.int64), np.full(n_parts - 1, np.inf)
    _plan_node(sample, 0, n_parts, columns, cuts)
    return Partition(columns, cuts)


def arrange_rows(A: FloatArray, n_parts: int) -> tuple[IndexArray, IndexArray]:
    """Arrange the rows of A part by part; return their order, and where each part begins and the last one ends.

    Parts that would be empty are left out. Within a part rows are in `local_order`.
    """
    partition = plan_partition(sample_distinct(A, sample_size(n_parts)), n_parts)
    part = partition.assign(A)
    members = [rows for rows in (np.flatnonzero(part == number) for number in range(n_parts)) if len(rows)]
    order = np.concatenate([rows[local_order(A[rows])] for rows in members])
    bounds = np.cumsum([0, *(len(rows) for rows in members)])
    return order, bounds


def local_order(rows: FloatArray) -> IndexArray:
    """Return an order in which near rows follow one another: that of the leaves of a kd-tree.

    It depends on these rows alone, and, except for rounding, neither on their location nor on their scale.
    """
    order = np.arange(len(rows))
    order_points(_unit_rows(rows), order)
    return order


def _unit_rows(rows: FloatArray) -> NDArray[np.float32]:
    """Subtract the smallest value of each column and divide by the widest range of a column.

    Without it, values far from zero would collapse in float32, and large ones overflow; half a range never does.
    """
    unit = np.empty(rows.shape, dtype=np.float32)
    if rows.size == 0:
        return unit
    low, high = rows.min(axis=0) / 2, rows.max(axis=0) / 2
    widest = float((high - low).max()) or 1.0
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        part = slice(start, start + _ROWS_AT_ONCE)
        unit[part] = (rows[part] / 2 - low) / widest
    return unit


def _plan_node(rows: FloatArray, node: int, count: int, columns: NDArray[np.int64], cuts: FloatArray) -> None:
    if count == 1 or len(rows) == 0:
        return
    half = (count + 1) // 2
    columns[node], cuts[node] = _best_cut(rows, half / count)
    left = rows[:, columns[node]] <= cuts[node]
    _plan_node(rows[left], node + 1, half, columns, cuts)
    _plan_node(rows[~left], node + half, count - half, columns, cuts)


def _best_cut(rows: FloatArray, share: float) -> tuple[int, float]:
    """Choose the widest column that can be cut evenly, and the cut; else that with the most even cut."""
    most_even, chosen = np.inf, (0, np.inf)
    spread = _unit_rows(rows).std(axis=0, dtype=np.float64)
    for column in np.argsort(-spread, kind="stable"):
        values = np.sort(rows[:, column])
        places = np.flatnonzero(values[1:] > values[:-1]) + 1  # how many rows can be on the left
        if len(places) == 0:
            continue
        place = int(places[np.argmin(np.abs(places - share * len(values)))])
        uneven = abs(place - share * len(values)) / len(values)
        if uneven < most_even:
            below, above = float(values[place - 1]), float(values[place])
            middle = below + (above - below) / 2
            most_even, chosen = uneven, (int(column), middle if below <= middle < above else below)
        if most_even <= _UNEVEN:
            break
    return chosen
