"""Compiled loops of the factorisation and of block SGD: contiguous arrays and scalars in, nothing checked."""

from __future__ import annotations

import math

import numpy as np

from penstock._jit import Array, kernel
from penstock.graph.path_kernels import weighted_sum

# A pivot that is smaller than this share of its diagonal entry counts as 0: a Newton step would turn it into rounding.
_SINGULAR = 1e-10
# Newton steps on φ longer than this part of ‖w‖ are shortened to it; up to 0.44 they provably never raise φ.
_LONGEST_STEP = 0.4
# Newton's error is squared by a step: after one as short as this, rounding is all that is left.
_LAST_STEP = 1e-7


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
def sweep_row(
    w: Array, M: Array, pull: Array, shift: float, symmetric: float, typical: float
) -> tuple[float, float, float, float]:
    """Minimise φ(w) = ½ wᵀ(M + shift·I)w − pullᵀw + (symmetric/4)·‖w‖⁴ exactly over each weight of a row in turn.

    Returns the squared norms of the row's violation of the KKT conditions as found on arrival and of what to measure it
    by (see `Objective.kkt_residual`; `typical` is the mean weight), the largest move, and ‖w‖².

    The terms of one weight x are symmetric·x⁴/4 + a x²/2 + b x with a = M_kk + symmetric·Σ_{l≠k} w_l² + shift and
    b = Σ_{l≠k} w_l M_lk − pull_k.
    """
    K = w.shape[0]
    violation, scale, moved, norm = 0.0, 0.0, 0.0, 0.0
    for k in range(K):
        norm += w[k] * w[k]
    for k in range(K):
        x = w[k]
        others = max(norm - x * x, 0.0)
        a = M[k, k] + symmetric * others + shift
        cross = -x * M[k, k]
        for m in range(K):
            cross += w[m] * M[k, m]
        cross = max(cross, 0.0)
        b = cross - pull[k]
        held = x * (symmetric * x * x + a)
        bend = 3.0 * symmetric * x * x + max(a, 0.0)
        slack = min(bend * x, held + b)
        violation += slack * slack
        scale += (abs(held) + cross + abs(pull[k]) + bend * typical) ** 2
        fresh = x
        if symmetric > 0.0:
            fresh = minimise_quartic(a / symmetric, b / symmetric, x)
        elif a > 0.0:
            fresh = max(-b / a, 0.0)
        if fresh < 1e-100:  # below all rounding; powers of it would be subnormal and a hundred times slower
            fresh = 0.0
        w[k] = fresh
        norm = others + fresh * fresh
        moved = max(moved, abs(fresh - x))
    return violation, scale, moved, norm


@kernel
def sweep_among(w: Array, M: Array, pull: Array, shift: float, symmetric: float, typical: float) -> float:
    """`sweep_row` with M less the row's own part, which is kept up to date in it; returns the row's residual²."""
    K = w.shape[0]
    for k in range(K):
        for m in range(K):
            M[k, m] -= symmetric * w[k] * w[m]
    violation, scale, _, _ = sweep_row(w, M, pull, shift, symmetric, typical)
    for k in range(K):
        for m in range(K):
            M[k, m] += symmetric * w[k] * w[m]
    return violation / scale if scale > 0.0 else 0.0


@kernel
def sweep_rows(
    W: Array, linear: Array, M: Array, shift: Array, indptr: Array, indices: Array, data: Array, order: Array,
    symmetric: float, coupling: float, typical: float,
) -> float:  # fmt: skip
    """Minimise f/4 exactly over each W_ik in turn, row by row in the given order; return Σ_i of row residuals².

    A row minimises φ of `sweep_row` with M less the row's own part, where M = symmetric·WᵀW + (α/2)HHᵀ is kept up to
    date in place, and pull_k = linear_ik + coupling·Σ_{j≠i} S_ij W_jk. W may have more rows than are in the order: they
    are read, never moved.
    """
    K = W.shape[1]
    pull = np.empty(K)
    total = 0.0
    for position in range(order.shape[0]):
        i = order[position]
        for k in range(K):
            pull[k] = linear[i, k]
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            if j != i:
                for k in range(K):
                    pull[k] += coupling * data[e] * W[j, k]
        total += sweep_among(W[i], M, pull, shift[i], symmetric, typical)
    return total


