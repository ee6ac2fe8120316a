"""Compiled loops of the factorisation: contiguous float64 and int64 arrays and scalars in, nothing checked."""

from __future__ import annotations

import math

from penstock._jit import kernel
from penstock._types import FloatArray, IndexArray


@kernel
def minimise_quartic(a: float, b: float, near: float) -> float:
    """The x ≥ 0 that minimises x⁴/4 + a x²/2 + b x; `near` is a guess that saves time, never changes the answer.

    The derivative g(x) = x³ + a x + b is convex on x ≥ 0, so Newton's method falls monotonically onto the wanted
    (largest) root from any point right of it, and one step from any point where g rises lands right of it. For a < 0
    the root beats x = 0 exactly when it exceeds s = √(−2a/3), which is when g(s) < 0; there g' ≥ −a, so the root is
    never ill-conditioned where it is used.
    """
    lowest = 0.0
    if a >= 0.0:
        if b >= 0.0:
            return 0.0
    else:
        lowest = math.sqrt(-2.0 * a / 3.0)
        if b >= -a * lowest / 3.0:
            return 0.0
    x = max(near, lowest)
    square = x * x
    slope = 3.0 * square + a
    guess = (2.0 * x * square - b) / slope if slope > 0.0 else -1.0
    if guess < 0.5 * x or guess > 2.0 * x or guess <= 0.0:  # far away: start from a bound on the root instead
        guess = max(-b, 0.0) ** (1.0 / 3.0)
        if a < 0.0:
            guess += math.sqrt(-a)
        elif a * guess > -b:
            guess = -b / a
    x = guess
    for _ in range(100):
        square = x * x
        step = (x * (square + a) + b) / (3.0 * square + a)
        x -= step
        if abs(step) <= 1e-9 * x:  # quadratic convergence: the next step would be below rounding
            square = x * x
            return max(x - (x * (square + a) + b) / (3.0 * square + a), lowest)
    return max(x, lowest)


@kernel
def sweep_rows(
    W: FloatArray,
    linear: FloatArray,
    M: FloatArray,
    shift: FloatArray,
    indptr: IndexArray,
    indices: IndexArray,
    data: FloatArray,
    order: IndexArray,
    symmetric: float,
    coupling: float,
    typical: float,
    pull: FloatArray,
) -> float:
    """Minimise f/4 exactly over each W_ik in turn, row by row in the given order; returns Σ_i of row residuals².

    A row's residual is that of `Objective.kkt_residual` as found on arrival, with `typical` for the mean weight.

    In f/4 the terms of one coordinate x are symmetric·x⁴/4 + a x²/2 + b x with, for w the row and M̃ = M less the row's
    own part, a = M̃_kk + symmetric·Σ_{l≠k} w_l² + shift_i and b = Σ_{l≠k} w_l M̃_lk − pull_k, where
    M = symmetric·WᵀW + (α/2)HHᵀ is kept up to date in place and pull_k = linear_ik + coupling·Σ_{j≠i} S_ij W_jk.
    W may have more rows than are in the order: they are looked at, never moved.
    """
    K = W.shape[1]
    total = 0.0
    for position in range(order.shape[0]):
        i = order[position]
        norm = 0.0
        for k in range(K):
            pull[k] = linear[i, k]
            norm += W[i, k] * W[i, k]
            for m in range(K):
                M[k, m] -= symmetric * W[i, k] * W[i, m]
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            if j != i:
                for k in range(K):
                    pull[k] += coupling * data[e] * W[j, k]
        violation = 0.0
        scale = 0.0
        for k in range(K):
            x = W[i, k]
            others = max(norm - x * x, 0.0)
            a = M[k, k] + symmetric * others + shift[i]
            cross = -x * M[k, k]
            for m in range(K):
                cross += W[i, m] * M[k, m]
            cross = max(cross, 0.0)
            b = cross - pull[k]
            held = x * (symmetric * x * x + a)
            bend = 3.0 * symmetric * x * x + max(a, 0.0)
            slack = min(bend * x, held + b)
            violation += slack * slack
            scale += (abs(held) + cross + abs(pull[k]) + bend * typical) ** 2
            if symmetric > 0.0:
                x = minimise_quartic(a / symmetric, b / symmetric, x)
            elif a > 0.0:
                x = max(-b / a, 0.0)
            if x < 1e-100:  # below all rounding; powers of it would be subnormal and a hundred times slower
                x = 0.0
            W[i, k] = x
            norm = others + x * x
        for k in range(K):
            for m in range(K):
                M[k, m] += symmetric * W[i, k] * W[i, m]
        if scale > 0.0:
            total += violation / scale
    return total
