"""What each sensor should read given the others: all leave-one-out ridge regressions from one inverse.

With P the inverse of the covariance of the scaled readings plus a ridge, the residual of sensor j in a row z, predicted
from all other sensors, is [P(z − μ)]_j / P_jj. A missing reading is integrated out exactly: it takes its expected value
given the readings that are there, has no residual, and does not disturb those of the others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock._blas import one_blas_thread
from penstock._types import FloatArray
from penstock.sensors._kernels import multiply_rows

RIDGE = 0.01  # in units of the sensors' variance: noise that no other sensor explains


@dataclass(frozen=True)
class LeaveOneOut:
    """Mean (p,) and precision (p, p) of scaled readings.

    Examples
    --------
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
        return self.judge(Z)[0]

    def fill(self, Z: FloatArray) -> FloatArray:
        """Return the rows with expected values, given the other readings of the row, where readings are missing."""
        filled: FloatArray = self._complete(Z)[0] + self.mean
        return np.where(np.isnan(Z), filled, Z)

    def judge(self, Z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return `residuals` and `fill` of the same rows at once."""
        deviations, divisors = self._complete(Z)
        found = np.empty_like(deviations)
        multiply_rows(deviations, self.precision, found)
        found /= divisors
        missing = np.isnan(Z)
        if not missing.any():
            return found, Z
        found[missing] = 0.0
        return found, np.where(missing, deviations + self.mean, Z)

    def _complete(self, Z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return deviations from the mean without holes, and what [P(z − μ)]_j is divided by, (n, p) or (p,)."""
        P, deviations = self.precision, Z - self.mean
        divisors = P.diagonal()
        missing = np.isnan(deviations)
        if not missing.any():
            return deviations, divisors
        holed = np.flatnonzero(missing.any(axis=1))
        divisors = np.tile(divisors, (len(Z), 1))
        deviations[missing] = 0.0
        patterns, group = np.unique(missing[holed], axis=0, return_inverse=True)
        for number, gone in enumerate(patterns):
            rows, lost, there = holed[group.ravel() == number], np.flatnonzero(gone), np.flatnonzero(~gone)
            regression = np.linalg.solve(P[np.ix_(lost, lost)], P[np.ix_(lost, there)])
            expected = np.empty((len(rows), len(lost)))
            multiply_rows(np.ascontiguousarray(deviations[np.ix_(rows, there)]), -regression.T.copy(), expected)
            deviations[np.ix_(rows, lost)] = expected
            divisors[np.ix_(rows, there)] -= (P[np.ix_(lost, there)] * regression).sum(axis=0)
        return deviations, divisors


def learn_leave_one_out(Z: FloatArray, weights: NDArray[np.floating]) -> LeaveOneOut:
    """Learn mean and precision from rows without holes; a weight of 0 leaves a row out."""
    return from_sums(*weighted_sums(Z, weights))


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
