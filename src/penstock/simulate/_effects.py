"""How faults change readings, in the samples of the event and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from penstock._types import FloatArray
from penstock.simulate._calendar import STEPS_PER_HOUR, within
from penstock.simulate._events import Effect, Event

_LOOSE = (1.0, 0.3, -0.7, 1.0, 0.4, -1.0)  # how a loose contact jumps, over and over


def inject(values: FloatArray, names: Sequence[str], times: pd.DatetimeIndex, events: Sequence[Event]) -> FloatArray:
    """Readings as they are with the effects of these events: a changed copy of steps × variables."""
    result = values.copy()
    column = {name: number for number, name in enumerate(names)}
    for event in events:
        rows = np.flatnonzero(within(times, [(event.start, event.end)]))
        for effect in event.effects:
            columns = np.array([column[name] for name in effect.variables])
            affected = np.ix_(rows, columns)
            result[affected] = changed(result[affected], effect, before=values[rows[0] - 1, columns])
    return result


def changed(readings: FloatArray, effect: Effect, before: FloatArray) -> FloatArray:
    """The readings of one event, samples × variables, after one of its effects; `before` are those just before it.

    - add: `size` more, in the unit of the variable
    - scale: times 1 + `size`
    - hold: stuck at the reading before the event
    - flicker: jumps by up to ± `size`
    - exchange: each shows the next one's reading, the last the first one's

    >>> readings = np.array([[1.0, 5.0], [2.0, 6.0]])
    >>> changed(readings, Effect(("a", "b"), "exchange"), before=np.zeros(2)).tolist()
    [[5.0, 1.0], [6.0, 2.0]]
    """
    strength = build_up(len(readings), effect.rise)[:, None]
    if effect.how == "add":
        return readings + effect.size * strength
    if effect.how == "scale":
        return readings * (1 + effect.size * strength)
    if effect.how == "hold":
        return np.broadcast_to(before, readings.shape)
    if effect.how == "flicker":
        return readings + effect.size * np.resize(_LOOSE, len(readings))[:, None]
    return np.roll(readings, -1, axis=1)


def build_up(n: int, rise: float) -> FloatArray:
    """The strength of an effect in each of n samples: it approaches 1 with a time constant, and fades at the end.

    >>> build_up(3, rise=0.0).tolist()
    [1.0, 1.0, 1.0]
    >>> build_up(6, rise=1 / 3).round(2).tolist()
    [0.39, 0.63, 0.78, 0.86, 0.67, 0.33]
    """
    if rise == 0:
        return np.ones(n)
    steps = rise * STEPS_PER_HOUR
    left = np.arange(n, 0, -1)
    return np.minimum(-np.expm1(-np.arange(1, n + 1) / steps), left / (steps + 1))
