"""Physics of the plant: weather, dispatch, water, electricity, heat and vibration, before any sensor.

All arrays have one value per ten-minute step. Each random cause has its own named stream of random numbers, so that a
change of one cause leaves the others as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np
import pandas as pd

from penstock._types import BoolArray, FloatArray
from penstock.simulate._events import Event, Order, Span, within
from penstock.simulate._scenarios import STEP_HOURS, STEPS_PER_HOUR


def stream(seed: int, name: str) -> np.random.Generator:
    """Return the random generator of one named cause.

    >>> bool(stream(0, "weather").random() == stream(0, "weather").random())
    True
    """
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, crc32(name.encode())])))


def red_noise(rng: np.random.Generator, shape: int | tuple[int, int], hours: float) -> FloatArray:
    """Return noise of mean 0 and variance 1 along the first axis whose correlation falls to 1/e in so many hours.

    >>> noise = red_noise(stream(0, "example"), 10_000, hours=1.0)
    >>> round(float(np.corrcoef(noise[6:], noise[:-6])[0, 1]), 1)
    0.4
    """
    memory = float(np.exp(-STEP_HOURS / hours))
    noise = rng.standard_normal(shape)
    noise[1:] *= np.sqrt(1 - memory**2)
    for now in range(1, len(noise)):
        noise[now] += memory * noise[now - 1]
    return noise


def follow(target: FloatArray, hours: FloatArray | float) -> FloatArray:
    """Return a first-order lag: values that approach a target with a time constant, which may change with time.

    They start at the target; columns, if any, are independent.

    >>> follow(np.array([0.0, 1.0, 1.0, 1.0]), hours=STEP_HOURS / np.log(2)).tolist()
    [0.0, 0.5, 0.75, 0.875]
    """
    gain = np.broadcast_to(-np.expm1(-STEP_HOURS / np.asarray(hours)), target.shape)
    result = np.empty_like(target)
    state = target[0]
    for now in range(len(target)):
        state = state + gain[now] * (target[now] - state)
        result[now] = state
    return result


def hour_of_day(times: pd.DatetimeIndex) -> FloatArray:
    return np.asarray(times.hour, dtype=np.float64) + np.asarray(times.minute) / (10 * STEPS_PER_HOUR)


def season(times: pd.DatetimeIndex, peak: int) -> FloatArray:
    """Return a yearly wave between −1 and 1 that is highest on day `peak` of the year.

    >>> season(pd.DatetimeIndex(["2015-07-14 00:00"]), peak=195).tolist()
    [1.0]
    """
    day = np.asarray(times.day_of_year, dtype=np.float64) + hour_of_day(times) / 24
    return np.cos(2 * np.pi * (day - peak) / 365.25)


def _spans(events: Sequence[Event], name: str, unit: int = 0) -> list[Span]:
    return [(event.start, event.end) for event in events if event.name == name and event.unit == unit]


_FLOOD_INFLOW = 190.0  # m³/s in addition to the usual inflow
_SPILL_ABOVE = 130.0  # m³/s: inflow that the reservoir can take
_FALLING = pd.Timedelta(hours=1.5)  # the rain ends before the flood does
_HEAT_WAVE = 9.0  # K
_FREQUENCY_DROP, _VOLTAGE_DROP = 0.2, 7.0  # Hz and kV, in a disturbance of the grid


@dataclass(frozen=True, eq=False)
class Environment:
    """Temperatures in °C, flows in m³/s, grid frequency in Hz, busbar voltage in kV."""

    air: FloatArray
    hall: FloatArray
    river: FloatArray
    inflow: FloatArray
    spill: FloatArray
    frequency: FloatArray
    busbar: FloatArray


def simulate_environment(times: pd.DatetimeIndex, events: Sequence[Event], seed: int) -> Environment:
    """Simulate weather, river and grid, with their look-alikes: flood, heat wave and disturbance of the grid."""
    hour = hour_of_day(times)

    def noise(name: str, hours: float) -> FloatArray:
        return red_noise(stream(seed, name), len(times), hours)

    daily = np.cos(2 * np.pi * (hour - 15) / 24)
    air = 9 + 11 * season(times, peak=205) + (3 + season(times, peak=180)) * daily + 3 * noise("air", 36)
    air += _HEAT_WAVE * follow(within(times, _spans(events, "heat wave")).astype(np.float64), hours=3.0)
    rain = within(times, [(start, end - _FALLING) for start, end in _spans(events, "flood")])
    flood = follow(np.where(rain, _FLOOD_INFLOW, 0.0), hours=0.5)
    inflow = 70 * np.exp(0.4 * season(times, peak=170) + 0.12 * noise("inflow", 144)) + flood
    disturbed = within(times, _spans(events, "grid disturbance"))
    frequency = 50 + 0.02 * noise("frequency", 0.4)
    busbar = 226 + 1.5 * np.cos(2 * np.pi * (hour - 3) / 24) + 1.2 * noise("busbar", 4)
    return Environment(
        air=air,
        hall=follow(19 + 0.35 * (air - 9), hours=6.0),
        river=10.5 + 7.5 * season(times, peak=225) + 0.8 * noise("river", 120),
        inflow=inflow,
        spill=np.maximum(0.0, inflow - _SPILL_ABOVE),
        frequency=frequency - _FREQUENCY_DROP * disturbed,
        busbar=busbar - _VOLTAGE_DROP * disturbed,
    )


RATED_POWER = 60.0  # MW, each unit
_ROUGH_ZONE = (20.0, 32.0)  # MW: the draft-tube vortex shakes the machine, and dispatch avoids these loads
_LEAST_POWER = 14.0
_TEST_STEPS = (14, 18, 22, 26, 30, 34, 40, 45, 50, 55, 60)  # MW, ten minutes each


@dataclass(frozen=True, eq=False)
class Operation:
    """Operation of one unit: set point (MW), and the shares of each ten minutes when it turns and is on the grid."""

    setpoint: FloatArray
    rotation: FloatArray
    connected: FloatArray
    condenser: BoolArray


def operate(
    times: pd.DatetimeIndex, events: Sequence[Event], orders: Sequence[Order], seed: int, unit: int
) -> Operation:
    """Simulate the operation of one unit: the usual plan, orders on the days of events, then starts and stops."""
    ordered = [((start, end), power) for number, start, end, power in orders if number == unit]
    running = _planned_to_run(times, seed, unit) | within(times, [span for span, power in ordered if power is None])
    setpoint = np.where(running, _usual_power(times, seed, unit), 0.0)
    for span, power in ordered:
        if power is not None:
            setpoint[within(times, [span])] = power
    condenser = within(times, _spans(events, "condenser", unit))
    setpoint[condenser] = 0.0
    for span in _spans(events, "efficiency test", unit):
        setpoint[within(times, [span])] = _TEST_STEPS
    return _start_and_stop(setpoint, condenser, stream(seed, f"starts of unit {unit}"))


def _usual_power(times: pd.DatetimeIndex, seed: int, unit: int) -> FloatArray:
    """Return a set point in MW for every hour in which the unit runs: higher in winter, lower at week-ends."""
    hour, weekend = hour_of_day(times), np.asarray(times.day_of_week) >= 5
    peaks = np.exp(-(((hour - 8.5) / 2.5) ** 2)) + np.exp(-(((hour - 19) / 2.5) ** 2))
    share = 0.62 + 0.24 * peaks - 0.08 * weekend + 0.06 * season(times, peak=15) - 0.05 * (unit - 1)
    share += 0.1 * red_noise(stream(seed, f"load of unit {unit}"), len(times), hours=8)
    start_of_hour = np.arange(len(times)) // STEPS_PER_HOUR * STEPS_PER_HOUR
    megawatts = np.round(np.clip(RATED_POWER * share, _LEAST_POWER, RATED_POWER))[start_of_hour]
    low, high = _ROUGH_ZONE
    rough = (megawatts > low) & (megawatts < high)
    megawatts[rough] = np.where(megawatts[rough] < (low + high) / 2, low, high)
    return np.asarray(megawatts, dtype=np.float64)


def _planned_to_run(times: pd.DatetimeIndex, seed: int, unit: int) -> BoolArray:
    """Return when a unit runs: unit 1 always, but for a pause in one night of five; unit 2 at peaks.

    Unit 2 runs by day, not on some noons; at week-ends only on every second evening.
    """
    day = np.asarray((times.normalize() - times[0].normalize()).days, dtype=np.int64)
    hour, weekend = hour_of_day(times), np.asarray(times.day_of_week) >= 5
    if unit == 1:
        draw = stream(seed, "nights of unit 1").random((day[-1] + 1, 3))[day]
        return ~((draw[:, 0] < 0.2) & (hour >= draw[:, 1]) & (hour < 4.5 + 1.5 * draw[:, 2]))
    draw = stream(seed, "days of unit 2").random((day[-1] + 1, 6))[day]
    by_day = (hour >= 5.2 + 2 * draw[:, 0]) & (hour < 21 + 2.5 * draw[:, 1])
    at_noon = (draw[:, 2] < 0.25) & (hour >= 11 + draw[:, 3]) & (hour < 14 + 2 * draw[:, 4])
    in_the_evening = (draw[:, 5] < 0.5) & (hour >= 15 + 2 * draw[:, 0]) & (hour < 21 + 2.5 * draw[:, 1])
    return np.where(weekend, in_the_evening, by_day & ~at_noon)


def _start_and_stop(setpoint: FloatArray, condenser: BoolArray, rng: np.random.Generator) -> Operation:
    """Return the operation with starts, which take minutes until the unit is on the grid, and stops (it runs down)."""
    on = (setpoint > 0) | condenser
    was_on = np.concatenate([[False], on[:-1]])
    starting, stopping = on & ~was_on, ~on & was_on
    rotation, connected = on.astype(np.float64), on.astype(np.float64)
    rotation[starting] = rng.uniform(0.4, 0.9, starting.sum())
    connected[starting] = rotation[starting] - 0.3
    rotation[stopping] = rng.uniform(0.2, 0.6, stopping.sum())
    connected[stopping] = 0.4 * rotation[stopping]
    return Operation(setpoint, rotation, connected, condenser)


_RHO_G = 998.0 * 9.81  # N/m³
_GENERATOR_EFFICIENCY = 0.98
_FRICTION_POWER = 0.4  # MW: bearings and windage at full speed
_PENSTOCK_LOSS = 9e-4  # m of head per (m³/s)²
_DESIGN_HEAD = 117.0  # m
_FULL_DISCHARGE = 61.0  # m³/s at design head, guide vanes fully open
_VANE_CURVE = 1.15  # opening grows faster than discharge
_DROOP = RATED_POWER / (0.05 * 50)  # MW per Hz
_LOW_RESERVOIR = 309.2  # m above sea level
_CONDENSER_POWER = -1.8  # MW, drawn from the grid


@dataclass(frozen=True, eq=False)
class Reservoir:
    """Levels in m above sea level, and the limit of the guide vane opening (%) at such a level."""

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
    """Return the efficiency of the turbine: highest at 85 % of full discharge.

    >>> efficiency(np.array([0.3, 0.85, 1.0]) * 61.0).round(3).tolist()
    [0.82, 0.935, 0.926]
    """
    return 0.935 - 0.38 * (discharge / _FULL_DISCHARGE - 0.85) ** 2


def requested_power(operation: Operation, frequency: FloatArray, deviation: FloatArray) -> FloatArray:
    """Return set point and frequency control in MW, as ten-minute means: a set point is reached within minutes."""
    before = np.concatenate([operation.setpoint[:1], operation.setpoint[:-1]])
    both = (before > 0) & (operation.setpoint > 0)
    level = np.where(both, 0.75 * operation.setpoint + 0.25 * before, np.maximum(operation.setpoint, before))
    return operation.connected * np.maximum(0.0, level - _DROOP * (frequency - 50) + deviation)


def fill_reservoir(times: pd.DatetimeIndex, environment: Environment, requested: Sequence[FloatArray]) -> Reservoir:
    """Simulate the levels: the reservoir falls by day and towards winter, the tailwater rises with its inflow."""
    turbined = np.sum([discharge_for(power, np.full(len(power), _DESIGN_HEAD)) for power in requested], axis=0)
    surplus = environment.inflow - environment.spill - turbined
    headwater = 311 + 2 * season(times, peak=190) + follow(0.03 * surplus, hours=30.0)
    tailwater = 190 + follow(0.012 * turbined + 0.03 * environment.spill, hours=0.4)
    # Air must not be drawn in: operators lower the limit when the reservoir has been low for days.
    limit = np.where(follow(headwater, hours=240.0) < _LOW_RESERVOIR, 96.0, 100.0)
    return Reservoir(headwater, tailwater, limit)


def discharge_for(power: FloatArray, head: FloatArray) -> FloatArray:
    """Return the discharge (m³/s) for a shaft power (MW): Q = P / (ρ g H η(Q)), by fixed-point iteration."""
    discharge = power * 1e6 / (_RHO_G * head * 0.9)
    for _ in range(6):
        discharge = power * 1e6 / (_RHO_G * head * efficiency(discharge))
    return discharge


def run_water(operation: Operation, reservoir: Reservoir, requested: FloatArray) -> WaterPath:
    """Simulate the turbine: it gives the requested power unless the guide vanes are at their limit (saturation)."""
    driven = operation.rotation * ~operation.condenser
    shaft = np.where(driven > 0, requested / _GENERATOR_EFFICIENCY + _FRICTION_POWER * driven, 0.0)
    gross = reservoir.headwater - reservoir.tailwater
    discharge = np.zeros(len(shaft))
    for _ in range(4):
        head = gross - _PENSTOCK_LOSS * discharge**2
        fully_open = _FULL_DISCHARGE * np.sqrt(head / _DESIGN_HEAD)
        most = fully_open * (reservoir.opening_limit / 100) ** (1 / _VANE_CURVE)
        discharge = np.minimum(discharge_for(shaft, head), most)
    opening = 100 * (discharge / fully_open) ** _VANE_CURVE
    given = _RHO_G * discharge * head * efficiency(discharge) / 1e6
    power = np.where(driven > 0, _GENERATOR_EFFICIENCY * (given - _FRICTION_POWER * driven), 0.0)
    power = np.where(operation.condenser, _CONDENSER_POWER * operation.connected, power)
    return WaterPath(head, discharge, opening, power)


_RATED_CURRENT = 3012.0  # A: 72 MVA at 13.8 kV
_RATED_FIELD = 980.0  # A
_RATED_APPARENT = 72.0  # MVA
_RATED_VOLTAGE = 13.8  # kV
_NO_LOAD_FIELD = 480.0  # A
_REACTANCE = 1.05  # of the generator, per unit
_CAPABILITY = (-18.0, 30.0)  # Mvar: limits of the excitation
_CONDENSER_REACTIVE = 38.0  # Mvar
_DAYS_PER_SETTING = 12


@dataclass(frozen=True, eq=False)
class Electrics:
    """One unit: kV, Mvar, A; `excited` is the share of the ten minutes with voltage on the terminals."""

    setpoint: FloatArray
    excited: FloatArray
    voltage: FloatArray
    reactive: FloatArray
    current: FloatArray
    field_current: FloatArray


def run_electrics(operation: Operation, power: FloatArray, environment: Environment, seed: int, unit: int) -> Electrics:
    """Simulate the generator: it supports a low grid voltage with reactive power, within its capability."""
    n = len(power)
    rng = stream(seed, f"voltage of unit {unit}")
    settings = rng.choice([13.7, 13.8, 13.9], size=n // (144 * _DAYS_PER_SETTING) + 1)
    setpoint = np.repeat(settings, 144 * _DAYS_PER_SETTING)[:n]
    demanded = 3.5 * (228 - environment.busbar) + 30 * (setpoint - _RATED_VOLTAGE) + 0.5 * red_noise(rng, n, hours=0.5)
    limited = np.clip(demanded, *_CAPABILITY)
    reactive = operation.connected * np.where(operation.condenser, _CONDENSER_REACTIVE, limited)
    relative = (environment.busbar / 226) ** 0.3 * (1 + 0.08 * reactive / _RATED_APPARENT)
    current = np.hypot(power, reactive) * 1000 / (np.sqrt(3) * _RATED_VOLTAGE * relative)
    p, q = power / _RATED_APPARENT, reactive / _RATED_APPARENT
    induced = np.hypot(1 + _REACTANCE * q, _REACTANCE * p)
    # Iron saturates: field current grows faster than voltage.
    field = _NO_LOAD_FIELD * (induced + 0.08 * induced**3) * operation.connected
    return Electrics(
        setpoint, operation.connected, operation.connected * _RATED_VOLTAGE * relative, reactive, current, field
    )


_FAN_STARTS = (42.0, 56.0)  # °C of oil: first and second group
_FAN_COOLS = 5.0  # K per group


@dataclass(frozen=True, eq=False)
class Heat:
    """One unit, °C; `fans` is the number of fan groups of its transformer that run."""

    water: FloatArray
    cold_air: FloatArray
    hot_air: FloatArray
    winding: FloatArray
    core: FloatArray
    rotor: FloatArray
    exciter: FloatArray
    thrust_oil: FloatArray
    thrust_pad: FloatArray
    generator_guide_oil: FloatArray
    generator_guide: FloatArray
    turbine_guide_oil: FloatArray
    turbine_guide: FloatArray
    governor_oil: FloatArray
    top_oil: FloatArray
    bottom_oil: FloatArray
    hv_winding: FloatArray
    lv_winding: FloatArray
    fans: FloatArray


def simulate_heat(
    operation: Operation,
    water: WaterPath,
    electrics: Electrics,
    environment: Environment,
    *,
    wear: float,
    rough: FloatArray,
) -> Heat:
    """Simulate the temperatures of one unit; `wear` scales its losses, `rough` adds friction of the vibrating shaft."""
    # Losses relative to full load, and the load of the thrust bearing.
    copper = wear * (electrics.current / _RATED_CURRENT) ** 2
    iron = wear * electrics.excited
    field = wear * (electrics.field_current / _RATED_FIELD) ** 2
    shaft = wear * operation.rotation**1.5
    thrust = 0.6 + 0.4 * np.abs(water.power) / RATED_POWER
    hall, inlet = environment.hall, follow(environment.river + 0.5, hours=1.0)

    def cooled(rise: FloatArray) -> FloatArray:
        """Return a target above the cooling water, and that of the hall when the unit stands still."""
        running = np.minimum(1.0, shaft)
        return running * (inlet + rise) + (1 - running) * hall

    fluids = _approach(
        {
            "cold_air": (cooled(7 + 4 * iron + 10 * copper), 0.4, 5.0),
            "thrust_oil": (cooled(11 + 9 * shaft * thrust), 0.7, 6.0),
            "generator_guide_oil": (cooled(10 + 8 * shaft), 0.6, 5.0),
            "turbine_guide_oil": (cooled(9 + 9 * shaft), 0.5, 4.0),
            "governor_oil": (hall + 14 + 6 * shaft, 2.0, 4.0),
            # The transformer stays on the grid when its unit stands still: its iron is always warm.
            "transformer_oil": (environment.air + 13 + 32 * copper, 2.5, 3.5),
        },
        operation.rotation,
    )
    air, oil = fluids["cold_air"], fluids.pop("transformer_oil")
    fans = (oil > _FAN_STARTS[0]).astype(np.float64) + (oil > _FAN_STARTS[1])
    solids = _approach(
        {
            "hot_air": (air + 6 * iron + 20 * copper, 0.3, 5.0),
            "winding": (air + 10 * iron + 38 * copper, 0.6, 6.0),
            "core": (air + 14 * iron + 20 * copper, 1.2, 8.0),
            "rotor": (air + 55 * field, 0.9, 7.0),
            "exciter": (fluids["governor_oil"] + 25 * field, 0.5, 1.0),
            "thrust_pad": (fluids["thrust_oil"] + 22 * shaft * thrust, 0.5, 5.0),
            "generator_guide": (fluids["generator_guide_oil"] + 13 * shaft, 0.5, 4.0),
            "turbine_guide": (fluids["turbine_guide_oil"] + (14 + 3 * rough) * shaft, 0.5, 4.0),
            "top_oil": (oil - _FAN_COOLS * fans, 0.6, 0.6),
        },
        operation.rotation,
    )
    winding_rise = follow(copper, hours=0.15)
    return Heat(
        water=inlet,
        bottom_oil=0.45 * solids["top_oil"] + 0.55 * follow(environment.air + 4, hours=2.0),
        hv_winding=solids["top_oil"] + 14 * winding_rise,
        lv_winding=solids["top_oil"] + 17 * winding_rise,
        fans=fans,
        **fluids,
        **solids,
    )


def _approach(targets: dict[str, tuple[FloatArray, float, float]], rotation: FloatArray) -> dict[str, FloatArray]:
    """Return temperatures that follow targets (°C) with time constants in hours: turning, and standing still."""
    turning, still = (np.array([target[place] for target in targets.values()]) for place in (1, 2))
    followed = follow(
        np.column_stack([target for target, _, _ in targets.values()]), still + np.outer(rotation, turning - still)
    )
    return dict(zip(targets, np.ascontiguousarray(followed.T), strict=True))


_ROUGHEST, _WIDTH = 0.43, 0.07  # of rated power


def roughness(operation: Operation, power: FloatArray) -> FloatArray:
    """Return the strength of the draft-tube vortex at part load: 1 at its worst, 0 far from it or without water."""
    watered = operation.connected * ~operation.condenser
    return watered * np.exp(-(((power / RATED_POWER - _ROUGHEST) / _WIDTH) ** 2))


def vibration_of(operation: Operation, power: FloatArray, rough: FloatArray, noise: FloatArray) -> FloatArray:
    """Return the vibration of the casing in mm/s; those of bearings and frame are shares of it."""
    load = np.maximum(0.0, power) / RATED_POWER
    passing = 4 * operation.rotation * (1 - operation.rotation)  # through the critical speeds
    steady = operation.rotation**2 * (0.6 + 0.5 * load**2 + 1.4 * rough)
    return (steady + 0.8 * passing) * np.exp(0.07 * noise)


UNITS = (1, 2)
_WEAR = {1: 1.0, 2: 1.06}  # factor of the losses: units of one design differ


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
class PlantState:
    """Environment, reservoir, units, and the pressure of the cooling main (bar)."""

    environment: Environment
    reservoir: Reservoir
    units: tuple[Unit, ...]
    cooling_pressure: FloatArray


def run_plant(times: pd.DatetimeIndex, events: Sequence[Event], orders: Sequence[Order], seed: int) -> PlantState:
    """Simulate the plant without faults, with the look-alikes among the events."""
    environment = simulate_environment(times, events, seed)

    def noise(name: str, hours: float) -> FloatArray:
        return red_noise(stream(seed, name), len(times), hours)

    operations = {unit: operate(times, events, orders, seed, unit) for unit in UNITS}
    requested = {
        unit: requested_power(operations[unit], environment.frequency, 0.15 * noise(f"governor of unit {unit}", 0.3))
        for unit in UNITS
    }
    reservoir = fill_reservoir(times, environment, list(requested.values()))
    units = []
    for number, operation in operations.items():
        water = run_water(operation, reservoir, requested[number])
        electrics = run_electrics(operation, water.power, environment, seed, number)
        rough = roughness(operation, water.power)
        heat = simulate_heat(operation, water, electrics, environment, wear=_WEAR[number], rough=rough)
        vibration = vibration_of(operation, water.power, rough, noise(f"vibration of unit {number}", 2.0))
        units.append(Unit(number, operation, water, electrics, heat, rough, vibration))
    # The pressure falls with each unit whose coolers are open.
    running = np.sum([operation.rotation for operation in operations.values()], axis=0)
    pressure = 4.6 - 0.3 * running + 0.04 * noise("cooling main", 5)
    return PlantState(environment, reservoir, tuple(units), pressure)
