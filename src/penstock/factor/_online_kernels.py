"""Online NS-NMF, compiled: one sample after another. The arithmetic is IEEE in the order written, so that a stream
gives the same bits however it is cut into calls."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock._jit import kernel
from penstock.factor._local_tree_kernels import grow_local_tree, measure, tree_strengths
from penstock.factor._memory_kernels import Memory, Proposal, open_memory, open_proposal

Array = Any

FLOOR = 1e-12  # of w and H: a column that is 0 for a while would otherwise give 0/0, and NaN ever after
LARGEST = float(np.finfo(np.float64).max)


@kernel
def pull_of_neighbors(memory: Memory, n: int, s: Array, pull: Array, w: Array) -> float:
    """Σ s_i w_i into `pull`, the first weights into `w`; returns Σ s_i."""
    capacity = len(memory.rows)
    K = len(w)
    total = 0.0
    for k in range(K):
        pull[k] = 0.0
    for i in range(n):
        if s[i] > 0.0:
            total += s[i]
            slot = (memory.ring[0] + i) % capacity
            for k in range(K):
                pull[k] += s[i] * memory.weights[slot, k]
    for k in range(K):
        w[k] = max(pull[k] / total, FLOOR) if total > 0.0 else 1.0 / K
    return total


@kernel
def copy_table(source: Array, target: Array) -> None:
    """Entry by entry: an assignment of slices takes seconds to compile."""
    for i in range(source.shape[0]):
        for j in range(source.shape[1]):
            target[i, j] = source[i, j]


@kernel
def rebuild(w: Array, H: Array, out: Array) -> None:
    """out = wH."""
    for j in range(len(out)):
        out[j] = 0.0
    for k in range(len(w)):
        for j in range(len(out)):
            out[j] += w[k] * H[k, j]


@kernel
def dot(x: Array, H: Array, k: int) -> float:
    """⟨x, h_k⟩; four sums keep the units busy, in a fixed order."""
    p = len(x)
    whole = p - p % 4
    s0 = 0.0
    s1 = 0.0
    s2 = 0.0
    s3 = 0.0
    for j in range(0, whole, 4):
        s0 += x[j] * H[k, j]
        s1 += x[j + 1] * H[k, j + 1]
        s2 += x[j + 2] * H[k, j + 2]
        s3 += x[j + 3] * H[k, j + 3]
    for j in range(whole, p):
        s0 += x[j] * H[k, j]
    return (s0 + s1) + (s2 + s3)


@kernel
def step_weights(target: Array, rebuilt: Array, H: Array, pull: Array, total: float, alpha: float, w: Array) -> float:
    """Weights of the newest sample: Ahmed et al. (2021), eq:stream4, over the buffered neighbours only eq:stream9.

    The gradient step eq:stream1 with the step size eq:stream3. Missing readings are 0 in `target` and `rebuilt` alike.
    Returns the relative change of w.
    """
    change = 0.0
    size = 0.0
    for k in range(len(w)):
        above = alpha * dot(target, H, k) + pull[k]
        below = alpha * dot(rebuilt, H, k) + total * w[k]
        new = max(w[k] * above / below, FLOOR)
        change += (new - w[k]) * (new - w[k])
        size += new * new
        w[k] = new
    return np.sqrt(change / size)


@kernel
def step_profiles(memory: Memory, w: Array, filled: Array, keep: float, H: Array, new: Array, below: Array) -> None:
    """H ← H∘V/(UH), U = U_{d−1} + wᵀw, V = V_{d−1} + wᵀa: Ahmed et al. (2021), eq:stream8, eq:stream6 and eq:stream7.

    The gradient step eq:stream2 with the step size eq:stream35, hence eq:stream5, which needs every sample. U_{d−1} and
    V_{d−1} stay as they are: adding to them in every round, as Algorithm 2 is printed, would count a sample many times.
    `keep` is the forgetting factor.
    """
    K, p = H.shape
    for k in range(K):
        for j in range(p):
            below[j] = 0.0
        for m in range(K):
            u = keep * memory.U[k, m] + w[k] * w[m]
            for j in range(p):
                below[j] += u * H[m, j]
        for j in range(p):
            new[k, j] = max(H[k, j] * (keep * memory.V[k, j] + w[k] * filled[j]) / below[j], FLOOR)
    copy_table(new, H)


@kernel
def residual_norm(X: Array, i: int, rebuilt: Array, seen: int) -> float:
    """O = ‖a − wH‖ over the readings seen, scaled up to all p: Ahmed et al. (2021), eq:stream10."""
    largest = 0.0
    total = 0.0
    for j in range(len(rebuilt)):
        if not np.isnan(X[i, j]):
            difference = abs(X[i, j] - rebuilt[j])
            if not difference <= LARGEST:  # a model that broke explains nothing: it must not look perfect
                return LARGEST
            largest = max(largest, difference)
            total += difference * difference
    share = np.sqrt(len(rebuilt) / seen)
    if 1e-280 < total < np.inf or largest == 0.0:
        return np.sqrt(total) * share
    total = 0.0  # squares vanished or overflowed: in units of the largest
    for j in range(len(rebuilt)):
        if not np.isnan(X[i, j]):
            difference = abs(X[i, j] - rebuilt[j]) / largest
            total += difference * difference
    return min(largest * np.sqrt(total) * share, LARGEST)


@kernel
def propose(
    memory: Memory,
    proposal: Proposal,
    A: Array,
    i: int,
    gap: int,
    kind: int,
    of_copies: float,
    alpha: float,
    keep: float,
    refresh_every: int,
    tol: float,
    max_iter: int,
    tree: tuple[Array, Array, Array, Array],
    work: tuple[Array, Array, Array, Array, Array],
) -> None:
    """Weights and profiles if row i of A came next: the third phase of Ahmed et al. (2021), Algorithm 2."""
    parent, length, left, s = tree
    target, rebuilt, below, pull, new = work
    p = A.shape[1]
    n = memory.ring[1]
    proposal.gap[0] = gap
    for j in range(p):
        proposal.row[j] = A[i, j]
        target[j] = 0.0 if np.isnan(A[i, j]) else A[i, j]
        proposal.filled[j] = target[j]
    measure(memory, A, i, gap, proposal.distances)
    grow_local_tree(memory, n, proposal.distances, parent, length, left)
    tree_strengths(parent, length, n, kind, of_copies, s)
    total = pull_of_neighbors(memory, n, s, pull, proposal.w)
    copy_table(memory.H, proposal.H)
    refresh = refresh_every > 0 and (memory.ring[2] + 1) % refresh_every == 0
    for _ in range(max_iter):
        rebuild(proposal.w, proposal.H, rebuilt)
        if gap > 0:
            for j in range(p):
                if np.isnan(A[i, j]):
                    rebuilt[j] = 0.0
        change = step_weights(target, rebuilt, proposal.H, pull, total, alpha, proposal.w)
        if gap > 0:
            rebuild(proposal.w, proposal.H, rebuilt)
            for j in range(p):
                if np.isnan(A[i, j]):
                    proposal.filled[j] = rebuilt[j]
        if refresh:
            step_profiles(memory, proposal.w, proposal.filled, keep, proposal.H, new, below)
        if change < tol:
            break


@kernel
def accept(memory: Memory, proposal: Proposal, keep: float) -> None:
    """Learn the proposed sample: commit U, V and H once, and let it take the place of the oldest."""
    capacity = len(memory.rows)
    K, p = memory.H.shape
    head, n = memory.ring[0], memory.ring[1]
    slot = (head + n) % capacity
    for age in range(n):
        other = (head + age) % capacity
        memory.distances[slot, other] = proposal.distances[age]
        memory.distances[other, slot] = proposal.distances[age]
    memory.distances[slot, slot] = 0.0
    memory.gaps[slot] = proposal.gap[0]
    for j in range(p):
        memory.rows[slot, j] = proposal.row[j]
    copy_table(proposal.H, memory.H)
    for k in range(K):
        memory.weights[slot, k] = proposal.w[k]
        for m in range(K):
            memory.U[k, m] = keep * memory.U[k, m] + proposal.w[k] * proposal.w[m]
        for j in range(p):
            memory.V[k, j] = keep * memory.V[k, j] + proposal.w[k] * proposal.filled[j]
    if n == capacity:
        memory.ring[0] = (head + 1) % capacity
    else:
        memory.ring[1] = n + 1
    memory.ring[2] += 1
    if keep < 1.0:
        rescale(memory)


@kernel
def rescale(memory: Memory) -> None:
    """Rows of H back to the norms they began with, at the same products WH and UH: forgetting lets them drift."""
    K, p = memory.H.shape
    for k in range(K):
        c = np.sqrt(dot(memory.H[k], memory.H, k)) / memory.norms[k]
        for j in range(p):
            memory.H[k, j] /= c
            memory.V[k, j] *= c
        for m in range(K):
            memory.U[k, m] *= c
        for m in range(K):
            memory.U[m, k] *= c
        for i in range(len(memory.weights)):
            memory.weights[i, k] *= c


@kernel
def accept_proposal(ring: Array, store: Array, proposed: Array, z: int, p: int, K: int, keep: float) -> None:
    """Learn the sample proposed last."""
    accept(open_memory(ring, store, z, p, K), open_proposal(proposed, z, p, K), keep)


@kernel
def advance(
    ring: Array,
    store: Array,
    proposed: Array,
    z: int,
    K: int,
    X: Array,
    A: Array,
    learn: bool,
    kind: int,
    of_copies: float,
    alpha: float,
    keep: float,
    refresh_every: int,
    tol: float,
    max_iter: int,
    scores: Array,
    expected: Array,
) -> None:
    """Scores of rows one after another, and, if `learn`, what they teach: Ahmed et al. (2021), Algorithm 2.

    A has the values brought into the range learnt, X has not; NaN marks a missing reading in both. `expected` is
    filled with wH if it has as many rows as X, else left alone. A row without any reading scores NaN, teaches nothing.
    """
    p = X.shape[1]
    memory = open_memory(ring, store, z, p, K)
    proposal = open_proposal(proposed, z, p, K)
    tree = (np.empty(z, np.int64), np.empty(z), np.empty(z, np.int64), np.empty(z))
    work = (np.empty(p), np.empty(p), np.empty(p), np.empty(K), np.empty((K, p)))
    rebuilt = np.empty(p)
    explain = len(expected) == len(X)
    for i in range(len(X)):
        gap = 0
        for j in range(p):
            gap += np.isnan(A[i, j])
        if gap == p:
            proposal.gap[0] = p
            scores[i] = np.nan
            if explain:
                for j in range(p):
                    expected[i, j] = np.nan
            continue
        propose(memory, proposal, A, i, gap, kind, of_copies, alpha, keep, refresh_every, tol, max_iter, tree, work)
        rebuild(proposal.w, proposal.H, rebuilt)
        scores[i] = residual_norm(X, i, rebuilt, p - gap)
        if explain:
            for j in range(p):
                expected[i, j] = rebuilt[j]
        if learn:
            accept(memory, proposal, keep)
