"""Variables that the sensors of each functional area read from the plant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from penstock._types import FloatArray
from penstock.simulate._plant import RATED_POWER, Machinery, Unit
from penstock.simulate._signals import STEP_HOURS, STEPS_PER_HOUR, delay, follow, red_noise, stream


@dataclass(frozen=True, eq=False)
class Reading:
    """One variable: its true values, and how its sensor sees them.

    `noise` is the standard deviation of what is random in it, in its own unit, and may change with time; `decimals` is
    the resolution; beyond `low` and `high` the sensor saturates.
    """

    name: str
    unit: str
    values: FloatArray
    noise: FloatArray | float
    decimals: int
    low: float = -np.inf
    high: float = np.inf


def temperature(name: str, values: FloatArray, noise: float = 0.4) -> Reading:
    return Reading(name, "°C", values, noise, decimals=1, low=-30, high=200)


def several_temperatures(
    name: str, base: FloatArray, rise: FloatArray, shares: tuple[float, ...], noise: float
) -> list[Reading]:
    """Sensors of one kind in several places, each with its share of the rise above what cools them."""
    width = len(str(len(shares)))
    return [
        temperature(f"{name}_{place:0{width}d}", base + share * rise, noise) for place, share in enumerate(shares, 1)
    ]


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
    """Return the readings of the governor: what moves the guide vanes, and its set points."""
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


_HV_PHASES = (1.0, 1.003, 0.996)
_RATIO = 13.8 / 226


def transformer_readings(plant: Machinery, unit: Unit) -> list[Reading]:
    """The transformer that lifts 13.8 kV to the grid."""
    heat = unit.heat
    current = unit.electrics.current * _RATIO
    # The tap is moved with the set point of the voltage, every other week at most.
    tap = 9 + np.round(10 * (unit.electrics.setpoint - 13.8))
    hydrogen = 18 + 0.12 * (heat.top_oil - 40) + 3 * unit.number
    return [
        temperature("transformer_top_oil_temperature", heat.top_oil, 0.4),
        temperature("transformer_bottom_oil_temperature", heat.bottom_oil, 0.4),
        temperature("transformer_hv_winding_temperature", heat.hv_winding, 0.5),
        temperature("transformer_lv_winding_temperature", heat.lv_winding, 0.5),
        Reading("transformer_oil_level", "%", 48 + 0.45 * (heat.top_oil - 20), 0.4, 1, low=0, high=100),
        Reading("transformer_dissolved_hydrogen", "ppm", hydrogen, 0.8, 0, low=0, high=2000),
        Reading("transformer_tap_position", "1", tap, 0.0, 0),
        Reading("transformer_fan_groups", "1", heat.fans, 0.0, 0),
        *(
            Reading(f"transformer_hv_current_l{phase}", "A", share * current, 0.006 * current, 1, low=0)
            for phase, share in enumerate(_HV_PHASES, 1)
        ),
    ]


def grid_readings(plant: Machinery) -> list[Reading]:
    """Where the power goes, and the little that the plant keeps for itself."""
    running = np.sum([unit.operation.rotation for unit in plant.units], axis=0)
    service = 120 + 90 * running + 4 * np.maximum(0.0, 15 - plant.around.air)  # A: auxiliaries and heating
    return [
        Reading("busbar_voltage", "kV", plant.around.busbar, 0.15, 1),
        Reading("station_service_voltage", "V", 400 * plant.around.busbar / 226 - 0.01 * service, 0.8, 0),
        Reading("station_service_current", "A", service, 5.0, 0, low=0),
    ]


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


# Samples per drop-out of a sensor: always 240 readings in all, in twelve different sensors.
DROPOUTS = (3, 4, 6, 8, 10, 12, 15, 20, 25, 32, 45, 60)
# Shares of the standard deviation: 0.6² + 0.75² + 0.28² = 1.
_SHARED, _OWN, _DRIFT = 0.6, 0.75, 0.28
_SHARED_HOURS, _OWN_HOURS = 1.5, 0.4
_DRIFT_DAYS = 40
AREAS = ("turbine", "generator", "bearing", "transformer", "cooling")
_UNIT_READINGS = (
    ("turbine", governor_readings), ("turbine", water_readings),
    ("generator", power_readings), ("generator", body_readings),
    ("bearing", thrust_readings), ("bearing", guide_readings),
    ("transformer", transformer_readings), ("cooling", cooler_readings),
)  # fmt: skip
_PLANT_READINGS = (("turbine", river_readings), ("transformer", grid_readings), ("cooling", main_readings))


def read_plant(plant: Machinery) -> tuple[list[Reading], list[str]]:
    """Return all variables under their full names, and the area of each."""
    found = [
        (area, f"unit{unit.number}", reading)
        for unit in plant.units
        for area, of_unit in _UNIT_READINGS
        for reading in of_unit(plant, unit)
    ]
    found += [(area, "plant", reading) for area, of_plant in _PLANT_READINGS for reading in of_plant(plant)]
    return [replace(reading, name=f"{owner}_{reading.name}") for _, owner, reading in found], [a for a, _, _ in found]


def measure(readings: Sequence[Reading], cabinets: Sequence[str], seed: int) -> FloatArray:
    """Return readings with noise, steps × variables. Sensors of one cabinet share a part of it; all drift a little."""
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
    """Return noise that changes within weeks: drawn once a day and interpolated between days."""
    per_day = 24 * STEPS_PER_HOUR
    daily = red_noise(rng, (n // per_day + 2, p), _DRIFT_DAYS * STEP_HOURS)  # a step of it is a day
    day, past = np.divmod(np.arange(n), per_day)
    share = (past / per_day)[:, None]
    result: FloatArray = (1 - share) * daily[day] + share * daily[day + 1]
    return result


def digitise(values: FloatArray, readings: Sequence[Reading]) -> FloatArray:
    """Limit readings to the range of each sensor and round them to its resolution."""
    result = np.clip(values, [reading.low for reading in readings], [reading.high for reading in readings])
    for column, reading in enumerate(readings):
        # Adding zero turns the −0.0 of a rounded negative into 0.0.
        result[:, column] = np.round(result[:, column], reading.decimals) + 0.0
    return result


def drop_out(rows: FloatArray, spared: NDArray[np.bool_], rng: np.random.Generator) -> FloatArray:
    """Return the rows with NaN where a sensor dropped out, never in a spared row."""
    result = rows.copy()
    columns = rng.permutation(rows.shape[1])[: len(DROPOUTS)]
    for column, length in zip(columns, DROPOUTS, strict=True):
        while True:
            begin = int(rng.integers(len(rows) - length))
            if not spared[begin : begin + length].any():
                break
        result[begin : begin + length, column] = np.nan
    return result
