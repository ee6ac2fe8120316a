"""Numbers of different views on one scale."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock._types import FloatArray
from penstock.views._kernels import standardise

_FLOOR_OF_ZEROS = 1e-6
_TINY = float(np.finfo(np.float64).tiny)
_ROUNDING = 1e-6  # logarithms of numbers that differ by no more than this are those of equal ones, in other units


@dataclass(frozen=True)
class LogStandard:
    """(log value − mean)/spread over the rows learnt from; values below `floor` count as that.

    >>> standard = learn_standard(np.array([1.0, 10.0, 100.0]))
    >>> standard.apply(np.array([10.0, 100.0, 1000.0])).round(3).tolist()
    [0.0, 1.225, 2.449]
    """

    floor: float
    mean: float
    spread: float

    def apply(self, values: FloatArray) -> FloatArray:
        out = np.empty(len(values))
        standardise(values, self.floor, self.mean, self.spread, out)
        return out


def learn_standard(values: FloatArray) -> LogStandard:
    """`floor` is half the smallest value above 0 (a millionth, if all are 0); NaN is left out.

    Where all values are equal, they are at 0, and the spread is 1.
    """
    known = values[~np.isnan(values)]
    positive = known[known > 0]
    floor = max(float(positive.min()) / 2, _TINY) if len(positive) else _FLOOR_OF_ZEROS
    logs = np.log(np.maximum(known, floor)) if len(known) else np.zeros(1)
    if np.ptp(logs) <= _ROUNDING:
        return LogStandard(floor, float(logs[0]), 1.0)
    return LogStandard(floor, float(logs.mean()), float(logs.std()))
