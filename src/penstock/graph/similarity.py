"""Spanning tree -> similarity matrix S: how strongly the factorisation is told to keep two rows together."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from scipy import sparse

from penstock._types import FloatArray, IndexArray, SparseMatrix, Tree

Kind = Literal["inverse", "binary", "relative", "normalized"]
Duplicates = Literal["zero", "floor"]

# S² is summed in the objective, over as many as 1e9 edges: 1e140 keeps that sum finite. Lengths below 1e-140 are met
# only in data of such a scale, never after min-max scaling of float64 data of ordinary size.
LARGEST_SIMILARITY = 1e140


def similarity(tree: Tree, kind: Kind = "inverse", duplicates: Duplicates = "zero") -> SparseMatrix:
    """The symmetric n×n similarity matrix of a spanning tree, as a ``csr_array`` without explicit zeros.

    Ahmed et al. (2021), the formula after eq:frob: S_ij = 1/M_ij where M_ij > 0 is the length of a tree edge, else 0.

    Parameters
    ----------
    tree : Tree
        From `minimum_spanning_tree`.
    kind : {"inverse", "binary", "relative", "normalized"}
        - "inverse": 1/M, the paper's. A hazard: nothing bounds it. One pair at distance 4.5e-4 took 94 % of ‖W‖² and
          left the other rows almost no say, so look at the shortest edges before trusting it.
        - "binary": 1 on every edge, the lengths ignored.
        - "relative": median(M)/M over the positive lengths, so that the unit of the data does not matter.
        - "normalized": D^-½ S D^-½ of the inverse similarities, D = diag(S·1): no entry exceeds 1.
    duplicates : {"zero", "floor"}
        What an edge of length 0 (two equal rows) is worth. "zero" is the paper's formula to the letter: equal rows
        are not similar at all. "floor" counts the length as the shortest positive one of the tree (1 if there is
        none). A third way, "collapse", is the default of the detectors and not offered here: they merge equal rows
        before the tree is grown and give each copy its original's score, because under either choice made here two
        equal rows end up with different edges and hence with different scores.

    Notes
    -----
    Values are capped at 1e140, so that S and the sum of S² stay finite for lengths down to the smallest float.

    Examples
    --------
    >>> from penstock import minimum_spanning_tree
    >>> from penstock.graph.similarity import similarity
    >>> similarity(minimum_spanning_tree([[0.0], [2.0], [6.0]])).toarray()
    array([[0.  , 0.5 , 0.  ],
           [0.5 , 0.  , 0.25],
           [0.  , 0.25, 0.  ]])
    """
    if kind not in get_args(Kind):
        raise ValueError(f"kind must be one of {', '.join(get_args(Kind))}; got {kind!r}.")
    if duplicates not in get_args(Duplicates):
        raise ValueError(f"duplicates must be one of {', '.join(get_args(Duplicates))}; got {duplicates!r}.")
    lengths = tree.lengths if duplicates == "zero" else _floored(tree.lengths)
    kept = lengths > 0
    values = _edge_similarities(lengths[kept], "inverse" if kind == "normalized" else kind)
    S = _symmetric(tree.edges[kept], values, tree.n_nodes)
    return normalize(S) if kind == "normalized" else S


def normalize(S: SparseMatrix) -> SparseMatrix:
    """D^-½ S D^-½ with D = diag(S·1); a row without similarities stays 0.

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


def neighbor_mean(W: FloatArray, S: SparseMatrix) -> FloatArray:
    """w̄: the similarity-weighted mean of the neighbours' weights, each row's own where it has no neighbour.

    >>> import numpy as np
    >>> from scipy import sparse
    >>> S = sparse.csr_array([[0.0, 3.0, 1.0], [3.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    >>> neighbor_mean(np.array([[8.0], [4.0], [0.0]]), S).tolist()
    [[3.0], [8.0], [8.0]]
    """
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
    result: FloatArray = np.ascontiguousarray(means)
    return result


def _floored(lengths: FloatArray) -> FloatArray:
    positive = lengths[lengths > 0]
    return np.maximum(lengths, positive.min() if len(positive) else 1.0)


def _edge_similarities(lengths: FloatArray, kind: str) -> FloatArray:
    if kind == "binary" or len(lengths) == 0:
        return np.ones(len(lengths))
    unit = float(np.median(lengths)) if kind == "relative" else 1.0
    with np.errstate(over="ignore"):
        values: FloatArray = np.minimum(unit / lengths, LARGEST_SIMILARITY)
    return values


def _symmetric(edges: IndexArray, values: FloatArray, n: int) -> SparseMatrix:
    rows = np.concatenate([edges[:, 0], edges[:, 1]]).astype(np.int64)
    columns = np.concatenate([edges[:, 1], edges[:, 0]]).astype(np.int64)
    S = sparse.csr_array((np.concatenate([values, values]), (rows, columns)), shape=(n, n))
    S.sort_indices()
    return S
