"""Values, gradients and KKT residuals of an objective from sums over its rows.

Needs the numbers of an objective but not its data, so that a driver that sees only sums can use it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from penstock._threads import dot
from penstock._types import FloatArray

# Below this share of ‖A‖² or ‖S‖² the expanded squares have lost three digits: sum the squares themselves instead.
CANCELS = 1e-3

Parts = tuple[FloatArray, FloatArray]  # the gradient p − q as p, q ≥ 0


@dataclass(frozen=True)
class Terms:
    """The numbers of an objective, to be sent where its table and its graph do not fit. See `Objective`."""

    n_rows: int
    n_columns: int
    symmetric: float = 0.0
    alpha: float = 0.0
    laplacian: float = 0.0
    gamma: float = 0.0
    row_bound: float = math.inf
    norm_A: float = 0.0  # ‖A‖²  # noqa: N815
    norm_S: float = 0.0  # ‖S‖²  # noqa: N815


@dataclass(frozen=True, eq=False)
class Sums:
    """All that f(W,H) needs to know of W: G = WᵀW, V = WᵀA, ⟨W, SW⟩ and tr(WᵀLW)."""

    G: FloatArray
    V: FloatArray
    agreement: float
    roughness: float


@dataclass(frozen=True)
class Gaps:
    """Sums of squared residuals: of the table, of the similarities in S, and of WWᵀ where S has no entry."""

    attributes: float
    on_graph: float
    off_graph: float


def value_of(terms: Terms, H: FloatArray, sums: Sums, gaps: Callable[[], Gaps], unseen: float = 0.0) -> float:
    """Compute f(W,H) from sums over the rows. Ahmed et al. (2021), eq:main.

    Where a term is nearly fitted and its expanded square would cancel, `gaps` is called for the residuals themselves.
    `unseen` is the part of the expanded ‖A−WH‖² that belongs to missing entries.
    """
    total = terms.gamma * (float(np.trace(sums.G)) + dot(H, H)) + terms.laplacian * sums.roughness
    structure = attributes = 0.0
    if terms.symmetric:
        structure = terms.norm_S - 2 * sums.agreement + dot(sums.G, sums.G)
    if terms.alpha:
        attributes = terms.norm_A - 2 * dot(sums.V, H) + dot(sums.G, H @ H.T) - unseen
    # NaN does not compare as smaller: it is passed on.
    structure_fits = terms.symmetric > 0 and structure <= CANCELS * terms.norm_S
    table_fits = terms.alpha > 0 and attributes <= CANCELS * terms.norm_A
    if structure_fits or table_fits:
        near = gaps()
        structure = near.on_graph + near.off_graph if structure_fits else structure
        attributes = near.attributes if table_fits else attributes
    return total + terms.symmetric * structure + terms.alpha * attributes


def has_risen(terms: Terms, value: float, before: float) -> bool:
    """Tell whether f has grown by more than rounding can account for.

    Far from a fit that is a share of the norms, whose expanded squares f is made of; near one, where residuals are
    summed instead, a share of f itself. The caller only repeats a sweep, so that a false alarm costs little.

    >>> terms = Terms(3, 2, alpha=1.0, norm_A=6.0)
    >>> has_risen(terms, 1.0 + 1e-15, 1.0), has_risen(terms, 2e-20, 1e-20)
    (False, True)
    """
    structure = terms.symmetric * terms.norm_S if terms.symmetric else 0.0  # the norm may be infinite
    return value > before + min(1e-15 * (structure + terms.alpha * terms.norm_A), 1e-9 * before)


def weight_parts(
    terms: Terms, W: FloatArray, G: FloatArray, H: FloatArray, degree: FloatArray,
    SW: FloatArray | None, C: FloatArray | None,
) -> Parts:  # fmt: skip
    """Compute the gradient over some rows of W; SW and C = AHᵀ of these rows may be None where their weights are 0.

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


def profile_parts(terms: Terms, H: FloatArray, G: FloatArray, V: FloatArray) -> Parts:
    """Compute the gradient over H, given G = WᵀW and V = WᵀA."""
    return 2 * terms.alpha * G @ H + 2 * terms.gamma * H, 2 * terms.alpha * V


def weight_residuals(
    terms: Terms, W: FloatArray, H: FloatArray, sizes: FloatArray, degree: FloatArray, mean: float, parts: Parts
) -> FloatArray:
    """Compute the squared KKT residual of each of these rows; `sizes` are the squared norms of all of W's columns.

    See `Objective.kkt_residual`; `mean` is W's mean entry.
    """
    rise, fall = parts
    squares = W**2
    curvature = 4 * terms.symmetric * (sizes + squares.sum(axis=1)[:, None] + squares)
    curvature += 2 * terms.alpha * np.sum(H**2, axis=1) + 2 * terms.gamma
    curvature += 2 * terms.laplacian * degree[:, None]
    return _relative_squares(np.minimum(curvature * W, rise - fall), rise + fall + curvature * mean)


def profile_residual(terms: Terms, H: FloatArray, sizes: FloatArray, parts: Parts) -> float:
    """Compute the root mean square of the KKT residuals of H's rows."""
    rise, fall = parts
    bend = 2 * terms.alpha * sizes[:, None] + 2 * terms.gamma
    step = (rise - fall) / np.where(bend > 0, bend, 1.0)
    left = bend * (H - shorten_rows(np.maximum(H - step, 0.0), terms.row_bound))
    return math.sqrt(float(_relative_squares(left, rise + fall + bend * H.mean()).mean()))


def _relative_squares(left: FloatArray, scale: FloatArray) -> FloatArray:
    """Compute ‖left‖²/‖scale‖² of each row, where 0/0 is 0."""
    bottoms = np.sum(scale**2, axis=1)
    return np.asarray(np.sum(left**2, axis=1) / np.where(bottoms > 0, bottoms, 1.0))


def shorten_rows(H: FloatArray, bound: float) -> FloatArray:
    """Shorten rows of H ≥ 0 that are longer than `bound` to it: the projection onto the ball in the orthant.

    >>> shorten_rows(np.array([[3.0, 4.0], [0.0, 1.0]]), 2.5).tolist()
    [[1.5, 2.0], [0.0, 1.0]]
    """
    if math.isinf(bound):
        return H
    norms = np.sqrt(np.einsum("kj,kj->k", H, H))[:, None]
    return np.where(norms > bound, H * (bound / np.where(norms > bound, norms, 1.0)), H)
