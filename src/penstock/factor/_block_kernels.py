"""Compiled sums over the similarities inside a block of rows."""

from __future__ import annotations

from penstock._jit import kernel
from penstock._types import FloatArray, IndexArray

_RUN = 256  # rows whose terms are summed before they are added to the rest


@kernel
def agreement_forms(
    Y: FloatArray, moved: FloatArray, indptr: IndexArray, indices: IndexArray, data: FloatArray
) -> tuple[float, float, float]:
    """⟨Y, SY⟩, ⟨Y, SD⟩ and ⟨D, SD⟩ for D = moved − Y, S restricted to columns that are rows of Y.

    Sums over `_RUN` rows are added up apart, so that rounding errors do not grow with the number of rows.
    """
    n, K = Y.shape
    still, mixed, change = 0.0, 0.0, 0.0
    for first in range(0, n, _RUN):
        a, b, c = 0.0, 0.0, 0.0
        for i in range(first, min(first + _RUN, n)):
            for e in range(indptr[i], indptr[i + 1]):
                j = indices[e]
                if j < n:
                    for k in range(K):
                        here, there = moved[i, k] - Y[i, k], moved[j, k] - Y[j, k]
                        a += data[e] * Y[i, k] * Y[j, k]
                        b += data[e] * Y[i, k] * there
                        c += data[e] * here * there
        still, mixed, change = still + a, mixed + b, change + c
    return still, mixed, change


@kernel
def roughness_forms(
    Y: FloatArray, moved: FloatArray, indptr: IndexArray, indices: IndexArray, data: FloatArray
) -> tuple[float, float, float]:
    """tr(YᵀLY), tr(YᵀLD) and tr(DᵀLD) for D = moved − Y, over pairs of rows of Y: sums over pairs do not cancel.

    tr(XᵀLZ) = ½ Σ_ij S_ij ⟨x_i − x_j, z_i − z_j⟩.
    """
    n, K = Y.shape
    still, mixed, change = 0.0, 0.0, 0.0
    for first in range(0, n, _RUN):
        a, b, c = 0.0, 0.0, 0.0
        for i in range(first, min(first + _RUN, n)):
            for e in range(indptr[i], indptr[i + 1]):
                j = indices[e]
                if j < n:
                    for k in range(K):
                        apart = Y[i, k] - Y[j, k]
                        parted = (moved[i, k] - Y[i, k]) - (moved[j, k] - Y[j, k])
                        a += data[e] * apart * apart
                        b += data[e] * apart * parted
                        c += data[e] * parted * parted
        still, mixed, change = still + a / 2, mixed + b / 2, change + c / 2
    return still, mixed, change
