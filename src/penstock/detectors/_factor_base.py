"""What the detectors that factorise share: fitting, placing new rows, and the transformer's half of scikit-learn."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from scipy import sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from penstock._blas import one_blas_thread
from penstock._parameters import check_number, check_whole_number
from penstock._types import Factors, FloatArray, IndexArray, SparseMatrix
from penstock.detectors._base import BaseDetector
from penstock.detectors._factor_state import (
    pack_copies,
    pack_objective,
    unpack_copies,
    unpack_factors,
    unpack_objective,
)
from penstock.detectors._input import refuse_huge
from penstock.factor.objectives import Objective, nmf, over_seen
from penstock.factor.placement import attach, place_rows
from penstock.factor.solve import Settings, fit_factors
from penstock.factor.start import draws_from
from penstock.graph.rows import different_rows, first_copies
from penstock.graph.search import FittedSearch, nearest_neighbors, search_over
from penstock.scoring import residual_scores
from penstock.storage import Record

COLLAPSED = 0.05  # of ‖A‖²


class CollapsedFactorsWarning(UserWarning):
    """The factors of a fitted detector rebuild less than 5 % of the readings: `explained_`, ‖WH‖²/‖A‖², is below 0.05.

    A score ‖a − wH‖ is then little more than the norm of the row ‖a‖. The usual cause is a similarity without an upper
    bound, the paper's 1/length: the rows of a few very short edges take nearly all of W. `similarity="normalized"`
    has a bound.
    """


@dataclass(frozen=True)
class Problem:
    """What a detector minimises, and what is needed to attach new rows to it.

    `reach` is each row's distance to its nearest neighbour, `strongest` its largest similarity; `decays` says whether
    similarities fall with the distance.
    """

    objective: Objective
    reach: FloatArray
    strongest: FloatArray
    decays: bool = True


class Ending(Protocol):
    """What a detector is told of how a solver ended, wherever that ran."""

    @property
    def objective(self) -> float: ...

    @property
    def n_iter(self) -> int: ...

    @property
    def converged(self) -> bool: ...

    @property
    def kkt_residual(self) -> float: ...

    @property
    def start_objectives(self) -> FloatArray: ...


class FactorDetector(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseDetector):  # type: ignore[misc]
    """A detector that explains rows by a few latent groups: A ≈ WH.

    Attributes
    ----------
    components_ : array of shape (n_components_, p)
        H: one profile per latent group, in scaled units (`inverse_transform` leads back to the user's).
    embedding_ : array of shape (n, n_components_)
        W: how much each training row belongs to each group.
    similarity_ : sparse array of shape (n, n)
        S, for the methods that have one. Copies of a row that was fitted once have no entries.
    objective_ : float
        The value that was reached.
    start_objectives_ : array
        What each of the starts tried had reached when the best was chosen: their spread says how rugged the problem is.
    n_iter_, converged_ :
        Iterations, and whether they ended because the solver was done rather than by `max_iter`.
    n_components_ : int
        `n_components`, or the number of different rows where that is smaller.
    explained_ : float
        ‖WH‖²/‖A‖² over the readings that are there: which share of the rows that were fitted the groups rebuild. Below
        0.05 `NSNMF` and `LaplacianNSNMF` warn (`penstock.CollapsedFactorsWarning`).
    """

    _needs_nonnegative: ClassVar[bool] = True
    _takes_missing: ClassVar[bool] = True
    _merges_copies: ClassVar[bool] = True  # equal rows are fitted once, so that they get one score
    _has_graph: ClassVar[bool] = True  # whether the objective has similarities S

    n_components: int
    solver: Literal["auto"] | Settings
    max_iter: int
    tol: float
    random_state: Any

    @abstractmethod
    def _pose(self, A: FloatArray) -> Problem:
        """The problem of fitting these rows."""

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_whole_number("n_components", self.n_components, least=1)
        check_whole_number("max_iter", self.max_iter, least=1)
        check_number("tol", self.tol, least=0.0)
        if self.solver != "auto" and not isinstance(self.solver, Settings):
            raise ValueError(
                f"solver must be 'auto' or settings from penstock.factor (Auto, Coordinate, RowBlocks, "
                f"Multiplicative, BlockSGD); got {self.solver!r}."
            )
        draws_from(self.random_state)  # raises if it is no source of random numbers

    def _fewest_rows(self) -> int:
        return self.n_components

    def _fit_rows(self, A: FloatArray) -> FloatArray:
        self._note_copies(first_copies(A) if self._merges_copies else np.arange(len(A)))
        rows = np.ascontiguousarray(A[self._kept])
        refuse_huge(rows)
        self._problem = self._pose(rows)
        self._factors = self._factorise(self._problem.objective, rows)
        self._index_rows(rows)
        self._show_factors()
        self._note_explained(over_seen(nmf(rows)))
        self._warn_if_collapsed()
        return self._training_scores(rows)[self._copy_of]

    def _note_copies(self, original: IndexArray) -> None:
        """Which rows are fitted, given for each row the first one that equals it (or itself, to be fitted anyway)."""
        self._kept, self._copy_of = different_rows(original)

    def _show_factors(self) -> None:
        """The attributes for users."""
        self.components_ = self._factors.H
        S = self._problem.objective.S
        if S is not None:
            self.similarity_ = _over_all_rows(S, self._kept, len(self._copy_of))

    @property
    def embedding_(self) -> FloatArray:
        """W over all training rows, made anew each time: copies of few rows may be many."""
        return self._factors.W[self._copy_of]

    def _note_explained(self, rows: Objective) -> None:
        """The share of the fitted rows that the factors rebuild, for users."""
        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):  # a file may hold any factors
            self.explained_ = rows.explained(self._factors)

    def _warn_if_collapsed(self) -> None:
        """Warn, for the methods whose structure term has similarities to choose, if next to nothing is rebuilt."""
        kind = getattr(self, "similarity", None)
        if kind is None or self.explained_ >= COLLAPSED:
            return
        weight = np.sort(np.square(self._factors.W).sum(axis=1))[::-1].cumsum()
        few = int(np.searchsorted(weight, 0.9 * weight[-1])) + 1
        if kind in ("inverse", "relative") and few < len(weight) / 2:
            advice = (
                f"With similarity={kind!r} rows that are very near each other take nearly all of W: {few:,} of "
                f'{len(weight):,} rows hold 90 % of it. Use similarity="normalized" (on the command line: '
                "--similarity normalized)."
            )
        else:
            advice = "Use more groups (n_components), or let the solver go on for longer."
        warnings.warn(
            f"{type(self).__name__} rebuilds only {self.explained_:.2%} of the readings (explained_ = "
            f"{self.explained_:.2g}), so that a score is little more than the size of the row. {advice}",
            CollapsedFactorsWarning,
            stacklevel=6,
        )

    def _index_rows(self, A: FloatArray) -> None:
        """Make the fitted rows ready to be searched for the nearest of a new one."""
        self._tree: FittedSearch = search_over(A)

    def _factorise(self, objective: Objective, A: FloatArray) -> Factors:
        self.n_components_ = self._usable_components(*A.shape)
        solution = fit_factors(
            over_seen(objective),
            self.n_components_,
            settings=None if self.solver == "auto" else self.solver,
            max_iter=self.max_iter,
            tol=self.tol,
            random_state=self.random_state,
        )
        self._note_solution(solution)
        # The multiplicative solver and block SGD come near 0, not down to it; for a table of zeros H = 0 is exact.
        return solution.factors if (A > 0).any() else replace(solution.factors, H=np.zeros_like(solution.factors.H))

    def _note_solution(self, solution: Ending) -> None:
        """How the solver ended, for users; with a warning if it ran out of iterations."""
        self.objective_, self.n_iter_ = solution.objective, solution.n_iter
        self.converged_, self.start_objectives_ = solution.converged, solution.start_objectives
        if not solution.converged:
            warnings.warn(
                f"{type(self).__name__} stopped after {self.n_iter_} iterations without converging (KKT residual "
                f"{solution.kkt_residual:.1e}). Raise max_iter, or the rounds of BlockSGD, to go on.",
                ConvergenceWarning,
                stacklevel=6,
            )

    def _usable_components(self, n: int, p: int) -> int:
        if self.n_components > n:
            warnings.warn(
                f"Only {n} of the rows differ, so n_components = {self.n_components} was lowered to {n}.", stacklevel=6
            )
        elif self.n_components > p:
            warnings.warn(
                f"n_components = {self.n_components} is larger than the number of columns ({p}): some groups will be "
                f"redundant.",
                stacklevel=6,
            )
        return min(self.n_components, n)

    def _training_scores(self, A: FloatArray) -> FloatArray:
        return residual_scores(A, self._factors.W, self._factors.H)

    def _score_rows(self, A: FloatArray, A_clipped: FloatArray) -> FloatArray:
        return residual_scores(A, self._place(A_clipped)[0], self._factors.H)

    def _place(self, A: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Weights of new rows and of their surroundings."""
        near, distances, equal = self._tree.nearest_or_equal(A)
        problem = self._problem
        attachment = attach(near, distances, problem.reach, problem.strongest, decays=problem.decays, equal=equal)
        return place_rows(problem.objective, self._factors, A, attachment)

    def transform(self, X: Any) -> FloatArray:
        """The weights of rows in the latent groups, each row by itself; a training row gets its `embedding_`."""
        table = self._read_rows(X)
        rows = self._own_rows(table, X)
        return self._place(rows if self.scaling_ is None else self.scaling_.apply(table, clip=True))[0]

    def inverse_transform(self, W: Any) -> FloatArray:
        """Rows rebuilt from weights, WH, in the user's units. Ahmed et al. (2021), eq:apx."""
        check_is_fitted(self)
        weights = np.asarray(W, dtype=np.float64)
        if weights.ndim != 2 or weights.shape[1] != self.n_components_:
            raise ValueError(
                f"Weights must have {self.n_components_} columns, one per group; got shape {weights.shape}."
            )
        rebuilt = weights @ self.components_
        return rebuilt if self.scaling_ is None else self.scaling_.undo(rebuilt)

    def _pack_model(self) -> dict[str, Any]:
        objective = self._problem.objective
        return {
            "copies": pack_copies(self._kept, self._copy_of),
            "rows": self._tree.rows() if objective.A is None else objective.A,
            "factors": {"weights": self._factors.W, "profiles": self._factors.H},
            "objective": pack_objective(objective),
            "reach": self._problem.reach,
            "decays": self._problem.decays,
            "solution": {
                "objective": float(self.objective_),
                "n_iter": int(self.n_iter_),
                "converged": bool(self.converged_),
                "start_objectives": self.start_objectives_,
            },
        }

    def _unpack_model(self, record: Record) -> None:
        record.only("copies", "rows", "factors", "objective", "reach", "decays", "solution")
        self._kept, self._copy_of = unpack_copies(record.part("copies"), len(self.scores_))
        m = len(self._kept)
        rows = record.array("rows", np.float64, (m, self.n_features_in_), least=0.0, missing=True)
        if np.isnan(rows).all(axis=1).any() or np.isnan(rows).all(axis=0).any():
            raise record.trouble("rows", "numbers, some of them in each row and each column")
        refuse_huge(rows)
        self._factors = unpack_factors(record.part("factors"), m, self.n_features_in_)
        self.n_components_ = self._factors.W.shape[1]
        objective = unpack_objective(record.part("objective"), rows, has_graph=self._has_graph)
        strongest = np.zeros(m) if objective.S is None else row_maxima(objective.S)
        reach = record.array("reach", np.float64, (m,), least=0.0)
        self._problem = Problem(objective, reach, strongest, record.flag("decays"))
        self._index_rows(rows)
        self._show_factors()
        self._note_explained(over_seen(nmf(rows)))
        self._unpack_solution(record.part("solution"))

    def _unpack_solution(self, record: Record) -> None:
        record.only("objective", "n_iter", "converged", "start_objectives")
        self.objective_ = record.number("objective")
        self.n_iter_, self.converged_ = record.whole("n_iter", least=0), record.flag("converged")
        self.start_objectives_ = record.array("start_objectives", np.float64, (None,))

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components_)


