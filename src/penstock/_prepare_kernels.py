"""Scaling, compiled: one pass over the rows, each row by itself."""

from __future__ import annotations

from penstock._jit import Array, kernel


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
