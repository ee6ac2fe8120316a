"""Objectives: NMF, GNMF, SNMF, NS-NMF and its Laplacian form, each also over tables with missing entries.

One record, `Objective`, covers the family; the functions of this module make its members.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from penstock._threads import dot
from penstock._types import Factors, FloatArray, IndexArray, SparseMatrix
from penstock.factor._kernels import entries_loss, rebuild_entries
from penstock.factor.structure import MatrixStructure, PathStructure, Structure
from penstock.factor.terms import (
    Gaps,
    Parts,
    Sums,
    Terms,
    profile_parts,
    profile_residual,
    value_of,
    weight_parts,
    weight_residuals,
)
from penstock.graph.paths import PathSimilarity


@dataclass(frozen=True, eq=False)
class Objective:
    """f(W,H) = symmetric·‖S−WWᵀ‖² + alpha·‖A−WH‖² + laplacian·tr(WᵀLW) + gamma·(‖W‖²+‖H‖²) over W, H ≥ 0.

    L = D − S with D = diag(S·1). Generalises Ahmed et al. (2021), eq:main. Use the functions `nmf`, `gnmf`, `snmf`,
    `nsnmf` and `laplacian_nsnmf` for the members of the family that have a name.

    Parameters
    ----------
    A : array of shape (n, p) or None
        The table. Without it H is a K×0 array.
    S : sparse matrix of shape (n, n), PathSimilarity or None
        Symmetric similarities ≥ 0.
    symmetric, alpha, laplacian, gamma : float, default 0
        Weights ≥ 0 of the terms. When alpha is 0, H has no part in the problem: solvers leave it as it is.
    row_bound : float, default inf
        Bound on the length of each row of H, ‖h_k‖₂ ≤ row_bound.

    Examples
    --------
    >>> import numpy as np
    >>> objective = Objective(A=np.eye(2), S=None, alpha=1.0)
    >>> objective.value(Factors(np.ones((2, 1)), np.ones((1, 2))))
    2.0
    """

    A: FloatArray | None
    S: SparseMatrix | PathSimilarity | None
    symmetric: float = 0.0
    alpha: float = 0.0
    laplacian: float = 0.0
    gamma: float = 0.0
    row_bound: float = math.inf

    def __post_init__(self) -> None:
        for name in ("symmetric", "alpha", "laplacian", "gamma"):
            weight = getattr(self, name)
            if not (math.isfinite(weight) and weight >= 0):
                raise ValueError(f"{name} must be a finite number ≥ 0, but is {weight!r}.")
        if not self.row_bound > 0:
            raise ValueError(f"row_bound must be positive, but is {self.row_bound!r}.")
        if self.A is None and self.S is None:
            raise ValueError("An objective needs the table A, the similarities S, or both.")
        if self.alpha > 0 and self.A is None:
            raise ValueError("alpha > 0 weighs the table A, but A is None.")
        if (self.symmetric > 0 or self.laplacian > 0) and self.S is None:
            raise ValueError("symmetric and laplacian weigh the similarities S, but S is None.")
        if self.A is not None:
            object.__setattr__(self, "A", np.ascontiguousarray(self.A, dtype=np.float64))
        if self.S is not None:
            object.__setattr__(self, "S", _check_similarity(self.S, self.n_rows))

    def __getstate__(self) -> dict[str, Any]:
        """Keep the fields alone: what is cached is as large as they are, and quickly computed."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def n_rows(self) -> int:
        """The number of rows n."""
        known: Any = self.S if self.A is None else self.A
        return int(known.shape[0])

    @property
    def n_columns(self) -> int:
        """The number of columns p of the table, 0 without one."""
        return 0 if self.A is None else int(self.A.shape[1])

    @property
    def table(self) -> FloatArray | None:
        """A as solvers see it: without missing entries."""
        return self.A

    @cached_property
    def norm_A(self) -> float:
        """‖A‖²."""
        return 0.0 if self.A is None else dot(self.A, self.A)

    @cached_property
    def structure(self) -> Structure:
        """S as solvers use it; without S no row is similar to any."""
        if isinstance(self.S, PathSimilarity):
            return PathStructure(self.S)
        return MatrixStructure(sparse.csr_array((self.n_rows, self.n_rows)) if self.S is None else self.S)

    @cached_property
    def matrix(self) -> SparseMatrix | None:
        """S as a matrix, for solvers that need one; raise a ValueError if it would be too large."""
        return self.S.tocsr() if isinstance(self.S, PathSimilarity) else self.S

    def forget(self) -> None:
        """Drop what was computed from S for a solver: of all pairs along a tree it is far larger than S itself."""
        if isinstance(self.S, PathSimilarity):
            for name in ("structure", "matrix", "graph"):
                vars(self).pop(name, None)
            self.S.forget()

    @cached_property
    def terms(self) -> Terms:
        """The numbers of the objective, without its data."""
        return Terms(
            self.n_rows,
            self.n_columns,
            self.symmetric,
            self.alpha,
            self.laplacian,
            self.gamma,
            self.row_bound,
            self.norm_A,
            self.structure.norm,
        )

    @cached_property
    def graph(self) -> tuple[IndexArray, IndexArray, FloatArray]:
        """The matrix S as (indptr, indices, data) in the integer type that the kernels are compiled for."""
        known = self.structure
        if not isinstance(known, MatrixStructure):
            known = MatrixStructure(self.matrix)
        return known.graph

    def refill(self, W: FloatArray, H: FloatArray) -> bool:
        """Set missing entries of `table` to their reconstruction WH; return whether there are any."""
        return False

    def attributes_onto(self, H: FloatArray) -> FloatArray:
        """Compute C = AHᵀ (n×K)."""
        return np.zeros((self.n_rows, len(H))) if self.table is None else self.table @ H.T

    def attributes_by(self, W: FloatArray) -> FloatArray:
        """Compute WᵀA (K×p)."""
        return np.zeros((W.shape[1], 0)) if self.table is None else W.T @ self.table

    def fit_and_energy(self, W: FloatArray, H: FloatArray, G: FloatArray) -> tuple[float, float]:
        """Compute ⟨A, WH⟩ and ‖WH‖², given G = WᵀW: how the attribute term depends on the scale of the factors."""
        return dot(self.attributes_by(W), H), dot(G, H @ H.T)

    def explained(self, factors: Factors) -> float:
        """Compute ‖WH‖²/‖A‖² over the entries of A that are not missing: the share that is rebuilt; 1 where A is 0.

        >>> import numpy as np
        >>> nmf(np.eye(2)).explained(Factors(np.array([[1.0], [0.0]]), np.array([[1.0, 0.0]])))
        0.5
        """
        W, H = factors.W, factors.H
        return self.fit_and_energy(W, H, W.T @ W)[1] / self.norm_A if self.norm_A > 0 else 1.0

    def value(self, factors: Factors) -> float:
        """Compute f(W,H) in O(nnz·K + npK + nK²): WWᵀ is never formed. Ahmed et al. (2021), eq:main.

        The squares are expanded; where a term is nearly fitted and its expansion would cancel, its residuals are summed
        instead. The rounding error stays near 1e-15·(symmetric·‖WᵀW‖² + f).
        """
        W = factors.W
        return self.value_from(factors, W.T @ W, self.attributes_by(W) if self.alpha else np.zeros_like(factors.H))

    def value_from(
        self, factors: Factors, G: FloatArray, V: FloatArray, SW: FloatArray | None = None,
        agreement: float | None = None,
    ) -> float:  # fmt: skip
        """Compute f(W,H) given G = WᵀW and V = WᵀA (not used when alpha is 0), and SW or ⟨W, SW⟩ if one is known."""
        W = factors.W
        if not self.symmetric:
            agreement = 0.0
        elif agreement is None:
            agreement = dot(W, self.structure.spread(W) if SW is None else SW)
        sums = Sums(G, V, agreement, self._roughness(W) if self.laplacian else 0.0)
        unseen = self._unseen_loss(factors) if self.alpha else 0.0
        return value_of(self.terms, factors.H, sums, lambda: self._gaps(factors, G), unseen)

    def _gaps(self, factors: Factors, G: FloatArray) -> Gaps:
        """Sum the squares of the residuals.

        Those of ‖A−WH‖² (Ahmed et al. (2021), eq:frob, the square of eq:loss1), and of ‖S−WWᵀ‖² (eq:SNMF) on the
        entries of S and off them.
        """
        attributes = self._attribute_loss(factors) if self.alpha else 0.0
        return Gaps(attributes, *(self.structure.gaps(factors.W, G) if self.symmetric else (0.0, 0.0)))

    def _attribute_loss(self, factors: Factors) -> float:
        """‖A−WH‖². Ahmed et al. (2021), eq:frob; the square of eq:loss1."""
        assert self.A is not None
        residual = self.A - factors.W @ factors.H
        return dot(residual, residual)

    def _unseen_loss(self, factors: Factors) -> float:
        """Compute what missing entries, as they are filled, add to the expanded ‖A−WH‖²."""
        return 0.0

    def _roughness(self, W: FloatArray) -> float:
        """tr(WᵀLW) = ½ Σ_ij S_ij‖w_i − w_j‖², a sum without cancellation.

        Ahmed et al. (2021), eq:GNMF and, for the normalised S, eq:equivalence.
        """
        return self.structure.roughness(W)

    def gradient(self, factors: Factors) -> Factors:
        """Compute ∇_W = 4σ(WG−SW) + 2α(WQ−C) + 2λLW + 2γW and ∇_H = 2α(GH−WᵀA) + 2γH, as a pair of factors.

        Differentiates Ahmed et al. (2021), eq:main.
        """
        (rise_W, fall_W), (rise_H, fall_H) = self._parts(factors)
        return Factors(rise_W - fall_W, rise_H - fall_H)

    def _parts(self, factors: Factors) -> tuple[Parts, Parts]:
        """Compute the gradient over W and over H, each as a difference of two non-negative parts."""
        W, H = factors.W, factors.H
        G = W.T @ W
        SW = self.structure.spread(W) if self.symmetric or self.laplacian else None
        C = self.attributes_onto(H) if self.alpha else None
        V = self.attributes_by(W) if self.alpha else np.zeros_like(H)
        return weight_parts(self.terms, W, G, H, self.structure.degree, SW, C), profile_parts(self.terms, H, G, V)

    def kkt_residual(self, factors: Factors) -> float:
        """Measure how far the factors are from a stationary point: 0 there, of order 1 at a random place, without unit.

        One projected gradient step, x⁺ = P(x − ∇f/ℓ) with ℓ the coordinate's curvature, stands still exactly at a
        Karush-Kuhn-Tucker point (P clips at 0 and shortens a row of H to `row_bound`: the projection onto the feasible
        set). A row's residual is ‖ℓ(x − x⁺)‖ over ‖p + q + ℓm‖, where ∇f = p − q with p, q ≥ 0 and m is the factor's
        mean entry: what is left of the gradient relative to what cancelled in it, or to what would shift an entry by m
        (a row on its way to 0 never settles in its own terms). The result is the larger of the root mean squares over
        the rows of W and of H, so that a few rows with huge similarities hide no others.
        """
        W, H = factors.W, factors.H
        over_W, over_H = self._parts(factors)
        sizes = np.sum(W**2, axis=0)
        squares = weight_residuals(self.terms, W, H, sizes, self.structure.degree, float(W.mean()), over_W)
        residual = math.sqrt(float(squares.mean()))
        return max(residual, profile_residual(self.terms, H, sizes, over_H)) if self.alpha else residual


