"""H for given W: what the latent groups look like when only the weights are known."""

from __future__ import annotations

import numpy as np

from penstock._types import FloatArray
from penstock.factor.coordinate import update_profiles
from penstock.factor.objectives import nmf


def fit_profiles(A: FloatArray, W: FloatArray, *, max_iter: int = 1000, tol: float = 1e-10) -> FloatArray:
    """The H ≥ 0 that minimises ‖A−WH‖² for given W ≥ 0: how SNMF, which has no H, gets one.

    Missing entries of A (NaN) are left out: each column with holes is fitted to the rows that have it.

    >>> W = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> fit_profiles(W @ np.array([[1.0, 2.0], [3.0, 0.0]]), W).round(6)
    array([[1., 2.],
           [3., 0.]])
    """
    holes = np.isnan(A)
    if holes.any():
        H = np.empty((W.shape[1], A.shape[1]))
        whole = ~holes.any(axis=0)
        if whole.any():
            H[:, whole] = fit_profiles(A[:, whole], W, max_iter=max_iter, tol=tol)
        for column in np.flatnonzero(~whole):
            seen = ~holes[:, column]
            H[:, [column]] = fit_profiles(A[seen][:, [column]], W[seen], max_iter=max_iter, tol=tol)
        return H
    objective = nmf(A)
    G, V = W.T @ W, objective.attributes_by(W)
    H = np.zeros((W.shape[1], A.shape[1]))
    for _ in range(max_iter):
        if update_profiles(objective, H, G, V) <= tol:
            break
    return H
