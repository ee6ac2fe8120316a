"""Weights for rows that were not in the fit, compiled.

With all else fixed, the weights w ≥ 0 of one row minimise φ(w) = ½ wᵀ(M + shift·I)w − pullᵀw + (symmetric/4)·‖w‖⁴. M is
positive semi-definite, so φ is convex, and strictly so with `symmetric` > 0: there is one minimum, whatever the path.
"""

from __future__ import annotations

import numpy as np

from penstock._jit import kernel
from penstock._types import FloatArray, IndexArray
from penstock.factor._kernels import minimise_quartic

# A pivot that is smaller beside its diagonal counts as 0: what a jump would make of it is rounding.
_SINGULAR = 1e-10
# Newton steps on φ longer than this part of ‖w‖ are shortened to it; up to 0.44 they provably never raise φ.
_LONGEST_STEP = 0.4
# Newton's error is squared by a step: after one as short as this, rounding is all that is left.
_LAST_STEP = 1e-7


@kernel
def sweep_weights(w: FloatArray, M: FloatArray, pull: FloatArray, shift: float, symmetric: float) -> bool:
    """Minimise φ exactly over each weight in turn (see `sweep_rows`); whether all of them stand still."""
    K = w.shape[0]
    moved = 0.0
    norm = 0.0
    for k in range(K):
        norm += w[k] * w[k]
    for k in range(K):
        x = w[k]
        others = max(norm - x * x, 0.0)
        a = M[k, k] + symmetric * others + shift
        b = -x * M[k, k] - pull[k]
        for m in range(K):
            b += w[m] * M[k, m]
        fresh = x
        if symmetric > 0.0:
            fresh = minimise_quartic(a / symmetric, b / symmetric, x)
        elif a > 0.0:
            fresh = max(-b / a, 0.0)
        if fresh < 1e-100:  # below all rounding, and slow
            fresh = 0.0
        w[k] = fresh
        norm = others + fresh * fresh
        moved = max(moved, abs(fresh - x))
    return bool(moved <= 1e-13 * np.sqrt(norm))


@kernel
def factorise(bend: FloatArray, size: int) -> bool:
    """The first `size` rows of `bend` (lower half) become their Cholesky factor; False if they are singular."""
    for row in range(size):
        diagonal = bend[row, row]
        for column in range(row + 1):
            left = bend[row, column]
            for m in range(column):
                left -= bend[row, m] * bend[column, m]
            if column < row:
                bend[row, column] = left * bend[column, column]
            elif left > _SINGULAR * diagonal:
                bend[row, row] = 1.0 / np.sqrt(left)  # kept inverted: it is only ever divided by
            else:
                return False
    return True


@kernel
def solve_factored(bend: FloatArray, size: int, x: FloatArray) -> None:
    """Solve in place for the right-hand side x, given what `factorise` left."""
    for row in range(size):
        for m in range(row):
            x[row] -= bend[row, m] * x[m]
        x[row] *= bend[row, row]
    for row in range(size - 1, -1, -1):
        for m in range(row + 1, size):
            x[row] -= bend[m, row] * x[m]
        x[row] *= bend[row, row]


@kernel
def has_one_minimum(M: FloatArray, shift: float, symmetric: float, bend: FloatArray) -> bool:
    """Whether φ is strictly convex, so that jumps lead where the coordinate steps lead."""
    K = M.shape[0]
    largest = 0.0
    for k in range(K):
        largest = max(largest, M[k, k])
    if symmetric > 0.0 or shift > _SINGULAR * (largest + shift):
        return True
    for k in range(K):
        for m in range(k + 1):
            bend[k, m] = M[k, m]
        bend[k, k] += shift
    return bool(factorise(bend, K))


