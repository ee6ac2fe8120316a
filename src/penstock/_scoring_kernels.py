"""Reconstruction errors, compiled: one row at a time, so that a score cannot depend on the other rows."""

from __future__ import annotations

import numpy as np

from penstock._jit import Array, kernel

LARGEST = float(np.finfo(np.float64).max)


@kernel
def norm(row: Array) -> float:
    """‖row‖₂ in a fixed order of summation, safe from overflow and underflow; at most the largest float."""
    total = 0.0
    largest = 0.0
    for d in range(row.shape[0]):
        total += row[d] * row[d]
        largest = max(largest, abs(row[d]))
    if 1e-280 < total < 1e300:
        return float(np.sqrt(total))
    if largest == 0.0 and total == 0.0:
        return 0.0
    if np.isnan(total) or not largest <= LARGEST:  # w·H overflowed, perhaps to ∞ − ∞
        return LARGEST
    total = 0.0
    for d in range(row.shape[0]):
        total += (row[d] / largest) * (row[d] / largest)
    return float(min(largest * np.sqrt(total), LARGEST))


@kernel
def seen_norm(row: Array, a: Array) -> float:
    """‖row‖₂, the entries that are NaN in `a` left out and the others standing for them: √(p/|seen| · Σ row²).

    Moves the entries of `row`. Without a hole the same as `norm(row)`.
    """
    p = row.shape[0]
    seen = 0
    for d in range(p):
        row[seen] = row[d]
        seen += 1 - int(np.isnan(a[d]))
    if seen == p:
        return float(norm(row))
    return float(min(norm(row[:seen]) * np.sqrt(p / seen), LARGEST))


@kernel
def residual_norms(A: Array, W: Array, H: Array, start: int, stop: int, out: Array) -> None:
    """out[i] = ‖a_i − w_i H‖₂."""
    row = np.empty(A.shape[1])
    for i in range(start, stop):
        for d in range(A.shape[1]):
            row[d] = A[i, d]
        for k in range(H.shape[0]):
            weight = W[i, k]
            for d in range(A.shape[1]):
                row[d] -= weight * H[k, d]
        out[i] = seen_norm(row, A[i])


@kernel
def distances_to(A: Array, point: Array, start: int, stop: int, out: Array) -> None:
    """out[i] = ‖a_i − point‖₂."""
    row = np.empty(A.shape[1])
    for i in range(start, stop):
        for d in range(A.shape[1]):
            row[d] = A[i, d] - point[d]
        out[i] = seen_norm(row, A[i])
