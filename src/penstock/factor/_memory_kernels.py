"""The memory of a stream in one vector, compiled: how its parts lie in it."""

from __future__ import annotations

from typing import Any, NamedTuple

from penstock._jit import kernel

Array = Any


class Memory(NamedTuple):
    """All that a stream leaves behind. Buffered samples lie in a ring; `ring` = (slot of the oldest, how many, learnt).

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


@kernel
def memory_size(z: int, p: int, K: int) -> int:
    """How many numbers `open_memory` needs."""
    return z * (p + K + z + 1) + K * (2 * p + K + 1)


@kernel
def proposal_size(z: int, p: int, K: int) -> int:
    """How many numbers `open_proposal` needs."""
    return 2 * p + z + 1 + K * (1 + p)


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
        ring,
        store[:weights].reshape((z, p)),
        store[weights:distances].reshape((z, K)),
        store[distances:gaps].reshape((z, z)),
        store[gaps:H],
        store[H:U].reshape((K, p)),
        store[U:V].reshape((K, K)),
        store[V:norms].reshape((K, p)),
        store[norms : norms + K],
    )


@kernel
def open_proposal(store: Array, z: int, p: int, K: int) -> Proposal:
    """The parts of a proposal as views of one vector."""
    filled = p
    distances = 2 * p
    gap = distances + z
    w = gap + 1
    H = w + K
    return Proposal(
        store[:filled],
        store[filled:distances],
        store[distances:gap],
        store[gap:w],
        store[w:H],
        store[H : H + K * p].reshape((K, p)),
    )