@kernel
def newton_step(
    w: FloatArray,
    M: FloatArray,
    pull: FloatArray,
    shift: float,
    symmetric: float,
    free: IndexArray,
    size: int,
    bend: FloatArray,
    step: FloatArray,
) -> bool:
    """`step` = Newton's step on φ over the `size` weights listed in `free`, the others at 0; False if it has none."""
    norm = 0.0
    for a in range(size):
        norm += w[free[a]] * w[free[a]]
    ridge = shift + symmetric * norm
    for a in range(size):
        k = free[a]
        slope = ridge * w[k] - pull[k]
        for b in range(size):
            slope += M[k, free[b]] * w[free[b]]
        for b in range(a + 1):
            bend[a, b] = M[k, free[b]] + 2.0 * symmetric * w[k] * w[free[b]]
        bend[a, a] += ridge
        step[a] = -slope
    if not factorise(bend, size):
        return False
    solve_factored(bend, size, step)
    return True


@kernel
def take_step(w: FloatArray, symmetric: float, free: IndexArray, size: int, step: FloatArray) -> bool:
    """Go along `step` as far as φ surely falls and w ≥ 0; whether that was the last step that is needed.

    Along a step d the second derivative of φ exceeds its first value by at most symmetric·‖w‖²(6δ + 3δ²)·‖d‖² with
    δ = ‖d‖/‖w‖, and that first value is at least symmetric·‖w‖²·‖d‖²: for δ ≤ 0.44 φ falls all the way.
    """
    norm = 0.0
    length = 0.0
    for a in range(size):
        norm += w[free[a]] * w[free[a]]
        length += step[a] * step[a]
    relative = np.sqrt(length / norm)
    part = 1.0
    if symmetric > 0.0 and relative > _LONGEST_STEP:
        part = _LONGEST_STEP / relative
    first = -1  # to reach 0
    for a in range(size):
        if w[free[a]] + part * step[a] < 0.0:
            part = -w[free[a]] / step[a]
            first = a
    for a in range(size):
        fresh = w[free[a]] + part * step[a]
        w[free[a]] = fresh if fresh > 1e-100 and a != first else 0.0
    return bool(part == 1.0 and (symmetric == 0.0 or relative <= _LAST_STEP))


@kernel
def jump(
    w: FloatArray,
    M: FloatArray,
    pull: FloatArray,
    shift: float,
    symmetric: float,
    free: IndexArray,
    bend: FloatArray,
    step: FloatArray,
) -> None:
    """Newton steps over the weights that are positive; what reaches 0 stays there. Never raises φ."""
    K = w.shape[0]
    for _ in range(K + 10):
        size = 0
        for k in range(K):
            if w[k] > 0.0:
                free[size] = k
                size += 1
        if size == 0 or not newton_step(w, M, pull, shift, symmetric, free, size, bend, step):
            return
        if take_step(w, symmetric, free, size, step):
            return


@kernel
def settle(
    w: FloatArray,
    M: FloatArray,
    pull: FloatArray,
    shift: float,
    symmetric: float,
    max_steps: int,
    free: IndexArray,
    bend: FloatArray,
    step: FloatArray,
) -> None:
    """Sweep over one row of weights until they stand still, with jumps in between to get there soon.

    A sweep finds out which weights are 0, and a jump where the others go; the next sweep checks that. Where φ has many
    minima there are sweeps alone, so that the one reached is theirs. `free`, `bend` and `step` are room to work in.
    """
    before = 2 + w.shape[0] // 6  # a jump takes about as long as so many sweeps
    jumps = False
    for sweep in range(1, max_steps + 1):
        if sweep_weights(w, M, pull, shift, symmetric):
            return
        if sweep == before:
            jumps = has_one_minimum(M, shift, symmetric, bend)
        if jumps and sweep % before == 0:
            jump(w, M, pull, shift, symmetric, free, bend, step)


@kernel
def gather_pull(
    a: FloatArray,
    H: FloatArray,
    half_alpha: float,
    pull: FloatArray,
) -> None:
    """`pull` = (α/2)·aHᵀ over the entries seen, in a fixed order so that a row's result never depends on its batch."""
    for k in range(H.shape[0]):
        total = 0.0
        for d in range(H.shape[1]):
            if not np.isnan(a[d]):
                total += a[d] * H[k, d]
        pull[k] = half_alpha * total


