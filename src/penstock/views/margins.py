"""The marginal view: readings that are rare for their variable, whatever the others say."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from penstock._types import FloatArray
from penstock.views._kernels import surprises_of
from penstock.views.blocks import block_sums

_FEWEST_BINS = 5
_ROUNDING = 1e-12  # readings that are all equally surprising are not more so than usual, however their mean is rounded
_BLOCK = 4096  # rows at a time, to keep what is in memory small


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
    bins = empty_bins(len(rows), np.nanmin(rows, axis=0), np.nanmax(rows, axis=0))
    counted = with_counts(bins, count_readings(bins, rows))
    return with_usual(counted, sums_of_surprises(counted, rows).sum(axis=0))


def empty_bins(n: int, low: FloatArray, high: FloatArray) -> Margins:
    """Histograms for n rows whose columns range from low to high."""
    bins = max(_FEWEST_BINS, round(np.log2(n) + 1))
    varies = high > low
    width = np.where(varies, (high - low) / bins, 1.0)
    width = np.where(width > 0, width, 1.0)  # a range that is no more than rounding
    low = np.where(varies, low, low - 0.5)  # a constant is in the middle of its bin
    nothing = np.zeros(len(low))
    return Margins(low, width, np.zeros((len(low), bins + 2)), nothing, nothing)


def count_readings(margins: Margins, rows: FloatArray) -> FloatArray:
    """How many readings of these rows are in each bin."""
    counts = np.zeros_like(margins.counts)
    bins = margins.counts.shape[1] - 2
    for d, column in enumerate(rows.T):
        place = (column[~np.isnan(column)] - margins.low[d]) / margins.width[d]
        counts[d, 1:-1] = np.bincount(np.clip(place.astype(np.intp), 0, bins - 1), minlength=bins)
    return counts


def with_counts(margins: Margins, counts: FloatArray) -> Margins:
    return replace(margins, counts=counts, total=counts.sum(axis=1))


def sums_of_surprises(margins: Margins, rows: FloatArray) -> FloatArray:
    """By blocks of rows."""
    return block_sums(rows, margins.surprises)


def with_usual(margins: Margins, surprise: FloatArray) -> Margins:
    """Given how surprising all readings of each column are together."""
    return replace(margins, usual=surprise / margins.total + _ROUNDING)
