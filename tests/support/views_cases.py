"""What several tests of detectors share: taken from those of views."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import numpy as np

from penstock.detectors import views as composite


@contextmanager
def few_draws() -> Iterator[None]:
    """So few that slow loops can follow."""
    with mock.patch.multiple(composite, COARSE=(6, 4), FINE=(5, 8)):
        yield


def punch(X: np.ndarray, rng: np.random.Generator, share: float) -> np.ndarray:
    """Holes in all columns but the last."""
    X = X.copy()
    X[:, :-1][rng.random((len(X), X.shape[1] - 1)) < share] = np.nan
    return X


def make_table(seed: int, n: int, p: int, kind: str, copies: bool, constant: bool, holes: bool) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) if kind == "smooth" else rng.integers(-2, 3, (n, p)).astype(float)
    if kind == "wide":
        X = np.sign(rng.normal(size=(n, p))) * rng.lognormal(sigma=4.0, size=(n, p))
    if copies:
        X = X[rng.integers(0, max(1, n // rng.integers(1, 5)), n)]
    if constant:
        X[:, rng.integers(p)] = -1.5
    return np.vstack([X[:1], punch(X[1:], rng, 0.3)]) if holes else X  # a reading in every column


def new_rows(X: np.ndarray, seed: int, holes: bool) -> np.ndarray:
    """Near and far, on a fitted row and just next to it."""
    rng = np.random.default_rng(seed + 1)
    size = np.nanmax(np.abs(X))
    rows = np.nan_to_num(X[rng.integers(0, len(X), 6)], nan=float(size))
    rows[1] += 1e-3 * size * rng.normal(size=X.shape[1])
    rows[2] += 0.2 * size * rng.normal(size=X.shape[1])
    rows[3] = size * rng.normal(size=X.shape[1])
    rows[4] = 40 * size * rng.normal(size=X.shape[1])
    if holes:
        rows[3:] = punch(rows[3:], rng, 0.4)
    return np.vstack([rows, X[:2]])
