"""Scaling, compiled: one pass over the rows gives them as residuals see them and as the factorisation does."""

from __future__ import annotations

import numpy as np

from penstock._jit import Array, kernel


@kernel
def scale_rows(X: Array, unit: Array, low: Array, span: Array, farthest: float, scaled: Array, clipped: Array) -> None:
    """(x·unit − low)/span within ±farthest, and within [0, 1]. A span < 0 marks a column that was constant.

    Of such a column 0 is left in `clipped`. NaN stays NaN in both.
    """
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            value = (X[i, j] * unit[j] - low[j]) / abs(span[j])
            scaled[i, j] = value if np.isnan(value) else min(max(value, -farthest), farthest)
            if np.isnan(value):
                clipped[i, j] = value
            elif span[j] < 0.0:
                clipped[i, j] = 0.0
            else:
                clipped[i, j] = min(max(value, 0.0), 1.0)
