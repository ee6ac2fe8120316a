"""Readings of the area "bearing": thrust bearing and the two guide bearings."""

from __future__ import annotations

import numpy as np

from penstock._types import FloatArray
from penstock.simulate._dispatch import RATED_POWER
from penstock.simulate._machinery import Machinery, Unit
from penstock.simulate._readings import Reading, several_temperatures, temperature

_THRUST_PADS = (0.97, 1.02, 1.0, 1.05, 0.98, 0.96)
_GUIDE_PADS = (0.97, 1.04, 1.0)


def thrust_readings(plant: Machinery, unit: Unit) -> list[Reading]:
    """The bearing that carries rotor, runner and the push of the water."""
    oil, turning = unit.heat.thrust_oil, unit.operation.rotation
    push = np.maximum(0.0, unit.water.power) / RATED_POWER
    changing = 4 * turning * (1 - turning)  # the shaft is lifted by oil while it starts and stops
    return [
        *several_temperatures("thrust_pad_temperature", oil, unit.heat.thrust_pad - oil, _THRUST_PADS, noise=0.4),
        temperature("thrust_oil_temperature", oil, 0.3),
        Reading("thrust_oil_level", "mm", _level(420, oil, turning), 1.5, 0, low=0, high=800),
        Reading("thrust_oil_flow", "l/min", 240 * turning * (0.9 + 0.003 * oil), 3 * turning, 0, low=0, high=400),
        Reading("lift_oil_pressure", "bar", 2 + 118 * changing, 0.3 + 3 * changing, 1, low=0, high=200),
        Reading("axial_shaft_displacement", "mm", 0.1 + 0.5 * push + 0.12 * turning, 0.012, 2, low=-2, high=2),
    ]


def guide_readings(plant: Machinery, unit: Unit) -> list[Reading]:
    """The bearings that keep the shaft upright: above at the generator, below at the turbine."""
    heat, turning = unit.heat, unit.operation.rotation
    upper = _guide(
        "generator_guide_bearing", heat.generator_guide_oil, heat.generator_guide, 0.55 * unit.vibration, turning
    )
    lower = _guide("turbine_guide_bearing", heat.turbine_guide_oil, heat.turbine_guide, 0.8 * unit.vibration, turning)
    return upper + lower


def _guide(name: str, oil: FloatArray, pads: FloatArray, vibration: FloatArray, turning: FloatArray) -> list[Reading]:
    noise = 0.01 + 0.06 * vibration
    return [
        *several_temperatures(f"{name}_temperature", oil, pads - oil, _GUIDE_PADS, noise=0.4),
        temperature(f"{name}_oil_temperature", oil, 0.3),
        Reading(f"{name}_oil_level", "mm", _level(260, oil, turning), 1.5, 0, low=0, high=500),
        Reading(f"{name}_vibration_x", "mm/s", vibration, noise, 2, low=0, high=10),
        Reading(f"{name}_vibration_y", "mm/s", 1.1 * vibration, noise, 2, low=0, high=10),
    ]


def _level(at_rest: float, oil: FloatArray, turning: FloatArray) -> FloatArray:
    """Warm oil takes more room; turning throws some of it up."""
    return at_rest + 0.5 * (oil - 25) - 8 * turning
