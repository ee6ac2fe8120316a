"""Symmetric NMF (Kuang et al. 2012) as a detector."""

from __future__ import annotations

from dataclasses import KW_ONLY, replace
from typing import Annotated, Any

from scipy import sparse

from penstock._parameters import check_choice, estimator
from penstock._types import Factors, FloatArray, Solution, SparseMatrix, Tree
from penstock.detectors._base import Copies
from penstock.detectors._factor_base import FactorDetector, Problem, nearest_distances, row_maxima
from penstock.factor.descent import fit_profiles
from penstock.factor.objectives import Objective, snmf
from penstock.graph.similarities import gaussian_graph, self_tuning_graph


def _check_graph(name: str, value: object) -> None:
    if value is None or isinstance(value, str):  # a graph of the user's is read in fit
        check_choice(name, value, ("gaussian", "self_tuning"))


@estimator
class SNMF(FactorDetector):
    """Symmetric NMF of a similarity graph, ‖S−WWᵀ‖²; profiles are fitted afterwards. Ahmed et al. (2021), eq:SNMF.

    It uses only similarities of rows, not the readings. To score rows, H = argmin ‖A−WH‖² over H ≥ 0. Equal rows are
    fitted once and share a score.

    Parameters
    ----------
    n_components, solver, contamination, scale, max_iter, tol, random_state, init : as in `NSNMF`
    graph : {"gaussian", "self_tuning"}, or array-like or sparse of shape (n, n), default="gaussian"
        "gaussian" is the full graph that the paper uses, which takes n² memory (several GB at 12,000 rows) and is
        refused beyond that; "self_tuning" the sparse graph of its authors, for any number of rows. Or a graph of your
        own, as in `NSNMF`.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(80, 3))
    >>> X[7] += 9
    >>> SNMF(n_components=2, random_state=0).fit(X).top(1).index.tolist()
    [7]
    """

    _: KW_ONLY
    graph: Annotated[Any, _check_graph] = "gaussian"

    def _pose(self, rows: FloatArray, copies: Copies, tree: Tree | None) -> Problem:
        if len(rows) == 1:  # all rows are equal
            S = sparse.csr_array((1, 1))
        else:
            S = self_tuning_graph(rows) if self.graph == "self_tuning" else sparse.csr_array(gaussian_graph(rows))
        return Problem(self._objective(rows, S), nearest_distances(rows), row_maxima(S))

    def _objective(self, A: FloatArray, S: SparseMatrix) -> Objective:
        return snmf(S)

    def _complete(self, solution: Solution, objective: Objective, rows: FloatArray) -> Solution:
        W = solution.factors.W
        return replace(solution, factors=Factors(W, fit_profiles(rows, W)))
