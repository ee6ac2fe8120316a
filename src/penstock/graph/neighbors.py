"""Exact nearest neighbours and the neighbour graphs of GNMF and SNMF."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist

from penstock._threads import for_each_range
from penstock._types import FloatArray, IndexArray, SparseMatrix
from penstock.graph._shared_kernels import shared_squared_distances
from penstock.graph.points import plain_frame, prepare_incomplete
from penstock.graph.search import search_over
from penstock.graph.similarity import normalize

_LARGEST_DENSE = 12_000  # rows of a dense graph: 1.2 GB


def nearest_neighbors(X: FloatArray, k: int) -> tuple[IndexArray, FloatArray]:
    """For each row its k nearest other rows: indices and distances, both (n, k), nearest first, ties by index.

    Exact, in memory O(n·(p + k)). A row is not its own neighbour, but an equal row is, at distance 0. Where values are
    missing (NaN), distances are over shared columns, as in `minimum_spanning_tree`; where fewer than k rows share one
    with a row, −1 and an infinite distance fill its list.

    >>> import numpy as np
    >>> near, distances = nearest_neighbors(np.array([[0.0], [3.0], [0.0], [1.0]]), 2)
    >>> near.tolist()
    [[2, 3], [3, 0], [0, 3], [0, 2]]
    >>> distances.tolist()
    [[0.0, 1.0], [2.0, 3.0], [0.0, 1.0], [1.0, 1.0]]
    """
    return search_over(X).neighbors(k)


def binary_knn_graph(X: FloatArray, q: int = 5) -> SparseMatrix:
    """1 where one row is among the other's q nearest (symmetrised by maximum), else 0: the graph of GNMF.

    Cai et al. (2011). With fewer than q + 1 rows, all pairs are joined; rows that share no column never are.

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
    default it is the median of the positive distances among (at most 2,000, evenly spaced) rows. Rows that share no
    column have similarity 0. The matrix takes 8n² bytes, so more than 12,000 rows are refused.

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
    if np.isnan(X).any():
        points = prepare_incomplete(X)
        frame, rows = points.frame, points.exact
    else:
        frame = plain_frame(X)
        rows = frame.scale(X)
    sigma = _median_distance(rows) if bandwidth is None else float(np.ldexp(bandwidth, -frame.exponent))
    S = np.empty((n, n))
    for start in range(0, n, 512):
        ratio = _distances(rows, start, min(start + 512, n)) / max(sigma, 1e-150)
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
    positive σ takes its place. Rows that share no column are no neighbours.

    >>> import numpy as np
    >>> self_tuning_graph(np.array([[0.0], [0.0], [1.0]])).toarray().round(3)
    array([[0.   , 0.731, 0.367],
           [0.731, 0.   , 0.367],
           [0.367, 0.367, 0.   ]])
    """
    n = len(X)
    listed = min(int(np.log2(n)) + 1, n - 1)
    near, distances = nearest_neighbors(X, min(max(listed, 7), n - 1))
    last = np.maximum((near[:, :7] >= 0).sum(axis=1), 1) - 1
    scale = distances[np.arange(n), last]
    scale[near[:, 0] < 0] = 0.0  # a row without any neighbour: its σ is not used
    positive = scale[scale > 0]
    scale[scale == 0] = positive.min() if len(positive) else 1.0
    near, distances = near[:, :listed], distances[:, :listed]
    with np.errstate(over="ignore"):
        values = np.exp(-(distances / scale[:, None]) * (distances / scale[near]))
    return normalize(_symmetrised(near, values))


def _median_distance(rows: FloatArray) -> float:
    sample = rows[:: -(-len(rows) // 2000)]
    distances = _distances(sample, 0, len(sample))
    positive = distances[(distances > 0) & (distances < np.inf)]
    return float(np.median(positive)) if len(positive) else 1.0


def _distances(rows: FloatArray, start: int, stop: int) -> FloatArray:
    """Distances of rows start..stop to all rows; over shared columns where values are missing."""
    if not np.isnan(rows).any():
        distances: FloatArray = cdist(rows[start:stop], rows)
        return distances
    rows, squares = np.ascontiguousarray(rows), np.empty((stop - start, len(rows)))

    def measure(first: int, last: int) -> None:
        shared_squared_distances(rows, start + first, start + last, squares[first:last])

    for_each_range(measure, stop - start, smallest=16)
    return np.sqrt(squares)


def _symmetrised(near: IndexArray, values: FloatArray) -> SparseMatrix:
    """The larger of S_ij and S_ji in both places; no explicit zeros, and nothing where `near` is −1."""
    n = len(near)
    rows, slots = np.nonzero(near >= 0)
    directed = sparse.csr_array((values[rows, slots], (rows, near[rows, slots].astype(np.int64))), shape=(n, n))
    S = sparse.csr_array(directed.maximum(directed.T))
    S.eliminate_zeros()
    S.sort_indices()
    return S
