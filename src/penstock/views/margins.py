"""The marginal view: readings that are rare for their variable, whatever the others say."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from penstock._types import FloatArray
from penstock.views._kernels import surprises_of

_FEWEST_BINS = 5
_BLOCK = 65_536  # rows at a time, to keep what is in memory small


@dataclass(frozen=True, eq=False)
class Margins:
    """Σ over the variables of how much more surprising than usual a reading is: max(0, −log share − its mean).

    The share is that of a histogram with about log₂ n bins, interpolated between the middles of the bins and down to 0
    beyond the ends. With missing readings the sum is scaled up to all variables.

    low, width : (p,) of the bins.
    counts : (p, bins + 2) with an empty bin at either end.
    total : (p,) readings.
    usual : (p,) the mean surprise of the readings learnt from.
    """

    low: FloatArray
    width: FloatArray
    counts: FloatArray
    total: FloatArray
    usual: FloatArray

    def excesses(self, Q: FloatArray) -> FloatArray:
        """Per row and variable; NaN where a reading is missing."""
        excess: FloatArray = np.maximum(self.surprises(Q) - self.usual, 0.0)
        return excess

    def values(self, Q: FloatArray) -> FloatArray:
        out = np.empty(len(Q))
        for start in range(0, len(Q), _BLOCK):
            excess = self.excesses(Q[start : start + _BLOCK])
            seen = (~np.isnan(excess)).sum(axis=1)
            total = np.zeros(len(excess))
            for column in np.nan_to_num(excess).T:  # one after the other: a row's sum never depends on its batch
                total += column
            out[start : start + _BLOCK] = total * (excess.shape[1] / seen)
        return out

    def surprises(self, Q: FloatArray) -> FloatArray:
        out = np.empty(Q.shape)
        surprises_of(Q, self.low, self.width, self.counts, self.total, out)
        return out


def learn_margins(rows: FloatArray) -> Margins:
    """From rows in which every column has a reading; copies count as often as they are there."""
    n = len(rows)
    bins = max(_FEWEST_BINS, round(np.log2(n) + 1))
    low, high = np.nanmin(rows, axis=0), np.nanmax(rows, axis=0)
    varies = high > low
    width = np.where(varies, (high - low) / bins, 1.0)
    width = np.where(width > 0, width, 1.0)  # a range that is no more than rounding
    low = np.where(varies, low, low - 0.5)  # a constant is in the middle of its bin
    counts = np.zeros((rows.shape[1], bins + 2))
    for d, column in enumerate(rows.T):
        place = (column[~np.isnan(column)] - low[d]) / width[d]
        counts[d, 1:-1] = np.bincount(np.clip(place.astype(np.intp), 0, bins - 1), minlength=bins)
    nothing_usual = Margins(low, width, counts, counts.sum(axis=1), np.zeros(rows.shape[1]))
    return replace(nothing_usual, usual=_column_means(nothing_usual, rows))


def _column_means(margins: Margins, rows: FloatArray) -> FloatArray:
    """The mean surprise of each column's readings."""
    total = np.zeros(rows.shape[1])
    for start in range(0, len(rows), _BLOCK):
        total += np.nansum(margins.surprises(rows[start : start + _BLOCK]), axis=0)
    return total / margins.total