@kernel
def sweep_paths(
    W: Array, linear: Array, M: Array, shift: Array, rows: Array, first: Array, parent: Array, depth: Array,
    decay: Array, exponents: Array, slot: Array, below: Array, beside: Array, symmetric: float, coupling: float,
    typical: float,
) -> tuple[float, float]:  # fmt: skip
    """`sweep_rows` where S is the path similarity, rows in the order of their places; returns ⟨W, SW⟩ as well.

    The messages of the old weights are those that `graph.path_kernels.send_up` has left in `below` and `beside`. A
    place is left when the walk comes to the next one that is not under it: then the new weights under it are sent to
    its parent, for the siblings after it, and meet those that were there before, each pair once. When v has been swept,
    `below[v]` holds what all but the children of v that are still to come send to those.
    """
    n, T = decay.shape
    K = W.shape[1]
    under = np.empty((depth.max() + 1, K, T))  # of the place on the way at each depth: new weights at and under it
    way = np.empty(depth.max() + 1, np.int64)
    others = np.empty(T)
    near = np.empty(K)
    pull = np.empty(K)
    total, agreement, lost = 0.0, 0.0, 0.0
    for v in range(n + 1):
        now = depth[v] if v < n else 1
        for level in range(depth[v - 1] if v > 0 else -1, now - 1, -1):
            c = way[level]
            p = parent[c]
            met = 0.0
            for k in range(K):
                for m in range(T):
                    sent = decay[c, m] * under[level, k, m]
                    others[m] = sent * under[level - 1, k, m]
                    under[level - 1, k, m] += sent
                    below[p, k, m] += sent
                met += weighted_sum(others, exponents)
            met -= lost  # Kahan: a million small sums lose no digit
            grown = agreement + met
            lost = (grown - agreement) - met
            agreement = grown
        if v == n:
            break
        p, s = parent[v], slot[v]
        for k in range(K):
            for m in range(T):
                above = 0.0
                if v > 0:
                    above = decay[v, m] * (below[p, k, m] + beside[s, k, m] if s >= 0 else below[p, k, m])
                others[m] = above + below[v, k, m]
                below[v, k, m] = above
            near[k] = coupling * weighted_sum(others, exponents)
        for r in range(first[v], first[v + 1]):
            i = rows[r]
            for k in range(K):
                pull[k] = linear[i, k] + near[k]
            total += sweep_among(W[i], M, pull, shift[i], symmetric, typical)
        for k in range(K):
            own = 0.0
            for r in range(first[v], first[v + 1]):
                own += W[rows[r], k]
            for m in range(T):
                below[v, k, m] += own
                under[now, k, m] = own
        way[now] = v
    return total, 2.0 * agreement


@kernel
def factorise(bend: Array, size: int) -> bool:
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
def solve_factored(bend: Array, size: int, x: Array) -> None:
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
def has_one_minimum(M: Array, shift: float, symmetric: float, bend: Array) -> bool:
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
    w: Array, M: Array, pull: Array, shift: float, symmetric: float, free: Array, size: int, bend: Array, step: Array
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
def take_step(w: Array, symmetric: float, free: Array, size: int, step: Array) -> bool:
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
    w: Array, M: Array, pull: Array, shift: float, symmetric: float, free: Array, bend: Array, step: Array
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
    w: Array, M: Array, pull: Array, shift: float, symmetric: float, max_steps: int,
    free: Array, bend: Array, step: Array,
) -> None:  # fmt: skip
    """Sweep over one row of weights until they stand still, with jumps in between to get there soon.

    A sweep finds out which weights are 0, and a jump where the others go; the next sweep checks that. Where φ has many
    minima there are sweeps alone, so that the one reached is theirs. `free`, `bend` and `step` are room to work in.
    """
    before = 2 + w.shape[0] // 6  # a jump takes about as long as so many sweeps
    jumps = False
    for sweep in range(1, max_steps + 1):
        _, _, moved, norm = sweep_row(w, M, pull, shift, symmetric, 0.0)
        if moved <= 1e-13 * np.sqrt(norm):
            return
        if sweep == before:
            jumps = has_one_minimum(M, shift, symmetric, bend)
        if jumps and sweep % before == 0:
            jump(w, M, pull, shift, symmetric, free, bend, step)


@kernel
def gather_pull(a: Array, H: Array, half_alpha: float, pull: Array) -> None:
    """`pull` = (α/2)·aHᵀ over the entries seen, in a fixed order so that a row's result never depends on its batch."""
    for k in range(H.shape[0]):
        total = 0.0
        for d in range(H.shape[1]):
            if not np.isnan(a[d]):
                total += a[d] * H[k, d]
        pull[k] = half_alpha * total


