"""Times of the record, named random streams and first-order lags."""

from __future__ import annotations

from collections.abc import Sequence
from zlib import crc32

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from penstock._types import FloatArray

STEP_HOURS = 1 / 6
STEPS_PER_HOUR = 6
N_ROWS = 9_219

_FIRST, _LAST = "2015-07-01 00:00", "2016-01-31 23:50"
# Simulated but never recorded, so that reservoir, oil and iron have forgotten where they started.
_SPIN_UP = pd.Timedelta(days=7)
# Whole days, first and last: 67 in all. The paper's 9,219 samples are 64 days of its seven months.
_RECORDED = (
    ("2015-07-01", "2015-07-10"), ("2015-08-08", "2015-08-13"), ("2015-09-10", "2015-09-19"),
    ("2015-10-01", "2015-10-06"), ("2015-10-11", "2015-10-16"), ("2015-11-16", "2015-11-21"),
    ("2015-12-08", "2015-12-14"), ("2016-01-01", "2016-01-05"), ("2016-01-07", "2016-01-14"),
    ("2016-01-29", "2016-01-31"),
)  # fmt: skip
_LONGEST_GAP = 36  # samples, six hours

Span = tuple[pd.Timestamp, pd.Timestamp]


def simulated_times() -> pd.DatetimeIndex:
    """Every ten minutes of the seven months, and of the week before them."""
    return pd.date_range(pd.Timestamp(_FIRST) - _SPIN_UP, _LAST, freq="10min", name="time")


def recorded(times: pd.DatetimeIndex, rng: np.random.Generator, protected: Sequence[Span]) -> NDArray[np.bool_]:
    """Which samples are in the table: `N_ROWS` of them, with short gaps by chance that spare the protected spans."""
    first, last = pd.Timestamp(_FIRST), times[-1]
    kept = within(times, [(pd.Timestamp(a), pd.Timestamp(b) + pd.Timedelta("23h50min")) for a, b in _RECORDED])
    # The first and the last sample stay, so that the table spans the seven months whatever the seed.
    spared = within(times, [*protected, (first, first), (last, last)])
    surplus = int(kept.sum()) - N_ROWS
    while surplus > 0:
        begin = int(rng.integers(len(times)))
        gap = slice(begin, begin + min(int(rng.integers(1, _LONGEST_GAP + 1)), surplus))
        if not spared[gap].any():
            surplus -= int(kept[gap].sum())
            kept[gap] = False
    return kept


def within(times: pd.DatetimeIndex, spans: Sequence[Span]) -> NDArray[np.bool_]:
    """Which samples lie in one of the spans, ends included."""
    inside = np.zeros(len(times), dtype=np.bool_)
    for start, end in spans:
        inside |= np.asarray((times >= start) & (times <= end))
    return inside


def stream(seed: int, name: str) -> np.random.Generator:
    """The random numbers of one named cause.

    >>> bool(stream(0, "weather").random() == stream(0, "weather").random())
    True
    """
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, crc32(name.encode())])))


def red_noise(rng: np.random.Generator, shape: int | tuple[int, int], hours: float) -> FloatArray:
    """Noise with mean 0 and variance 1 along the first axis whose correlation falls to 1/e within so many hours.

    >>> noise = red_noise(stream(0, "example"), 10_000, hours=1.0)
    >>> round(float(np.corrcoef(noise[6:], noise[:-6])[0, 1]), 1)
    0.4
    """
    memory = float(np.exp(-STEP_HOURS / hours))
    noise = rng.standard_normal(shape)
    noise[1:] *= np.sqrt(1 - memory**2)
    for now in range(1, len(noise)):
        noise[now] += memory * noise[now - 1]
    return noise


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
