"""What the plant does not choose: season, weather, river and grid."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from penstock._types import FloatArray
from penstock.simulate._calendar import STEPS_PER_HOUR, within
from penstock.simulate._lag import follow
from penstock.simulate._look_alikes import FLOOD
from penstock.simulate._randomness import red_noise, stream

_FLOOD_WATER = 190.0  # m³/s on top of the river
_SPILL_ABOVE = 130.0  # m³/s: what the reservoir takes
_FALLING = pd.Timedelta(hours=1.5)  # the rain ends before the flood does


@dataclass(frozen=True, eq=False)
class Surroundings:
    """One value per step: °C, m³/s, Hz and kV."""

    air: FloatArray
    hall: FloatArray
    river: FloatArray
    inflow: FloatArray
    spill: FloatArray
    frequency: FloatArray
    busbar: FloatArray


def surroundings(times: pd.DatetimeIndex, seed: int) -> Surroundings:
    """Weather, river and grid of the simulated months; the flood of the look-alike is part of them."""
    n = len(times)
    hour = hour_of_day(times)

    def chance(name: str, hours: float) -> FloatArray:
        return red_noise(stream(seed, name), n, hours)

    daily = np.cos(2 * np.pi * (hour - 15) / 24)
    air = 9 + 11 * season(times, peak=205) + (3 + season(times, peak=180)) * daily + 3 * chance("air", 36)
    river = 10.5 + 7.5 * season(times, peak=225) + 0.8 * chance("river", 120)
    rain = within(times, [(FLOOD[0], FLOOD[1] - _FALLING)])
    flood = follow(np.where(rain, _FLOOD_WATER, 0.0), hours=0.5)
    inflow = 70 * np.exp(0.4 * season(times, peak=170) + 0.12 * chance("inflow", 144)) + flood
    return Surroundings(
        air=air,
        hall=follow(19 + 0.35 * (air - 9), hours=6.0),
        river=river,
        inflow=inflow,
        spill=np.maximum(0.0, inflow - _SPILL_ABOVE),
        frequency=50 + 0.02 * chance("frequency", 0.4),
        busbar=226 + 1.5 * np.cos(2 * np.pi * (hour - 3) / 24) + 1.2 * chance("busbar", 4),
    )


def hour_of_day(times: pd.DatetimeIndex) -> FloatArray:
    return np.asarray(times.hour, dtype=np.float64) + np.asarray(times.minute) / (10 * STEPS_PER_HOUR)


def season(times: pd.DatetimeIndex, peak: int) -> FloatArray:
    """A yearly wave between −1 and 1 that is highest on day `peak` of the year.

    >>> season(pd.DatetimeIndex(["2015-07-14 00:00"]), peak=195).tolist()
    [1.0]
    """
    day = np.asarray(times.day_of_year, dtype=np.float64) + hour_of_day(times) / 24
    return np.cos(2 * np.pi * (day - peak) / 365.25)
