"""What is done to rows, compiled: hashes, scaling and reconstruction errors.

One pass, one row at a time, so that a score cannot depend on the other rows.
"""

from __future__ import annotations

import numpy as np

from penstock._jit import Array, kernel

LARGEST = float(np.finfo(np.float64).max)


@kernel
def hash_words(X: Array, words: Array, hashes: Array) -> None:
    """FNV-1a over the 64-bit words of each row, mixed; −0.0 counts as 0.0, and every NaN as one."""
    for i in range(X.shape[0]):
        found = np.uint64(14695981039346656037)
        for d in range(X.shape[1]):
            word = words[i, d]
            if X[i, d] == 0.0:
                word = np.uint64(0)
            elif X[i, d] != X[i, d]:
                word = np.uint64(0x7FF8000000000000)
            found = (found ^ word) * np.uint64(1099511628211)
            found ^= found >> np.uint64(29)
        hashes[i] = found


@kernel
def scale_rows(X: Array, center: Array, width: Array, largest: float, out: Array) -> None:
    """out = (X − center)/width, cut at ±largest; NaN stays NaN."""
    n, p = X.shape
    for i in range(n):
        for j in range(p):
            out[i, j] = (X[i, j] - center[j]) / width[j]
            if out[i, j] > largest:
                out[i, j] = largest
            elif out[i, j] < -largest:
                out[i, j] = -largest


@kernel
def clip_rows(scaled: Array, constant: Array, out: Array) -> None:
    """`scaled` within [0, 1], and 0 in columns that were constant; NaN stays NaN."""
    n, p = scaled.shape
    for i in range(n):
        for j in range(p):
            value = scaled[i, j]
            if value > 1.0:
                value = 1.0
            elif value < 0.0:
                value = 0.0
            out[i, j] = 0.0 * value if constant[j] else value


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
def residual_norms(A: Array, W: Array, H: Array, out: Array, start: int, stop: int) -> None:
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
def distances_to(A: Array, point: Array, out: Array, start: int, stop: int) -> None:
    """out[i] = ‖a_i − point‖₂."""
    row = np.empty(A.shape[1])
    for i in range(start, stop):
        for d in range(A.shape[1]):
            row[d] = A[i, d] - point[d]
        out[i] = seen_norm(row, A[i])