@dataclass(frozen=True, eq=False)
class SeenObjective(Objective):
    """The objective over the entries of A that are not NaN: the attribute term has weight 1 there and 0 elsewhere.

    Solvers see a full table. `refill` sets the missing entries to w_i·h_j, where they add nothing; what a solver then
    does to lower the objective of the full table lowers this one at least as much (majorisation), and at the refilled
    table both have the same gradient. Solvers refill before each use of the table, so nothing is left to converge.
    """

    @cached_property
    def table(self) -> FloatArray:
        """A with its missing entries filled: at first with the means of the columns."""
        assert self.A is not None
        return fill_with_means(self.A)

    @cached_property
    def _holes(self) -> tuple[IndexArray, IndexArray]:
        """Rows and columns of the missing entries."""
        rows, columns = np.nonzero(np.isnan(self.A))  # type: ignore[arg-type]
        return rows.astype(np.int64), columns.astype(np.int64)

    @cached_property
    def norm_A(self) -> float:
        """‖A‖² over the entries seen."""
        return float(np.nansum(np.square(self.A)))  # type: ignore[arg-type]

    def refill(self, W: FloatArray, H: FloatArray) -> bool:
        rebuild_entries(self.table, np.ascontiguousarray(W), np.ascontiguousarray(H.T), *self._holes)
        return True

    def fit_and_energy(self, W: FloatArray, H: FloatArray, G: FloatArray) -> tuple[float, float]:
        assert self.A is not None
        rebuilt = np.where(np.isnan(self.A), 0.0, W @ H)
        return dot(np.nan_to_num(self.A), rebuilt), dot(rebuilt, rebuilt)

    def _unseen_loss(self, factors: Factors) -> float:
        return entries_loss(
            self.table, np.ascontiguousarray(factors.W), np.ascontiguousarray(factors.H.T), *self._holes
        )

    def _attribute_loss(self, factors: Factors) -> float:
        assert self.A is not None
        residual = np.nan_to_num(self.A - factors.W @ factors.H)
        return dot(residual, residual)

    def _parts(self, factors: Factors) -> tuple[Parts, Parts]:
        self.refill(factors.W, factors.H)
        return super()._parts(factors)


