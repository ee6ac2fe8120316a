"""A sweep by blocks of rows as slow loops, importing nothing of ours: what the fast code must agree with."""

from __future__ import annotations

from naive.factors import family_loss, minimise_quartic


def loss_along(A, S, y, D, H, owner, steps, weights):
    """f(y + t_b·D_b, H), where row i moves by the step of the block that owns it."""
    W = y.copy()
    for i in range(len(y)):
        W[i] += steps[owner[i]] * D[i]
    return family_loss(A, S, W, H, **weights)


def stale_sweep(A, S, y, H, owner, symmetric, alpha, laplacian_weight, gamma):
    """Each block's rows in turn, every W_ik to the minimum of f, others' rows as they were at the beginning."""
    moved = y.copy()
    for block in sorted(set(owner)):
        W = y.copy()
        for i in [i for i in range(len(y)) if owner[i] == block]:
            for k in range(y.shape[1]):
                W[i, k] = coordinate_step(A, S, W, H, i, k, symmetric, alpha, laplacian_weight, gamma)
            moved[i] = W[i]
    return moved


def coordinate_step(A, S, W, H, i, k, symmetric, alpha, laplacian_weight, gamma):
    """f/4 in x = W_ik is symmetric·x⁴/4 + a·x²/2 + b·x: a and b from f's terms, with sums over all rows."""
    a, b = gamma / 2, 0.0
    for j in range(len(W)):
        if j != i:
            others = sum(W[i, m] * W[j, m] for m in range(W.shape[1]) if m != k)
            a += symmetric * W[j, k] ** 2 + laplacian_weight / 2 * S[i, j]
            b -= symmetric * W[j, k] * (S[i, j] - others) + laplacian_weight / 2 * S[i, j] * W[j, k]
    a += symmetric * (sum(W[i, m] ** 2 for m in range(W.shape[1]) if m != k) - S[i, i])
    for c in range(H.shape[1]):
        others = sum(W[i, m] * H[m, c] for m in range(W.shape[1]) if m != k)
        a += alpha / 2 * H[k, c] ** 2
        b -= alpha / 2 * H[k, c] * (A[i, c] - others)
    if symmetric:
        return minimise_quartic(a / symmetric, b / symmetric)
    return max(-b / a, 0.0) if a > 0 else W[i, k]
