"""Weights of new rows under a fitted model: each is attached to its nearest fitted row, all else stays fixed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock._threads import for_each_range, one_blas_thread
from penstock._types import BoolArray, Factors, FloatArray, IndexArray
from penstock.factor._kernels import place
from penstock.factor.objectives import Objective
from penstock.graph.similarities import neighbor_mean

_MAX_STEPS = 500


@dataclass(frozen=True)
class Attachment:
    """Where new rows join: their nearest fitted row, and how much they are a row of their own.

    `apart` runs from 0 (equal to that row: its edges, its weights) to 1 (as far from it as its nearest neighbour, or
    farther: a leaf joined to it by `similarity`). In between both are mixed, so that a score has no jump anywhere on
    the way from a new row to a fitted one. Rows that are `equal` (None: those with `apart` = 0) get a fitted row's
    weights at once: where entries are missing, rows that agree wherever both have one need not be equal.
    """

    neighbors: IndexArray
    apart: FloatArray
    similarity: FloatArray
    equal: BoolArray | None = None
    distances: FloatArray | None = None  # to that row; None: 0


def attach(
    neighbors: IndexArray, distances: FloatArray, reach: FloatArray, strongest: FloatArray,
    *, decays: bool = True, equal: BoolArray | None = None,
) -> Attachment:  # fmt: skip
    """Attach rows to fitted ones at the given distances.

    `reach[i]` is the distance from fitted row i to its own nearest neighbour, `strongest[i]` its largest similarity.
    For the paper's S = 1/M the new edge's similarity is then 1/distance, but never more than its neighbour's largest.
    Where similarities do not depend on lengths (a 0-1 graph), `decays` is False and it is that largest one.
    """
    near = reach[neighbors]
    similarity = strongest[neighbors]
    if decays:
        similarity = similarity * np.minimum(1.0, near / np.maximum(distances, near))
    return Attachment(neighbors, np.minimum(1.0, distances / near), similarity, equal, distances)


def place_rows(
    objective: Objective, factors: Factors, A: FloatArray, attachment: Attachment
) -> tuple[FloatArray, FloatArray]:
    """Compute the weights of new rows and the mean weights of their neighbours; the exact minimum, H and W fixed.

    Each row is solved by itself: the result does not depend on the others. A row equal to a fitted one gets its weights
    and its neighbours' mean. Missing entries (NaN) of new and of fitted rows are left out.
    """
    W = np.ascontiguousarray(factors.W)
    # Without attributes in the objective, profiles fitted afterwards do not affect the weights.
    H = np.ascontiguousarray(factors.H if objective.A is not None else factors.H[:, :0])
    structure = objective.symmetric * _gram(factors) if objective.symmetric else np.zeros(2 * W.shape[1:])
    with one_blas_thread():
        M = structure + objective.alpha / 2 * (H @ H.T)
    symmetric, laplacian = objective.symmetric, objective.laplacian / 2
    weights = np.array([symmetric, symmetric + laplacian, objective.alpha / 2, objective.gamma / 2, laplacian])
    fitted = objective.A if objective.A is not None else np.empty((len(W), 0))
    rows = A if objective.A is not None else np.empty((len(A), 0))
    placed, around = np.empty((len(A), W.shape[1])), np.empty((len(A), W.shape[1]))
    neighbors = np.ascontiguousarray(attachment.neighbors)  # one layout, so that the kernel is compiled once
    apart = np.ascontiguousarray(attachment.apart)
    similarity = np.ascontiguousarray(attachment.similarity)
    distances = np.zeros(len(A)) if attachment.distances is None else np.ascontiguousarray(attachment.distances)
    joined = objective.structure.join(W, neighbors, distances, similarity)

    def place_range(start: int, stop: int) -> None:
        place(
            rows, fitted, W, H, neighbors, apart, joined.degree, joined.pull, joined.leaf_degree, joined.leaf_pull,
            M, structure, weights, _MAX_STEPS, placed, around, start, stop,
        )  # fmt: skip

    for_each_range(place_range, len(A), smallest=64)
    twins = attachment.apart == 0 if attachment.equal is None else attachment.equal
    placed[twins] = W[attachment.neighbors[twins]]
    if objective.S is not None and twins.any():
        around[twins] = neighbor_mean(W, objective.S)[attachment.neighbors[twins]]
    return placed, around


def _gram(factors: Factors) -> FloatArray:
    """Return WᵀW, computed once for these factors: a single new row then costs no pass over all fitted ones.

    Kept where `cached_property` would keep it: factors are frozen, and others, `replace`d or not, have none of it.
    """
    own = vars(factors)
    if "_gram" not in own:
        W = np.ascontiguousarray(factors.W)
        with one_blas_thread():
            own["_gram"] = W.T @ W
    return np.asarray(own["_gram"])


def settle_rows(objective: Objective, factors: Factors, A: FloatArray) -> FloatArray:
    """Compute weights of rows of A by their attributes alone, for objectives without a graph."""
    n = len(A)
    alone = Attachment(np.zeros(n, dtype=np.int64), np.ones(n), np.zeros(n))
    # All start from nothing, so that a row's weights depend on H alone.
    return place_rows(objective, Factors(np.zeros((1, len(factors.H))), factors.H), A, alone)[0]
