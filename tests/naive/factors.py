"""The paper's factorisation formulas as slow loops, importing nothing of ours: what the fast code must agree with."""

from __future__ import annotations

import numpy as np


def reconstruct_row(W, H, i):
    """a_i ≈ Σ_k W_ik h_k. Ahmed et al. (2021), eq:apx."""
    row = np.zeros(H.shape[1])
    for k in range(W.shape[1]):
        row += W[i, k] * H[k]
    return row


def nmf_loss(A, W, H):
    """‖A−WH‖². Ahmed et al. (2021), eq:frob."""
    return sum(float(np.sum((A[i] - reconstruct_row(W, H, i)) ** 2)) for i in range(len(A)))


def reconstruction_error(A, W, H):
    """‖A−WH‖. Ahmed et al. (2021), eq:loss1."""
    return nmf_loss(A, W, H) ** 0.5


def anomaly_scores(A, W, H):
    """O_i = ‖a_i − Σ_k W_ik h_k‖. Ahmed et al. (2021), eq:anomaly."""
    return np.array([float(np.sum((A[i] - reconstruct_row(W, H, i)) ** 2)) ** 0.5 for i in range(len(A))])


def snmf_loss(S, W):
    """‖S−WWᵀ‖² of a dense S. Ahmed et al. (2021), eq:SNMF."""
    return sum((S[i, j] - float(W[i] @ W[j])) ** 2 for i in range(len(S)) for j in range(len(S)))


def nsnmf_loss(A, S, W, H, alpha, gamma):
    """‖S−WWᵀ‖² + α‖A−WH‖² + γ(‖W‖²+‖H‖²). Ahmed et al. (2021), eq:main."""
    ridge = gamma * (sum(x * x for x in W.flat) + sum(x * x for x in H.flat))
    return snmf_loss(S, W) + alpha * nmf_loss(A, W, H) + ridge


def nsnmf_loss_without_ridge(A, S, W, H, alpha):
    """‖S−WWᵀ‖² + α‖A−WH‖². Ahmed et al. (2021), eq:NSNMF."""
    return snmf_loss(S, W) + alpha * nmf_loss(A, W, H)


def laplacian(S):
    """L = D − S, before eq:GNMF."""
    return np.diag([sum(row) for row in S]) - S


def gnmf_loss(A, S, W, H, penalty):
    """‖A−WH‖² + λ tr(WᵀLW). Ahmed et al. (2021), eq:GNMF."""
    return penalty * float(np.trace(W.T @ laplacian(S) @ W)) + nmf_loss(A, W, H)


def laplacian_form_loss(A, S, W, H, alpha):
    """α‖A−WH‖² + tr(WᵀLW). Ahmed et al. (2021), eq:stream."""
    n, K = W.shape
    L = laplacian(S)
    roughness = sum(W[i, k] * L[i, j] * W[j, k] for k in range(K) for i in range(n) for j in range(n))
    return alpha * nmf_loss(A, W, H) + float(roughness)


def normalised_laplacian_trace(S, W):
    """tr(WᵀW) − tr(WᵀSW) for S already D^-½ S̃ D^-½. Ahmed et al. (2021), eq:equivalence."""
    return float(np.trace(W.T @ W)) - float(np.trace(W.T @ S @ W))


def equivalent_structure_loss(S, W):
    """tr(I) − 2tr(WᵀSW) + tr(SᵀS), for WᵀW = I. Ahmed et al. (2021), eq:equivalence2."""
    return float(W.shape[1] - 2 * np.trace(W.T @ S @ W) + np.trace(S.T @ S))


def family_loss(A, S, W, H, *, symmetric, alpha, laplacian_weight, gamma):
    """The whole family in one: eq:main plus a multiple of the Laplacian term of eq:GNMF."""
    total = symmetric * snmf_loss(S, W) + alpha * nmf_loss(A, W, H)
    total += laplacian_weight * float(np.trace(W.T @ laplacian(S) @ W))
    return total + gamma * (float(np.sum(W**2)) + float(np.sum(H**2)))


