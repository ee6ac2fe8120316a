"""Compiled loops of online NS-NMF, one sample after another.

The arithmetic is IEEE in the order written, so that a stream gives the same bits however it is cut into calls.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from penstock._jit import Array, kernel
from penstock._row_kernels import seen_norm
from penstock.graph.distance_kernels import LARGEST_SIMILARITY, distance, precedes, shared_squared_distance

FLOOR = 1e-12  # of w and H: a column that is 0 for a while would otherwise give 0/0, and NaN ever after


class Memory(NamedTuple):
    """What a stream leaves behind. Buffered samples lie in a ring; `ring` = (slot of the oldest, how many, learned).

    z samples of p readings, K groups. `open_memory` lays them into one vector: handing seventeen arrays to a compiled
    function costs more than the work of a sample.
    """

    ring: Array
    rows: Array  # z×p, NaN where a reading is missing
    weights: Array  # z×K
    distances: Array  # z×z
    gaps: Array  # z: how many readings are missing
    H: Array  # K×p
    U: Array  # K×K
    V: Array  # K×p
    norms: Array  # K: of the rows of H when the stream began


class Proposal(NamedTuple):
    """What learning one more sample would change."""

    row: Array  # p, as it enters the buffer
    filled: Array  # p, missing readings replaced by their reconstruction
    distances: Array  # z, in order of age
    gap: Array  # 1: how many readings are missing
    w: Array  # K
    H: Array  # K×p
    U: Array  # K×K; this and V only if the sums grow at every step
    V: Array  # K×p


def memory_size(z: int, p: int, K: int) -> int:
    """How many numbers `open_memory` needs."""
    return z * (p + K + z + 1) + K * (2 * p + K + 1)


def proposal_size(z: int, p: int, K: int) -> int:
    """How many numbers `open_proposal` needs."""
    return 2 * p + z + 1 + K * (1 + 2 * p + K)


@kernel
def open_memory(ring: Array, store: Array, z: int, p: int, K: int) -> Memory:
    """The parts of a memory as views of one vector."""
    weights = z * p
    distances = weights + z * K
    gaps = distances + z * z
    H = gaps + z
    U = H + K * p
    V = U + K * K
    norms = V + K * p
    return Memory(
        ring, store[:weights].reshape((z, p)), store[weights:distances].reshape((z, K)),
        store[distances:gaps].reshape((z, z)), store[gaps:H], store[H:U].reshape((K, p)), store[U:V].reshape((K, K)),
        store[V:norms].reshape((K, p)), store[norms : norms + K],
    )  # fmt: skip


@kernel
def open_proposal(store: Array, z: int, p: int, K: int) -> Proposal:
    """The parts of a proposal as views of one vector."""
    filled = p
    distances = 2 * p
    gap = distances + z
    w = gap + 1
    H = w + K
    U = H + K * p
    V = U + K * K
    return Proposal(
        store[:filled], store[filled:distances], store[distances:gap], store[gap:w], store[w:H],
        store[H:U].reshape((K, p)), store[U:V].reshape((K, K)), store[V : V + K * p].reshape((K, p)),
    )  # fmt: skip


INVERSE, BINARY, RELATIVE, NORMALIZED = 0, 1, 2, 3


class StepSettings(NamedTuple):
    """How a sample is fitted."""

    kind: int  # of similarity
    of_copies: float  # similarity of equal samples
    alpha: float
    keep: float  # forgetting factor
    refresh_every: int
    tol: float
    max_iter: int
    every_step: bool  # whether U and V grow at every step, as Algorithm 2 is printed, instead of once a sample


@kernel
def measure(memory: Memory, X: Array, i: int, gap: int, out: Array) -> None:
    """Distances of a sample to the buffered ones, the oldest first: the only distances a sample costs."""
    capacity = len(memory.rows)
    for age in range(memory.ring[1]):
        slot = (memory.ring[0] + age) % capacity
        if gap == 0 and memory.gaps[slot] == 0:
            out[age] = distance(X, i, memory.rows, slot)
        else:
            out[age] = np.sqrt(shared_squared_distance(X, i, memory.rows, slot))


@kernel
def measure_buffer(memory: Memory) -> None:
    """All distances between the buffered samples, which lie in the ring from its first slot on."""
    for i in range(memory.ring[1]):
        for j in range(i):
            if memory.gaps[i] == 0 and memory.gaps[j] == 0:
                between = distance(memory.rows, i, memory.rows, j)
            else:
                between = np.sqrt(shared_squared_distance(memory.rows, i, memory.rows, j))
            memory.distances[i, j] = memory.distances[j, i] = between


@kernel
def grow_local_tree(memory: Memory, n: int, to_new: Array, parent: Array, length: Array, left: Array) -> None:
    """Prim over the n oldest samples of the buffer and a new one, number n, which is the root.

    Ties go by (length, smaller number, larger number), where numbers are in order of age. Sample i is joined to
    `parent[i]` by an edge of `length[i]`.
    """
    capacity = len(memory.rows)
    head = memory.ring[0]
    nearest = 0
    for i in range(n):
        parent[i] = n
        length[i] = to_new[i]
        left[i] = i
        if length[i] < length[nearest]:
            nearest = i
    for remaining in range(n - 1, 0, -1):
        joined = left[nearest]
        left[nearest] = left[remaining]
        joined_slot = (head + joined) % capacity
        nearest = 0
        for place in range(remaining):
            i = left[place]
            between = memory.distances[joined_slot, (head + i) % capacity]
            if precedes(between, i, joined, length[i], i, parent[i]):
                length[i] = between
                parent[i] = joined
            best = left[nearest]
            if precedes(length[i], i, parent[i], length[best], best, parent[best]):
                nearest = place


@kernel
def middle_of(values: Array, n: int) -> float:
    """The median of the first n, which are put in order: np.median takes seconds to compile."""
    for i in range(1, n):
        value = values[i]
        j = i
        while j > 0 and values[j - 1] > value:
            values[j] = values[j - 1]
            j -= 1
        values[j] = value
    return 0.5 * (values[(n - 1) // 2] + values[n // 2])


@kernel
def tree_strengths(parent: Array, length: Array, n: int, kind: int, of_copies: float, s: Array) -> None:
    """Similarities of the new sample, number n, to the buffered ones.

    That of an edge of length 0 is given; an infinite one, between samples that share no reading, gives none.
    """
    unit = 1.0
    if kind == RELATIVE:
        usable = np.empty(n)
        count = 0
        for i in range(n):
            if 0.0 < length[i] < np.inf:
                usable[count] = length[i]
                count += 1
        if count > 0:
            unit = middle_of(usable, count)
    own_degree = 0.0
    degree = np.zeros(n)
    for i in range(n):
        s[i] = 0.0
        value = 0.0
        if length[i] == 0.0:
            value = of_copies
        elif length[i] < np.inf:
            value = 1.0 if kind == BINARY else min(unit / length[i], LARGEST_SIMILARITY)
        degree[i] += value
        if parent[i] == n:
            s[i] = value
            own_degree += value
        else:
            degree[parent[i]] += value
    if kind == NORMALIZED:
        for i in range(n):
            if s[i] > 0.0:
                s[i] /= np.sqrt(degree[i]) * np.sqrt(own_degree)


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
def step_profiles(
    U: Array, V: Array, w: Array, filled: Array, keep: float, H: Array, new: Array, below: Array
) -> None:  # fmt: skip
    """H ← H∘V/(UH), U = U_{d−1} + wᵀw, V = V_{d−1} + wᵀa: Ahmed et al. (2021), eq:stream8, eq:stream6 and eq:stream7.

    The gradient step eq:stream2 with the step size eq:stream35, hence eq:stream5, which needs every sample. U_{d−1} and
    V_{d−1} stay as they are. `keep` is the forgetting factor.
    """
    K, p = H.shape
    for k in range(K):
        for j in range(p):
            below[j] = 0.0
        for m in range(K):
            u = keep * U[k, m] + w[k] * w[m]
            for j in range(p):
                below[j] += u * H[m, j]
        for j in range(p):
            new[k, j] = max(H[k, j] * (keep * V[k, j] + w[k] * filled[j]) / below[j], FLOOR)
    copy_table(new, H)


@kernel
def add_sample(U: Array, V: Array, w: Array, filled: Array, keep: float) -> None:
    """U ← keep·U + wᵀw, V ← keep·V + wᵀa: Ahmed et al. (2021), eq:stream6 and eq:stream7."""
    for k in range(len(w)):
        for m in range(len(w)):
            U[k, m] = keep * U[k, m] + w[k] * w[m]
        for j in range(len(filled)):
            V[k, j] = keep * V[k, j] + w[k] * filled[j]


@kernel
def propose(
    memory: Memory, proposal: Proposal, A: Array, i: int, gap: int, step: StepSettings,
    tree: tuple[Array, Array, Array, Array], work: tuple[Array, Array, Array, Array, Array],
) -> None:  # fmt: skip
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
    tree_strengths(parent, length, n, step.kind, step.of_copies, s)
    total = pull_of_neighbors(memory, n, s, pull, proposal.w)
    copy_table(memory.H, proposal.H)
    refresh = step.refresh_every > 0 and (memory.ring[2] + 1) % step.refresh_every == 0
    U, V, keep = memory.U, memory.V, step.keep
    if step.every_step:
        U, V = proposal.U, proposal.V
        copy_table(memory.U, U)
        copy_table(memory.V, V)
    for _ in range(step.max_iter):
        rebuild(proposal.w, proposal.H, rebuilt)
        if gap > 0:
            for j in range(p):
                if np.isnan(A[i, j]):
                    rebuilt[j] = 0.0
        change = step_weights(target, rebuilt, proposal.H, pull, total, step.alpha, proposal.w)
        if gap > 0:
            rebuild(proposal.w, proposal.H, rebuilt)
            for j in range(p):
                if np.isnan(A[i, j]):
                    proposal.filled[j] = rebuilt[j]
        if refresh:
            step_profiles(U, V, proposal.w, proposal.filled, keep, proposal.H, new, below)
        if step.every_step:
            add_sample(U, V, proposal.w, proposal.filled, keep)
            keep = 1.0  # what is forgotten is forgotten once a sample
        if change < step.tol:
            break


@kernel
def accept(memory: Memory, proposal: Proposal, keep: float, every_step: bool) -> None:
    """Learn the proposed sample: commit U, V and H, and let it take the place of the oldest."""
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
    if every_step:
        copy_table(proposal.U, memory.U)
        copy_table(proposal.V, memory.V)
    else:
        add_sample(memory.U, memory.V, proposal.w, proposal.filled, keep)
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
def accept_proposal(
    ring: Array, store: Array, proposed: Array, z: int, p: int, K: int, step: StepSettings
) -> None:  # fmt: skip
    """Learn the sample proposed last."""
    accept(open_memory(ring, store, z, p, K), open_proposal(proposed, z, p, K), step.keep, step.every_step)


@kernel
def advance(
    ring: Array, store: Array, proposed: Array, z: int, K: int, X: Array, A: Array, learn: bool, step: StepSettings,
    scores: Array, expected: Array,
) -> None:  # fmt: skip
    """Scores of rows one after another, and, if `learn`, what they teach: Ahmed et al. (2021), Algorithm 2.

    A has the values brought into the range fitted, X has not; NaN marks a missing reading in both. `expected` is
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
        propose(memory, proposal, A, i, gap, step, tree, work)
        rebuild(proposal.w, proposal.H, rebuilt)
        if explain:
            for j in range(p):
                expected[i, j] = rebuilt[j]
        for j in range(p):
            rebuilt[j] = X[i, j] - rebuilt[j]
        scores[i] = seen_norm(rebuilt, X[i])  # O = ‖a − wH‖: Ahmed et al. (2021), eq:stream10
        if learn:
            accept(memory, proposal, step.keep, step.every_step)
