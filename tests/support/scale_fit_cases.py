"""What several tests of detectors share: taken from those of scale fit."""

from __future__ import annotations

import numpy as np

NAMES = ["flow", "head", "load", "speed"]


def some_rows(n=600, seed=0):
    """Rows near a plane, some of them twice and a few five times."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2)) @ rng.random((2, 4)) + 0.02 * rng.random((n, 4))
    X[n // 4 : n // 4 + 30] = X[:30]
    X[n // 2 : n // 2 + 4] = X[3]
    X[37] += 1.0
    return X
