"""What solvers need to know of the similarities S: sums over neighbours, the sweep, and what new rows are joined to.

`MatrixStructure` has S as a sparse matrix, `PathStructure` as the similarity of all pairs along a tree, without one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from penstock._threads import dot, for_each_range
from penstock._types import FloatArray, IndexArray, SparseMatrix
from penstock.factor._kernels import gather_rows, sweep_paths, sweep_rows
from penstock.graph.path_kernels import gather_leaves, send_up
from penstock.graph.paths import PathSimilarity, Room


@dataclass(frozen=True, eq=False)
class Joined:
    """What new rows are joined to: of each one's fitted neighbour, and of a leaf on it.

    The sum of the similarities, and of the weights of the rows that they lead to, multiplied by them.
    """

    degree: FloatArray
    pull: FloatArray
    leaf_degree: FloatArray
    leaf_pull: FloatArray


class Structure(Protocol):
    """The similarities S of n rows as solvers use them."""

    @property
    def degree(self) -> FloatArray:
        """The sum of each row's similarities, the diagonal of D."""

    @property
    def diagonal(self) -> FloatArray:
        """Each row's similarity to itself."""

    @property
    def norm(self) -> float:
        """‖S‖²."""

    def spread(self, W: FloatArray) -> FloatArray:
        """Compute SW: the weights of each row's neighbours, summed by similarity."""

    def roughness(self, W: FloatArray) -> float:
        """Compute tr(WᵀLW) = ½ Σ_ij S_ij‖w_i − w_j‖², a sum without cancellation."""

    def gaps(self, W: FloatArray, G: FloatArray) -> tuple[float, float]:
        """Sum the squares of S − WWᵀ on the entries of S and off them, given G = WᵀW."""

    def sweep(
        self, W: FloatArray, linear: FloatArray, M: FloatArray, shift: FloatArray, order: IndexArray,
        symmetric: float, coupling: float, typical: float,
    ) -> tuple[float, float | None]:  # fmt: skip
        """Sweep over all rows as `_kernels.sweep_rows` does; return its residual, and ⟨W, SW⟩ where that costs nothing.

        Rows are visited in the given order, or in one of the structure's own.
        """

    def join(self, W: FloatArray, neighbors: IndexArray, distances: FloatArray, similarity: FloatArray) -> Joined:
        """Return what rows at some distances from fitted ones, with the given similarities to them, are joined to."""


@dataclass(frozen=True, eq=False)
class MatrixStructure:
    """Similarities as a symmetric `csr_array`."""

    S: SparseMatrix

    @cached_property
    def degree(self) -> FloatArray:
        return np.asarray(self.S.sum(axis=1), dtype=np.float64)

    @cached_property
    def diagonal(self) -> FloatArray:
        return np.asarray(self.S.diagonal(), dtype=np.float64)

    @cached_property
    def norm(self) -> float:
        return dot(self.S.data, self.S.data)

    @cached_property
    def graph(self) -> tuple[IndexArray, IndexArray, FloatArray]:
        """S as (indptr, indices, data) in the integer type that the kernels are compiled for."""
        return self.S.indptr.astype(np.int64), self.S.indices.astype(np.int64), self.S.data

    @cached_property
    def _entries(self) -> tuple[IndexArray, IndexArray, FloatArray]:
        """S as (rows, columns, data)."""
        indptr, indices, data = self.graph
        return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr)), indices, data

    def spread(self, W: FloatArray) -> FloatArray:
        return np.asarray(self.S @ W)

    def roughness(self, W: FloatArray) -> float:
        rows, columns, data = self._entries
        return 0.5 * dot(data, np.sum(np.square(W[rows] - W[columns]), axis=1))

    def gaps(self, W: FloatArray, G: FloatArray) -> tuple[float, float]:
        rows, columns, data = self._entries
        fitted = np.sum(W[rows] * W[columns], axis=1)
        off_graph = 0.0
        if len(data) < len(W) ** 2:
            off_graph = max(dot(G, G) - dot(fitted, fitted), 0.0)
        return float(np.sum((data - fitted) ** 2)), off_graph

    def sweep(
        self, W: FloatArray, linear: FloatArray, M: FloatArray, shift: FloatArray, order: IndexArray,
        symmetric: float, coupling: float, typical: float,
    ) -> tuple[float, float | None]:  # fmt: skip
        return sweep_rows(W, linear, M, shift, *self.graph, order, symmetric, coupling, typical), None

    def join(self, W: FloatArray, neighbors: IndexArray, distances: FloatArray, similarity: FloatArray) -> Joined:
        joined = _nothing_joined(len(neighbors), W.shape[1])

        def gather(start: int, stop: int) -> None:
            gather_rows(W, *self.graph, neighbors, joined.degree, joined.pull, start, stop)

        for_each_range(gather, len(neighbors), smallest=64)
        joined.leaf_degree[:] = similarity
        np.multiply(similarity[:, None], W[neighbors], out=joined.leaf_pull)
        return joined


