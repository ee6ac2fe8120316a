"""Similarity of all pairs of rows by the paths of a spanning tree, 1/length, without the n×n matrix.

The one idea: exp(−t·d) is a product along a path, so that its sums over all pairs cost two passes over the tree, and
1/d is a sum of a few dozen such exponentials.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from penstock._types import FloatArray, IndexArray, SparseMatrix, Tree
from penstock.graph import path_kernels as kernels
from penstock.graph.distance_kernels import LARGEST_SIMILARITY

LARGEST_PATH_MATRIX = 5_000  # rows: 25 million pairs, 0.3 GB, and three times that while a solver runs

# 1/d = ∫ exp(−d·eˢ)·eˢ ds by the trapezoidal rule. Its relative error is at most 2√(2πy)·exp(−πy/2) with y = 2π/step:
# 3e-11. Above, the sum ends where exp(−t·d) is at most exp(−26) = 5e-12 for all d. Below, all terms with t ≤ 2/longest,
# infinitely many, are replaced by the Gauss quadrature of their sum with six points: error below 1e-12.
PATH_ERROR = 5e-11
_STEP, _LARGEST_POWER, _TAIL, _TAIL_POINTS = 0.36, 26.0, 2.0, 6


Room = tuple[FloatArray, FloatArray]


@dataclass(frozen=True, eq=False)
class PathSimilarity:
    """S_ij = 1/d(i,j), d the length of the path between rows i and j in a spanning tree; 0 where that is 0.

    Algorithm 1 of Ahmed et al. (2021): "the pairwise MST distance matrix". Products with S cost O(n) instead of O(n²);
    they are those of a symmetric matrix whose entries differ from 1/d by a share of at most `PATH_ERROR`.

    Parameters
    ----------
    tree : Tree
        Rows that edges of length 0 join are at one place: they are not similar to each other, only to others.

    Examples
    --------
    >>> S = PathSimilarity(Tree(np.array([[0, 1], [1, 2]]), np.array([1.0, 3.0])))
    >>> S.spread(np.eye(3)).round(9)
    array([[0.        , 1.        , 0.25      ],
           [1.        , 0.        , 0.33333333],
           [0.25      , 0.33333333, 0.        ]])
    """

    tree: Tree

    def __getstate__(self) -> dict[str, Any]:
        """Keep the tree alone: what is cached is far larger, and follows from it."""
        return {"tree": self.tree}

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n)."""
        return self.tree.n_nodes, self.tree.n_nodes

    @cached_property
    def walk(self) -> Walk:
        """The places of the tree in preorder."""
        return walk_tree(self.tree)

    @cached_property
    def exponents(self) -> tuple[FloatArray, FloatArray]:
        """(t, weights): 1/d ≈ Σ weights·exp(−t·d) for all lengths of paths."""
        edges = self.walk.length[1:]
        if not len(edges):
            return np.zeros(0), np.zeros(0)
        return sum_of_exponentials(float(edges.min()), kernels.longest_path(self.walk.parent, self.walk.length))

    @cached_property
    def decay(self) -> FloatArray:
        """(places, exponents): exp(−t·length) of the edge above each place."""
        powers = np.multiply.outer(-self.walk.length, self.exponents[0])
        return np.asarray(np.exp(powers, out=powers))

    def by_place(self, W: FloatArray) -> FloatArray:
        """Add up the rows of W at each place."""
        return self.walk.add_up(np.ascontiguousarray(W, dtype=np.float64))

    def spread(self, W: FloatArray, room: Room | None = None) -> FloatArray:
        """Compute SW. To get the room takes longer than to fill it, so that a loop makes it once."""
        sums, walk = self.by_place(W), self.walk
        out = np.empty_like(sums)
        below, beside = self.room(sums.shape[1]) if room is None else room
        kernels.send_up(sums, walk.parent, self.decay, walk.slot, below, beside)
        kernels.send_down(sums, walk.parent, self.decay, self.exponents[1], walk.slot, below, beside, out)
        return out[walk.place_of]

    def room(self, K: int) -> Room:
        """Make room for the messages of K columns: one for each place, and one for each child that is not the last."""
        M = len(self.exponents[0])
        return np.empty((self.walk.n_places, K, M)), np.empty((self.walk.n_beside, K, M))

    def forget(self) -> None:
        """Drop what products need and is far larger than the tree; it is made again if need be."""
        vars(self).pop("decay", None)

    @cached_property
    def degree(self) -> FloatArray:
        """The sum of each row's similarities."""
        return np.ascontiguousarray(self.spread(np.ones((self.shape[0], 1)))[:, 0])

    @cached_property
    def norm(self) -> float:
        """‖S‖² = Σ 1/d² over all pairs, by the same exponents; relative error at most 1e-9."""
        t, weights = self.exponents
        return 2 * kernels.add_pairs(self.walk.counts, self.walk.parent, self.decay, t * weights)

    @cached_property
    def largest(self) -> FloatArray:
        """The largest similarity of each row: by its place's shortest edge."""
        walk = self.walk
        shortest = np.full(walk.n_places, np.inf)
        np.minimum.at(shortest, walk.parent[1:], walk.length[1:])
        shortest[1:] = np.minimum(shortest[1:], walk.length[1:])
        return np.asarray(1.0 / shortest[walk.place_of])

    def roughness(self, W: FloatArray) -> float:
        """Compute ½ Σ_ij S_ij‖w_i − w_j‖², a sum without cancellation."""
        walk = self.walk
        means = self.by_place(W) / walk.counts[:, None]
        scatter = self.by_place(np.sum((W - means[walk.place_of]) ** 2, axis=1)[:, None])[:, 0]
        weights = self.exponents[1]
        return float(kernels.add_differences(walk.counts, means, scatter, walk.parent, self.decay, weights))

    def neighbor_mean(self, W: FloatArray) -> FloatArray:
        """Compute the similarity-weighted mean of the other rows' weights; a row similar to none keeps its own."""
        joined = self.degree > 0
        means = self.spread(W) / np.where(joined, self.degree, 1.0)[:, None]
        means[~joined] = W[~joined]
        return means

    def tocsr(self) -> SparseMatrix:
        """Return the matrix, exact, with an entry for each pair; raise a ValueError for more than 5,000 rows."""
        n, walk = self.shape[0], self.walk
        if n > LARGEST_PATH_MATRIX:
            raise ValueError(
                f"The path similarity of {n:,} rows as a matrix would have {n * (n - 1):,} entries; at most "
                f"{LARGEST_PATH_MATRIX:,} rows are allowed. Use a solver that needs no matrix, 'auto', Coordinate() or "
                "Multiplicative(), or a similarity of the edges alone, such as 'inverse'."
            )
        D = np.empty((walk.n_places, walk.n_places))
        kernels.all_distances(walk.parent, walk.length, D)
        others = n - np.diff(walk.first)[walk.place_of]
        indptr = np.concatenate([[0], np.cumsum(others)])
        indices, data = np.empty(indptr[-1], np.int32), np.empty(indptr[-1])
        kernels.list_pairs(D, walk.place_of, indices, data)
        return sparse.csr_array((data, indices, indptr.astype(np.int32)), shape=(n, n))


