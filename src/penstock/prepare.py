"""Scaling to [0, 1], learnt once, applied to any row, and undone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock._types import FloatArray

_FARTHEST = 1e300  # in ranges of a column: norms of such rows are still finite


@dataclass(frozen=True, eq=False)
class MinMaxScaling:
    """Maps each column's smallest learnt value to 0 and its largest to 1.

    A column that was constant when learnt has range 0 and no scale of its own: it maps to 0, whatever it holds later,
    and `undo` gives the constant back. Otherwise `undo(apply(X))` is X to rounding.

    >>> import numpy as np
    >>> scaling = learn_scaling(np.array([[0.0, 5.0], [4.0, 5.0]]))
    >>> scaling.apply(np.array([[1.0, 5.0], [6.0, 7.0]])).tolist()
    [[0.25, 0.0], [1.5, 0.0]]
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
        unit = self._unit
        span = self.maximum * unit - self.minimum * unit
        with np.errstate(over="ignore"):
            A = X * unit
            A -= self.minimum * unit
            A /= np.where(span > 0, span, 1.0)
        A[:, span == 0] = 0.0
        lowest, highest = (0.0, 1.0) if clip else (-_FARTHEST, _FARTHEST)
        return np.clip(A, lowest, highest, out=A)

    def undo(self, A: FloatArray) -> FloatArray:
        """Back to the unit of the data."""
        unit = self._unit
        span = self.maximum * unit - self.minimum * unit
        with np.errstate(over="ignore"):
            return (A * span + self.minimum * unit) / unit

    @property
    def _unit(self) -> FloatArray:
        """1, or ½ for a column so wide that its range overflows (halving the others could round the tiniest)."""
        return np.where(np.isfinite(self.range), 1.0, 0.5)


def learn_scaling(X: FloatArray) -> MinMaxScaling:
    """The scaling that takes the columns of X (finite numbers) to [0, 1]."""
    return MinMaxScaling(X.min(axis=0), X.max(axis=0))