def over_seen(objective: Objective) -> Objective:
    """Return the objective over the entries that are not missing: itself, if none is."""
    if isinstance(objective, SeenObjective) or objective.A is None or not np.isnan(objective.A).any():
        return objective
    return SeenObjective(**{field.name: getattr(objective, field.name) for field in fields(objective)})


def nmf(A: FloatArray) -> Objective:
    """Make the objective of plain NMF: ‖A−WH‖². Ahmed et al. (2021), eq:frob.

    Parameters
    ----------
    A : array of shape (n, p)
        The table.

    Returns
    -------
    Objective

    Examples
    --------
    >>> nmf(np.ones((3, 2))).value(Factors(np.ones((3, 1)), np.ones((1, 2))))
    0.0
    """
    return Objective(A, None, alpha=1.0)


def gnmf(A: FloatArray, S: SparseMatrix, penalty: float, *, row_bound: float | None = None) -> Objective:
    """Make the objective of graph-regularised NMF: ‖A−WH‖² + penalty·tr(WᵀLW). Ahmed et al. (2021), eq:GNMF.

    Differs: as printed it has no minimiser, for (W/c, cH) lowers it for ever; so rows of H are bounded.

    Parameters
    ----------
    A, S : as in `Objective`
    penalty : float
        Weight of the graph. With 0 it is NMF, without a bound.
    row_bound : float or None, default None
        Bound on the length of the rows of H; None: the mean row norm of A; ``math.inf``: as printed.

    Returns
    -------
    Objective

    Examples
    --------
    >>> gnmf(np.ones((3, 4)), np.zeros((3, 3)), penalty=100.0).row_bound
    2.0
    """
    bound = math.inf if penalty == 0 else mean_row_norm(A)
    return Objective(A, S, alpha=1.0, laplacian=penalty, row_bound=bound if row_bound is None else row_bound)