@dataclass(frozen=True, eq=False)
class Walk:
    """The places of a tree in preorder: parents before children, every branch without a gap.

    Rows that edges of length 0 join share a place. The first place is that with the largest sum of 1/length, children
    are in the order of their edges' lengths: a walk moves with the rows when they are permuted, but where lengths tie.
    """

    place_of: IndexArray  # (n,) each row's place
    rows: IndexArray  # (n,) the rows in the order of their places
    first: IndexArray  # (places + 1,) where in `rows` those of each place begin
    parent: IndexArray  # (places,) the place above, −1 for the first
    length: FloatArray  # (places,) of the edge to it
    slot: IndexArray  # (places,) numbers those children that are not the last of their parent, −1 for the others

    @property
    def n_places(self) -> int:
        return len(self.parent)

    @cached_property
    def n_beside(self) -> int:
        """The number of children that are not the last of their parent."""
        return int(self.slot.max(initial=-1)) + 1

    @cached_property
    def counts(self) -> FloatArray:
        """(places,) the number of rows at each place."""
        return np.diff(self.first).astype(np.float64)

    @cached_property
    def depth(self) -> IndexArray:
        """(places,) the number of edges to the first place."""
        depth = np.zeros(self.n_places, dtype=np.int64)
        kernels.count_edges(self.parent, depth)
        return depth

    def add_up(self, W: FloatArray) -> FloatArray:
        """Add up the rows of W at each place."""
        if self.n_places == len(W):
            return W[self.rows]
        return np.asarray(np.add.reduceat(W[self.rows], self.first[:-1], axis=0))