@dataclass(frozen=True, eq=False)
class PathStructure:
    """Similarities of all pairs along a tree, never written down. Rows are visited in the order of the walk.

    From about 50 rows on that is faster than a matrix of them (K = 5): at 1,000 rows 9 times, at 4,000 rows 20 times.

    No matrix WWᵀ comes near such an S: its diagonal is 0, and so ‖S−WWᵀ‖² is at least ‖S‖²/n. The expanded square
    therefore keeps all but log10(n) digits, and there is nothing to be summed instead of it.
    """

    S: PathSimilarity

    @property
    def degree(self) -> FloatArray:
        return self.S.degree

    @property
    def diagonal(self) -> FloatArray:
        return np.zeros(self.S.shape[0])

    @property
    def norm(self) -> float:
        return self.S.norm

    @cached_property
    def _rooms(self) -> dict[int, Room]:
        return {}

    def _room(self, K: int) -> Room:
        if K not in self._rooms:
            self._rooms[K] = self.S.room(K)
        return self._rooms[K]

    def spread(self, W: FloatArray) -> FloatArray:
        return self.S.spread(W, self._room(W.shape[1]))

    def roughness(self, W: FloatArray) -> float:
        return self.S.roughness(W)

    def gaps(self, W: FloatArray, G: FloatArray) -> tuple[float, float]:
        return max(self.norm - 2 * dot(W, self.spread(W)) + dot(G, G), 0.0), 0.0

    def sweep(
        self, W: FloatArray, linear: FloatArray, M: FloatArray, shift: FloatArray, order: IndexArray,
        symmetric: float, coupling: float, typical: float,
    ) -> tuple[float, float | None]:  # fmt: skip
        walk, decay, (below, beside) = self.S.walk, self.S.decay, self._room(W.shape[1])
        send_up(self.S.by_place(W), walk.parent, decay, walk.slot, below, beside)
        total, agreement = sweep_paths(
            W, linear, M, shift, walk.rows, walk.first, walk.parent, walk.depth, decay, self.S.exponents[1], walk.slot,
            below, beside, symmetric, coupling, typical,
        )  # fmt: skip
        return total, agreement

    def join(self, W: FloatArray, neighbors: IndexArray, distances: FloatArray, similarity: FloatArray) -> Joined:
        walk, sums = self.S.walk, self.S.by_place(W)
        places = walk.place_of[neighbors]
        joined = _nothing_joined(len(neighbors), W.shape[1])

        def gather(start: int, stop: int) -> None:  # a leaf's path to all others leads over its neighbour
            gather_leaves(
                places, distances, similarity, walk.counts, sums, walk.parent, walk.length, joined.degree, joined.pull,
                joined.leaf_degree, joined.leaf_pull, start, stop,
            )  # fmt: skip

        for_each_range(gather, len(neighbors), smallest=1 + 100_000 // walk.n_places)
        return joined


def _nothing_joined(n: int, K: int) -> Joined:
    return Joined(np.zeros(n), np.zeros((n, K)), np.zeros(n), np.zeros((n, K)))
