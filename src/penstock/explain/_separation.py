"""How well each column alone tells two sets of rows apart: a cheap look before a tree is grown."""

from __future__ import annotations

import numpy as np

from penstock._types import FloatArray, IndexArray


def best_separating(event: FloatArray, normal: FloatArray, n: int) -> IndexArray:
    """The `n` columns that separate the rows best, in the order of the columns; constant and empty ones never.

    u is the share of normal readings below a reading of the event (half of those equal to it). |mean(u) − ½| is the
    distance of the area under the ROC curve from chance: the event is high or low. |mean(|2u − 1|) − ½| is the same for
    the distance from the middle: the event is outside on both sides, or between two modes. The larger of the two
    counts. A missing reading counts as chance. Ties in the order of the columns.

    >>> normal = np.array([[0.0, 0.0, 5.0], [1.0, 1.0, 5.0], [2.0, 2.0, 5.0], [3.0, 3.0, 5.0]])
    >>> best_separating(np.array([[1.5, 9.0, 5.0], [0.5, 8.0, 5.0]]), normal, 2).tolist()
    [0, 1]
    """
    power = np.array([_separation(a, b) for a, b in zip(event.T, normal.T, strict=True)])
    chosen = np.argsort(-power, kind="stable")[:n]
    result: IndexArray = np.sort(chosen[power[chosen] >= 0]).astype(np.intp)
    return result


def _separation(event: FloatArray, normal: FloatArray) -> float:
    """Between 0 (chance) and ½; −1 if there is nothing to separate."""
    readings, seen = event[np.isfinite(event)], np.sort(normal[np.isfinite(normal)])
    values = [part for part in (readings, seen) if len(part)]
    if not values or min(part.min() for part in values) == max(part.max() for part in values):
        return -1.0
    if len(values) < 2:
        return 0.0
    u = (np.searchsorted(seen, readings, "left") + np.searchsorted(seen, readings, "right")) / (2 * len(seen))
    share = len(readings) / len(event)
    return share * float(max(abs(u.mean() - 0.5), abs(np.abs(2 * u - 1).mean() - 0.5)))
