"""How far factors are from a stationary point, row by row, from whatever of the problem the rows can see.

One projected gradient step, x⁺ = P(x − ∇f/ℓ) with ℓ the coordinate's curvature, stands still exactly at a
Karush-Kuhn-Tucker point. A row's residual is ‖ℓ(x − x⁺)‖ over ‖p + q + ℓm‖, where ∇f = p − q with p, q ≥ 0 and m is the
factor's mean entry.
"""

from __future__ import annotations

import math

import numpy as np

from penstock._types import FloatArray
from penstock.factor.terms import Weighed

Parts = tuple[FloatArray, FloatArray]  # p and q


def weight_parts(
    terms: Weighed,
    W: FloatArray,
    G: FloatArray,
    H: FloatArray,
    degree: FloatArray,
    SW: FloatArray | None,
    C: FloatArray | None,
) -> Parts:
    """The gradient over some rows of W; SW and C = AHᵀ for these rows may be left out where nothing weighs them.

    Differentiates Ahmed et al. (2021), eq:main.
    """
    rise = W @ (4 * terms.symmetric * G + 2 * terms.alpha * (H @ H.T)) + 2 * terms.gamma * W
    fall = np.zeros_like(W)
    if terms.laplacian:
        rise += 2 * terms.laplacian * degree[:, None] * W
    if SW is not None:
        fall += (4 * terms.symmetric + 2 * terms.laplacian) * SW
    if C is not None:
        fall += 2 * terms.alpha * C
    return rise, fall


def profile_parts(terms: Weighed, H: FloatArray, G: FloatArray, V: FloatArray) -> Parts:
    """The gradient over H, given G = WᵀW and V = WᵀA."""
    return 2 * terms.alpha * G @ H + 2 * terms.gamma * H, 2 * terms.alpha * V


def weight_residuals(
    terms: Weighed, W: FloatArray, H: FloatArray, sizes: FloatArray, degree: FloatArray, mean: float, parts: Parts
) -> FloatArray:
    """The squared residual of each of these rows; `sizes` are the squared norms of all of W's columns."""
    rise, fall = parts
    squares = W**2
    curvature = 4 * terms.symmetric * (sizes + squares.sum(axis=1)[:, None] + squares)
    curvature += 2 * terms.alpha * np.sum(H**2, axis=1) + 2 * terms.gamma
    curvature += 2 * terms.laplacian * degree[:, None]
    return relative_squares(np.minimum(curvature * W, rise - fall), rise + fall + curvature * mean)


def profile_residual(terms: Weighed, H: FloatArray, sizes: FloatArray, parts: Parts) -> float:
    """The root mean square of the residuals of H's rows."""
    rise, fall = parts
    bend = 2 * terms.alpha * sizes[:, None] + 2 * terms.gamma
    step = (rise - fall) / np.where(bend > 0, bend, 1.0)
    left = bend * (H - shorten_rows(np.maximum(H - step, 0.0), terms.row_bound))
    return root_mean(relative_squares(left, rise + fall + bend * H.mean()))


def relative_squares(left: FloatArray, scale: FloatArray) -> FloatArray:
    """The rows' ‖left‖²/‖scale‖², where 0/0 is 0."""
    bottoms = np.sum(scale**2, axis=1)
    return np.asarray(np.sum(left**2, axis=1) / np.where(bottoms > 0, bottoms, 1.0))


def root_mean(squares: FloatArray) -> float:
    """The root of the mean, 0 for none."""
    return math.sqrt(float(np.mean(squares))) if len(squares) else 0.0


def shorten_rows(H: FloatArray, bound: float) -> FloatArray:
    """The rows of H ≥ 0, those longer than `bound` shortened to it: the projection onto the ball in the orthant.

    >>> shorten_rows(np.array([[3.0, 4.0], [0.0, 1.0]]), 2.5).tolist()
    [[1.5, 2.0], [0.0, 1.0]]
    """
    if math.isinf(bound):
        return H
    norms = np.sqrt(np.einsum("kj,kj->k", H, H))[:, None]
    return np.where(norms > bound, H * (bound / np.where(norms > bound, norms, 1.0)), H)