def snmf(S: SparseMatrix) -> Objective:
    """Make the objective of symmetric NMF: ‖S−WWᵀ‖². Ahmed et al. (2021), eq:SNMF.

    Parameters
    ----------
    S : sparse matrix of shape (n, n)
        Symmetric similarities ≥ 0.

    Returns
    -------
    Objective

    Examples
    --------
    >>> snmf(np.ones((2, 2))).value(Factors(np.ones((2, 1)), np.ones((1, 0))))
    0.0
    """
    return Objective(None, S, symmetric=1.0)


def nsnmf(A: FloatArray, S: SparseMatrix, alpha: float = 0.8, gamma: float = 0.2) -> Objective:
    """Make the objective of NS-NMF: ‖S−WWᵀ‖² + alpha·‖A−WH‖² + gamma·(‖W‖²+‖H‖²). Ahmed et al. (2021), eq:main.

    Parameters
    ----------
    A, S : as in `Objective`
    alpha : float, default 0.8
        Weight of the table.
    gamma : float, default 0.2
        Weight of the ridge; 0 is eq:NSNMF.

    Returns
    -------
    Objective

    Examples
    --------
    >>> nsnmf(np.ones((2, 2)), np.ones((2, 2))).alpha
    0.8
    """
    return Objective(A, S, symmetric=1.0, alpha=alpha, gamma=gamma)