@kernel
def gather_curvature(
    a: FloatArray, H: FloatArray, M: FloatArray, structure: FloatArray, half_alpha: float, curvature: FloatArray
) -> None:
    """`curvature` = structure + (α/2)·HHᵀ over the entries of a row that are seen; M is that over all of them."""
    holes = 0
    for d in range(H.shape[1]):
        holes += int(np.isnan(a[d]))
    for k in range(H.shape[0]):
        for m in range(H.shape[0]):
            curvature[k, m] = M[k, m]
    if holes == 0:
        return
    for k in range(H.shape[0]):
        for m in range(k + 1):
            total = 0.0
            for d in range(H.shape[1]):
                if not np.isnan(a[d]):
                    total += H[k, d] * H[m, d]
            curvature[k, m] = structure[k, m] + half_alpha * total
            curvature[m, k] = curvature[k, m]


@kernel
def place(
    A: FloatArray,
    fitted: FloatArray,
    W: FloatArray,
    H: FloatArray,
    indptr: IndexArray,
    indices: IndexArray,
    data: FloatArray,
    neighbors: IndexArray,
    apart: FloatArray,
    similarity: FloatArray,
    M: FloatArray,
    structure: FloatArray,
    weights: FloatArray,
    max_steps: int,
    placed: FloatArray,
    around: FloatArray,
    start: int,
    stop: int,
) -> None:
    """Weights of rows start..stop of A beside the fitted ones; `around` gets their neighbours' mean weights.

    Row r stands in for its fitted neighbour i to the part 1 − apart_r and is a leaf on it to the part apart_r: its
    edges and the Gram matrix of the others are mixed so. `weights` holds symmetric, coupling, α/2, γ/2, laplacian/2;
    `structure` is symmetric·WᵀW and M that plus (α/2)·HHᵀ. NaN in A and in `fitted` is left out.
    """
    K = W.shape[1]
    symmetric, coupling, half_alpha, half_gamma, half_laplacian = (
        weights[0],
        weights[1],
        weights[2],
        weights[3],
        weights[4],
    )
    pull = np.empty(K)
    lone = np.empty(K)  # the same for the fitted row itself
    mixed = np.empty((K, K))
    curvature = np.empty((K, K))
    settled = np.empty(K)
    free, bend, step = np.empty(K, np.int64), np.empty((K, K)), np.empty(K)
    for r in range(start, stop):
        i = neighbors[r]
        share = 1.0 - apart[r]
        gather_pull(A[r], H, half_alpha, pull)
        gather_curvature(A[r], H, M, structure, half_alpha, curvature)
        gather_pull(fitted[i], H, half_alpha, lone)
        degree = 0.0
        full_degree = 0.0
        for k in range(K):
            around[r, k] = 0.0
            settled[k] = W[i, k]
            placed[r, k] = W[i, k]
            for m in range(K):
                mixed[k, m] = curvature[k, m] - share * symmetric * W[i, k] * W[i, m]
        for e in range(indptr[i], indptr[i + 1]):
            full_degree += data[e]
            for k in range(K):
                around[r, k] += share * data[e] * W[indices[e], k]
                lone[k] += coupling * data[e] * W[indices[e], k]
        own = apart[r] * similarity[r]
        degree = share * full_degree + own
        for k in range(K):
            around[r, k] += own * W[i, k]
            pull[k] += coupling * around[r, k]
        settle(placed[r], mixed, pull, half_gamma + half_laplacian * degree, symmetric, max_steps, free, bend, step)
        if share > 0.0:  # what a fit that stopped early left undone at the neighbour is left undone here too
            gather_curvature(fitted[i], H, M, structure, half_alpha, curvature)
            for k in range(K):
                for m in range(K):
                    mixed[k, m] = curvature[k, m] - symmetric * W[i, k] * W[i, m]
            settle(
                settled, mixed, lone, half_gamma + half_laplacian * full_degree, symmetric, max_steps, free, bend, step
            )
            for k in range(K):
                placed[r, k] = max(placed[r, k] + share * (W[i, k] - settled[k]), 0.0)
        for k in range(K):
            around[r, k] = around[r, k] / degree if degree > 0.0 else placed[r, k]
