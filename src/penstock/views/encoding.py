"""Readings on a scale on which a hundred times as far out is not a hundred times as much."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock._types import FloatArray
from penstock.views._kernels import encode_rows


@dataclass(frozen=True, eq=False)
class LogEncoding:
    """sign(z)·log(1 + |z|), where z = (x − median)/standard deviation of a column; NaN stays NaN.

    unit : what readings are divided by first, so that no square of them overflows.
    center, spread : median and standard deviation in that unit; a constant column has a spread of 1.

    >>> rows = np.array([[0.0], [1.0], [2.0], [3.0], [100.0]])
    >>> learn_encoding(rows).apply(rows).round(2).ravel().tolist()
    [-0.05, -0.03, 0.0, 0.03, 1.25]
    """

    unit: FloatArray
    center: FloatArray
    spread: FloatArray

    def apply(self, A: FloatArray) -> FloatArray:
        out = np.empty(A.shape)
        encode_rows(A, self.unit, self.center, self.spread, out)
        return out


def learn_encoding(A: FloatArray) -> LogEncoding:
    """From rows in which every column has a reading."""
    unit = np.nanmax(np.abs(A), axis=0)
    unit = np.where(unit > 0, unit, 1.0)
    scaled = A / unit
    spread = np.nanstd(scaled, axis=0)
    constant = np.nanmin(scaled, axis=0) == np.nanmax(scaled, axis=0)  # where rounding may leave a spread above 0
    return LogEncoding(unit, np.nanmedian(scaled, axis=0), np.where((spread > 0) & ~constant, spread, 1.0))
