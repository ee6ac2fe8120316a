"""Plain NMF as a detector."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from penstock._types import FloatArray, Solution, Tree
from penstock.detectors._base import Copies
from penstock.detectors._factor_base import FactorDetector, Problem
from penstock.factor.objectives import Objective, nmf, over_seen
from penstock.factor.placement import settle_rows


class NMF(FactorDetector):
    """Non-negative matrix factorisation, ‖A−WH‖², no neighbourhood. Ahmed et al. (2021), eq:frob.

    Parameters
    ----------
    n_components, solver, contamination, scale, max_iter, tol, random_state, init : as in `NSNMF`

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(1, 2, size=(100, 1)) * [1.0, 2.0, 3.0]
    >>> X[40] = [2.0, 2.0, 1.0]
    >>> NMF(n_components=1, random_state=0).fit(X).top(1).index.tolist()
    [40]
    """

    _merges_copies: ClassVar[bool] = False  # rows are independent: equal ones get equal weights by themselves
    _has_graph: ClassVar[bool] = False
    _compares_rows: ClassVar[bool] = False
    _settles_rows: ClassVar[bool] = True

    def _pose(self, rows: FloatArray, copies: Copies, tree: Tree | None) -> Problem:
        return Problem(nmf(rows), np.ones(len(rows)), np.zeros(len(rows)))

    def _complete(self, solution: Solution, objective: Objective, rows: FloatArray) -> Solution:
        # The last half-step exactly: then a training row and a new row that equals it have the same weights.
        factors = replace(solution.factors, W=settle_rows(objective, solution.factors, rows))
        return replace(solution, factors=factors, objective=over_seen(objective).value(factors))

    def _place(self, A: FloatArray) -> tuple[FloatArray, FloatArray]:
        placed = settle_rows(self.model_.problem.objective, self.model_.factors, A)
        return placed, placed
