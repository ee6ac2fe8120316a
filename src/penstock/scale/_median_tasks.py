"""Tasks that look for the middle of columns in runs of their rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from penstock._types import FloatArray
from penstock.scale._row_tasks import load_rows

Keys = NDArray[np.uint64]
_LAST = np.iinfo(np.uint64).max
_SIGN = np.uint64(1 << 63)


def keys_of(values: FloatArray) -> Keys:
    """Whole numbers in the order of the values, one for each number that there is.

    >>> keys = keys_of(np.array([-1.0, -0.0, 0.0, 5e-324, 2.0]))
    >>> [int(later - sooner) for sooner, later in zip(keys[1:3], keys[2:4])], bool(keys[0] < keys[1] < keys[4])
    ([0, 1], True)
    """
    bits = (values + 0.0).view(np.uint64)  # there is but one zero
    return np.where(bits & _SIGN, ~bits, bits | _SIGN)


def values_of(keys: Keys) -> FloatArray:
    """The values again.

    >>> values_of(keys_of(np.array([-3.5, 0.0, 1e300]))).tolist()
    [-3.5, 0.0, 1e+300]
    """
    return np.where(keys & _SIGN, keys ^ _SIGN, ~keys).view(np.float64)


def bin_widths(least: Keys, most: Keys, bins: int) -> Keys:
    """How many keys make one of so many bins, of which the first begins at `least` and the last reaches `most`."""
    return (most - least) // np.uint64(bins) + np.uint64(1)


def count_keys(file: Path, start: int, stop: int, least: Keys, most: Keys, bins: int) -> NDArray[np.uint32]:
    """(p, bins): how many of each column's keys are in which bin."""
    counts = np.zeros((len(least), bins), dtype=np.uint32)
    widths = bin_widths(least, most, bins)
    for d, column in enumerate(load_rows(file, start, stop).T):
        keys = keys_of(column)
        inside = keys[(keys >= least[d]) & (keys <= most[d])]
        counts[d] = np.bincount(((inside - least[d]) // widths[d]).astype(np.intp), minlength=bins)
    return counts


def pick_keys(file: Path, start: int, stop: int, least: Keys, most: Keys) -> tuple[list[Keys], Keys]:
    """Each column's keys from `least` to `most`, unless these are one and the same, and the next one above."""
    picked, above = [], np.full(len(least), _LAST)
    for d, column in enumerate(load_rows(file, start, stop).T):
        keys = keys_of(column)
        above[d] = keys[keys > most[d]].min(initial=_LAST)
        picked.append(keys[(keys >= least[d]) & (keys <= most[d])] if least[d] < most[d] else keys[:0])
    return picked, above
