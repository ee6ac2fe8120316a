"""Scale columns to [0, 1] by ranges fitted once, and back."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from penstock._row_kernels import clip_rows, scale_rows
from penstock._types import FloatArray
from penstock.storage import Fields, Record, read_fields

_FARTHEST = 1e300  # in ranges of a column: norms of such rows are still finite


@dataclass(frozen=True, eq=False)
class _Units:
    """What scaling computes with: all in multiples of `unit`, 1, or ½ for a column so wide that its range overflows."""

    unit: FloatArray
    halved: bool  # whether a column is so wide
    low: FloatArray
    span: FloatArray  # what counts as one


@dataclass(frozen=True, eq=False)
class MinMaxScaling:
    """Map each column's smallest fitted value to 0 and its largest to 1.

    A column that was constant when fitted has range 0: the constant maps to 0, and a later departure from it counts in
    units of the constant (of 1, if that is 0), so that a stuck sensor that begins to move is seen. `undo(apply(X))` is
    X to rounding. NaN stays NaN.

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

    def __reduce__(self) -> tuple[type[MinMaxScaling], tuple[FloatArray, FloatArray]]:
        return MinMaxScaling, (self.minimum, self.maximum)  # not what is cached

    @property
    def span(self) -> FloatArray:
        """What counts as one, in the unit of the data: the range, or for a constant the constant itself (1 if 0)."""
        with np.errstate(over="ignore"):
            return self._units.span / self._units.unit

    def apply(self, X: FloatArray, clip: bool = False) -> FloatArray:
        """Scale rows. Values outside the fitted range fall outside [0, 1], at most 1e300 away, or are clipped to it."""
        if clip:
            return self.apply_both(X)[1]
        units, scaled = self._units, np.empty(X.shape)
        scale_rows(X * units.unit if units.halved else X, units.low, units.span, _FARTHEST, scaled)
        return scaled

    def apply_both(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the scaled rows, and the same clipped to [0, 1], where a column that was constant is 0."""
        scaled = self.apply(X)
        clipped = np.empty(X.shape)
        clip_rows(scaled, np.asarray(self.minimum == self.maximum), clipped)
        return scaled, clipped

    def undo(self, A: FloatArray) -> FloatArray:
        """Return rows in the unit of the data."""
        with np.errstate(over="ignore"):
            return (A * self._units.span + self._units.low) / self._units.unit

    @cached_property
    def _units(self) -> _Units:
        # Where a range overflows, both ends are halved; halving the other columns could round the tiniest values.
        with np.errstate(over="ignore"):
            unit = np.where(np.isfinite(self.maximum - self.minimum), 1.0, 0.5)
        low = self.minimum * unit
        span = self.maximum * unit - low
        constant = np.where(self.minimum != 0, np.abs(self.minimum), 1.0)
        return _Units(unit, bool((unit != 1).any()), low, np.where(span > 0, span, constant))


def learn_scaling(X: FloatArray) -> MinMaxScaling:
    """Learn the scaling that takes the columns of X to [0, 1]. NaN is left out; a column without numbers stays NaN."""
    return MinMaxScaling(np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0))


SCALING: Fields = {"minimum": "p", "maximum": "p"}
_SCALING_WITH_HOLES: Fields = {"minimum": "p nan", "maximum": "p nan"}


def unpack_scaling(record: Record | None, n_columns: int, *, missing: bool = False) -> MinMaxScaling | None:
    """Return the scaling of a file; with `missing`, columns without a reading may have a range of NaN."""
    if record is None:
        return None
    low, high = read_fields(record, _SCALING_WITH_HOLES if missing else SCALING, {"p": n_columns}).values()
    if (low > high).any() or (np.isnan(low) != np.isnan(high)).any():
        raise record.error("maximum", "nowhere below the minimum")
    return MinMaxScaling(low, high)
