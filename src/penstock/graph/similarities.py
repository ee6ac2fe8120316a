"""Compute similarity matrices from spanning trees and from neighbour graphs."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist

from penstock._threads import for_each_range
from penstock._types import FloatArray, IndexArray, SparseMatrix, Tree
from penstock.graph._search_kernels import shared_squared_distances
from penstock.graph.distance_kernels import LARGEST_SIMILARITY
from penstock.graph.paths import PathSimilarity
from penstock.graph.points import plain_frame, prepare_incomplete
from penstock.graph.search import nearest_neighbors

Kind = Literal["inverse", "binary", "relative", "normalized"]  # of the tree's edges
TreeKind = Literal[Kind, "path"]
Duplicates = Literal["zero", "floor"]


def similarity(tree: Tree, kind: TreeKind = "inverse", duplicates: Duplicates = "zero") -> SparseMatrix:
    """Compute the symmetric n×n similarity matrix of a spanning tree.

    Ahmed et al. (2021), the formula after eq:frob: S_ij = 1/M_ij where M_ij > 0 is the length of a tree edge, else 0.

    Parameters
    ----------
    tree : Tree
        From `minimum_spanning_tree`.
    kind : {"inverse", "binary", "relative", "normalized", "path"}, default "inverse"
        - "inverse": 1/M, the paper's. It has no upper bound: one pair at distance 4.5e-4 took 94 % of ‖W‖² and left the
          other rows almost no influence, so look at the shortest edges before trusting it.
        - "binary": 1 on every edge, the lengths ignored.
        - "relative": median(M)/M over the positive lengths, so that the unit of the data does not matter.
        - "normalized": D^-½ S D^-½ of the inverse similarities, D = diag(S·1): no entry exceeds 1.
        - "path": 1/length of the path between any two rows, not those of an edge alone: "the pairwise MST distance
          matrix" of Algorithm 1 read to the letter. It has an entry for each pair, so that more than 5,000 rows are
          refused; detectors need no matrix and have no such limit.
    duplicates : {"zero", "floor"}, default "zero"
        The similarity of an edge of length 0 (two equal rows). "zero" is the paper's formula: they are not similar at
        all. "floor" counts the length as the shortest positive one of the tree (1 if there is none). Detectors by
        default merge equal rows before the tree is computed and give each copy the score of its original, because with
        either choice here two equal rows have different edges and so different scores.

    Returns
    -------
    csr_array of shape (n, n)
        Without explicit zeros. Values are at most 1e140, so that S and the sum of S² stay finite.

    Examples
    --------
    >>> from penstock import minimum_spanning_tree, similarity
    >>> similarity(minimum_spanning_tree([[0.0], [2.0], [6.0]])).toarray()
    array([[0.  , 0.5 , 0.  ],
           [0.5 , 0.  , 0.25],
           [0.  , 0.25, 0.  ]])
    """
    if kind not in get_args(TreeKind):
        raise ValueError(f"kind must be one of {', '.join(get_args(TreeKind))}; got {kind!r}.")
    if duplicates not in get_args(Duplicates):
        raise ValueError(f"duplicates must be one of {', '.join(get_args(Duplicates))}; got {duplicates!r}.")
    lengths = tree.lengths
    if duplicates == "floor":
        lengths = floor_lengths(lengths)
    if kind == "path":
        return PathSimilarity(Tree(tree.edges, lengths)).tocsr()
    (i, j), lengths = tree.edges[lengths > 0].astype(np.int64).T, lengths[lengths > 0]
    values = np.ones(len(lengths))
    if kind != "binary" and len(lengths):
        unit = float(np.median(lengths)) if kind == "relative" else 1.0
        with np.errstate(over="ignore"):
            values = np.minimum(unit / lengths, LARGEST_SIMILARITY)
    ends = np.concatenate([i, j]), np.concatenate([j, i])
    S = sparse.csr_array((np.concatenate([values, values]), ends), shape=(tree.n_nodes, tree.n_nodes))
    S.sort_indices()
    return normalize(S) if kind == "normalized" else S


def floor_lengths(lengths: FloatArray) -> FloatArray:
    """Count lengths of 0 as the shortest one above 0, as 1 if there is none."""
    return np.maximum(lengths, lengths[lengths > 0].min() if (lengths > 0).any() else 1.0)


def normalize(S: SparseMatrix) -> SparseMatrix:
    """Compute D^-½ S D^-½ with D = diag(S·1); a row without similarities stays 0.

    >>> from scipy import sparse
    >>> normalize(sparse.csr_array([[0.0, 4.0], [4.0, 0.0]])).toarray()
    array([[0., 1.],
           [1., 0.]])
    """
    degree = np.asarray(S.sum(axis=1)).ravel()
    root = np.sqrt(np.where(degree > 0, degree, 1.0))
    result = sparse.csr_array(S, copy=True)
    rows = np.repeat(np.arange(result.shape[0]), np.diff(result.indptr))
    # One product of the two roots, not one division after the other: S_ij and S_ji then round alike.
    result.data = result.data / (root[rows] * root[result.indices])
    return result


def neighbor_mean(W: FloatArray, S: SparseMatrix | PathSimilarity) -> FloatArray:
    """Compute w̄, the similarity-weighted mean of the neighbours' weights; a row without neighbours keeps its own.

    >>> import numpy as np
    >>> from scipy import sparse
    >>> S = sparse.csr_array([[0.0, 3.0, 1.0], [3.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    >>> neighbor_mean(np.array([[8.0], [4.0], [0.0]]), S).tolist()
    [[3.0], [8.0], [8.0]]
    """
    if isinstance(S, PathSimilarity):
        return S.neighbor_mean(W)
    S = sparse.csr_array(S)
    counts = np.diff(S.indptr)
    rows = np.repeat(np.arange(len(W)), counts)
    largest = np.zeros(len(W))
    np.maximum.at(largest, rows, S.data)
    joined = largest > 0
    # In units of each row's largest similarity: 1/M reaches 1e140, and its products with W must not overflow.
    shares = sparse.csr_array((S.data / np.where(joined, largest, 1.0)[rows], S.indices, S.indptr), shape=S.shape)
    total = np.asarray(shares.sum(axis=1)).ravel()
    means = (shares @ W) / np.where(joined, total, 1.0)[:, None]
    means[~joined] = W[~joined]
    return np.ascontiguousarray(means)


_LARGEST_DENSE = 12_000  # rows of a dense graph: 1.2 GB


def binary_knn_graph(X: FloatArray, q: int = 5) -> SparseMatrix:
    """Compute the graph of GNMF: 1 where one row is among the other's q nearest, else 0. Cai et al. (2011).

    With fewer than q + 1 rows, all pairs are joined; rows that share no column never are.

    >>> import numpy as np
    >>> binary_knn_graph(np.array([[0.0], [1.0], [3.0]]), q=1).toarray()
    array([[0., 1., 0.],
           [1., 0., 1.],
           [0., 1., 0.]])
    """
    near, distances = nearest_neighbors(X, min(q, len(X) - 1))
    return _symmetrised(near, np.ones(distances.shape))


def gaussian_graph(X: FloatArray) -> FloatArray:
    """Compute the full Gaussian graph, dense: exp(−‖x_i − x_j‖²/2σ²), diagonal 0, then D^-½ S D^-½ (Kuang et al. 2012).

    The paper uses it for SNMF, and does not give σ. Here it is the median of the positive distances among (at most
    2,000, evenly spaced) rows. Rows that share no column have similarity 0. The matrix takes 8n² bytes, so more than
    12,000 rows are refused.

    >>> import numpy as np
    >>> gaussian_graph(np.array([[0.0], [9.0]]))
    array([[0., 1.],
           [1., 0.]])
    """
    n = len(X)
    if n > _LARGEST_DENSE:
        raise ValueError(
            f"The full Gaussian graph of {n:,} rows would take {8e-9 * n * n:.1f} GB of memory; at most "
            f'{_LARGEST_DENSE:,} rows are allowed. Use the sparse self_tuning_graph (SNMF: graph="self_tuning").'
        )
    rows = prepare_incomplete(X).exact if np.isnan(X).any() else plain_frame(X).scale(X)
    sample = rows[:: -(-len(rows) // 2000)]
    distances = _distances(sample, 0, len(sample))
    positive = distances[(distances > 0) & (distances < np.inf)]
    sigma = float(np.median(positive)) if len(positive) else 1.0
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
    """Compute the sparse graph of SNMF's authors (Kuang et al. 2012), normalised as D^-½ S D^-½.

    S_ij = exp(−‖x_i − x_j‖²/σ_iσ_j) if one is among the other's ⌊log2 n⌋ + 1 nearest, where σ_i is the distance of row
    i to its 7th neighbour (the last one, if there are fewer). Where that is 0 (eight equal rows), the smallest positive
    σ replaces it. Rows that share no column are no neighbours.

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


def _distances(rows: FloatArray, start: int, stop: int) -> FloatArray:
    """Compute the distances of rows start..stop to all rows; over shared columns where values are missing."""
    if not np.isnan(rows).any():
        return np.asarray(cdist(rows[start:stop], rows))
    rows, squares = np.ascontiguousarray(rows), np.empty((stop - start, len(rows)))

    def measure(first: int, last: int) -> None:
        shared_squared_distances(rows, start + first, start + last, squares[first:last])

    for_each_range(measure, stop - start, smallest=16)
    return np.sqrt(squares)


def _symmetrised(near: IndexArray, values: FloatArray) -> SparseMatrix:
    """Put the larger of S_ij and S_ji in both places; no explicit zeros, and nothing where `near` is −1."""
    n = len(near)
    rows, slots = np.nonzero(near >= 0)
    directed = sparse.csr_array((values[rows, slots], (rows, near[rows, slots].astype(np.int64))), shape=(n, n))
    S = sparse.csr_array(directed.maximum(directed.T))
    S.eliminate_zeros()
    S.sort_indices()
    return S