def laplacian_nsnmf(A: FloatArray, S: SparseMatrix, alpha: float = 0.8) -> Objective:
    """Make the objective of the Laplacian form: alpha·‖A−WH‖² + tr(WᵀLW), rows of H bounded.

    Ahmed et al. (2021), eq:equivalence2, eq:stream.

    Parameters
    ----------
    A, S : as in `Objective`
    alpha : float, default 0.8
        Weight of the table.

    Returns
    -------
    Objective

    Examples
    --------
    >>> laplacian_nsnmf(np.ones((2, 4)), np.ones((2, 2))).row_bound
    2.0
    """
    return Objective(A, S, alpha=alpha, laplacian=1.0, row_bound=mean_row_norm(A))


def mean_row_norm(A: FloatArray) -> float:
    """Compute the mean length of the rows of A, or 1 for a table of zeros: the bound that fixes the scale of H.

    In a row with missing entries (NaN), those that are there stand for them.

    >>> mean_row_norm(np.array([[3.0, 4.0], [0.0, 1.0]])), mean_row_norm(np.array([[2.0, np.nan, np.nan, np.nan]]))
    (3.0, 4.0)
    """
    holes = np.isnan(A)
    if holes.any():
        A = np.where(holes, 0.0, A) * np.sqrt(A.shape[1] / (~holes).sum(axis=1))[:, None]
    return float(np.mean(np.sqrt(np.einsum("ij,ij->i", A, A)))) or 1.0


def fill_with_means(A: FloatArray) -> FloatArray:
    """Replace missing entries by the means of their columns; a table without any is returned as it is."""
    known = np.isfinite(A)
    if known.all():
        return A
    means = np.where(known, A, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    return np.where(known, A, means)


def _check_similarity(S: SparseMatrix | PathSimilarity, n: int) -> SparseMatrix | PathSimilarity:
    """Return S as a float64 `csr_array` with sorted columns; raise if it is not n×n, symmetric, finite and ≥ 0."""
    if not isinstance(S, PathSimilarity):
        S = sparse.csr_array(S, dtype=np.float64)
    if S.shape != (n, n):
        raise ValueError(f"S must be {n}×{n}, one row and one column per observation, but has shape {S.shape}.")
    if isinstance(S, PathSimilarity):
        return S
    S.sum_duplicates()  # sorts the columns within each row, too
    mirror = S.T.tocsr()
    same = np.array_equal(S.indptr, mirror.indptr) and np.array_equal(S.indices, mirror.indices)
    if not (same and np.array_equal(S.data, mirror.data)):
        raise ValueError("S must be symmetric: S_ij = S_ji.")
    if len(S.data) and not (S.data.min() >= 0 and math.isfinite(S.data.max())):
        raise ValueError("S must hold finite similarities ≥ 0.")
    return S