def _over_all_rows(S: SparseMatrix, kept: IndexArray, n: int) -> SparseMatrix:
    """S over the rows that were fitted as a matrix over all rows."""
    entries = S.tocoo()
    rows, columns = kept[entries.coords[0]], kept[entries.coords[1]]
    return sparse.csr_array((entries.data, (rows, columns)), shape=(n, n))


def row_maxima(S: SparseMatrix) -> FloatArray:
    """The largest entry of each row of a sparse S ≥ 0, 0 where it has none."""
    largest = np.zeros(S.shape[0])
    np.maximum.at(largest, np.repeat(np.arange(S.shape[0]), np.diff(S.indptr)), S.data)
    return largest


def nearest_distances(A: FloatArray) -> FloatArray:
    """Each row's distance to the nearest other one; 1 for a row that is alone.

    Rows that differ may be at distance 0 where values are missing; then it is the median of the others' distances.
    """
    if len(A) == 1:
        return np.ones(1)
    nearest = nearest_neighbors(A, 1)[1][:, 0]
    positive = nearest[nearest > 0]
    return np.where(nearest > 0, nearest, np.median(positive) if len(positive) else 1.0)


def limit_components(detector: Any, n_columns: int) -> Any:
    """Return a detector with at most half as many latent groups as there are columns, rounded up.

    As many groups as columns could rebuild any row, and no row would stand out.

    >>> from penstock.registry import make_detector
    >>> limit_components(make_detector("nsnmf"), 3)
    NSNMF(n_components=2, random_state=0)
    >>> limit_components(make_detector("nmf"), 30)
    NMF(random_state=0)
    """
    groups = getattr(detector, "n_components", None)
    most = max(1, (n_columns + 1) // 2)
    return detector if groups is None or groups <= most else clone(detector).set_params(n_components=most)
