"""Readings of the area "generator": power, voltage, current, excitation and its temperatures."""

from __future__ import annotations

import numpy as np

from penstock._types import FloatArray
from penstock.simulate._machinery import Machinery, Unit
from penstock.simulate._readings import Reading, several_temperatures, temperature

# How hot each place gets, relative to the mean: slots near the coolers stay cooler.
_SLOTS = (0.96, 1.02, 1.05, 0.98, 0.94, 1.01, 1.04, 1.0, 0.95, 1.03, 1.06, 0.97)
_CORE_PLACES = (0.97, 1.03, 1.0, 1.05)
_AIR_PLACES = (0.98, 1.02)
_PHASES = (1.0, 0.997, 1.004)


def power_readings(plant: Machinery, unit: Unit) -> list[Reading]:
    """What the generator gives to the grid."""
    electrics, power, on = unit.electrics, unit.water.power, unit.electrics.excited
    apparent = np.hypot(power, electrics.reactive)
    factor = np.divide(power, apparent, out=np.zeros_like(power), where=apparent > 0.5)
    resistance = 0.16 * (1 + 0.0039 * (unit.heat.rotor - 75))
    field_noise = 0.006 * electrics.field_current
    return [
        Reading("active_power", "MW", power, 0.08 * on, 2, low=-10, high=75),
        Reading("reactive_power", "Mvar", electrics.reactive, 0.15 * on, 2, low=-60, high=60),
        Reading("power_factor", "1", factor, 0.002 * on, 3, low=-1, high=1),
        Reading("frequency", "Hz", plant.around.frequency * unit.operation.rotation, 0.002 * on, 3, low=0, high=60),
        Reading("voltage_setpoint", "kV", electrics.setpoint, 0.0, 1),
        *_three_phases("stator_voltage", "kV", electrics.voltage, 0.003 * electrics.voltage, decimals=2),
        *_three_phases("stator_current", "A", electrics.current, 0.006 * electrics.current, decimals=0),
        Reading("field_current", "A", electrics.field_current, field_noise, 0, low=0, high=1500),
        Reading("field_voltage", "V", electrics.field_current * resistance, 0.15 * field_noise, 1, low=0, high=300),
    ]


def body_readings(plant: Machinery, unit: Unit) -> list[Reading]:
    """How warm the generator gets, and how it shakes."""
    heat, vibration = unit.heat, unit.vibration
    air = heat.cold_air
    magnetic = 0.4 * unit.electrics.excited + 0.3 * vibration  # the field pulls at twice the grid frequency
    return [
        temperature("rotor_temperature", heat.rotor, 0.7),
        temperature("excitation_transformer_temperature", heat.exciter, 0.5),
        *several_temperatures("stator_winding_temperature", air, heat.winding - air, _SLOTS, noise=0.6),
        *several_temperatures("stator_core_temperature", air, heat.core - air, _CORE_PLACES, noise=0.5),
        *several_temperatures("cold_air_temperature", heat.water, air - heat.water, _AIR_PLACES, noise=0.4),
        *several_temperatures("hot_air_temperature", air, heat.hot_air - air, _AIR_PLACES, noise=0.4),
        Reading("stator_frame_vibration", "mm/s", magnetic, 0.01 + 0.05 * magnetic, 2, low=0, high=10),
        Reading("end_winding_vibration", "µm", 60 * magnetic, 0.5 + 3 * magnetic, 0, low=0, high=400),
    ]


def _three_phases(name: str, unit: str, values: FloatArray, noise: FloatArray, decimals: int) -> list[Reading]:
    return [
        Reading(f"{name}_l{phase}", unit, share * values, noise, decimals, low=0)
        for phase, share in enumerate(_PHASES, 1)
    ]
