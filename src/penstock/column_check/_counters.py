"""Does a column only rise, as the meter of energy or of operating hours does?"""

from __future__ import annotations

import numpy as np

from penstock._types import FloatArray

_MOST_RESETS = 0.05  # of the steps
_RESET = 0.5  # of the range: a smaller fall is none
_FEWEST_RISES = 20
_SMALL = 0.05  # of the range: a usual rise


def resets_of_counter(values: FloatArray) -> int | None:
    """How often a counter starts anew; None if the column is none.

    >>> resets_of_counter(np.arange(50.0)), resets_of_counter(np.arange(50.0) % 30), resets_of_counter(np.ones(50))
    (0, 1, None)
    """
    falls = np.flatnonzero(values[1:] < values[:-1])
    if len(falls) > _MOST_RESETS * len(values):
        return None
    steps = np.diff(values)
    rises = steps[steps > 0]
    extent = float(values.max() - values.min())
    if len(rises) < _FEWEST_RISES or not np.isfinite(extent) or np.median(rises) > _SMALL * extent:
        return None
    return len(falls) if (steps[falls] <= -_RESET * extent).all() else None
