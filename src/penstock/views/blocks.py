"""Sums over rows that come out the same to the last bit, whoever adds up which rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from penstock._types import FloatArray

BLOCK = 1024  # rows that are added up together, wherever they are


def block_sums(rows: FloatArray, measure: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """(blocks, p): what `measure` makes of each block of rows, added up per column without what is missing.

    Whoever has some of the rows, beginning with a block, finds some of the sums; their sum is that of all rows.

    >>> block_sums(np.ones((1500, 2)), lambda rows: 2 * rows).tolist()
    [[2048.0, 2048.0], [952.0, 952.0]]
    """
    starts = range(0, len(rows), BLOCK)
    return np.stack([np.nansum(measure(rows[start : start + BLOCK]), axis=0) for start in starts])
