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
