"""Weights for rows that were not in the fit, compiled."""

from __future__ import annotations

import numpy as np

from penstock._jit import kernel
from penstock._types import FloatArray, IndexArray
from penstock.factor._kernels import minimise_quartic


@kernel
def settle(w: FloatArray, M: FloatArray, pull: FloatArray, shift: float, symmetric: float, max_steps: int) -> None:
    """Exact coordinate steps on one row of weights, all else fixed, until they stand still (see `sweep_rows`)."""
    K = w.shape[0]
    for _ in range(max_steps):
        moved = 0.0
        norm = 0.0
        for k in range(K):
            norm += w[k] * w[k]
        for k in range(K):
            x = w[k]
            others = max(norm - x * x, 0.0)
            a = M[k, k] + symmetric * others + shift
            b = -x * M[k, k] - pull[k]
            for m in range(K):
                b += w[m] * M[k, m]
            fresh = x
            if symmetric > 0.0:
                fresh = minimise_quartic(a / symmetric, b / symmetric, x)
            elif a > 0.0:
                fresh = max(-b / a, 0.0)
            if fresh < 1e-100:  # below all rounding, and slow
                fresh = 0.0
            w[k] = fresh
            norm = others + fresh * fresh
            moved = max(moved, abs(fresh - x))
        if moved <= 1e-13 * np.sqrt(norm):
            return


@kernel
def gather_pull(
    a: FloatArray,
    H: FloatArray,
    half_alpha: float,
    pull: FloatArray,
) -> None:
    """`pull` = (α/2)·aHᵀ over the entries seen, in a fixed order so that a row's result never depends on its batch."""
    for k in range(H.shape[0]):
        total = 0.0
        for d in range(H.shape[1]):
            if not np.isnan(a[d]):
                total += a[d] * H[k, d]
        pull[k] = half_alpha * total


@kernel
def gather_curvature(
    a: FloatArray, H: FloatArray, M: FloatArray, structure: FloatArray, half_alpha: float, curvature: FloatArray
) -> None:
    """`curvature` = structure + (α/2)·HHᵀ over the entries of a row that are seen; M is that over all of them."""
    holes = 0
    for d in range(H.shape[1]):
        holes += int(np.isnan(a[d]))
    for k in range(H.shape[0]):
        for m in range(H.shape[0]):
            curvature[k, m] = M[k, m]
    if holes == 0:
        return
    for k in range(H.shape[0]):
        for m in range(k + 1):
            total = 0.0
            for d in range(H.shape[1]):
                if not np.isnan(a[d]):
                    total += H[k, d] * H[m, d]
            curvature[k, m] = structure[k, m] + half_alpha * total
            curvature[m, k] = curvature[k, m]


@kernel
def place(
    A: FloatArray,
    fitted: FloatArray,
    W: FloatArray,
    H: FloatArray,
    indptr: IndexArray,
    indices: IndexArray,
    data: FloatArray,
    neighbors: IndexArray,
    apart: FloatArray,
    similarity: FloatArray,
    M: FloatArray,
    structure: FloatArray,
    weights: FloatArray,
    max_steps: int,
    placed: FloatArray,
    around: FloatArray,
    start: int,
    stop: int,
) -> None:
    """Weights of rows start..stop of A beside the fitted ones; `around` gets their neighbours' mean weights.

    Row r stands in for its fitted neighbour i to the part 1 − apart_r and is a leaf on it to the part apart_r: its
    edges and the Gram matrix of the others are mixed so. `weights` holds symmetric, coupling, α/2, γ/2, laplacian/2;
    `structure` is symmetric·WᵀW and M that plus (α/2)·HHᵀ. NaN in A and in `fitted` is left out.
    """
    K = W.shape[1]
    symmetric, coupling, half_alpha, half_gamma, half_laplacian = (
        weights[0],
        weights[1],
        weights[2],
        weights[3],
        weights[4],
    )
    pull = np.empty(K)
    lone = np.empty(K)  # the same for the fitted row itself
    mixed = np.empty((K, K))
    curvature = np.empty((K, K))
    settled = np.empty(K)
    for r in range(start, stop):
        i = neighbors[r]
        share = 1.0 - apart[r]
        gather_pull(A[r], H, half_alpha, pull)
        gather_curvature(A[r], H, M, structure, half_alpha, curvature)
        gather_pull(fitted[i], H, half_alpha, lone)
        degree = 0.0
        full_degree = 0.0
        for k in range(K):
            around[r, k] = 0.0
            settled[k] = W[i, k]
            placed[r, k] = W[i, k]
            for m in range(K):
                mixed[k, m] = curvature[k, m] - share * symmetric * W[i, k] * W[i, m]
        for e in range(indptr[i], indptr[i + 1]):
            full_degree += data[e]
            for k in range(K):
                around[r, k] += share * data[e] * W[indices[e], k]
                lone[k] += coupling * data[e] * W[indices[e], k]
        own = apart[r] * similarity[r]
        degree = share * full_degree + own
        for k in range(K):
            around[r, k] += own * W[i, k]
            pull[k] += coupling * around[r, k]
        settle(placed[r], mixed, pull, half_gamma + half_laplacian * degree, symmetric, max_steps)
        if share > 0.0:  # what a fit that stopped early left undone at the neighbour is left undone here too
            gather_curvature(fitted[i], H, M, structure, half_alpha, curvature)
            for k in range(K):
                for m in range(K):
                    mixed[k, m] = curvature[k, m] - symmetric * W[i, k] * W[i, m]
            settle(settled, mixed, lone, half_gamma + half_laplacian * full_degree, symmetric, max_steps)
            for k in range(K):
                placed[r, k] = max(placed[r, k] + share * (W[i, k] - settled[k]), 0.0)
        for k in range(K):
            around[r, k] = around[r, k] / degree if degree > 0.0 else placed[r, k]
