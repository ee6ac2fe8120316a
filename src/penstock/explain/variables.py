"""Which variables make an event: readings beside what was expected."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from penstock._types import FloatArray
from penstock.explain.units import split_unit, units_of

__all__ = ["rank_variables", "split_unit"]

_LARGEST = float(np.finfo(np.float64).max)


def rank_variables(
    actual: FloatArray,
    expected: FloatArray,
    scale: FloatArray,
    names: Sequence[str],
    units: Sequence[str | None] | None = None,
    *,
    n: int = 8,
) -> pd.DataFrame:
    """The `n` variables that depart most from what was expected during one event, the largest share first.

    Parameters
    ----------
    actual, expected : (m, p) arrays
        The readings of the event's rows and what was expected of them, in the user's units. NaN where there is none:
        such an entry has no say.
    scale : (p,) array
        What counts as one: the range of each column that the scaling has learnt. A column without a range (it was
        constant) counts in units of what was expected of it (of 1, if that is 0).
    names, units : sequences
        Of the columns. Without `units` they are taken from the names where these have them.

    Returns
    -------
    DataFrame
        variable (the full name), unit ("" if unknown), actual, expected, difference (actual − expected) and row (of the
        m), all at the row where this variable departs most; share of the event's squared scaled residual, where all
        variables, including those left out, sum to 1; direction, "above" or "below". Ties in the order of the columns;
        variables without a share are left out.

    Examples
    --------
    >>> actual = np.array([[3.0, 50.0, 1.0], [9.0, 40.0, np.nan]])
    >>> expected = np.array([[3.0, 50.0, 1.0], [3.0, 60.0, 1.0]])
    >>> rank_variables(actual, expected, np.array([10.0, 100.0, 1.0]), ["vibration [mm/s]", "load", "head"])
               variable  unit  actual  expected  difference  row  share direction
    0  vibration [mm/s]  mm/s     9.0       3.0         6.0    1    0.9     above
    1              load          40.0      60.0       -20.0    1    0.1     below
    """
    residual = _scaled_residual(actual, expected, scale)
    size = np.abs(residual)
    share = _shares(size)
    chosen = np.argsort(-share, kind="stable")[:n]
    chosen = chosen[share[chosen] > 0]
    row = size[:, chosen].argmax(axis=0) if len(size) else np.zeros(0, dtype=np.intp)
    known = units_of(names, units)
    with np.errstate(over="ignore"):
        difference = actual[row, chosen] - expected[row, chosen]
    return pd.DataFrame(
        {
            "variable": pd.Series([names[j] for j in chosen], dtype=object),
            "unit": pd.Series([known[j] for j in chosen], dtype=object),
            "actual": actual[row, chosen],
            "expected": expected[row, chosen],
            "difference": difference,
            "row": row,
            "share": share[chosen],
            "direction": pd.Series(np.where(residual[row, chosen] > 0, "above", "below"), dtype=object),
        }
    )


def _scaled_residual(actual: FloatArray, expected: FloatArray, scale: FloatArray) -> FloatArray:
    """(actual − expected) / scale, 0 where there is nothing to compare."""
    own = np.where(expected != 0, np.abs(expected), 1.0)
    one = np.where(scale > 0, np.minimum(scale, _LARGEST), own)
    with np.errstate(over="ignore", invalid="ignore"):
        difference = actual - expected
        residual = np.where(np.isinf(difference), actual / one - expected / one, difference / one)
    seen = np.isfinite(actual) & np.isfinite(expected)
    return np.where(seen, np.clip(residual, -_LARGEST, _LARGEST), 0.0)


def _shares(size: FloatArray) -> FloatArray:
    """Each column's share of the sum of squares, 0 if that is 0."""
    largest = size.max(initial=0.0)
    if largest == 0:
        return np.zeros(size.shape[1])
    squares = ((size / largest) ** 2).sum(axis=0)  # in units of the largest, so that no square overflows
    shares: FloatArray = squares / squares.sum()
    return shares