def parts(count, B):
    return [slice(count * b // B, count * (b + 1) // B) for b in range(B)]


def block_loss(A, S, W, H, alpha, gamma, B, i, j, k):
    """L_ijk, one instance set's loss. Ahmed et al. (2021), eq:loss."""
    rows, columns = parts(len(A), B), parts(A.shape[1], B)
    Wi, Wj, Hk = W[rows[i]], W[rows[j]], H[:, columns[k]]
    loss = np.sum((S[rows[i], rows[j]] - Wi @ Wj.T) ** 2)
    loss += gamma / (2 * B) * (np.sum(Wi**2) + np.sum(Wj**2)) + gamma / B * np.sum(Hk**2)
    loss += alpha / 2 * np.sum((A[rows[i], columns[k]] - Wi @ Hk) ** 2)
    return float(loss + alpha / 2 * np.sum((A[rows[j], columns[k]] - Wj @ Hk) ** 2))


def block_round(A, S, W, H, alpha, gamma, B, instances, step_W, step_H, both_orders=False):
    """θ ← max(0, θ − ε∇L_ijk) for every instance set of a round. Ahmed et al. (2021), eq:update; Algorithm 1.

    Steps are numbers, or arrays with one for each entry of W and of H. With `both_orders` a set with i ≠ j stands for
    {j,i,k} too, whose loss has the same gradient.
    """
    rows, columns = parts(len(A), B), parts(A.shape[1], B)
    step_W, step_H = np.broadcast_to(step_W, W.shape), np.broadcast_to(step_H, H.shape)
    W, H = W.copy(), H.copy()
    for i, j, k in instances:
        ri, rj, ck = rows[i], rows[j], columns[k]
        Wi, Wj, Hk = W[ri].copy(), W[rj].copy(), H[:, ck].copy()
        Ei, Ej = A[ri, ck] - Wi @ Hk, A[rj, ck] - Wj @ Hk
        times = 2 if both_orders and i != j else 1
        if i == j:
            g = 4 * Wi @ (Wi.T @ Wi) - 4 * S[ri, ri] @ Wi - 2 * alpha * Ei @ Hk.T + 2 * gamma / B * Wi
            W[ri] = np.maximum(Wi - step_W[ri] * g, 0)
        else:
            gi = 2 * Wi @ (Wj.T @ Wj) - 2 * S[ri, rj] @ Wj - alpha * Ei @ Hk.T + gamma / B * Wi
            gj = 2 * Wj @ (Wi.T @ Wi) - 2 * S[ri, rj].T @ Wi - alpha * Ej @ Hk.T + gamma / B * Wj
            W[ri] = np.maximum(Wi - times * step_W[ri] * gi, 0)
            W[rj] = np.maximum(Wj - times * step_W[rj] * gj, 0)
        gH = -alpha * Wi.T @ Ei - alpha * Wj.T @ Ej + 2 * gamma / B * Hk
        H[:, ck] = np.maximum(Hk - times * step_H[:, ck] * gH, 0)
    return W, H


def curvatures(S, W, H, alpha, gamma):
    """What the steps of block SGD are divided by, entry by entry: sums of the second derivatives of eq:main.

    ∂²f/∂W_ik∂W_im for fixed other rows is 4(WᵀW)_km + 4W_ikW_im + 4δ_km(‖w_i‖² − S_ii) + 2α(HHᵀ)_km + 2γδ_km. A sum
    over m of what is ≥ 0 bounds a matrix by its diagonal; S_ii ≥ 0 is left out, W_ikW_im bounded by ‖w_i‖², and the
    coupling of row i with its neighbours, −4S_ij, by the sum of the row.
    """
    (n, K), p = W.shape, H.shape[1]
    over_W, over_H = np.zeros((n, K)), np.zeros((K, p))
    for k in range(K):
        gram = sum(W[i, k] * W[i, m] for i in range(n) for m in range(K))
        profiles = sum(H[k, c] * H[m, c] for c in range(p) for m in range(K))
        for i in range(n):
            own = 2 * sum(W[i, m] ** 2 for m in range(K)) + sum(S[i, j] for j in range(n))
            over_W[i, k] = 4 * (gram + own) + 2 * alpha * profiles + 2 * gamma
        over_H[k] = 2 * alpha * gram + 2 * gamma
    return over_W, over_H


def minimise_quartic(a, b):
    """The x ≥ 0 of least x⁴/4 + a x²/2 + b x: try 0 and every real positive root of the derivative."""
    size = max(abs(a) ** 0.5, abs(b) ** (1 / 3)) or 1.0
    a, b = a / size**2, b / size**3
    roots = np.roots([1.0, 0.0, a, b])
    candidates = [0.0] + [r.real for r in roots if r.real > 0 and abs(r.imag) < 1e-6]
    best = min(candidates, key=lambda x: x**4 / 4 + a * x * x / 2 + b * x)
    for _ in range(5):  # np.roots is good to about 1e-8 near a double root
        slope = 3 * best**2 + a
        best = best - (best**3 + a * best + b) / slope if best > 0 and slope > 0 else best
    return best * size


def coordinate_minimum(loss, W, i, k):
    """argmin of f over W_ik ≥ 0: f is a quartic in it, found from five values of f and minimised by brute force."""
    points = np.array([0.0, 0.5, 1.0, 1.5, 2.0]) * max(1.0, abs(W[i, k]))
    values = []
    for x in points:
        trial = W.copy()
        trial[i, k] = x
        values.append(loss(trial))
    e, d, c, b, _ = np.linalg.solve(np.vander(points, 5), np.array(values) - values[0])
    slopes = np.array([4 * e, 3 * d, 2 * c, b])
    slopes[np.abs(slopes) < 1e-11 * np.abs(values).max()] = 0.0  # rounding, where f is only quadratic
    if not slopes.any():
        return W[i, k]
    roots = np.roots(np.trim_zeros(slopes, "f"))
    candidates = [0.0] + [r.real for r in roots if r.real > 0 and abs(r.imag) < 1e-7 * (1 + abs(r))]
    return min(candidates, key=lambda x: (((e * x + d) * x + c) * x + b) * x)


def weight_sweep(loss, W, order):
    """Every W_ik in turn to the minimum of eq:main over it, rows in the given order."""
    W = W.copy()
    for i in order:
        for k in range(W.shape[1]):
            W[i, k] = coordinate_minimum(loss, W, i, k)
    return W


def hals(A, W, H, alpha, gamma, row_bound=np.inf):
    """h_k ← max(0, α[(WᵀA)_k − Σ_{l≠k} G_kl h_l]/(αG_kk+γ)), then onto the ball: eq:main minimised row by row."""
    H, G, V = H.copy(), W.T @ W, W.T @ A
    for k in range(len(H)):
        rest = V[k].copy()
        for m in range(len(H)):
            if m != k:
                rest -= G[k, m] * H[m]
        if alpha * G[k, k] + gamma == 0:
            continue  # nothing depends on this row
        H[k] = np.maximum(0, alpha * rest / (alpha * G[k, k] + gamma))
        length = float(np.sum(H[k] ** 2)) ** 0.5
        if length > row_bound:
            H[k] *= row_bound / length
    return H


def multiplicative_step(A, S, W, H, alpha, gamma, exponent):
    """W ← W∘[(2SW+αC)/(2WG+αWQ+γW)]^β, H ← H∘αWᵀA/(αGH+γH): eq:main, multiplicative."""
    up = 2 * S @ W + alpha * A @ H.T
    down = 2 * W @ (W.T @ W) + alpha * W @ (H @ H.T) + gamma * W
    W = np.maximum(W * (up / down) ** exponent, 1e-12)
    H = H * (alpha * W.T @ A) / (alpha * (W.T @ W) @ H + gamma * H)
    return W, np.maximum(H, 1e-12)


def gnmf_step(A, S, W, H, penalty):
    """W ← W∘(C+λSW)/(WQ+λDW), H ← H∘(WᵀA)/(WᵀWH): eq:GNMF, Cai et al. (2011)."""
    degree = np.array([sum(row) for row in S])[:, None]
    W = np.maximum(W * (A @ H.T + penalty * S @ W) / (W @ (H @ H.T) + penalty * degree * W), 1e-12)
    return W, np.maximum(H * (W.T @ A) / (W.T @ W @ H), 1e-12)


def leading_eigenpairs(A, S, symmetric, alpha, K):
    """The K largest eigenvalues of σS + αAAᵀ/(2‖A‖), written down in full, and their vectors."""
    M = np.zeros((len(S), len(S))) if A is None else alpha * (A @ A.T) / (2 * np.linalg.norm(A))
    values, vectors = np.linalg.eigh(M + symmetric * S)
    return values[::-1][:K], vectors[:, ::-1][:, :K]