@kernel
def gather_curvature(a: Array, H: Array, M: Array, structure: Array, half_alpha: float, curvature: Array) -> None:
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
def gather_rows(
    W: Array, indptr: Array, indices: Array, data: Array, neighbors: Array, degree: Array, pull: Array,
    start: int, stop: int,
) -> None:  # fmt: skip
    """`degree[r]`, `pull[r]` = the sum of the similarities of row neighbors[r], and Σ_j S_ij w_j with them."""
    for r in range(start, stop):
        i = neighbors[r]
        for e in range(indptr[i], indptr[i + 1]):
            degree[r] += data[e]
            for k in range(W.shape[1]):
                pull[r, k] += data[e] * W[indices[e], k]


@kernel
def place(
    A: Array, fitted: Array, W: Array, H: Array, neighbors: Array, apart: Array, degree: Array, pulled: Array,
    leaf_degree: Array, leaf_pulled: Array, M: Array, structure: Array, weights: Array, max_steps: int, placed: Array,
    around: Array, start: int, stop: int,
) -> None:  # fmt: skip
    """Weights of rows start..stop of A, the fitted ones fixed; `around` gets the mean weights of their neighbours.

    Row r takes the place of its fitted neighbour i to the part 1 − apart_r and is a leaf on it to the part apart_r: its
    similarities and the Gram matrix of the others are mixed so. `degree` and `pulled` are the sum of i's similarities
    and that of the weights multiplied by them, `leaf_degree` and `leaf_pulled` those of the leaf. `weights` holds
    symmetric, coupling, α/2, γ/2, laplacian/2; `structure` is symmetric·WᵀW and M that plus (α/2)·HHᵀ. NaN in A and in
    `fitted` is left out.
    """
    K = W.shape[1]
    symmetric, coupling, half_alpha = weights[0], weights[1], weights[2]
    half_gamma, half_laplacian = weights[3], weights[4]
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
        total = share * degree[r] + apart[r] * leaf_degree[r]
        for k in range(K):
            settled[k] = W[i, k]
            placed[r, k] = W[i, k]
            for m in range(K):
                mixed[k, m] = curvature[k, m] - share * symmetric * W[i, k] * W[i, m]
            around[r, k] = share * pulled[r, k] + apart[r] * leaf_pulled[r, k]
            pull[k] += coupling * around[r, k]
            lone[k] += coupling * pulled[r, k]
        settle(placed[r], mixed, pull, half_gamma + half_laplacian * total, symmetric, max_steps, free, bend, step)
        if share > 0.0:  # what a fit that stopped early left undone at the neighbour is left undone here too
            gather_curvature(fitted[i], H, M, structure, half_alpha, curvature)
            for k in range(K):
                for m in range(K):
                    mixed[k, m] = curvature[k, m] - symmetric * W[i, k] * W[i, m]
            shift = half_gamma + half_laplacian * degree[r]
            settle(settled, mixed, lone, shift, symmetric, max_steps, free, bend, step)
            for k in range(K):
                placed[r, k] = max(placed[r, k] + share * (W[i, k] - settled[k]), 0.0)
        for k in range(K):
            around[r, k] = around[r, k] / total if total > 0.0 else placed[r, k]


@kernel
def rebuild_entries(table: Array, W: Array, Ht: Array, rows: Array, columns: Array) -> None:
    """table_ij = w_i·h_j for the entries listed; `Ht` is H transposed."""
    for entry in range(rows.shape[0]):
        total = 0.0
        for k in range(W.shape[1]):
            total += W[rows[entry], k] * Ht[columns[entry], k]
        table[rows[entry], columns[entry]] = total


@kernel
def entries_loss(table: Array, W: Array, Ht: Array, rows: Array, columns: Array) -> float:
    """Σ (table_ij − w_i·h_j)² over the entries listed, less Σ table_ij²."""
    loss = 0.0
    for entry in range(rows.shape[0]):
        total = 0.0
        for k in range(W.shape[1]):
            total += W[rows[entry], k] * Ht[columns[entry], k]
        loss += total * (total - 2.0 * table[rows[entry], columns[entry]])
    return loss


Forms = tuple[float, float, float]  # of Y with itself, of Y with D, of D with itself, for a step D = moved − Y
_RUN = 256  # rows whose terms are summed before they are added to the rest


@kernel
def agreement_forms(Y: Array, moved: Array, indptr: Array, indices: Array, data: Array) -> Forms:
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
def roughness_forms(Y: Array, moved: Array, indptr: Array, indices: Array, data: Array) -> Forms:
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


