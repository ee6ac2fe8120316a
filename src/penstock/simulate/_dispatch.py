"""What the units are asked to do: the usual plan of a peaking plant, and orders for certain hours."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from penstock._types import FloatArray
from penstock.simulate._calendar import STEPS_PER_HOUR, within
from penstock.simulate._look_alikes import CONDENSER, INDEX_TEST
from penstock.simulate._randomness import red_noise, stream
from penstock.simulate._surroundings import hour_of_day, season

RATED_POWER = 60.0  # MW, each unit
_ROUGH_ZONE = (20.0, 32.0)  # MW: where the draft-tube vortex shakes the machine, and dispatch does not stay
_LEAST_POWER = 14.0
_TEST_STEPS = (14, 18, 22, 26, 30, 34, 40, 45, 50, 55, 60)  # MW, ten minutes each

# Every fault needs its context (a machine that runs, or stands) whatever the seed. These are ordinary loads, and the
# plan is the same with and without the faults.
_ORDERS = (
    (1, "2015-07-04 09:30", "2015-07-04 19:30", 52),
    (1, "2015-07-07 02:00", "2015-07-07 03:40", 40),
    (1, "2015-07-07 06:10", "2015-07-07 08:00", 40),
    (1, "2015-07-08 11:00", "2015-07-08 20:00", 60),
    (2, "2015-07-08 11:00", "2015-07-08 20:00", 60),
    (2, "2015-09-13 17:00", "2015-09-13 20:40", 44),
    (1, "2015-09-14 06:30", "2015-09-14 09:30", 38),
    (2, "2015-09-14 07:00", "2015-09-14 10:30", 42),
    (2, "2015-09-14 10:40", "2015-09-14 15:00", 0),
    (2, "2015-09-17 03:30", "2015-09-17 03:50", 14),
    (2, "2015-09-17 05:50", "2015-09-17 07:00", 48),
    (2, "2015-10-03 17:00", "2015-10-04 00:40", 48),
    (2, "2015-10-04 00:50", "2015-10-04 17:20", 0),
    (2, "2015-10-04 17:30", "2015-10-04 21:50", 44),
    (1, "2015-10-04 22:00", "2015-10-05 06:00", 42),
    (2, "2015-10-04 22:00", "2015-10-05 06:00", 36),
    (1, "2015-10-13 15:30", "2015-10-13 19:00", 40),
    (1, "2015-10-14 07:30", "2015-10-14 11:30", 38),
    (2, "2015-10-14 19:00", "2015-10-14 23:00", 36),
    (1, "2016-01-02 20:00", "2016-01-02 23:00", 46),
    (2, "2016-01-09 12:00", "2016-01-09 18:30", 45),
    (1, "2016-01-12 09:30", "2016-01-12 13:30", 18),
)


@dataclass(frozen=True, eq=False)
class Operation:
    """What one unit does: its set point (MW), and the shares of each ten minutes when it turns and is on the grid."""

    setpoint: FloatArray
    rotation: FloatArray
    connected: FloatArray
    condenser: NDArray[np.bool_]


def operate(times: pd.DatetimeIndex, seed: int, unit: int) -> Operation:
    """The operation of one unit over the simulated months."""
    setpoint = _usual_plan(times, seed, unit)
    for ordered_unit, start, end, megawatts in _ORDERS:
        if ordered_unit == unit:
            setpoint[within(times, [(pd.Timestamp(start), pd.Timestamp(end))])] = megawatts
    condenser = np.zeros(len(times), dtype=np.bool_)
    if unit == 1:
        condenser = within(times, [CONDENSER])
        setpoint[condenser] = 0.0
    else:
        setpoint[within(times, [INDEX_TEST])] = _TEST_STEPS
    return _started_and_stopped(setpoint, condenser, stream(seed, f"starts of unit {unit}"))


def _usual_plan(times: pd.DatetimeIndex, seed: int, unit: int) -> FloatArray:
    """A set point for every hour in MW, 0 where the unit stands still; more on winter days, less at week-ends."""
    hour, weekend = hour_of_day(times), np.asarray(times.day_of_week) >= 5
    peaks = np.exp(-(((hour - 8.5) / 2.5) ** 2)) + np.exp(-(((hour - 19) / 2.5) ** 2))
    share = 0.62 + 0.24 * peaks - 0.08 * weekend + 0.06 * season(times, peak=15) - 0.05 * (unit - 1)
    share += 0.1 * red_noise(stream(seed, f"load of unit {unit}"), len(times), hours=8)
    start_of_hour = np.arange(len(times)) // STEPS_PER_HOUR * STEPS_PER_HOUR
    megawatts = np.round(np.clip(RATED_POWER * share, _LEAST_POWER, RATED_POWER))[start_of_hour]
    low, high = _ROUGH_ZONE
    rough = (megawatts > low) & (megawatts < high)
    megawatts[rough] = np.where(megawatts[rough] < (low + high) / 2, low, high)
    running = _runs_at_base(times, seed) if unit == 1 else _runs_at_peaks(times, seed)
    return np.where(running, megawatts, 0.0)


def _runs_at_base(times: pd.DatetimeIndex, seed: int) -> NDArray[np.bool_]:
    """Unit 1 pauses in one night of five."""
    day, hour = _day_number(times), hour_of_day(times)
    draw = stream(seed, "nights of unit 1").random((day[-1] + 1, 3))[day]
    paused = (draw[:, 0] < 0.2) & (hour >= draw[:, 1]) & (hour < 4.5 + 1.5 * draw[:, 2])
    return ~paused


def _runs_at_peaks(times: pd.DatetimeIndex, seed: int) -> NDArray[np.bool_]:
    """Unit 2 runs by day, makes room for the sun on some noons, and helps on every second evening of a week-end."""
    day, hour, weekend = _day_number(times), hour_of_day(times), np.asarray(times.day_of_week) >= 5
    draw = stream(seed, "days of unit 2").random((day[-1] + 1, 6))[day]
    by_day = (hour >= 5.2 + 2 * draw[:, 0]) & (hour < 21 + 2.5 * draw[:, 1])
    at_noon = (draw[:, 2] < 0.25) & (hour >= 11 + draw[:, 3]) & (hour < 14 + 2 * draw[:, 4])
    in_the_evening = (draw[:, 5] < 0.5) & (hour >= 15 + 2 * draw[:, 0]) & (hour < 21 + 2.5 * draw[:, 1])
    return np.where(weekend, in_the_evening, by_day & ~at_noon)


def _started_and_stopped(setpoint: FloatArray, condenser: NDArray[np.bool_], rng: np.random.Generator) -> Operation:
    """A start takes minutes before the unit is on the grid; a stop lets it run down. Samples are ten-minute means."""
    on = (setpoint > 0) | condenser
    was_on = np.concatenate([[False], on[:-1]])
    starting, stopping = on & ~was_on, ~on & was_on
    rotation, connected = on.astype(np.float64), on.astype(np.float64)
    rotation[starting] = rng.uniform(0.4, 0.9, starting.sum())
    connected[starting] = rotation[starting] - 0.3
    rotation[stopping] = rng.uniform(0.2, 0.6, stopping.sum())
    connected[stopping] = 0.4 * rotation[stopping]
    return Operation(setpoint, rotation, connected, condenser)


def _day_number(times: pd.DatetimeIndex) -> NDArray[np.int64]:
    return np.asarray((times.normalize() - times[0].normalize()).days, dtype=np.int64)
