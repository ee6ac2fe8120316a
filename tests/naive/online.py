"""Online NS-NMF as slow loops straight from the equations. Imports nothing of ours.

Missing readings are None or NaN: they are left out of distances and residuals, which are scaled up by p/|seen|.
"""

from __future__ import annotations

import math

FLOOR = 1e-12


def seen(a):
    return [j for j, value in enumerate(a) if value is not None and not math.isnan(value)]


def distance(a, b):
    """Over the shared readings, scaled up to all of them; infinite where none is shared."""
    shared = [j for j in seen(a) if j in set(seen(b))]
    if not shared:
        return math.inf
    return math.sqrt(len(a) / len(shared) * sum((a[j] - b[j]) ** 2 for j in shared))


def local_tree(rows):
    """Kruskal over all pairs, ties by (length, i, j)."""
    pairs = sorted((distance(rows[i], rows[j]), i, j) for j in range(len(rows)) for i in range(j))
    group = list(range(len(rows)))
    tree = []
    for length, i, j in pairs:
        if group[i] != group[j]:
            old = group[j]
            group = [group[i] if g == old else g for g in group]
            tree.append((length, i, j))
    return tree


def tree_similarity(tree, n, kind, duplicates="zero"):
    """Infinite edges count as none; those of length 0 too ("zero", the paper's), or as the shortest of all ("join")."""
    edges = [(length, i, j) for length, i, j in tree if length < math.inf and (length > 0 or duplicates == "join")]
    lengths = sorted(length for length, _, _ in edges if length > 0)
    middle = (lengths[(len(lengths) - 1) // 2] + lengths[len(lengths) // 2]) / 2 if lengths else 1.0
    S = [[0.0] * n for _ in range(n)]
    for length, i, j in edges:
        unit = middle if kind == "relative" else 1.0
        value = 1.0 if kind == "binary" else (unit / length if length > 0 else 1e140)
        S[i][j] = S[j][i] = value
    if kind == "normalized":
        degree = [sum(row) or 1.0 for row in S]
        S = [[S[i][j] / (math.sqrt(degree[i]) * math.sqrt(degree[j])) for j in range(n)] for i in range(n)]
    return S


def product(w, H):
    return [sum(w[k] * H[k][j] for k in range(len(w))) for j in range(len(H[0]))]


def weight_gradient(a, w, H, s, W, alpha):
    """Half the derivative of α‖a−wH‖² + Σ_i s_i‖w−w_i‖² by w_k: what eq:stream1 steps along."""
    rebuilt, j_seen = product(w, H), seen(a)
    return [
        alpha * sum((rebuilt[j] - a[j]) * H[k][j] for j in j_seen) + sum(s[i] * (w[k] - W[i][k]) for i in range(len(s)))
        for k in range(len(w))
    ]


def weight_step_by_gradient(a, w, H, s, W, alpha):
    """w − δ ∂F/∂w, with the step size δ of eq:stream3. Ahmed et al. (2021), eq:stream1."""
    rebuilt, j_seen = product(w, H), seen(a)
    slope = weight_gradient(a, w, H, s, W, alpha)
    step = [w[k] / (alpha * sum(rebuilt[j] * H[k][j] for j in j_seen) + sum(s) * w[k]) for k in range(len(w))]
    return [w[k] - step[k] * slope[k] for k in range(len(w))]


def weight_step(a, w, H, s, W, alpha):
    """The multiplicative form. Ahmed et al. (2021), eq:stream4 over all samples, eq:stream9 over the buffered ones."""
    rebuilt, j_seen = product(w, H), seen(a)
    result = []
    for k in range(len(w)):
        above = alpha * sum(a[j] * H[k][j] for j in j_seen) + sum(s[i] * W[i][k] for i in range(len(s)))
        below = alpha * sum(rebuilt[j] * H[k][j] for j in j_seen) + sum(s) * w[k]
        result.append(max(w[k] * above / below, FLOOR))
    return result


def profile_step_by_gradient(A, W, H):
    """H − θ ∂F/∂H, with the step size θ of eq:stream35, from all samples at once. Ahmed et al. (2021), eq:stream2."""
    result = [list(row) for row in H]
    rebuilt = [product(w, H) for w in W]
    for k in range(len(H)):
        for j in range(len(H[0])):
            slope = sum(W[i][k] * (rebuilt[i][j] - A[i][j]) for i in range(len(A)))
            result[k][j] = H[k][j] - H[k][j] / sum(W[i][k] * rebuilt[i][j] for i in range(len(A))) * slope
    return result


def profile_step_from_samples(A, W, H):
    """The multiplicative form that needs every sample. Ahmed et al. (2021), eq:stream5."""
    rebuilt = [product(w, H) for w in W]
    return [
        [
            H[k][j]
            * sum(W[i][k] * A[i][j] for i in range(len(A)))
            / sum(W[i][k] * rebuilt[i][j] for i in range(len(A)))
            for j in range(len(H[0]))
        ]
        for k in range(len(H))
    ]


def add_weights(U, w, forgetting=1.0):
    """U_d = U_{d−1} + wᵀw. Ahmed et al. (2021), eq:stream6."""
    return [[forgetting * U[k][m] + w[k] * w[m] for m in range(len(w))] for k in range(len(w))]


def add_products(V, w, a, forgetting=1.0):
    """V_d = V_{d−1} + wᵀa. Ahmed et al. (2021), eq:stream7."""
    return [[forgetting * V[k][j] + w[k] * a[j] for j in range(len(a))] for k in range(len(w))]


def profile_step(H, U, V):
    """H∘V/(UH). Ahmed et al. (2021), eq:stream8."""
    K, p = len(H), len(H[0])
    below = [[sum(U[k][m] * H[m][j] for m in range(K)) for j in range(p)] for k in range(K)]
    return [[max(H[k][j] * V[k][j] / below[k][j], FLOOR) for j in range(p)] for k in range(K)]


def online_score(a, w, H):
    """O_d = ‖a_d − w_d H_d‖, over the readings seen. Ahmed et al. (2021), eq:stream10."""
    rebuilt, j_seen = product(w, H), seen(a)
    if not j_seen:
        return math.nan
    return math.sqrt(len(a) / len(j_seen) * sum((a[j] - rebuilt[j]) ** 2 for j in j_seen))


def first_weights(s, W, K):
    """The similarity-weighted mean of the tree neighbours' weights; 1/K each where there is none."""
    if sum(s) == 0:
        return [1.0 / K] * K
    return [max(sum(s[i] * W[i][k] for i in range(len(s))) / sum(s), FLOOR) for k in range(K)]


def online_nsnmf(
    A, W, H, stream, alpha, kind, n_inner, forgetting=1.0, refresh_every=1, duplicates="zero", accumulate="sample"
):
    """Scores of a stream that follows the fitted rows A ≈ WH. Ahmed et al. (2021), Algorithm 2, its third phase.

    A fixed number of inner steps. U, V are committed once a sample, or, as the algorithm is printed, grow at every
    "step"; what is forgotten is forgotten once.
    """
    K = len(H)
    buffer = [list(a) for a in A]
    W = [[max(value, FLOOR) for value in w] for w in W]
    H = [[max(value, FLOOR) for value in h] for h in H]
    filled = [
        [a[j] if j in set(seen(a)) else product(w, H)[j] for j in range(len(a))] for a, w in zip(A, W, strict=True)
    ]
    U = [[0.0] * K for _ in range(K)]
    V = [[0.0] * len(H[0]) for _ in range(K)]
    for a, w in zip(filled, W, strict=True):
        U, V = add_weights(U, w), add_products(V, w, a)
    norms = [math.sqrt(sum(value * value for value in h)) for h in H]
    scores, fitted = [], 0
    for a in stream:
        if not seen(a):
            scores.append(math.nan)
            continue
        rows = [*buffer, list(a)]
        s = tree_similarity(local_tree(rows), len(rows), kind, duplicates)[-1][:-1]
        w = first_weights(s, W, K)
        H_new, U_new, V_new, fitted = H, U, V, fitted + 1
        for step in range(n_inner):
            w = weight_step(a, w, H_new, s, W, alpha)
            rebuilt = product(w, H_new)
            whole = [a[j] if j in set(seen(a)) else rebuilt[j] for j in range(len(a))]
            if accumulate == "step" and step > 0:
                U_new, V_new = add_weights(U_new, w), add_products(V_new, w, whole)
            else:
                U_new, V_new = add_weights(U, w, forgetting), add_products(V, w, whole, forgetting)
            if fitted % refresh_every == 0:
                H_new = profile_step(H_new, U_new, V_new)
        scores.append(online_score(a, w, H_new))
        U, V, H = U_new, V_new, H_new
        buffer, W = rows[1:], [*W[1:], w]
        if forgetting < 1:
            H, U, V, W = rescaled(H, U, V, W, norms)
    return scores


def rescaled(H, U, V, W, norms):
    """The same products WH and UH, with rows of H at the norms given."""
    K = len(H)
    c = [math.sqrt(sum(value * value for value in H[k])) / norms[k] for k in range(K)]
    return (
        [[value / c[k] for value in H[k]] for k in range(K)],
        [[U[k][m] * c[k] * c[m] for m in range(K)] for k in range(K)],
        [[value * c[k] for value in V[k]] for k in range(K)],
        [[w[k] * c[k] for k in range(K)] for w in W],
    )
