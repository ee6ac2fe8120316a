"""Exact nearest neighbours and the neighbour graphs of GNMF and SNMF."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.neighbors import NearestNeighbors

from penstock._threads import for_each_range
from penstock._types import FloatArray, IndexArray, SparseMatrix
from penstock.graph._neighbor_kernels import rank_candidates, scan_all
from penstock.graph.points import scale_exactly
from penstock.graph.similarity import normalize

_FEW_PAIRS = 2_000_000  # up to this many, a plain scan takes milliseconds and no search structure pays
_MOST_COLUMNS_FOR_TREE = 15  # above, a kd-tree visits nearly every leaf and a blocked scan is quicker
_CHUNK = 4096
_FARTHEST = 1e300  # scaled coordinates are cut here: differences stay finite, and nothing real is as far away
_LARGEST_DENSE = 12_000  # rows of a dense graph: 1.2 GB


@dataclass(frozen=True)
class NeighborIndex:
    """Rows made ready to be asked for the nearest of them. The answer for a row never depends on its batch.

    scikit-learn proposes candidates; they are measured again in float64, one pair at a time, and accepted only if the
    rounding of the proposal cannot have hidden a nearer row. Where it might have (ties, near-duplicates, far-off
    queries), all rows are scanned. Equal distances are in order of index.

    >>> import numpy as np
    >>> index = build_index(np.array([[0.0], [1.0], [1.0], [5.0]]))
    >>> near, distances = index.nearest(np.array([[1.0], [4.0]]), 2)
    >>> near.tolist(), distances.tolist()
    ([[1, 2], [3, 1]], [[0.0, 0.0], [1.0, 3.0]])
    """

    rows: FloatArray  # data times a power of two
    exponent: int  # data = rows · 2**exponent
    center: FloatArray
    radius: float  # no row is farther from the centre
    search: Any

    def nearest(self, Q: FloatArray, m: int) -> tuple[IndexArray, FloatArray]:
        """Indices and distances, both (len(Q), m), of the m nearest rows for each row of Q."""
        n = len(self.rows)
        if not 1 <= m <= n:
            raise ValueError(f"Asked for {m} nearest rows, but there are {n}.")
        scaled = scale_like(Q, self.exponent)
        near = np.empty((len(Q), m), dtype=np.intp)
        lengths = np.empty((len(Q), m))
        pending = np.arange(len(Q))
        if len(Q) * n > _FEW_PAIRS:
            for proposed in (m + 4, 4 * m + 16):  # a longer list settles most ties for less than a scan
                pending = self._propose(scaled, pending, min(n, proposed), near, lengths)
        for_each_range(
            lambda start, stop: scan_all(self.rows, scaled, pending, start, stop, near, lengths),
            len(pending),
            smallest=64,
        )
        with np.errstate(over="ignore"):
            distances = np.minimum(np.ldexp(lengths, self.exponent), np.finfo(np.float64).max)
        return near, distances

    def _propose(
        self, scaled: FloatArray, pending: IndexArray, proposed: int, near: IndexArray, lengths: FloatArray
    ) -> IndexArray:
        """Fill `near` and `lengths` for the pending rows; return those for which that is not certain yet."""
        certain = np.zeros(len(scaled), dtype=np.bool_)

        def work(start: int, stop: int) -> None:
            for first in range(start, stop, _CHUNK):
                rows = pending[first : min(first + _CHUNK, stop)]
                certain[rows] = self._rank_chunk(scaled, rows, proposed, near, lengths)

        if self.search.algorithm == "brute":  # already on all cores
            work(0, len(pending))
        else:
            for_each_range(work, len(pending), smallest=512)
        return pending[~certain[pending]]

    def _rank_chunk(
        self, scaled: FloatArray, rows: IndexArray, proposed: int, near: IndexArray, lengths: FloatArray
    ) -> Any:
        moved = scaled[rows] - self.center
        within = np.abs(moved).max(axis=1) < 1e100  # farther, and squares could overflow in the search
        certain = np.zeros(len(rows), dtype=np.bool_)
        if not within.any():
            return certain
        rows, moved = rows[within], moved[within]
        approximate, candidates = self.search.kneighbors(moved, n_neighbors=proposed)
        rank_candidates(self.rows, scaled, rows, candidates, 0, len(rows), near, lengths)
        # Squares are expanded as ‖x‖² − 2xy + ‖y‖² in the search, and centring rounds: a bound on both together.
        reach = np.sqrt(np.einsum("ij,ij->i", moved, moved)) + self.radius
        error = 16 * (moved.shape[1] + 8) * np.finfo(np.float64).eps * reach * reach
        listed_all = proposed == len(self.rows)
        certain[within] = listed_all | (lengths[rows, -1] ** 2 + error < approximate.max(axis=1) ** 2 - error)
        return certain


def build_index(X: FloatArray) -> NeighborIndex:
    """Make rows (finite, float64) ready for `NeighborIndex.nearest`."""
    rows, exponent = scale_exactly(np.ascontiguousarray(X, dtype=np.float64))
    center = rows.mean(axis=0)
    moved = rows - center
    radius = float(np.sqrt(np.einsum("ij,ij->i", moved, moved).max()))
    algorithm = "kd_tree" if moved.shape[1] <= _MOST_COLUMNS_FOR_TREE else "brute"
    search = NearestNeighbors(algorithm=algorithm, n_neighbors=1).fit(moved)
    return NeighborIndex(rows, exponent, center, radius, search)


def scale_like(Q: FloatArray, exponent: int) -> FloatArray:
    """Q · 2**−exponent, cut at ±1e300 so that differences of coordinates cannot overflow."""
    with np.errstate(over="ignore"):
        scaled = np.ldexp(np.ascontiguousarray(Q, dtype=np.float64), -exponent)
    return np.clip(scaled, -_FARTHEST, _FARTHEST, out=scaled)


def nearest_neighbors(X: FloatArray, k: int) -> tuple[IndexArray, FloatArray]:
    """For each row its k nearest other rows: indices and distances, both (n, k), nearest first, ties by index.

    Exact, in memory O(n·(p + k)). A row is not its own neighbour, but an equal row is, at distance 0.

    >>> import numpy as np
    >>> near, distances = nearest_neighbors(np.array([[0.0], [3.0], [0.0], [1.0]]), 2)
    >>> near.tolist()
    [[2, 3], [3, 0], [0, 3], [0, 2]]
    >>> distances.tolist()
    [[0.0, 1.0], [2.0, 3.0], [0.0, 1.0], [1.0, 1.0]]
    """
    return neighbors_within(build_index(X), X, k)


def neighbors_within(index: NeighborIndex, X: FloatArray, k: int) -> tuple[IndexArray, FloatArray]:
    """`nearest_neighbors` where the index of the very rows X has been built already."""
    n = len(X)
    if not 1 <= k <= n - 1:
        raise ValueError(f"k must be between 1 and n − 1 = {n - 1}, but is {k}.")
    near, distances = index.nearest(X, k + 1)
    # Without the row itself; if equal rows before it fill the whole list, without the last of them.
    dropped = near == np.arange(n)[:, None]
    dropped[~dropped.any(axis=1), -1] = True
    return near[~dropped].reshape(n, k), distances[~dropped].reshape(n, k)


def neighbors_of_new(index: NeighborIndex, Q: FloatArray, k: int) -> tuple[IndexArray, FloatArray]:
    """The k nearest indexed rows of new rows; one that equals an indexed row is treated as that row.

    Its (first) twin is left out, so that it has the neighbours that `nearest_neighbors` gives to the twin.
    """
    near, distances = index.nearest(Q, k + 1)
    dropped = np.zeros(near.shape, dtype=np.bool_)
    dropped[np.arange(len(Q)), np.where(distances[:, 0] == 0, 0, k)] = True
    return near[~dropped].reshape(len(Q), k), distances[~dropped].reshape(len(Q), k)


def binary_knn_graph(X: FloatArray, q: int = 5) -> SparseMatrix:
    """1 where one row is among the other's q nearest (symmetrised by maximum), else 0: the graph of GNMF.

    Cai et al. (2011). With fewer than q + 1 rows, all pairs are joined.

    >>> import numpy as np
    >>> binary_knn_graph(np.array([[0.0], [1.0], [3.0]]), q=1).toarray()
    array([[0., 1., 0.],
           [1., 0., 1.],
           [0., 1., 0.]])
    """
    near, distances = nearest_neighbors(X, min(q, len(X) - 1))
    return _symmetrised(near, np.ones(distances.shape))


def gaussian_graph(X: FloatArray, bandwidth: float | None = None) -> FloatArray:
    """The full Gaussian graph, dense: exp(−‖x_i − x_j‖²/2σ²), diagonal 0, then D^-½ S D^-½ (Kuang et al. 2012).

    It is what the paper gives SNMF. `bandwidth` is σ, in the unit of X; the paper does not say which it used. By
    default it is the median of the positive distances among (at most 2,000, evenly spaced) rows. The matrix takes
    8n² bytes, so more than 12,000 rows are refused.

    >>> import numpy as np
    >>> gaussian_graph(np.array([[0.0], [0.0], [9.0]]), bandwidth=1.0).round(3)
    array([[0., 1., 0.],
           [1., 0., 0.],
           [0., 0., 0.]])
    """
    n = len(X)
    if n > _LARGEST_DENSE:
        raise ValueError(
            f"The full Gaussian graph of {n:,} rows would take {8e-9 * n * n:.1f} GB of memory; at most "
            f"{_LARGEST_DENSE:,} rows are allowed. Use the sparse self_tuning_graph instead."
        )
    if bandwidth is not None and not (np.isfinite(bandwidth) and bandwidth > 0):
        raise ValueError(f"bandwidth must be a positive number, but is {bandwidth!r}.")
    rows, exponent = scale_exactly(np.ascontiguousarray(X, dtype=np.float64))
    sigma = _median_distance(rows) if bandwidth is None else float(np.ldexp(bandwidth, -exponent))
    S = np.empty((n, n))
    for start in range(0, n, 512):
        ratio = cdist(rows[start : start + 512], rows) / max(sigma, 1e-150)
        S[start : start + 512] = np.exp(-0.5 * ratio * ratio)
    np.fill_diagonal(S, 0.0)
    degree = S.sum(axis=1)
    root = np.sqrt(np.where(degree > 1e-300, degree, np.inf))  # a row that is near none stays 0
    for start in range(0, n, 512):  # one product of both roots: S stays symmetric to the last bit
        S[start : start + 512] /= root[start : start + 512, None] * root
    return S


def self_tuning_graph(X: FloatArray) -> SparseMatrix:
    """The sparse graph of SNMF's authors (Kuang et al. 2012), normalised as D^-½ S D^-½.

    S_ij = exp(−‖x_i − x_j‖²/σ_iσ_j) if one is among the other's ⌊log2 n⌋ + 1 nearest, where σ_i is the distance of
    row i to its 7th neighbour (the last one, if there are fewer). Where that is 0 (eight equal rows), the smallest
    positive σ takes its place.

    >>> import numpy as np
    >>> self_tuning_graph(np.array([[0.0], [0.0], [1.0]])).toarray().round(3)
    array([[0.   , 0.731, 0.367],
           [0.731, 0.   , 0.367],
           [0.367, 0.367, 0.   ]])
    """
    n = len(X)
    listed = min(int(np.log2(n)) + 1, n - 1)
    near, distances = nearest_neighbors(X, min(max(listed, 7), n - 1))
    scale = distances[:, min(7, n - 1) - 1].copy()
    positive = scale[scale > 0]
    scale[scale == 0] = positive.min() if len(positive) else 1.0
    near, distances = near[:, :listed], distances[:, :listed]
    with np.errstate(over="ignore"):
        values = np.exp(-(distances / scale[:, None]) * (distances / scale[near]))
    return normalize(_symmetrised(near, values))


def _median_distance(rows: FloatArray) -> float:
    sample = rows[:: -(-len(rows) // 2000)]
    distances = cdist(sample, sample)
    positive = distances[distances > 0]
    return float(np.median(positive)) if len(positive) else 1.0


def _symmetrised(near: IndexArray, values: FloatArray) -> SparseMatrix:
    """The larger of S_ij and S_ji in both places; no explicit zeros."""
    n, k = near.shape
    rows = np.repeat(np.arange(n, dtype=np.int64), k)
    directed = sparse.csr_array((values.ravel(), (rows, near.ravel().astype(np.int64))), shape=(n, n))
    S = sparse.csr_array(directed.maximum(directed.T))
    S.eliminate_zeros()
    S.sort_indices()
    return S
