"""H for given W: what the latent groups look like when only the weights are known."""

from __future__ import annotations

import numpy as np

from penstock._types import FloatArray
from penstock.factor.coordinate import update_profiles
from penstock.factor.objectives import nmf


def fit_profiles(A: FloatArray, W: FloatArray, *, max_iter: int = 1000, tol: float = 1e-10) -> FloatArray:
    """The H ≥ 0 that minimises ‖A−WH‖² for given W ≥ 0: how SNMF, which has no H, gets one..

    >>> W = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> fit_profiles(W @ np.array([[1.0, 2.0], [3.0, 0.0]]), W).round(6)
    array([[1., 2.],
           [3., 0.]])
    """
    objective = nmf(A)
    G, V = W.T @ W, objective.attributes_by(W)
    H = np.zeros((W.shape[1], A.shape[1]))
    for _ in range(max_iter):
        if update_profiles(objective, H, G, V) <= tol:
            break
    return H
