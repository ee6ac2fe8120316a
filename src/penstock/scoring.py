"""Score rows by how badly the latent groups explain them. High means anomalous."""

from __future__ import annotations

from functools import partial

import numpy as np

from penstock._row_kernels import distances_to, residual_norms
from penstock._threads import for_each_range
from penstock._types import FloatArray, SparseMatrix
from penstock.graph.paths import PathSimilarity
from penstock.graph.similarities import neighbor_mean

_SMALLEST_RANGE = 2048  # rows per thread below which starting a thread costs more than it saves


def residual_scores(A: FloatArray, W: FloatArray, H: FloatArray) -> FloatArray:
    """Return O_i = ‖a_i − w_i H‖₂. Ahmed et al. (2021), eq:anomaly.

    Each row by itself, to the last bit; no second n×p array; safe from overflow. Missing entries of A (NaN) are left
    out and the others stand for them: √(p/|seen| · Σ over the entries seen). Each row has one.

    >>> import numpy as np
    >>> residual_scores(np.array([[3.0, 4.0], [1.0, 1.0]]), np.array([[0.0], [1.0]]), np.array([[1.0, 1.0]]))
    array([5., 0.])
    """
    A = np.ascontiguousarray(A, dtype=np.float64)
    W = np.ascontiguousarray(W, dtype=np.float64)
    H = np.ascontiguousarray(H, dtype=np.float64)
    scores = np.empty(len(A))
    for_each_range(partial(residual_norms, A, W, H, scores), len(A), smallest=_SMALLEST_RANGE)
    return scores


def structural_scores(A: FloatArray, W: FloatArray, H: FloatArray, S: SparseMatrix | PathSimilarity) -> FloatArray:
    """Return ‖a_i − w̄_i H‖₂, w̄_i = Σ_j S_ij w_j / Σ_j S_ij: a row rebuilt from its tree neighbours' weights only.

    Not in the paper. It finds rows that have a small residual with weights unlike those of their neighbours. A row
    without a neighbour is rebuilt from its own weights.

    >>> import numpy as np
    >>> from scipy import sparse
    >>> A, H = np.array([[1.0], [5.0]]), np.array([[1.0]])
    >>> structural_scores(A, A, H, sparse.csr_array([[0.0, 2.0], [2.0, 0.0]]))
    array([4., 4.])
    """
    return residual_scores(A, neighbor_mean(W, S), H)


def distance_scores(A: FloatArray, point: FloatArray) -> FloatArray:
    """Return ‖a_i − point‖₂, every row by itself; missing entries (NaN) as in `residual_scores`.

    >>> import numpy as np
    >>> distance_scores(np.array([[3.0, 4.0], [0.0, 1.0]]), np.zeros(2))
    array([5., 1.])
    """
    A, point = np.ascontiguousarray(A, dtype=np.float64), np.ascontiguousarray(point, dtype=np.float64)
    scores = np.empty(len(A))
    for_each_range(partial(distances_to, A, point, scores), len(A), smallest=_SMALLEST_RANGE)
    return scores
