"""Water: levels, heads, discharge, guide vanes, and the power they give: P = ρ g Q H η."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from penstock._types import FloatArray
from penstock.simulate._dispatch import RATED_POWER, Operation
from penstock.simulate._lag import follow
from penstock.simulate._surroundings import Surroundings, season

RHO_G = 998.0 * 9.81  # N/m³
GENERATOR_EFFICIENCY = 0.98
_FRICTION_POWER = 0.4  # MW: bearings and windage at full speed
_PENSTOCK_LOSS = 9e-4  # m of head per (m³/s)²
_DESIGN_HEAD = 117.0  # m
_FULL_DISCHARGE = 61.0  # m³/s at design head, guide vanes fully open
_VANE_CURVE = 1.15  # opening grows faster than discharge
_DROOP = RATED_POWER / (0.05 * 50)  # MW per Hz
_LOW_RESERVOIR = 309.2  # m above the sea
_CONDENSER_POWER = -1.8  # MW, drawn from the grid


@dataclass(frozen=True, eq=False)
class Reservoir:
    """Levels in m above the sea, and how far the guide vanes may open (%) at such a level."""

    headwater: FloatArray
    tailwater: FloatArray
    opening_limit: FloatArray


@dataclass(frozen=True, eq=False)
class WaterPath:
    """One unit: net head in m, discharge in m³/s, guide vanes in %, power at the terminals in MW."""

    net_head: FloatArray
    discharge: FloatArray
    opening: FloatArray
    power: FloatArray


def efficiency(discharge: FloatArray) -> FloatArray:
    """The hill of a Francis turbine: best at 85 % of full discharge.

    >>> efficiency(np.array([0.3, 0.85, 1.0]) * 61.0).round(3).tolist()
    [0.82, 0.935, 0.926]
    """
    return 0.935 - 0.38 * (discharge / _FULL_DISCHARGE - 0.85) ** 2


def wanted_power(operation: Operation, frequency: FloatArray, unrest: FloatArray) -> FloatArray:
    """Set point and frequency control in MW, as a ten-minute mean: a new set point is reached within some minutes."""
    before = np.concatenate([operation.setpoint[:1], operation.setpoint[:-1]])
    both = (before > 0) & (operation.setpoint > 0)
    level = np.where(both, 0.75 * operation.setpoint + 0.25 * before, np.maximum(operation.setpoint, before))
    return operation.connected * np.maximum(0.0, level - _DROOP * (frequency - 50) + unrest)


def fill_reservoir(times: pd.DatetimeIndex, around: Surroundings, wanted: Sequence[FloatArray]) -> Reservoir:
    """The reservoir is drawn down by day and towards winter; the tailwater rises with what flows into it."""
    turbined = np.sum([discharge_for(power, np.full(len(power), _DESIGN_HEAD)) for power in wanted], axis=0)
    surplus = around.inflow - around.spill - turbined
    headwater = 311 + 2 * season(times, peak=190) + follow(0.03 * surplus, hours=30.0)
    tailwater = 190 + follow(0.012 * turbined + 0.03 * around.spill, hours=0.4)
    # A low reservoir must not suck air: the operators take the limit back when it has been low for days.
    limit = np.where(follow(headwater, hours=240.0) < _LOW_RESERVOIR, 96.0, 100.0)
    return Reservoir(headwater, tailwater, limit)


def discharge_for(power: FloatArray, head: FloatArray) -> FloatArray:
    """The discharge (m³/s) that gives so much shaft power (MW): Q = P / (ρ g H η(Q)), by repetition."""
    discharge = power * 1e6 / (RHO_G * head * 0.9)
    for _ in range(6):
        discharge = power * 1e6 / (RHO_G * head * efficiency(discharge))
    return discharge


def run_water(operation: Operation, reservoir: Reservoir, wanted: FloatArray) -> WaterPath:
    """What the water gives: the power that is wanted, unless the guide vanes are at their limit (saturation)."""
    driven = operation.rotation * ~operation.condenser
    shaft = np.where(driven > 0, wanted / GENERATOR_EFFICIENCY + _FRICTION_POWER * driven, 0.0)
    gross = reservoir.headwater - reservoir.tailwater
    discharge = np.zeros(len(shaft))
    for _ in range(4):
        head = gross - _PENSTOCK_LOSS * discharge**2
        fully_open = _FULL_DISCHARGE * np.sqrt(head / _DESIGN_HEAD)
        most = fully_open * (reservoir.opening_limit / 100) ** (1 / _VANE_CURVE)
        discharge = np.minimum(discharge_for(shaft, head), most)
    opening = 100 * (discharge / fully_open) ** _VANE_CURVE
    given = RHO_G * discharge * head * efficiency(discharge) / 1e6
    power = np.where(driven > 0, GENERATOR_EFFICIENCY * (given - _FRICTION_POWER * driven), 0.0)
    power = np.where(operation.condenser, _CONDENSER_POWER * operation.connected, power)
    return WaterPath(head, discharge, opening, power)
