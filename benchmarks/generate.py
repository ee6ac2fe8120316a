"""Tables to measure on."""

from __future__ import annotations

import numpy as np

from penstock._types import FloatArray


def uniform(n: int, p: int, seed: int = 0) -> FloatArray:
    """Points that fill the unit cube: as many intrinsic dimensions as columns."""
    return np.random.default_rng(seed).uniform(size=(n, p))


def clustered(n: int, p: int, seed: int = 0, clusters: int = 20, intrinsic: int = 6) -> FloatArray:
    """Points near a few flat sheets of low dimension, each tilted its own way, with a little noise off the sheet."""
    rng = np.random.default_rng(seed)
    d = min(p, intrinsic)
    member = rng.integers(clusters, size=n)
    X = np.empty((n, p))
    for c in range(clusters):
        rows = np.flatnonzero(member == c)
        sheet = rng.normal(size=(d, p)) / np.sqrt(d)
        X[rows] = rng.uniform(-3, 3, p) + 0.5 * rng.normal(size=(len(rows), d)) @ sheet
        X[rows] += 0.02 * rng.normal(size=(len(rows), p))
    return X


KINDS = {"uniform": uniform, "clustered": clustered}
