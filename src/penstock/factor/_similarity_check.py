"""Similarities as an objective takes them."""

from __future__ import annotations

import math

import numpy as np
from scipy import sparse

from penstock._types import SparseMatrix


def checked_similarity(S: SparseMatrix, n: int) -> SparseMatrix:
    """S as a float64 `csr_array` with sorted columns, or an error if it is not n×n, symmetric, finite and ≥ 0."""
    S = sparse.csr_array(S, dtype=np.float64)
    if S.shape != (n, n):
        raise ValueError(f"S must be {n}×{n}, one row and one column per observation, but has shape {S.shape}.")
    S.sum_duplicates()  # sorts the columns within each row, too
    mirror = S.T.tocsr()
    same = np.array_equal(S.indptr, mirror.indptr) and np.array_equal(S.indices, mirror.indices)
    if not (same and np.array_equal(S.data, mirror.data)):
        raise ValueError("S must be symmetric: S_ij = S_ji.")
    if len(S.data) and not (S.data.min() >= 0 and math.isfinite(S.data.max())):
        raise ValueError("S must hold finite similarities ≥ 0.")
    return S
