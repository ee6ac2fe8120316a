"""Sensors of each functional area: what they read from the plant, with noise, faults, limits and drop-outs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from penstock._types import BoolArray, FloatArray
from penstock.simulate._events import Event, within
from penstock.simulate._plant import RATED_POWER, PlantState, Unit, follow, red_noise, stream
from penstock.simulate._scenarios import STEP_HOURS, STEPS_PER_HOUR, Effect, numbered


@dataclass(frozen=True, eq=False)
class Reading:
    """One variable: its true values, and how its sensor sees them.

    `noise` is its standard deviation in the unit of the variable, and may change with time; `decimals` is the
    resolution; the sensor saturates at `low` and `high`.
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
    """Return sensors of one kind at several places, each with its share of the rise above the coolant."""
    places = zip(numbered(name, len(shares)), shares, strict=True)
    return [temperature(place, base + share * rise, noise) for place, share in places]


def delay(values: FloatArray, steps: int) -> FloatArray:
    """Return the values so many samples later.

    >>> delay(np.array([1.0, 2.0, 3.0]), 1).tolist()
    [1.0, 1.0, 2.0]
    """
    return np.concatenate([np.full(steps, values[0]), values[:-steps]])


_BAR_PER_METRE = 0.0979
_RATED_SPEED = 250.0  # rpm: 12 pairs of poles at 50 Hz


def water_readings(plant: PlantState, unit: Unit) -> list[Reading]:
    """Return discharge, head, pressures, vibration and shaft seal of one unit."""
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


def governor_readings(plant: PlantState, unit: Unit) -> list[Reading]:
    """Return set points, guide vanes and oil of the governor of one unit."""
    opening, operation = unit.water.opening, unit.operation
    turning, oil = operation.rotation, unit.heat.governor_oil
    moving = np.abs(opening - delay(opening, 1))
    speed = _RATED_SPEED * turning * plant.environment.frequency / 50
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


def river_readings(plant: PlantState) -> list[Reading]:
    """Return levels and flows of the plant as a whole."""
    head, tail, environment = plant.reservoir.headwater, plant.reservoir.tailwater, plant.environment
    used = np.sum([unit.water.discharge for unit in plant.units], axis=0)
    return [
        Reading("headwater_level", "m", head, 0.015, 2),
        Reading("tailwater_level", "m", tail, 0.015, 2),
        Reading("gross_head", "m", head - tail, 0.02, 2),
        Reading("reservoir_inflow", "m³/s", environment.inflow, 2.0, 0, low=0),
        Reading("spillway_flow", "m³/s", environment.spill, 0.01 * environment.spill, 1, low=0),
        Reading("trash_rack_difference", "m", 0.02 + 1.2e-5 * used**2, 0.008, 2, low=0, high=2),
    ]


# Rise of each place relative to the mean: slots near the coolers are cooler.
_SLOTS = (0.96, 1.02, 1.05, 0.98, 0.94, 1.01, 1.04, 1.0, 0.95, 1.03, 1.06, 0.97)
_CORE_PLACES = (0.97, 1.03, 1.0, 1.05)
_AIR_PLACES = (0.98, 1.02)
_PHASES = (1.0, 0.997, 1.004)


def power_readings(plant: PlantState, unit: Unit) -> list[Reading]:
    """Return power, voltages, currents and excitation of one unit."""
    electrics, power, on = unit.electrics, unit.water.power, unit.electrics.excited
    apparent = np.hypot(power, electrics.reactive)
    factor = np.divide(power, apparent, out=np.zeros_like(power), where=apparent > 0.5)
    resistance = 0.16 * (1 + 0.0039 * (unit.heat.rotor - 75))
    field_noise = 0.006 * electrics.field_current
    return [
        Reading("active_power", "MW", power, 0.08 * on, 2, low=-10, high=75),
        Reading("reactive_power", "Mvar", electrics.reactive, 0.15 * on, 2, low=-60, high=60),
        Reading("power_factor", "1", factor, 0.002 * on, 3, low=-1, high=1),
        Reading(
            "frequency", "Hz", plant.environment.frequency * unit.operation.rotation, 0.002 * on, 3, low=0, high=60
        ),
        Reading("voltage_setpoint", "kV", electrics.setpoint, 0.0, 1),
        *_three_phases("stator_voltage", "kV", electrics.voltage, 0.003 * electrics.voltage, decimals=2),
        *_three_phases("stator_current", "A", electrics.current, 0.006 * electrics.current, decimals=0),
        Reading("field_current", "A", electrics.field_current, field_noise, 0, low=0, high=1500),
        Reading("field_voltage", "V", electrics.field_current * resistance, 0.15 * field_noise, 1, low=0, high=300),
    ]


def body_readings(plant: PlantState, unit: Unit) -> list[Reading]:
    """Return temperatures and vibration of one generator."""
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


def thrust_readings(plant: PlantState, unit: Unit) -> list[Reading]:
    """Return the thrust bearing, which carries rotor, runner and the thrust of the water."""
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


def guide_readings(plant: PlantState, unit: Unit) -> list[Reading]:
    """Return the guide bearings of the shaft: above at the generator, below at the turbine."""
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
    """Return an oil level in mm: warm oil expands, turning throws some of it up."""
    return at_rest + 0.5 * (oil - 25) - 8 * turning


_HV_PHASES = (1.0, 1.003, 0.996)
_RATIO = 13.8 / 226


