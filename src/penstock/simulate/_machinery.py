"""The whole plant as it really is, before any sensor looks at it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from penstock._types import FloatArray
from penstock.simulate._dispatch import Operation, operate
from penstock.simulate._electrics import Electrics, run_electrics
from penstock.simulate._heat import Heat, warm_up
from penstock.simulate._hydraulics import Reservoir, WaterPath, fill_reservoir, run_water, wanted_power
from penstock.simulate._randomness import red_noise, stream
from penstock.simulate._surroundings import Surroundings, surroundings
from penstock.simulate._vibration import roughness, shake

UNITS = (1, 2)
_WEAR = {1: 1.0, 2: 1.06}  # two machines of one drawing are never alike


@dataclass(frozen=True, eq=False)
class Unit:
    """One turbine with its generator, bearings and transformer."""

    number: int
    operation: Operation
    water: WaterPath
    electrics: Electrics
    heat: Heat
    rough: FloatArray
    vibration: FloatArray


@dataclass(frozen=True, eq=False)
class Machinery:
    """Surroundings, reservoir and units, one value per step each."""

    around: Surroundings
    reservoir: Reservoir
    units: tuple[Unit, ...]
    cooling_pressure: FloatArray


def run_plant(times: pd.DatetimeIndex, seed: int) -> Machinery:
    """Let the plant run through the given times."""
    around = surroundings(times, seed)
    operations = {unit: operate(times, seed, unit) for unit in UNITS}
    wanted = {unit: _wanted(operations[unit], around, seed, unit) for unit in UNITS}
    reservoir = fill_reservoir(times, around, list(wanted.values()))
    units = tuple(_run_unit(unit, operations[unit], wanted[unit], reservoir, around, seed) for unit in UNITS)
    # More coolers on one main: less pressure for each.
    running = np.sum([unit.operation.rotation for unit in units], axis=0)
    pressure = 4.6 - 0.3 * running + 0.04 * red_noise(stream(seed, "cooling main"), len(times), hours=5)
    return Machinery(around, reservoir, units, pressure)


def _wanted(operation: Operation, around: Surroundings, seed: int, unit: int) -> FloatArray:
    unrest = 0.15 * red_noise(stream(seed, f"governor of unit {unit}"), len(around.frequency), hours=0.3)
    return wanted_power(operation, around.frequency, unrest)


def _run_unit(
    number: int, operation: Operation, wanted: FloatArray, reservoir: Reservoir, around: Surroundings, seed: int
) -> Unit:
    water = run_water(operation, reservoir, wanted)
    electrics = run_electrics(operation, water.power, around, seed, number)
    rough = roughness(operation, water.power)
    heat = warm_up(operation, water, electrics, around, wear=_WEAR[number], rough=rough)
    liveliness = red_noise(stream(seed, f"vibration of unit {number}"), len(wanted), hours=2.0)
    return Unit(number, operation, water, electrics, heat, rough, shake(operation, water.power, rough, liveliness))
