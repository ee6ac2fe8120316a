"""How slow things follow fast ones."""

from __future__ import annotations

import numpy as np

from penstock._types import FloatArray
from penstock.simulate._calendar import STEP_HOURS


def follow(target: FloatArray, hours: FloatArray | float) -> FloatArray:
    """First-order lag: what approaches its target with a time constant, which may change from step to step.

    Starts at the target; columns, if any, are independent.

    >>> follow(np.array([0.0, 1.0, 1.0, 1.0]), hours=STEP_HOURS / np.log(2)).tolist()
    [0.0, 0.5, 0.75, 0.875]
    """
    gain = np.broadcast_to(-np.expm1(-STEP_HOURS / np.asarray(hours)), target.shape)
    result = np.empty_like(target)
    state = target[0]
    for now in range(len(target)):
        state = state + gain[now] * (target[now] - state)
        result[now] = state
    return result


def delay(values: FloatArray, steps: int) -> FloatArray:
    """The same, so many samples later.

    >>> delay(np.array([1.0, 2.0, 3.0]), 1).tolist()
    [1.0, 1.0, 2.0]
    """
    return np.concatenate([np.full(steps, values[0]), values[:-steps]])
