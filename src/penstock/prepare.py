"""Scaling to [0, 1], learnt once, applied to any row, and undone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock._types import FloatArray

_FARTHEST = 1e300  # in ranges of a column: norms of such rows are still finite


@dataclass(frozen=True, eq=False)
class MinMaxScaling:
    """Maps each column's smallest learnt value to 0 and its largest to 1.

    A column that was constant when learnt has range 0: the constant maps to 0, and a later departure from it counts in
    units of the constant (of 1, if that is 0), so that a stuck sensor that begins to move is seen. `undo(apply(X))` is
    X to rounding.

    >>> import numpy as np
    >>> scaling = learn_scaling(np.array([[0.0, 5.0], [4.0, 5.0]]))
    >>> scaling.apply(np.array([[1.0, 5.0], [6.0, 7.0]])).tolist()
    [[0.25, 0.0], [1.5, 0.4]]
    >>> scaling.apply(np.array([[6.0, 7.0]]), clip=True).tolist()
    [[1.0, 0.0]]
    >>> scaling.undo(np.array([[0.25, 0.0]])).tolist()
    [[1.0, 5.0]]
    """

    minimum: FloatArray
    maximum: FloatArray

    @property
    def range(self) -> FloatArray:
        """Largest minus smallest value; infinite where float64 cannot hold it (which `apply` copes with)."""
        with np.errstate(over="ignore"):
            return self.maximum - self.minimum

    def apply(self, X: FloatArray, clip: bool = False) -> FloatArray:
        """Scale rows. Values outside the learnt range fall outside [0, 1], at most 1e300 away, or are clipped to it."""
        unit, span = self._unit, self._span
        with np.errstate(over="ignore"):
            A = X * unit
            A -= self.minimum * unit
            A /= span
        if not clip:
            return np.clip(A, -_FARTHEST, _FARTHEST, out=A)
        A[:, self.minimum == self.maximum] = 0.0
        return np.clip(A, 0.0, 1.0, out=A)

    def undo(self, A: FloatArray) -> FloatArray:
        """Back to the unit of the data."""
        with np.errstate(over="ignore"):
            return (A * self._span + self.minimum * self._unit) / self._unit

    @property
    def _span(self) -> FloatArray:
        """What counts as one, in units of `_unit`."""
        span = self.maximum * self._unit - self.minimum * self._unit
        constant = np.where(self.minimum != 0, np.abs(self.minimum), 1.0)
        return np.where(span > 0, span, constant)

    @property
    def _unit(self) -> FloatArray:
        """1, or ½ for a column so wide that its range overflows (halving the others could round the tiniest)."""
        return np.where(np.isfinite(self.range), 1.0, 0.5)


def learn_scaling(X: FloatArray) -> MinMaxScaling:
    """The scaling that takes the columns of X (finite numbers) to [0, 1]."""
    return MinMaxScaling(X.min(axis=0), X.max(axis=0))
