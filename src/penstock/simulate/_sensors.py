"""From what is true to what is recorded: noise that neighbours share, drift, saturation, resolution and drop-outs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from penstock._types import FloatArray
from penstock.simulate._calendar import STEP_HOURS, STEPS_PER_HOUR
from penstock.simulate._randomness import red_noise, stream
from penstock.simulate._readings import Reading

# Samples per drop-out of a sensor: always 240 readings in all, in twelve different sensors.
DROPOUTS = (3, 4, 6, 8, 10, 12, 15, 20, 25, 32, 45, 60)
# Shares of the standard deviation: 0.6² + 0.75² + 0.28² = 1.
_SHARED, _OWN, _DRIFT = 0.6, 0.75, 0.28
_SHARED_HOURS, _OWN_HOURS = 1.5, 0.4
_DRIFT_DAYS = 40


def measure(readings: Sequence[Reading], cabinets: Sequence[str], seed: int) -> FloatArray:
    """Readings with noise, steps × variables. Sensors of one cabinet share a part of it; all drift a little."""
    n, p = len(readings[0].values), len(readings)
    noise = _OWN * red_noise(stream(seed, "sensors"), (n, p), _OWN_HOURS)
    noise += _DRIFT * _drift(stream(seed, "drift"), n, p)
    shared = {name: red_noise(stream(seed, f"cabinet {name}"), n, _SHARED_HOURS) for name in sorted(set(cabinets))}
    for column, (reading, cabinet) in enumerate(zip(readings, cabinets, strict=True)):
        noise[:, column] += _SHARED * shared[cabinet]
        noise[:, column] *= reading.noise
        noise[:, column] += reading.values
    return noise


def _drift(rng: np.random.Generator, n: int, p: int) -> FloatArray:
    """Noise that changes within weeks: drawn once a day, and straight from day to day."""
    per_day = 24 * STEPS_PER_HOUR
    daily = red_noise(rng, (n // per_day + 2, p), _DRIFT_DAYS * STEP_HOURS)  # a step of it is a day
    day, past = np.divmod(np.arange(n), per_day)
    share = (past / per_day)[:, None]
    result: FloatArray = (1 - share) * daily[day] + share * daily[day + 1]
    return result


def digitise(values: FloatArray, readings: Sequence[Reading]) -> FloatArray:
    """Within the range of each sensor and in steps of its resolution."""
    result = np.clip(values, [reading.low for reading in readings], [reading.high for reading in readings])
    for column, reading in enumerate(readings):
        # Adding zero turns the −0.0 of a rounded negative into 0.0.
        result[:, column] = np.round(result[:, column], reading.decimals) + 0.0
    return result


def drop_out(rows: FloatArray, spared: NDArray[np.bool_], rng: np.random.Generator) -> FloatArray:
    """The same rows with NaN where a sensor dropped out, never in a spared row."""
    result = rows.copy()
    columns = rng.permutation(rows.shape[1])[: len(DROPOUTS)]
    for column, length in zip(columns, DROPOUTS, strict=True):
        while True:
            begin = int(rng.integers(len(rows) - length))
            if not spared[begin : begin + length].any():
                break
        result[begin : begin + length, column] = np.nan
    return result
