"""Readings of the area "cooling": water of the units and of the main, air around them."""

from __future__ import annotations

import numpy as np

from penstock._types import FloatArray
from penstock.simulate._lag import delay
from penstock.simulate._machinery import Machinery, Unit
from penstock.simulate._readings import Reading, temperature

_NOMINAL_PRESSURE = 4.0  # bar


def cooler_readings(plant: Machinery, unit: Unit) -> list[Reading]:
    """The coolers of one unit. Their outlets show what happened one sample ago."""
    heat, turning = unit.heat, unit.operation.rotation
    valve = _valve(unit)
    push = np.sqrt(plant.cooling_pressure / _NOMINAL_PRESSURE)
    air_flow, oil_flow = 5.2 * valve * push, 900 * turning * push
    warmed = heat.hot_air - heat.cold_air
    return [
        Reading("generator_cooling_valve_position", "%", valve, 0.3 * turning, 0, low=0, high=100),
        Reading("generator_cooling_water_flow", "l/min", air_flow * 10, 0.12 * air_flow, 0, low=0, high=6000),
        temperature("generator_cooling_outlet_temperature", delay(heat.water + 0.35 * warmed, 1), 0.3),
        Reading("bearing_cooling_water_flow", "l/min", oil_flow, 0.012 * oil_flow, 0, low=0, high=1500),
        temperature("thrust_cooler_outlet_temperature", delay(_outlet(heat.water, heat.thrust_oil), 1), 0.3),
        temperature(
            "turbine_bearing_cooler_outlet_temperature", delay(_outlet(heat.water, heat.turbine_guide_oil), 1), 0.3
        ),
    ]


def main_readings(plant: Machinery) -> list[Reading]:
    """The cooling main that both units share, and the air around them."""
    running = np.sum([unit.operation.rotation for unit in plant.units], axis=0)
    valves = np.sum([_valve(unit) for unit in plant.units], axis=0)
    flow = np.sqrt(plant.cooling_pressure / _NOMINAL_PRESSURE) * (0.9 * running + 0.052 * valves) + 0.3
    return [
        temperature("river_water_temperature", plant.around.river, 0.15),
        temperature("outside_air_temperature", plant.around.air, 0.3),
        temperature("machine_hall_temperature", plant.around.hall, 0.3),
        Reading("cooling_main_pressure", "bar", plant.cooling_pressure, 0.04, 2, low=0, high=10),
        Reading("cooling_main_flow", "m³/min", flow, 0.012 * flow, 2, low=0, high=20),
        Reading("cooling_filter_difference", "bar", 0.08 + 0.003 * flow**2, 0.012, 2, low=0, high=1),
        Reading("cooling_pump_current", "A", 38 + 6 * flow, 0.8, 1, low=0, high=200),
    ]


def _valve(unit: Unit) -> FloatArray:
    """A regulator opens the valve for warm air, from a least position up to fully open (saturation)."""
    return unit.operation.rotation * np.clip(35 + 2.6 * (unit.heat.hot_air - 28), 35, 100)


def _outlet(water: FloatArray, oil: FloatArray) -> FloatArray:
    return water + 0.3 * (oil - water)