@kernel
def finish_round(
    pieces: Array, partners: Array, columns: Array, piece_grams: Array, piece_slopes: Array, grams: Array, H: Array,
    steps: Array, bends: Array, alpha: float, ridge: float,
) -> None:  # fmt: skip
    """Add up what the pieces of a round left behind: the blocks' Gram matrices, and a clipped step on H (as p×K).

    `steps` has the step of each block's instance set, to be divided by the group's bend.
    """
    K = H.shape[1]
    grams[:, :, :] = 0.0
    slopes = np.zeros((grams.shape[0], piece_slopes.shape[1], K))
    for piece in range(pieces.shape[0]):
        block = pieces[piece, 0]
        grams[block] += piece_grams[piece]
        slopes[block] += piece_slopes[piece]
    for block in range(partners.shape[0]):
        if block > partners[block]:
            continue  # its partner has moved their columns
        for c in range(columns[block, 1], columns[block, 2]):
            row = c - columns[block, 1]
            for k in range(K):
                gradient = alpha * (slopes[block, row, k] + slopes[partners[block], row, k]) + ridge * H[c, k]
                if bends[k] > 0.0:
                    H[c, k] = max(H[c, k] - steps[block] * gradient / bends[k], 0.0)


@kernel
def step_pieces(
    W: Array, H: Array, A: Array, moved: Array, pieces: Array, partners: Array, columns: Array, weights: Array,
    bends: Array, degree: Array, grams: Array, entries: Array, indices: Array, data: Array, start: int, stop: int,
    piece_grams: Array, piece_slopes: Array,
) -> None:  # fmt: skip
    """A gradient step, clipped at 0, on the rows of pieces start..stop of one round of block SGD.

    `pieces` has (block, first row, last row); for each block, `partners` names the other block of its instance set,
    `columns` its block of columns and the first and last of these, and `weights` is as in `step_rows`. Reads A (cut
    into blocks of columns), W, H (as p×K) and the blocks' Gram matrices; writes the new rows to `moved`, their Gram
    matrix to `piece_grams` and −(A−WH)ᵀW, their part of the gradient of H, to `piece_slopes`. Row i's entries of S in
    block b lie from entries[b, i] to entries[b+1, i].
    """
    for piece in range(start, stop):
        block = pieces[piece, 0]
        partner = partners[block]
        piece_grams[piece] = 0.0
        piece_slopes[piece] = 0.0
        step_rows(
            W, pieces[piece, 1], pieces[piece, 2], A[columns[block, 0]], H[columns[block, 1] : columns[block, 2]],
            weights[block], bends, degree, grams[partner], entries[partner], entries[partner + 1], indices, data, moved,
            piece_grams[piece], piece_slopes[piece],
        )  # fmt: skip


@kernel
def step_rows(
    W: Array, start: int, stop: int, A: Array, H: Array, weights: Array, bends: Array, degree: Array, G: Array,
    first: Array, last: Array, indices: Array, data: Array, moved: Array, gram: Array, slope: Array,
) -> None:  # fmt: skip
    """The step on rows start..stop; adds their new Gram matrix to `gram`, their part of the gradient of H to `slope`.

    `weights` has the step, the factors of structure, attributes and ridge in the gradient, and those of the row's
    degree and ‖w‖² in what its step is divided by, next to the group's bend. A and H (as p×K) have the columns of the
    instance set only. Row i's similarities to the partner's rows lie from first[i] to last[i].
    """
    K = W.shape[1]
    change = np.empty(K)
    step, structure, attribute, ridge = weights[0], weights[1], weights[2], weights[3]
    for i in range(start, stop):
        own = 0.0
        for k in range(K):
            change[k] = ridge * W[i, k]
            own += W[i, k] * W[i, k]
        own = weights[4] * degree[i] + weights[5] * own
        for k in range(K):
            for m in range(K):
                change[k] += structure * W[i, m] * G[m, k]
        for e in range(first[i], last[i]):
            for k in range(K):
                change[k] -= structure * data[e] * W[indices[e], k]
        for c in range(H.shape[0]):
            residual = A[i, c]
            for k in range(K):
                residual -= W[i, k] * H[c, k]
            for k in range(K):
                change[k] -= attribute * residual * H[c, k]
                slope[c, k] -= residual * W[i, k]
        for k in range(K):
            bend = bends[k] + own
            moved[i, k] = max(W[i, k] - step * change[k] / bend, 0.0) if bend > 0.0 else W[i, k]
        for k in range(K):
            for m in range(K):
                gram[k, m] += moved[i, k] * moved[i, m]
