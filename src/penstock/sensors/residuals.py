"""What each sensor should read given the others: leave-one-out ridge regressions, or what a factorisation rebuilds.

All ridge regressions come from one inverse. With P the inverse of the covariance of the scaled readings plus a ridge,
the residual of sensor j in a row z, predicted from all other sensors, is [P(z − μ)]_j / P_jj. A missing reading is
integrated out exactly: it takes its expected value given the readings that are there, and has no residual. The others
of its row are predicted worse without it, so where residuals are scored they are divided by how much worse.

Rows rebuilt as WH have residuals too small where a reading has a large part in its own rebuilt value: it is divided by
1 − leverage.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from penstock._threads import one_blas_thread
from penstock._types import BoolArray, FloatArray
from penstock.sensors._kernels import multiply_rows, residual_rows
from penstock.sensors.blocks import add_up, row_blocks

RIDGE = 0.01  # in units of the sensors' variance: noise that no other sensor explains
_LEAST_VARIANCE = 1e-9  # of scaled readings, at most rounding
_LEAST_FREE = 0.05  # of 1 − leverage
_SINGULAR = 1e-12  # of the trace of HHᵀ


@dataclass(frozen=True)
class LeaveOneOut:
    """Mean (p,) and precision (p, p) of scaled readings.

    >>> rng = np.random.default_rng(0)
    >>> Z = rng.normal(size=(500, 1)) + 0.1 * rng.normal(size=(500, 3))
    >>> model = learn_leave_one_out(Z, np.ones(500))
    >>> np.round(model.residuals(np.array([[1.0, 1.0, 3.0]])), 1)  # the third disagrees with the others
    array([[-1., -1.,  2.]])
    """

    mean: FloatArray
    precision: FloatArray

    def residuals(self, Z: FloatArray) -> FloatArray:
        """Return each reading minus its expected value given the other sensors of its row; 0 where it is missing."""
        return self._predict(Z, comparable=False)[0]

    def expected(self, Z: FloatArray) -> FloatArray:
        """Return what each sensor should have read given the others of its row."""
        residuals, filled = self._predict(Z, comparable=False)
        return filled - residuals

    def comparable(self, Z: FloatArray) -> FloatArray:
        """Return residuals, each divided by its usual spread in rows with the same holes over that without holes."""
        return self.score(Z)[0]

    def score(self, Z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return `comparable` and `fill` of the same rows at once."""
        return self._predict(Z, comparable=True)

    def fill(self, Z: FloatArray) -> FloatArray:
        """Return the rows with expected values, given the other readings of the row, where readings are missing."""
        missing = np.isnan(Z)
        rows = np.flatnonzero(missing.any(axis=1))
        if not len(rows):
            return Z
        filled = Z.copy()
        filled[rows] = np.where(missing[rows], self._complete(Z[rows], missing[rows])[0] + self.mean, Z[rows])
        return filled

    def _predict(self, Z: FloatArray, *, comparable: bool) -> tuple[FloatArray, FloatArray]:
        found, holed = np.empty(Z.shape), np.empty(len(Z), dtype=np.bool_)
        if not residual_rows(Z, self.mean, self.precision, holed, found):
            return found, Z
        filled, places = Z.copy(), np.flatnonzero(holed)
        for some in row_blocks(len(places), Z.shape[1]):
            rows = places[some]
            missing = np.isnan(Z[rows])
            deviations, divisors, wider = self._complete(Z[rows], missing)
            part = np.empty_like(deviations)
            multiply_rows(deviations, self.precision, part)
            found[rows] = np.where(missing, 0.0, part / (divisors * wider if comparable else divisors))
            filled[rows] = np.where(missing, deviations + self.mean, Z[rows])
        return found, filled

    def _complete(self, Z: FloatArray, missing: BoolArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return deviations from the mean without holes, the divisors of [P(z − μ)]_j, and `score`'s, each (n, p)."""
        P, deviations = self.precision, Z - self.mean
        divisors, wider = np.tile(P.diagonal(), (len(Z), 1)), np.ones(Z.shape)
        deviations[missing] = 0.0
        patterns, group = np.unique(missing, axis=0, return_inverse=True)
        for number, gone in enumerate(patterns):
            rows, lost, there = np.flatnonzero(group.ravel() == number), np.flatnonzero(gone), np.flatnonzero(~gone)
            regression = np.linalg.solve(P[np.ix_(lost, lost)], P[np.ix_(lost, there)])
            expected = np.empty((len(rows), len(lost)))
            multiply_rows(np.ascontiguousarray(deviations[np.ix_(rows, there)]), -regression.T.copy(), expected)
            deviations[np.ix_(rows, lost)] = expected
            remaining = P[np.ix_(there, there)] - P[np.ix_(there, lost)] @ regression
            divisors[np.ix_(rows, there)] = remaining.diagonal()
            wider[np.ix_(rows, there)] = np.sqrt(np.maximum(1.0, _variances(remaining) / _variances(P)[there]))
        return deviations, divisors, wider


def _variances(P: FloatArray) -> FloatArray:
    """Return the variances of residuals by precision P, which contains a ridge that the readings do not: (p,)."""
    own = P.diagonal()
    found: FloatArray = np.maximum((own - RIDGE * (P * P).sum(axis=1)) / own**2, _LEAST_VARIANCE)
    return found


def learn_leave_one_out(Z: FloatArray, weights: NDArray[np.floating]) -> LeaveOneOut:
    """Learn mean and precision from rows without holes; a weight of 0 leaves a row out."""
    return from_sums(*add_up(weighted_sums, Z, weights))


def weighted_sums(Z: FloatArray, weights: NDArray[np.floating]) -> tuple[float, FloatArray, FloatArray]:
    """Return the sums of weights, of weighted rows (p,) and of weighted products (p, p): they add up over parts."""
    with one_blas_thread():
        weighted = Z * weights[:, None]
        return float(weights.sum()), weighted.sum(axis=0), weighted.T @ Z


def from_sums(total: float, rows: FloatArray, products: FloatArray) -> LeaveOneOut:
    """Return the model of the sums over all parts."""
    mean = rows / total
    covariance = products / total - np.outer(mean, mean)
    with one_blas_thread():
        precision = np.linalg.inv((covariance + covariance.T) / 2 + RIDGE * np.eye(len(mean)))
    return LeaveOneOut(mean, np.ascontiguousarray((precision + precision.T) / 2))


def rebuild_rows(W: FloatArray, H: FloatArray) -> FloatArray:
    """Return WH, each row by itself."""
    rebuilt = np.empty((len(W), H.shape[1]))
    multiply_rows(np.ascontiguousarray(W), np.ascontiguousarray(H), rebuilt)
    return rebuilt


def leave_own_out(
    residuals: FloatArray, H: FloatArray, held: FloatArray, active: BoolArray, seen: BoolArray
) -> FloatArray:
    """Return residuals of rows rebuilt as WH as if each reading had no part in its own rebuilt value: r_j/(1 − h_j).

    `leverages` gives h. Where 1 − h_j is below 0.05 it counts as 0.05: a reading that decides a weight alone says
    nothing of itself.
    """
    return residuals / np.maximum(1 - leverages(H, held, active, seen), _LEAST_FREE)


def leverages(H: FloatArray, held: FloatArray, active: BoolArray, seen: BoolArray) -> FloatArray:
    """Return how much each reading decides its own rebuilt value, from 0 to 1, (n, p).

    Weights w that minimise ‖z − wH‖² + wQwᵀ move the rebuilt values by Hᵀ(HHᵀ + Q)⁻¹H, of which this is the diagonal:
    over the rows of H whose weights are not at their bound 0, and the readings that are there.

    held : (k, k) Q, what the objective adds to HHᵀ (k, k) apart from the readings; 0 where only the readings count.
    active : (n, k) weights above 0.
    seen : (n, p) readings that are there.

    >>> H, held = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]), np.diag([0.0, 1.0])
    >>> leverages(H, held, np.array([[True, True], [True, False]]), np.ones((2, 3), dtype=bool)).round(3)
    array([[0.5, 0.5, 0.5],
           [0.5, 0.5, 0. ]])
    """
    found, k = np.zeros(seen.shape), len(H)
    kinds = active if seen.all() else np.hstack([active, seen])
    patterns, group = np.unique(kinds, axis=0, return_inverse=True)
    with one_blas_thread():
        for number, pattern in enumerate(patterns):
            used = pattern[:k]
            part = H[used] * (pattern[k:] if len(pattern) > k else 1.0)
            gram = part @ part.T + held[np.ix_(used, used)]
            size = np.trace(gram)
            if size > 0:
                root = np.linalg.cholesky(gram / size + _SINGULAR * np.eye(len(gram)))
                found[group.ravel() == number] = (solve_triangular(root, part, lower=True) ** 2).sum(axis=0) / size
    return found
