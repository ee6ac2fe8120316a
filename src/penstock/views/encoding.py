"""Readings on a scale on which a hundred times as far out is not a hundred times as much."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock._types import FloatArray
from penstock.views._kernels import encode_rows
from penstock.views.blocks import block_sums


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
    low, high = np.nanmin(A, axis=0), np.nanmax(A, axis=0)
    unit, n_seen = unit_of(low, high), np.count_nonzero(~np.isnan(A), axis=0)
    mean = sums_in_units(A, unit).sum(axis=0) / n_seen
    spread = np.sqrt(sums_of_squares(A, unit, mean).sum(axis=0) / n_seen)
    return encoding_of(low, high, np.nanmedian(A / unit, axis=0), spread)


def encoding_of(low: FloatArray, high: FloatArray, center: FloatArray, spread: FloatArray) -> LogEncoding:
    """From the ranges of the columns and, in their units, medians and standard deviations."""
    unit = unit_of(low, high)
    constant = low / unit == high / unit  # where rounding may leave a spread above 0
    return LogEncoding(unit, center, np.where((spread > 0) & ~constant, spread, 1.0))


def unit_of(low: FloatArray, high: FloatArray) -> FloatArray:
    """The largest size of a reading; 1 where all are 0."""
    largest = np.maximum(np.abs(low), np.abs(high))
    return np.where(largest > 0, largest, 1.0)


def sums_in_units(A: FloatArray, unit: FloatArray) -> FloatArray:
    """By blocks of rows, as are those of the squares."""
    return block_sums(A, lambda rows: rows / unit)


def sums_of_squares(A: FloatArray, unit: FloatArray, mean: FloatArray) -> FloatArray:
    """Around the mean."""
    return block_sums(A, lambda rows: (rows / unit - mean) ** 2)
