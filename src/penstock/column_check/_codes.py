"""Numbers that stand for a missing value, as -9999 does."""

from __future__ import annotations

import numpy as np

from penstock._types import FloatArray

_FEWEST_TIMES = 3
_FEWEST_OTHERS = 20
_FEW_LEVELS = 10  # different other values: numbers of states may be far apart, so that
_FARTHER = 100.0  # times as far is asked of a code among them


def codes_for_missing(ordered: FloatArray) -> dict[float, int]:
    """Values that come again and again, and lie farther from all others than these are apart: how often each comes.

    Others are apart by the range of their middle 98 %. No code is 0, which a pump that is off delivers.

    >>> codes_for_missing(np.sort(np.append(np.linspace(5, 9, 50), [-9999.0] * 4)))
    {-9999.0: 4}
    """
    found: dict[float, int] = {}
    rest = ordered
    while True:
        for value, others in _ends(rest):
            if _is_code(value, others, len(rest) - len(others)):
                found[value] = len(rest) - len(others)
                rest = others
                break
        else:
            return found


def _ends(ordered: FloatArray) -> list[tuple[float, FloatArray]]:
    """The smallest and the largest value, each with the values that differ from it."""
    low, high = ordered[0], ordered[-1]
    return [
        (float(low), ordered[np.searchsorted(ordered, low, "right") :]),
        (float(high), ordered[: np.searchsorted(ordered, high, "left")]),
    ]


def _is_code(value: float, others: FloatArray, times: int) -> bool:
    if times < _FEWEST_TIMES or len(others) < _FEWEST_OTHERS or value == 0:
        return False
    cut = len(others) // 100
    with np.errstate(over="ignore"):
        width = float(others[-1 - cut] - others[cut]) or float(others[-1] - others[0])
        distance = float(others[0] - value) if value < others[0] else float(value - others[-1])
    few = 1 + np.count_nonzero(others[1:] != others[:-1]) <= _FEW_LEVELS if distance > width > 0 else False
    return distance > (_FARTHER * width if few else width) > 0