def walk_tree(tree: Tree) -> Walk:
    """List the places of a tree in preorder."""
    n, joins = tree.n_nodes, tree.lengths > 0
    names: IndexArray = np.arange(n)
    if not joins.all():
        ends = tree.edges[~joins]
        equal = sparse.csr_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(n, n))
        names = connected_components(equal, directed=False)[1].astype(np.int64)
    m = int(names.max()) + 1
    lengths = np.maximum(tree.lengths[joins], 1.0 / LARGEST_SIMILARITY)
    one, other = names[tree.edges[joins]].T.astype(np.int64).reshape(2, -1)
    froms = np.concatenate([one, other])
    tos = np.concatenate([other, one])
    both = np.concatenate([lengths, lengths])
    order = np.lexsort((tos, both, froms))
    indptr = np.searchsorted(froms[order], np.arange(m + 1)).astype(np.int64)
    root = int(np.argmax(np.bincount(froms, weights=1.0 / both, minlength=m)))
    listed, parent, length = np.empty(m, np.int64), np.empty(m, np.int64), np.empty(m)
    kernels.walk(indptr, tos[order], both[order], root, listed, parent, length)
    position = np.empty(m, np.int64)
    position[listed] = np.arange(m)
    place_of = position[names]
    rows = np.argsort(place_of, kind="stable").astype(np.int64)
    first = np.searchsorted(place_of[rows], np.arange(m + 1)).astype(np.int64)
    last_child = np.full(m, -1, dtype=np.int64)
    last_child[parent[1:]] = np.arange(1, m)  # later assignments win: preorder is ascending
    slot = np.full(m, -1, dtype=np.int64)
    others = np.flatnonzero(last_child[parent[1:]] != np.arange(1, m)) + 1
    slot[others] = np.arange(len(others))
    return Walk(place_of, rows, first, parent, length, slot)


def sum_of_exponentials(shortest: float, longest: float) -> tuple[FloatArray, FloatArray]:
    """Find t and weights with |1/d − Σ weights·exp(−t·d)| ≤ PATH_ERROR/d for all d from shortest to longest.

    Their number, about 6.4 for each factor of ten between the two and 13 more, is a multiple of four: some weights at
    the end may be 0.

    >>> t, weights = sum_of_exponentials(0.01, 100.0)
    >>> len(t), float(abs(1 - 0.5 * weights @ np.exp(-0.5 * t)).round(10))
    (40, 0.0)
    """
    top = math.log(_LARGEST_POWER) - math.log(shortest)
    count = max(math.ceil((top - math.log(_TAIL) + math.log(min(longest, np.finfo(np.float64).max))) / _STEP), 0)
    t = np.exp(top - _STEP * np.arange(count))
    points, shares = _tail_rule()
    end = math.exp(top - _STEP * count)
    t, weights = np.concatenate([t, end * points]), np.concatenate([_STEP * t, end * shares])
    return np.pad(t, (0, -len(t) % 4)), np.pad(weights, (0, -len(t) % 4))


@cache
def _tail_rule() -> tuple[FloatArray, FloatArray]:
    """Compute the Gauss quadrature (points, weights) of f ↦ Σ_{j≥0} step·qʲ·f(qʲ), q = exp(−step), by Lanczos."""
    nodes = np.exp(-_STEP * np.arange(150))
    mass = _STEP * nodes
    basis = [np.sqrt(mass / mass.sum())]
    diagonal, beside = [], []
    for _ in range(_TAIL_POINTS):
        image = nodes * basis[-1]
        diagonal.append(float(image @ basis[-1]))
        for vector in [*basis, *basis]:  # twice: orthogonal to rounding
            image = image - (image @ vector) * vector
        beside.append(float(np.linalg.norm(image)))
        basis.append(image / beside[-1])
    points, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(beside[:-1], 1) + np.diag(beside[:-1], -1))
    return points, mass.sum() * vectors[0] ** 2