def transformer_readings(plant: PlantState, unit: Unit) -> list[Reading]:
    """Return the transformer of one unit, from 13.8 kV to the grid."""
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


def grid_readings(plant: PlantState) -> list[Reading]:
    """Return busbar and station service."""
    running = np.sum([unit.operation.rotation for unit in plant.units], axis=0)
    service = 120 + 90 * running + 4 * np.maximum(0.0, 15 - plant.environment.air)  # A: auxiliaries and heating
    return [
        Reading("busbar_voltage", "kV", plant.environment.busbar, 0.15, 1),
        Reading("station_service_voltage", "V", 400 * plant.environment.busbar / 226 - 0.01 * service, 0.8, 0),
        Reading("station_service_current", "A", service, 5.0, 0, low=0),
    ]


_NOMINAL_PRESSURE = 4.0  # bar


def cooler_readings(plant: PlantState, unit: Unit) -> list[Reading]:
    """Return the coolers of one unit; the outlets are one sample late."""
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


def main_readings(plant: PlantState) -> list[Reading]:
    """Return the cooling main that both units share, and temperatures of water and air."""
    running = np.sum([unit.operation.rotation for unit in plant.units], axis=0)
    valves = np.sum([_valve(unit) for unit in plant.units], axis=0)
    flow = np.sqrt(plant.cooling_pressure / _NOMINAL_PRESSURE) * (0.9 * running + 0.052 * valves) + 0.3
    return [
        temperature("river_water_temperature", plant.environment.river, 0.15),
        temperature("outside_air_temperature", plant.environment.air, 0.3),
        temperature("machine_hall_temperature", plant.environment.hall, 0.3),
        Reading("cooling_main_pressure", "bar", plant.cooling_pressure, 0.04, 2, low=0, high=10),
        Reading("cooling_main_flow", "m³/min", flow, 0.012 * flow, 2, low=0, high=20),
        Reading("cooling_filter_difference", "bar", 0.08 + 0.003 * flow**2, 0.012, 2, low=0, high=1),
        Reading("cooling_pump_current", "A", 38 + 6 * flow, 0.8, 1, low=0, high=200),
    ]


def _valve(unit: Unit) -> FloatArray:
    """Return the valve position: a regulator opens it for warm air, from 35 % to fully open (saturation)."""
    return unit.operation.rotation * np.clip(35 + 2.6 * (unit.heat.hot_air - 28), 35, 100)


def _outlet(water: FloatArray, oil: FloatArray) -> FloatArray:
    return water + 0.3 * (oil - water)


# Samples per drop-out of a sensor: 240 readings in all, in twelve different sensors.
_DROPOUTS = (3, 4, 6, 8, 10, 12, 15, 20, 25, 32, 45, 60)
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


def read_plant(plant: PlantState) -> tuple[list[Reading], list[str]]:
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


_JUMPS = (1.0, 0.3, -0.7, 1.0, 0.4, -1.0)  # of a loose contact, repeated


def inject(values: FloatArray, names: Sequence[str], times: pd.DatetimeIndex, events: Sequence[Event]) -> FloatArray:
    """Return readings with the effects of events: a changed copy of steps × variables."""
    result = values.copy()
    number = {name: column for column, name in enumerate(names)}
    for event in events:
        for effect in event.effects:
            rows = np.flatnonzero(within(times, [(effect.begin(event.start), event.end)]))
            strength = effect.strength(len(rows))[:, None]
            if effect.turning:
                speed = values[:, number[f"unit{event.unit}_speed"]]
                strength = strength * follow(speed / _RATED_SPEED, hours=1.0)[rows, None]
            columns = np.array([number[name] for name in effect.variables])
            affected = np.ix_(rows, columns)
            result[affected] = _change(result[affected], effect, strength, before=values[rows[0] - 1, columns])
    return result


def _change(readings: FloatArray, effect: Effect, strength: FloatArray, before: FloatArray) -> FloatArray:
    """Return the readings (samples × variables) changed by an effect; `before` are those just before it."""
    if effect.how == "add":
        return readings + effect.size * strength
    if effect.how == "scale":
        return readings * (1 + effect.size * strength)
    if effect.how == "hold":
        return np.broadcast_to(before, readings.shape)
    if effect.how == "flicker":
        return readings + effect.size * np.resize(_JUMPS, len(readings))[:, None]
    return np.roll(readings, -1, axis=1)


def digitise(values: FloatArray, readings: Sequence[Reading]) -> FloatArray:
    """Limit readings to the range of each sensor and round them to its resolution."""
    result = np.clip(values, [reading.low for reading in readings], [reading.high for reading in readings])
    for column, reading in enumerate(readings):
        # Adding zero turns the −0.0 of a rounded negative into 0.0.
        result[:, column] = np.round(result[:, column], reading.decimals) + 0.0
    return result


def drop_out(rows: FloatArray, spared: BoolArray, rng: np.random.Generator) -> FloatArray:
    """Return the rows with NaN where a sensor dropped out, never in a spared row."""
    result = rows.copy()
    columns = rng.permutation(rows.shape[1])[: len(_DROPOUTS)]
    for column, length in zip(columns, _DROPOUTS, strict=True):
        while True:
            begin = int(rng.integers(len(rows) - length))
            if not spared[begin : begin + length].any():
                break
        result[begin : begin + length, column] = np.nan
    return result
