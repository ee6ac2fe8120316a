"""Factors of a table with holes: missing entries have no say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from penstock._types import FloatArray, Solution
from penstock.factor.coordinate import Coordinate
from penstock.factor.objectives import Objective
from penstock.factor.solve import TOL, fit_factors, solve

_MAX_ROUNDS = 50
_SWEEPS_A_ROUND = 20


def fit_incomplete(
    pose: Callable[[FloatArray], Objective], A: FloatArray, n_components: int, random_state: Any = None
) -> Solution:
    """Minimise the objective that `pose` makes of a table, over the entries of A that are not NaN.

    Missing entries are replaced by their own reconstruction and the fit goes on, until they no longer move. Each round
    lowers the objective over the entries seen: with w and H fixed a filled entry adds nothing to it, and the next
    factors fit the filled table no worse. Without missing entries this is `fit_factors`.

    >>> import numpy as np
    >>> from penstock.factor import nmf
    >>> A = np.outer([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 1.0])
    >>> A[1, 1] = np.nan
    >>> W, H = (f := fit_incomplete(nmf, A, 1, random_state=0).factors).W, f.H
    >>> round(float(W[1] @ H[:, 1]), 2)
    4.0
    """
    missing = np.isnan(A)
    if not missing.any():
        return fit_factors(pose(A), n_components, random_state=random_state)
    means = np.where(missing, 0.0, A).sum(axis=0) / np.maximum((~missing).sum(axis=0), 1)
    filled = np.where(missing, means, A)
    solution = fit_factors(pose(filled), n_components, random_state=random_state)
    n_iter = solution.n_iter
    for _ in range(_MAX_ROUNDS):
        rebuilt = (solution.factors.W @ solution.factors.H)[missing]
        moved = float(np.abs(rebuilt - filled[missing]).max())
        filled[missing] = rebuilt
        solution = solve(
            pose(filled.copy()), solution.factors, settings=Coordinate(), max_iter=_SWEEPS_A_ROUND, tol=TOL
        )
        n_iter += solution.n_iter
        if moved <= TOL * max(float(np.abs(filled).max()), 1e-300):
            break
    return replace(solution, n_iter=n_iter)
