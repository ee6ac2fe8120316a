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


def spatial(
    n: int, p: int, seed: int = 0, clusters: int = 40, intrinsic: int = 3, outliers: float = 5e-4
) -> FloatArray:
    """What sensors of a plant look like: p readings of three quantities, in forty regimes, with a few outliers.

    Drawn a piece at a time, so that five million rows need no second copy of themselves.
    """
    rng = np.random.default_rng(seed)
    centers = rng.uniform(0, 10, (clusters, intrinsic))
    widths = rng.uniform(0.2, 0.6, (clusters, 1))
    linear, waves = rng.normal(size=(intrinsic, p)) / 10, rng.normal(size=(intrinsic, p))
    X = np.empty((n, p))
    for start in range(0, n, 1 << 18):
        rows = X[start : start + (1 << 18)]
        member = rng.integers(clusters, size=len(rows))
        state = centers[member] + widths[member] * rng.normal(size=(len(rows), intrinsic))
        rows[:] = np.tanh(state @ linear) + 0.02 * np.sin(state @ waves) + 1e-4 * rng.normal(size=rows.shape)
        odd = rng.random(len(rows)) < outliers
        rows[odd] = rng.uniform(-1, 1, (int(odd.sum()), p))
    return X


KINDS = {"uniform": uniform, "clustered": clustered, "spatial": spatial}
