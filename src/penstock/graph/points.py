"""Points made ready for an exact search: a float64 copy that decides and a float32 copy that rules out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock._types import FloatArray

_ROWS = 1 << 15  # rows handled at once, so that no second copy of the data is needed
_LARGEST_ROTATION = 512  # more columns than this are left unrotated: p³ would cost more than it saves


@dataclass(frozen=True)
class Points:
    """`exact` is the data times a power of two; `search` is float32, centred, perhaps rotated, padded to 4 columns.

    Whenever ‖exact_i − exact_j‖ ≤ r, the float32 squared distance of search_i and search_j, summed in any order, is at
    most (r + shift)² · stretch: docs/decisions/0002-exact-trees.md has the proof.
    """

    exact: FloatArray
    exponent: int  # data = exact · 2**exponent
    search: NDArray[np.float32]
    radius: float  # no search point is farther from the origin
    shift: float
    stretch: float


def scale_exactly(X: FloatArray) -> tuple[FloatArray, int]:
    """X times a power of two, without rounding, so that the largest column range is about one."""
    exponent = _exponent(float(np.abs(X).max(initial=0.0)))
    spread = float((np.ldexp(X.max(axis=0), -exponent) - np.ldexp(X.min(axis=0), -exponent)).max(initial=0.0))
    exponent += _exponent(spread)
    return np.ldexp(X, -exponent), exponent


def _exponent(value: float) -> int:
    return int(np.frexp(value)[1]) if value > 0 else 0


def prepare_points(X: FloatArray, *, rotate: bool) -> Points:
    """Scale, centre and (for trees of boxes) rotate to principal axes, measuring the rounding that this costs."""
    exact, exponent = scale_exactly(X)
    n, p = exact.shape
    center = exact[:: max(1, n // 4096)].mean(axis=0)
    rotation = _principal_axes(exact, center) if rotate and 1 < p <= _LARGEST_ROTATION else None
    search = np.zeros((n, max(4, -(-p // 4) * 4)), dtype=np.float32)
    worst, radius = 0.0, 0.0
    for start in range(0, n, _ROWS):
        moved = exact[start : start + _ROWS] - center
        radius = max(radius, float(np.einsum("ij,ij->i", moved, moved).max()))
        if rotation is not None:
            moved = moved @ rotation
        rounded = moved.astype(np.float32)
        moved -= rounded
        worst = max(worst, float(np.einsum("ij,ij->i", moved, moved).max()))
        search[start : start + _ROWS, :p] = rounded
    double, single = 2.0**-53, 2.0**-24
    error = np.sqrt(worst) * (1 + 1e-9) + 4 * (p + 4) * np.sqrt(p) * double * np.sqrt(radius)
    skew = 0.0 if rotation is None else float(np.linalg.norm(rotation.T @ rotation - np.eye(p))) + 4 * p * p * double
    stretch = (1 + skew) ** 2 * (1 + 2 * (p + 8) * single) * (1 + 4 * (p + 8) * double)
    return Points(exact, exponent, search, (1 + 1e-6) * np.sqrt(radius) * (1 + skew) + error, 2 * error, stretch)


def _principal_axes(exact: FloatArray, center: FloatArray) -> FloatArray:
    """Orthogonal directions, the widest first, of a sample of the rows."""
    sample = exact[:: max(1, len(exact) // 65536)] - center
    axes: FloatArray = np.linalg.eigh(sample.T @ sample)[1]
    return np.ascontiguousarray(axes[:, ::-1])
