"""Readings of the area "turbine": water, guide vanes and governor."""

from __future__ import annotations

import numpy as np

from penstock.simulate._lag import delay, follow
from penstock.simulate._machinery import Machinery, Unit
from penstock.simulate._readings import Reading, temperature

_BAR_PER_METRE = 0.0979
_RATED_SPEED = 250.0  # rpm: 12 pairs of poles at 50 Hz


def water_readings(plant: Machinery, unit: Unit) -> list[Reading]:
    """What the water does in one unit."""
    water, operation = unit.water, unit.operation
    turning = operation.rotation
    filled = np.where(operation.condenser, 0.0, np.minimum(1.0, 2 * turning))
    static = _BAR_PER_METRE * (plant.reservoir.headwater - 185)
    penstock = static - 3.5e-4 * water.discharge**2
    spiral = filled * (penstock - 0.1) + (1 - filled) * 1.2
    cover = np.where(operation.condenser, 3.2, 0.22 * spiral + 0.3 * unit.rough)
    draft = 1 + _BAR_PER_METRE * (plant.reservoir.tailwater - 189) - 6e-5 * water.discharge**2
    pulsation = turning * (0.6 + 0.02 * water.discharge) + 9 * unit.rough
    return [
        Reading("discharge", "m³/s", water.discharge, 0.012 * water.discharge, 1, low=0, high=70),
        Reading("net_head", "m", water.net_head, 0.08, 2),
        Reading("inlet_valve_position", "%", 100 * filled, 0.0, 0, low=0, high=100),
        Reading("penstock_pressure", "bar", penstock, 0.02, 2, low=0, high=16),
        Reading("spiral_case_pressure", "bar", spiral, 0.03, 2, low=0, high=16),
        Reading("head_cover_pressure", "bar", cover, 0.03, 2, low=0, high=10),
        Reading("draft_tube_pressure", "bar", draft, 0.012, 3, low=0, high=4),
        Reading("draft_tube_pressure_pulsation", "kPa", pulsation, 0.02 + 0.07 * pulsation, 2, low=0, high=25),
        Reading("head_cover_vibration", "mm/s", unit.vibration, 0.01 + 0.06 * unit.vibration, 2, low=0, high=10),
        Reading("shaft_seal_water_flow", "l/min", 5 + 55 * turning, 0.5 + turning, 1, low=0, high=100),
        Reading("shaft_seal_leakage", "l/min", 2 + 6 * turning + 0.8 * cover, 0.25, 1, low=0, high=40),
        temperature("shaft_seal_temperature", follow(unit.heat.water + 2 + 9 * turning, hours=0.2)),
    ]


def governor_readings(plant: Machinery, unit: Unit) -> list[Reading]:
    """What moves the guide vanes, and what it is told to do."""
    opening, operation = unit.water.opening, unit.operation
    turning, oil = operation.rotation, unit.heat.governor_oil
    moving = np.abs(opening - delay(opening, 1))
    speed = _RATED_SPEED * turning * plant.around.frequency / 50
    servo = 0.25 * turning
    return [
        Reading("power_setpoint", "MW", operation.setpoint, 0.0, 0),
        Reading("speed_setpoint", "rpm", np.full(len(opening), _RATED_SPEED), 0.0, 0),
        Reading("opening_limit", "%", plant.reservoir.opening_limit, 0.0, 0),
        Reading("speed", "rpm", speed, 0.04 * turning, 1, low=0, high=400),
        Reading("guide_vane_opening", "%", opening, 0.5 * turning, 1, low=0, high=100),
        Reading("guide_vane_servo_stroke", "mm", 4.2 * opening, 2 * turning, 0, low=0, high=420),
        Reading("servo_opening_pressure", "bar", 8 + 22 * turning + 0.16 * opening, 0.2 + servo, 1, low=0, high=80),
        Reading("servo_closing_pressure", "bar", 30 - 6 * turning - 0.07 * opening, 0.2 + servo, 1, low=0, high=80),
        Reading("governor_oil_pressure", "bar", 62.5 - 0.04 * moving, 0.4, 1, low=0, high=80),
        Reading("governor_oil_level", "mm", 640 + 0.9 * (oil - 40) - 0.25 * opening, 2.0, 0, low=0, high=1000),
        temperature("governor_oil_temperature", oil, 0.3),
        Reading("governor_pump_current", "A", 6 + 5 * turning + 0.6 * moving, 0.5, 1, low=0, high=80),
    ]


def river_readings(plant: Machinery) -> list[Reading]:
    """Levels and flows of the plant as a whole."""
    head, tail, around = plant.reservoir.headwater, plant.reservoir.tailwater, plant.around
    used = np.sum([unit.water.discharge for unit in plant.units], axis=0)
    return [
        Reading("headwater_level", "m", head, 0.015, 2),
        Reading("tailwater_level", "m", tail, 0.015, 2),
        Reading("gross_head", "m", head - tail, 0.02, 2),
        Reading("reservoir_inflow", "m³/s", around.inflow, 2.0, 0, low=0),
        Reading("spillway_flow", "m³/s", around.spill, 0.01 * around.spill, 1, low=0),
        Reading("trash_rack_difference", "m", 0.02 + 1.2e-5 * used**2, 0.008, 2, low=0, high=2),
    ]
