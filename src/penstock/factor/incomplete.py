"""Factors of a table with holes: missing entries have no say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from penstock._types import Factors, FloatArray, IndexArray, Solution
from penstock.factor._incomplete_kernels import entries_loss, rebuild_entries
from penstock.factor.objectives import Objective
from penstock.factor.solve import MAX_ITER, TOL, Settings, fit_factors
from penstock.factor.stationarity import Parts


@dataclass(frozen=True, eq=False)
class SeenObjective(Objective):
    """The objective over the entries of A that are not NaN: the attribute term has weight 1 there and 0 elsewhere.

    Solvers see a full table. `refill` sets the missing entries to w_i·h_j, where they add nothing; what a solver then
    does to lower the objective of the full table lowers this one at least as much (majorisation), and at the refilled
    table both have the same gradient. Solvers refill before each use of the table, so nothing is left to converge.

    >>> objective = SeenObjective(np.array([[1.0, np.nan], [1.0, 1.0]]), None, alpha=1.0)
    >>> objective.value(Factors(np.ones((2, 1)), np.array([[1.0, 3.0]])))
    4.0
    """

    @cached_property
    def table(self) -> FloatArray:
        """A, and in its holes what they are taken for: at first the means of the columns."""
        assert self.A is not None
        known = np.isfinite(self.A)
        means = np.where(known, self.A, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
        return np.where(known, self.A, means)

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
        return float(np.vdot(np.nan_to_num(self.A), rebuilt)), float(np.vdot(rebuilt, rebuilt))

    def _expanded_loss(self, factors: Factors, G: FloatArray, V: FloatArray) -> float:
        """‖A − WH‖² over the entries seen; V = WᵀA of the full table, as it is filled now."""
        W, Ht = np.ascontiguousarray(factors.W), np.ascontiguousarray(factors.H.T)
        return super()._expanded_loss(factors, G, V) - entries_loss(self.table, W, Ht, *self._holes)

    def _attribute_loss(self, factors: Factors) -> float:
        assert self.A is not None
        residual = np.nan_to_num(self.A - factors.W @ factors.H)
        return float(np.vdot(residual, residual))

    def _parts(self, factors: Factors) -> tuple[Parts, Parts]:
        self.refill(factors.W, factors.H)
        return super()._parts(factors)


def over_seen(objective: Objective) -> Objective:
    """The objective over the entries that are not missing: itself, if none is."""
    if objective.A is None or not np.isnan(objective.A).any():
        return objective
    return SeenObjective(**{field.name: getattr(objective, field.name) for field in fields(objective)})


def fit_incomplete(
    pose: Callable[[FloatArray], Objective],
    A: FloatArray,
    n_components: int,
    settings: Settings | None = None,
    max_iter: int = MAX_ITER,
    tol: float = TOL,
    random_state: Any = None,
) -> Solution:
    """Minimise the objective that `pose` makes of a table, over the entries of A that are not NaN.

    Without missing entries this is `fit_factors`.

    >>> from penstock.factor import nmf
    >>> A = np.outer([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 1.0])
    >>> A[1, 1] = np.nan
    >>> W, H = (f := fit_incomplete(nmf, A, 1, tol=1e-6, random_state=0).factors).W, f.H
    >>> round(float(W[1] @ H[:, 1]), 2)
    4.0
    """
    return fit_factors(over_seen(pose(A)), n_components, settings, max_iter, tol, random_state)
