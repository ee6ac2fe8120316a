"""What the detectors that factorise share: fitting, placing new rows, and the transformer's half of scikit-learn.

A fit has two steps. `_task` says what is to be computed: the objective over the rows that are fitted, and how training
rows are scored. `_install` puts the results together. In between, `fit` computes in this process, and `penstock.scale`
on a cluster.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from scipy import sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from penstock._messages import warn_caller
from penstock._parameters import ParameterError, check_whole_number, estimator, number, whole
from penstock._progress import set_stage
from penstock._threads import one_blas_thread
from penstock._types import Factors, FloatArray, Solution, SparseMatrix, Tree
from penstock.detectors._base import COPIES, BaseDetector, Copies, unpack_copies
from penstock.detectors._input import check_not_huge, pandas_index, read_graph
from penstock.detectors._packing import check_some_seen, pack_graph, unpack_graph
from penstock.factor.descent import Outcome
from penstock.factor.objectives import Objective, nmf, over_seen
from penstock.factor.placement import attach, place_rows
from penstock.factor.settings import DEFAULT, MAX_ITER, TOL, Settings
from penstock.factor.solve import fit_factors, solve
from penstock.factor.start import check_random_source
from penstock.graph.mst import spanning_tree_of_comparable
from penstock.graph.paths import PathSimilarity
from penstock.graph.rows import different_rows, first_copies
from penstock.graph.search import RowSearch, nearest_neighbors
from penstock.scoring import residual_scores, structural_scores
from penstock.storage import Fields, Record, pack_fields, read_fields

if TYPE_CHECKING:
    import pandas as pd

COLLAPSED = 0.05  # of ‖A‖²
_TERMS = ("symmetric", "alpha", "laplacian", "gamma", "row_bound")
# The objective has fourth powers of W, and squares of H.
_FIELDS: Fields = {
    "copies": object,
    "rows": "m p >=0 nan",
    "factors": {"weights": "m k >=0 <=1e77", "profiles": "k p >=0 <=1e150"},
    "objective": {**dict.fromkeys(_TERMS, "float >=0 inf"), "has_rows": bool, "similarity": object},
    "reach": "m >=0",
    "decays": bool,
    "solution": {"objective": float, "n_iter": int, "converged": bool},
}


class CollapsedFactorsWarning(UserWarning):
    """The factors of a fitted detector rebuild less than 5 % of the readings: `explained_`, ‖WH‖²/‖A‖², is below 0.05.

    A score ‖a − wH‖ is then little more than the norm of the row ‖a‖. The usual cause is a similarity without an upper
    bound, the paper's 1/length: the rows of a few very short edges take nearly all of W. `similarity="normalized"`
    has a bound.
    """


@dataclass(frozen=True)
class Problem:
    """What a detector minimises, and what is needed to attach new rows to it."""

    objective: Objective  # over the rows that are fitted
    reach: FloatArray  # (m,) each row's distance to its nearest neighbour
    strongest: FloatArray  # (m,) its largest similarity
    decays: bool = True  # whether similarities fall with the distance


@dataclass(frozen=True)
class FactorTask:
    """What is to be computed to fit a detector."""

    problem: Problem  # what is minimised
    n_components: int  # the number of latent groups
    structural: bool  # whether training rows are scored by the weights of their neighbours instead of their own


@dataclass(frozen=True, eq=False)
class FactorModel:
    """The fitted state of a detector: enough to score new rows."""

    copies: Copies  # which training rows were fitted
    rows: FloatArray  # (m, p) these rows
    problem: Problem  # what was minimised over them
    factors: Factors  # W and H
    search: RowSearch | None  # over the fitted rows; None if rows are independent of each other
    tree: Tree | None = None  # the spanning tree of all training rows, if the detector needs one

    def in_memory(self) -> FactorModel:
        """Return the same model with arrays that do not lie in files."""
        objective, rows = self.problem.objective, np.array(self.rows)
        return FactorModel(
            self.copies,
            rows,
            replace(self.problem, objective=replace(objective, A=None if objective.A is None else rows)),
            Factors(np.array(self.factors.W), self.factors.H),
            None if self.search is None else RowSearch(rows),
            None if self.tree is None else Tree(np.array(self.tree.edges), np.array(self.tree.lengths)),
        )


def _check_solver(name: str, value: object) -> None:
    if value != "auto" and not isinstance(value, Settings):
        raise ParameterError(
            name,
            f" must be 'auto' or settings from penstock.factor (Coordinate, RowBlocks, Multiplicative, BlockSGD); got "
            f"{value!r}.",
        )


@estimator
class FactorDetector(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseDetector):  # type: ignore[misc]
    """A detector that explains rows by a few latent groups: A ≈ WH.

    A subclass implements `_pose`, and `_objective` if it has a parameter `graph`, by which users give similarities of
    their own.

    Attributes
    ----------
    components_ : ndarray of shape (n_components_, p)
        H: one profile per latent group, in scaled units (`inverse_transform` leads back to the user's).
    embedding_ : ndarray of shape (n, n_components_)
        W: how much each training row belongs to each group.
    similarity_ : sparse array of shape (n, n)
        S, for the methods that have one. Copies of a row that was fitted once have no entries. There is none of
        ``similarity="path"`` for more than 5,000 rows, as it would have an entry for each pair.
    objective_ : float
        The value that was reached.
    n_iter_, converged_ : int, bool
        Iterations, and whether they ended because the solver was done rather than by `max_iter`.
    n_components_ : int
        `n_components`, or the number of different rows where that is smaller.
    explained_ : float
        ‖WH‖²/‖A‖² over the readings that are there: which share of the rows that were fitted the groups rebuild. Below
        0.05 `NSNMF` and `LaplacianNSNMF` warn (`penstock.CollapsedFactorsWarning`).
    reconstruction_err_ : float
        ‖A−WH‖, the Frobenius norm over the readings of all training rows, copies included, in scaled units; as that of
        scikit-learn's `NMF` where nothing is missing.
    model_ : FactorModel
        All that scoring new rows needs.
    """

    _takes_sparse: ClassVar[bool] = True
    _decays: ClassVar[bool] = True  # whether a new row is less similar to its nearest one in a given graph if it is far
    _needs_nonnegative: ClassVar[bool] = True
    _takes_missing: ClassVar[bool] = True
    _merges_copies: ClassVar[bool] = True
    _has_graph: ClassVar[bool] = True  # whether the objective has similarities S
    _settles_rows: ClassVar[bool] = False

    n_components: Annotated[int, whole(1)] = 5
    _: KW_ONLY
    solver: Annotated[Literal["auto"] | Settings, _check_solver] = "auto"
    max_iter: Annotated[int, whole(1)] = MAX_ITER
    tol: Annotated[float, number(0.0)] = TOL
    random_state: Annotated[Any, check_random_source] = None
    init: tuple[Any, Any] | None = None

    @abstractmethod
    def _pose(self, rows: FloatArray, copies: Copies, tree: Tree | None) -> Problem:
        """Return the problem of fitting these rows, of which `copies` says which training rows they are."""

    def _objective(self, A: FloatArray, S: SparseMatrix) -> Objective:
        """Return what is minimised, given the scaled rows and their similarities."""
        raise NotImplementedError

    @property
    def _given_graph(self) -> Any:
        """The similarities that the user gave; None if they are to be computed."""
        graph = getattr(self, "graph", None)
        return None if isinstance(graph, str) else graph

    def _fewest_rows(self) -> int:
        return self.n_components

    def _check_fit_elsewhere(self) -> None:
        for name, given in (("graph", self._given_graph), ("init", self.init)):
            if given is not None:
                raise ValueError(f"{name} is taken by fit only, not by a fit on a cluster. Leave it out.")

    def _task(self, rows: FloatArray, copies: Copies, tree: Tree | None = None) -> FactorTask:
        """Return what is to be computed to fit scaled rows, which may lie in a file.

        copies : which training rows they are.
        tree : the spanning tree of all training rows, if one is needed.
        """
        (n, p), K = rows.shape, self.n_components
        if self._given_graph is None:
            problem = self._pose(rows, copies, tree)
        else:
            S = read_graph(self._given_graph, n)
            problem = Problem(self._objective(rows, S), nearest_distances(rows), row_maxima(S), self._decays)
        if n < K:
            warn_caller(f"Only {n} of the rows differ, so n_components = {K} was lowered to {n}.")
        elif p < K:
            warn_caller(
                f"n_components = {K} is larger than the number of columns ({p}): some groups are redundant, and nearly "
                f"any row can be rebuilt."
            )
        structural = getattr(self, "score_kind", "residual") == "structural"
        return FactorTask(problem, min(K, n), structural)

    def _install(self, model: FactorModel, solution: Solution | Outcome, *, complete: bool = False) -> None:
        """Take over what was computed, and warn where the solver did not converge or the factors rebuild little.

        complete : whether it is known that no reading is missing, so that the rows need not be searched for NaN.
        """
        self._set_model(model, complete)
        self.objective_, self.n_iter_ = solution.objective, solution.n_iter
        self.converged_ = solution.converged
        if not solution.converged:
            left = "" if math.isnan(solution.remaining) else f", one exact sweep lowers it by {solution.remaining:.2%}"
            warn_caller(
                f"{type(self).__name__} stopped after {self.n_iter_} iterations without converging (objective "
                f"{solution.objective:.6g}{left}, KKT residual {solution.kkt_residual:.1e}). Raise max_iter, or the "
                "rounds of BlockSGD, to go on.",
                ConvergenceWarning,
            )
        self._warn_if_collapsed()

    def _set_model(self, model: FactorModel, complete: bool = False) -> None:
        self.model_: FactorModel = model
        objective = nmf(model.rows)
        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):  # a file may hold any factors
            self.explained_ = (objective if complete else over_seen(objective)).explained(model.factors)

    def _fit_rows(self, A: FloatArray) -> FloatArray:
        given = self._given_graph is not None  # in a graph of the user's each row has edges of its own
        original = first_copies(A) if self._merges_copies and not given else None
        copies = Copies(*different_rows(np.arange(len(A)) if original is None else original))
        tree = spanning_tree_of_comparable(A, original) if self._needs_tree and not given else None
        set_stage("starts")
        rows = np.ascontiguousarray(A[copies.kept])
        check_not_huge(rows)
        task = self._task(rows, copies, tree)
        settings = DEFAULT if self.solver == "auto" else self.solver
        options = {"settings": settings, "max_iter": self.max_iter, "tol": self.tol, "random_state": self.random_state}
        if self.init is None:
            solution = fit_factors(task.problem.objective, task.n_components, **options)
        else:
            start = self._read_init(copies, task.n_components, rows.shape[1])
            start = replace(start, H=start.H[:, : task.problem.objective.n_columns])  # SNMF has no H while it descends
            solution = solve(over_seen(task.problem.objective), start, **options)
        if not (rows > 0).any():  # some solvers come near 0, not down to it; for a table of zeros H = 0 is exact
            solution = replace(solution, factors=replace(solution.factors, H=np.zeros_like(solution.factors.H)))
        with one_blas_thread():
            solution = self._complete(solution, task.problem.objective, rows)
        search = None if self._settles_rows else RowSearch(rows)
        self._install(FactorModel(copies, rows, task.problem, solution.factors, search, tree), solution)
        W, H = solution.factors.W, solution.factors.H
        if task.structural:
            scores = structural_scores(rows, W, H, task.problem.objective.S)
        else:
            scores = residual_scores(rows, W, H)
        task.problem.objective.forget()
        return scores[copies.copy_of]

    def _read_init(self, copies: Copies, K: int, p: int) -> Factors:
        """Return the start that the user gave, for the rows that are fitted."""
        n = len(copies.copy_of)
        advice = f"init must be None or (W, H), of shapes ({len(copies.copy_of)}, {K}) and"
        try:
            W, H = (np.array(factor, dtype=np.float64) for factor in self.init or ())
        except (TypeError, ValueError) as error:
            raise ValueError(f"{advice} ({K}, {p}), numbers ({error}).") from None
        if W.shape != (n, K) or H.shape != (K, p):
            raise ValueError(f"{advice} ({K}, {p}) for this table; got {W.shape} and {H.shape}.")
        if not all(np.isfinite(factor).all() and (factor >= 0).all() for factor in (W, H)):
            raise ValueError("init must be finite and ≥ 0.")
        return Factors(np.ascontiguousarray(W[copies.kept]), H)

    def _complete(self, solution: Solution, objective: Objective, rows: FloatArray) -> Solution:
        """Return the solution with what the method computes after the solver has ended."""
        return solution

    @property
    def components_(self) -> FloatArray:
        """H."""
        return self.model_.factors.H

    @property
    def n_components_(self) -> int:
        """The number of latent groups."""
        return len(self.model_.factors.H)

    @property
    def embedding_(self) -> FloatArray:
        """W over all training rows, made again each time: copies of few rows may be many."""
        return self.model_.factors.W[self.model_.copies.copy_of]

    @property
    def reconstruction_err_(self) -> float:
        """‖A−WH‖ over the readings of all training rows, in scaled units."""
        model = self.model_
        squares = np.square(model.rows - model.factors.W @ model.factors.H)
        counts = np.bincount(model.copies.copy_of, minlength=len(squares))
        return float(np.sqrt(counts @ np.nansum(squares, axis=1)))

    @property
    def similarity_(self) -> SparseMatrix:
        """S over all training rows, made again each time."""
        copies = self.model_.copies
        try:
            S = self.model_.problem.objective.matrix
        except ValueError as error:  # too large
            raise AttributeError(str(error)) from None
        if S is None:
            raise AttributeError(f"{type(self).__name__} has no similarity_: it knows no neighbours.")
        entries, n = S.tocoo(), len(copies.copy_of)
        rows, columns = copies.kept[entries.coords[0]], copies.kept[entries.coords[1]]
        return sparse.csr_array((entries.data, (rows, columns)), shape=(n, n))

    def _warn_if_collapsed(self) -> None:
        """Warn, for the methods whose structure term has similarities to choose, if next to nothing is rebuilt."""
        kind = getattr(self, "similarity", None) if self._given_graph is None else "graph"
        if kind is None or self.explained_ >= COLLAPSED:
            return
        weight = np.sort(np.square(self.model_.factors.W).sum(axis=1))[::-1].cumsum()
        few = int(np.searchsorted(weight, 0.9 * weight[-1])) + 1
        if kind in ("inverse", "relative", "path") and few < len(weight) / 2:
            advice = (
                f"With similarity={kind!r} rows that are very near each other take nearly all of W: {few:,} of "
                f'{len(weight):,} rows hold 90 % of it. Use similarity="normalized" (on the command line: '
                "--similarity normalized)."
            )
        else:
            advice = "Use more groups (n_components), or let the solver go on for longer."
        if kind == "graph":
            advice = "Use smaller similarities in graph, or more groups (n_components)."
        warn_caller(
            f"{type(self).__name__} rebuilds only {self.explained_:.2%} of the readings (explained_ = "
            f"{self.explained_:.2g}), so that a score is little more than the size of the row. {advice}",
            CollapsedFactorsWarning,
        )

    def _score_rows(self, A: FloatArray, A_clipped: FloatArray) -> FloatArray:
        return residual_scores(A, self._place(A_clipped)[0], self.model_.factors.H)

    def _place(self, A: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the weights of new rows and of their surroundings."""
        model = self.model_
        assert model.search is not None
        near, distances, equal = model.search.nearest_or_equal(A)
        problem = model.problem
        attachment = attach(near, distances, problem.reach, problem.strongest, decays=problem.decays, equal=equal)
        return place_rows(problem.objective, model.factors, A, attachment)

    def transform(self, X: Any) -> FloatArray:
        """Return the weights of rows in the latent groups, each row by itself; a training row gets its `embedding_`.

        Parameters
        ----------
        X : array-like of shape (n, p)

        Returns
        -------
        ndarray of shape (n, n_components)

        Examples
        --------
        >>> import numpy as np
        >>> from penstock import NMF
        >>> X = np.outer([1.0, 2.0, 3.0, 5.0], [10.0, 20.0, 30.0])
        >>> detector = NMF(n_components=1, random_state=0).fit(X)
        >>> W = detector.transform([[30.0, 60.0, 90.0]])  # how much of each group is in the row
        >>> detector.inverse_transform(W).round(6)  # the row rebuilt, in the units of X
        array([[30., 60., 90.]])
        >>> detector.get_feature_names_out()
        array(['nmf0'], dtype=object)
        """
        table = self._read_new(X)
        rows = self._own_rows(table, X)
        return self._place(rows if self.scaling_ is None else self.scaling_.apply(table, clip=True))[0]

    def inverse_transform(self, W: Any) -> FloatArray:
        """Return rows rebuilt from weights, WH, in the user's units. Ahmed et al. (2021), eq:apx.

        Parameters
        ----------
        W : array-like of shape (n, n_components)

        Returns
        -------
        ndarray of shape (n, p)

        Examples
        --------
        What each training row should have read, and how far off it is:

        >>> import numpy as np
        >>> from penstock import NMF
        >>> X = np.outer(np.arange(1.0, 21.0), [1.0, 1.0, 1.0, 1.0])
        >>> X[7, 2] = 20.0  # instead of 8
        >>> detector = NMF(n_components=1, random_state=0).fit(X)
        >>> off = X - detector.inverse_transform(detector.embedding_)
        >>> row, column = np.unravel_index(np.abs(off).argmax(), off.shape)
        >>> int(row), int(column)
        (7, 2)
        """
        check_is_fitted(self)
        weights = np.asarray(W, dtype=np.float64)
        if weights.ndim != 2 or weights.shape[1] != self.n_components_:
            raise ValueError(
                f"Weights must have {self.n_components_} columns, one per group; got shape {weights.shape}."
            )
        rebuilt = weights @ self.components_
        return rebuilt if self.scaling_ is None else self.scaling_.undo(rebuilt)

    def explain(self, X: Any, n: int = 3) -> pd.DataFrame:
        """Say, for each row, which variables were rebuilt least well: what its score is made of.

        Parameters
        ----------
        X : array-like of shape (m, p)
            Rows, fitted or new.
        n : int, default=3
            How many variables of each row to list, those with the largest share first; fewer where fewer have a share.

        Returns
        -------
        DataFrame
            The index names the row, as in `top`. Columns: `variable`; `value`, as it was read; `rebuilt`, what the
            latent groups say it should be; `difference`, value − rebuilt; all in the unit of X; and `share`, the
            variable's part of the squared score.

        Examples
        --------
        >>> import numpy as np
        >>> from penstock import NMF
        >>> X = np.random.default_rng(0).uniform(1, 2, size=(100, 1)) * [1.0, 2.0, 3.0]
        >>> X[40] = [2.0, 2.0, 1.0]
        >>> worst = NMF(n_components=1, random_state=0).fit(X).explain(X[[40]], n=1).iloc[0]
        >>> int(worst["variable"]), float(worst["value"]), bool(worst["rebuilt"] < 1.5)
        (0, 2.0, True)
        """
        import pandas as pd

        check_whole_number("n", n, least=1)
        table = self._read_new(X)
        A = self._own_rows(table, X)
        placed, around = self._place(A if self.scaling_ is None else self.scaling_.apply(table, clip=True))
        structural = getattr(self, "score_kind", "residual") == "structural"
        rebuilt = (around if structural else placed) @ self.components_
        gap = np.nan_to_num(A - rebuilt)
        size = np.abs(gap).max(axis=1, keepdims=True)
        squares = np.square(gap / np.where(size > 0, size, 1.0))  # in units of the largest: no square overflows
        share = squares / np.where(size > 0, squares.sum(axis=1, keepdims=True), 1.0)
        chosen = np.argsort(-share, axis=1, kind="stable")[:, :n]
        rows = np.repeat(np.arange(len(table)), chosen.shape[1])
        columns = chosen.ravel()
        listed = share[rows, columns] > 0
        rows, columns = rows[listed], columns[listed]
        expected = rebuilt if self.scaling_ is None else self.scaling_.undo(rebuilt)
        names = getattr(self, "feature_names_in_", np.arange(self.n_features_in_))
        index = pandas_index(X)
        return pd.DataFrame(
            {
                "variable": names[columns],
                "value": table[rows, columns],
                "rebuilt": expected[rows, columns],
                "difference": table[rows, columns] - expected[rows, columns],
                "share": share[rows, columns],
            },
            index=pd.RangeIndex(len(table), name="row")[rows] if index is None else index[rows],
        )

    def _pack_model(self) -> dict[str, Any]:
        model = self.model_
        objective = model.problem.objective
        terms: dict[str, Any] = {term: float(getattr(objective, term)) for term in _TERMS}
        terms["has_rows"] = objective.A is not None
        terms["similarity"] = None if objective.S is None else pack_graph(objective.S)
        return {
            "copies": pack_fields(model.copies, COPIES),
            "rows": model.rows,
            "factors": {"weights": model.factors.W, "profiles": model.factors.H},
            "objective": terms,
            "reach": model.problem.reach,
            "decays": model.problem.decays,
            "solution": {
                "objective": float(self.objective_),
                "n_iter": int(self.n_iter_),
                "converged": bool(self.converged_),
            },
        }

    def _unpack_model(self, record: Record) -> None:
        self._unpack_factorisation(record, None)

    def _unpack_factorisation(self, record: Record, tree: Tree | None) -> None:
        copies = unpack_copies(record.part("copies"), len(self.scores_))
        m, p = len(copies.kept), self.n_features_in_
        found = read_fields(record, _FIELDS, {"m": m, "p": p})
        rows, terms = found["rows"], found["objective"]
        check_some_seen(record, rows)
        check_not_huge(rows)
        factors = Factors(found["factors"]["weights"], found["factors"]["profiles"])
        if not 1 <= factors.W.shape[1] <= m:
            raise record.part("factors").error("weights", f"of at least one group and at most {m}")
        part = record.part("objective")
        has_rows, graph = terms.pop("has_rows"), terms.pop("similarity")
        if (graph is not None) != self._has_graph:
            raise part.error("similarity", "there" if self._has_graph else "None")
        S = None if graph is None else unpack_graph(part.part("similarity"), m)
        objective = Objective(rows if has_rows else None, S, **terms)
        strongest = np.zeros(m) if S is None else row_maxima(S)
        problem = Problem(objective, found["reach"], strongest, found["decays"])
        search = None if self._settles_rows else RowSearch(rows)
        if search is None and objective.A is None:
            raise part.error("has_rows", "True")
        self._set_model(FactorModel(copies, rows, problem, factors, search, tree))
        solution = found["solution"]
        self.objective_, self.n_iter_, self.converged_ = solution.values()

    def _storable_parameters(self) -> dict[str, Any]:
        parameters = super()._storable_parameters()
        parameters.pop("init")  # what came of it is in the file, and so are the similarities that were fitted
        if self._given_graph is not None:
            parameters.pop("graph")
        return parameters

    @property
    def _n_features_out(self) -> int:
        return self.n_components_


def row_maxima(S: SparseMatrix | PathSimilarity) -> FloatArray:
    """Return the largest entry of each row of a sparse S ≥ 0, 0 where it has none."""
    if isinstance(S, PathSimilarity):
        return S.largest
    largest = np.zeros(S.shape[0])
    np.maximum.at(largest, np.repeat(np.arange(S.shape[0]), np.diff(S.indptr)), S.data)
    return largest


def nearest_distances(A: FloatArray) -> FloatArray:
    """Return each row's distance to the nearest other one; 1 for a single row.

    Rows that differ may be at distance 0 where values are missing; then it is the median of the others' distances.
    """
    if len(A) == 1:
        return np.ones(1)
    nearest = nearest_neighbors(A, 1)[1][:, 0]
    positive = nearest[nearest > 0]
    return np.where(nearest > 0, nearest, np.median(positive) if len(positive) else 1.0)
