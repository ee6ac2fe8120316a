"""Factors that follow a stream: a buffer of recent samples, their local tree, and sums in place of all earlier ones."""

from __future__ import annotations

from typing import Any, Literal, Protocol

import numpy as np
from scipy import sparse

from penstock._types import Factors, FloatArray, SparseMatrix, Tree
from penstock.factor import _online_kernels as kernels
from penstock.factor.objectives import nmf, over_seen
from penstock.graph.distance_kernels import LARGEST_SIMILARITY
from penstock.graph.similarities import Kind, normalize, similarity
from penstock.storage import Fields, Record, read_fields

_NO_ROWS = np.empty((0, 0))
_KINDS: dict[Kind, int] = {
    "inverse": kernels.INVERSE,
    "binary": kernels.BINARY,
    "relative": kernels.RELATIVE,
    "normalized": kernels.NORMALIZED,
}
# What a stream continues from: products of two such numbers are finite.
_FIELDS: Fields = {
    "rows": "n p >=0 <=1e200 nan", "weights": "n k >=0 <=1e200", "norms": "k >0 <=1e200", "H": "k p >0 <=1e200",
    "U": "k k >=0 <=1e200", "V": "k p >=0 <=1e200", "n_learned": int,
}  # fmt: skip


class OnlineSettings(Protocol):
    """How a sample is fitted: parameters of `penstock.OnlineNSNMF`."""

    alpha: float
    similarity: Kind
    duplicates: Literal["join", "zero"]
    max_iter: int
    tol: float
    forgetting: float
    refresh_every: int
    accumulate: Literal["sample", "step"]


class OnlineFactors:
    """Online NS-NMF: a buffer of samples, and sums over all. Ahmed et al. (2021), Algorithm 2.

    First `fill` the buffer, factorise its rows (along `tree`), `begin` with these factors; then `update`. The cost of a
    sample and the memory do not depend on how many came before.
    """

    def __init__(self, settings: OnlineSettings, capacity: int, n_columns: int, n_components: int) -> None:
        self.settings = settings
        # Equal samples get the limit for a vanishing length, so that a copy is treated like what is nearly one.
        of_copies = 1.0 if settings.similarity == "binary" else LARGEST_SIMILARITY
        self._step = kernels.StepSettings(
            _KINDS[settings.similarity], of_copies if settings.duplicates == "join" else 0.0, float(settings.alpha),
            float(settings.forgetting), settings.refresh_every, float(settings.tol), settings.max_iter,
            settings.accumulate == "step",
        )  # fmt: skip
        self._shape = (capacity, n_columns, n_components)
        self._ring = np.zeros(3, dtype=np.int64)
        self._store = np.zeros(kernels.memory_size(*self._shape))
        self._proposed = np.zeros(kernels.proposal_size(*self._shape))
        self._has_proposal = False
        self._is_measured = True  # whether the distances between buffered samples are in memory

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Unpickled arrays may be views of a file that cannot be written to.
        arrays = {name: value.copy() for name, value in state.items() if isinstance(value, np.ndarray)}
        self.__dict__.update(state | arrays)

    @property
    def _memory(self) -> kernels.Memory:
        return kernels.open_memory(self._ring, self._store, *self._shape)

    def fill(self, rows: FloatArray) -> None:
        """Put the first samples (NaN where a reading is missing) into the empty buffer."""
        self._put(rows)
        self._measure()

    def _put(self, rows: FloatArray) -> None:
        """Put samples into the buffer, without their distances."""
        memory, n = self._memory, len(rows)
        memory.rows[:n], memory.gaps[:n] = rows, np.isnan(rows).sum(axis=1)
        memory.ring[:] = 0, n, 0
        self._is_measured = False

    def _measure(self) -> None:
        if not self._is_measured:
            kernels.measure_buffer(self._memory)
            self._is_measured = True

    def tree(self) -> Tree:
        """Compute the spanning tree of the buffer; edges of samples that share no reading are infinitely long."""
        memory = self._memory
        n = int(memory.ring[1]) - 1  # the newest is the root
        parent = np.empty(n, dtype=np.int64)
        left = np.empty(n, dtype=np.int64)
        length = np.empty(n)
        if n:
            kernels.grow_local_tree(memory, n, memory.distances[n].copy(), parent, length, left)
        edges = np.sort(np.column_stack([np.arange(n), parent]), axis=1)
        order = np.lexsort((edges[:, 1], edges[:, 0], length))
        return Tree(edges[order].astype(np.intp), length[order])

    def similarity(self) -> SparseMatrix:
        """Compute S of the samples in the buffer."""
        tree, kind = self.tree(), self.settings.similarity
        apart = np.isinf(tree.lengths)
        lengths = np.where(apart, tree.lengths[~apart].max(initial=0.0), tree.lengths)
        zero_edges: Literal["floor", "zero"] = "floor" if self.settings.duplicates == "join" else "zero"
        S = similarity(Tree(tree.edges, lengths), "inverse" if kind == "normalized" else kind, zero_edges).tolil()
        for i, j in tree.edges[apart]:
            S[i, j] = S[j, i] = 0.0
        S = sparse.csr_array(S)
        return normalize(S) if kind == "normalized" else S

    def begin(self, factors: Factors) -> None:
        """Take over what was fitted to the buffered samples: U = WᵀW and V = WᵀA."""
        memory, n = self._memory, len(factors.W)
        W, H = np.maximum(factors.W, kernels.FLOOR), np.maximum(factors.H, kernels.FLOOR)
        rows = memory.rows[:n]
        memory.weights[:n], memory.H[:] = W, H
        memory.U[:], memory.V[:] = W.T @ W, W.T @ np.where(np.isnan(rows), W @ H, rows)
        memory.norms[:] = np.sqrt(np.einsum("kj,kj->k", H, H))

    @property
    def H(self) -> FloatArray:
        """The profiles as they are now."""
        return np.asarray(self._memory.H.copy())

    @property
    def explained(self) -> float:
        """‖WH‖²/‖A‖² over the readings of the samples in the buffer."""
        memory, n = self._memory, int(self._ring[1])
        age = (int(self._ring[0]) + np.arange(n)) % self._shape[0]
        return over_seen(nmf(memory.rows[age])).explained(Factors(memory.weights[age], memory.H))

    @property
    def n_learned(self) -> int:
        """Samples taken in since the stream began."""
        return int(self._ring[2])

    def update(self, X: FloatArray, A: FloatArray, expected: FloatArray | None = None) -> FloatArray:
        """Score rows in turn, ‖a − wH‖, each taken in before the next. Ahmed et al. (2021), eq:stream10.

        A is X with values brought into the fitted range. `expected` (an array like X) is filled with the
        reconstructions.
        """
        self._has_proposal = False
        return self._advance(X, A, True, expected, self._proposed)

    def score(self, X: FloatArray, A: FloatArray, expected: FloatArray | None = None) -> FloatArray:
        """Score each row as `update` would if it came next; nothing is taken in."""
        # In room of its own, so that threads can score side by side.
        return self._advance(X, A, False, expected, np.empty_like(self._proposed))

    def propose(self, X: FloatArray, A: FloatArray, expected: FloatArray | None = None) -> float:
        """Score the one row given, ready to be taken in by `accept`."""
        self._has_proposal = False
        score = self._advance(X, A, False, expected, self._proposed)
        self._has_proposal = True
        return float(score[0])

    @property
    def has_proposal(self) -> bool:
        """Whether the row proposed last can still be taken in: nothing was since."""
        return self._has_proposal

    def decline(self) -> None:
        """Forget the row proposed last."""
        self._has_proposal = False

    @property
    def proposed_gap(self) -> int:
        """How many readings the row proposed last lacks."""
        capacity, p, _ = self._shape
        return int(self._proposed[2 * p + capacity])

    def accept(self) -> None:
        """Learn the row proposed last. A row without readings teaches nothing."""
        z, p, K = self._shape
        if self._has_proposal and self.proposed_gap < p:
            kernels.accept_proposal(self._ring, self._store, self._proposed, z, p, K, self._step)
        self._has_proposal = False

    def _advance(
        self, X: FloatArray, A: FloatArray, learn: bool, expected: FloatArray | None, room: FloatArray
    ) -> FloatArray:
        """Score rows one after the other, and learn each before the next if `learn`; the last one is left in `room`."""
        z, _, K = self._shape
        scores = np.empty(len(X))
        self._measure()
        expected = _NO_ROWS if expected is None else expected
        kernels.advance(self._ring, self._store, room, z, K, X, A, learn, self._step, scores, expected)
        return scores

    def get_state(self) -> dict[str, FloatArray | int]:
        """Return what a stream continues from; the buffer in order of age, whose distances can be measured again."""
        memory, n = self._memory, int(self._ring[1])
        age = (int(self._ring[0]) + np.arange(n)) % self._shape[0]
        parts = {"rows": memory.rows[age], "weights": memory.weights[age], "norms": memory.norms.copy()}
        return parts | {"H": memory.H.copy(), "U": memory.U.copy(), "V": memory.V.copy(), "n_learned": self.n_learned}

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from `get_state`, to the last bit. A ValueError says what does not fit.

        Distances, which take more memory than all that is in the state, are measured when the next sample comes.
        """
        capacity, p, K = self._shape
        record = Record(state, "factors")
        found = read_fields(record, _FIELDS, {"p": p, "k": K})
        rows = found["rows"]
        n = len(rows)
        if not 1 <= n <= capacity:
            raise record.error("rows", f"1 to {capacity} rows")
        self._put(rows)
        memory = self._memory
        memory.weights[:n], memory.H[:], memory.norms[:] = found["weights"], found["H"], found["norms"]
        memory.U[:], memory.V[:], self._ring[2] = found["U"], found["V"], found["n_learned"]
        self._has_proposal = False
