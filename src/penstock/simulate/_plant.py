"""Physics of the plant: weather, dispatch, water, electricity, heat and vibration, before any sensor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from penstock._types import FloatArray
from penstock.simulate._events import CONDENSER, FLOOD, INDEX_TEST
from penstock.simulate._signals import STEPS_PER_HOUR, follow, red_noise, stream, within

_FLOOD_WATER = 190.0  # m³/s on top of the river
_SPILL_ABOVE = 130.0  # m³/s: what the reservoir takes
_FALLING = pd.Timedelta(hours=1.5)  # the rain ends before the flood does


@dataclass(frozen=True, eq=False)
class Surroundings:
    """One value per step: °C, m³/s, Hz and kV."""

    air: FloatArray
    hall: FloatArray
    river: FloatArray
    inflow: FloatArray
    spill: FloatArray
    frequency: FloatArray
    busbar: FloatArray


def surroundings(times: pd.DatetimeIndex, seed: int) -> Surroundings:
    """Weather, river and grid of the simulated months; the flood of the look-alike is part of them."""
    n = len(times)
    hour = hour_of_day(times)

    def chance(name: str, hours: float) -> FloatArray:
        return red_noise(stream(seed, name), n, hours)

    daily = np.cos(2 * np.pi * (hour - 15) / 24)
    air = 9 + 11 * season(times, peak=205) + (3 + season(times, peak=180)) * daily + 3 * chance("air", 36)
    river = 10.5 + 7.5 * season(times, peak=225) + 0.8 * chance("river", 120)
    rain = within(times, [(FLOOD[0], FLOOD[1] - _FALLING)])
    flood = follow(np.where(rain, _FLOOD_WATER, 0.0), hours=0.5)
    inflow = 70 * np.exp(0.4 * season(times, peak=170) + 0.12 * chance("inflow", 144)) + flood
    return Surroundings(
        air=air,
        hall=follow(19 + 0.35 * (air - 9), hours=6.0),
        river=river,
        inflow=inflow,
        spill=np.maximum(0.0, inflow - _SPILL_ABOVE),
        frequency=50 + 0.02 * chance("frequency", 0.4),
        busbar=226 + 1.5 * np.cos(2 * np.pi * (hour - 3) / 24) + 1.2 * chance("busbar", 4),
    )


def hour_of_day(times: pd.DatetimeIndex) -> FloatArray:
    return np.asarray(times.hour, dtype=np.float64) + np.asarray(times.minute) / (10 * STEPS_PER_HOUR)


def season(times: pd.DatetimeIndex, peak: int) -> FloatArray:
    """A yearly wave between −1 and 1 that is highest on day `peak` of the year.

    >>> season(pd.DatetimeIndex(["2015-07-14 00:00"]), peak=195).tolist()
    [1.0]
    """
    day = np.asarray(times.day_of_year, dtype=np.float64) + hour_of_day(times) / 24
    return np.cos(2 * np.pi * (day - peak) / 365.25)


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


RATED_CURRENT = 3012.0  # A: 72 MVA at 13.8 kV
RATED_FIELD = 980.0  # A
_RATED_APPARENT = 72.0  # MVA
_RATED_VOLTAGE = 13.8  # kV
_NO_LOAD_FIELD = 480.0  # A
_REACTANCE = 1.05  # of the generator, per unit
_CAPABILITY = (-18.0, 30.0)  # Mvar: where the limiters of the excitation end
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


def run_electrics(operation: Operation, power: FloatArray, around: Surroundings, seed: int, unit: int) -> Electrics:
    """The regulator supports a low grid voltage with reactive power, within the capability of the machine."""
    n = len(power)
    rng = stream(seed, f"voltage of unit {unit}")
    settings = rng.choice([13.7, 13.8, 13.9], size=n // (144 * _DAYS_PER_SETTING) + 1)
    setpoint = np.repeat(settings, 144 * _DAYS_PER_SETTING)[:n]
    demanded = 3.5 * (228 - around.busbar) + 30 * (setpoint - _RATED_VOLTAGE) + 0.5 * red_noise(rng, n, hours=0.5)
    limited = np.clip(demanded, *_CAPABILITY)
    reactive = operation.connected * np.where(operation.condenser, _CONDENSER_REACTIVE, limited)
    relative = (around.busbar / 226) ** 0.3 * (1 + 0.08 * reactive / _RATED_APPARENT)
    current = np.hypot(power, reactive) * 1000 / (np.sqrt(3) * _RATED_VOLTAGE * relative)
    p, q = power / _RATED_APPARENT, reactive / _RATED_APPARENT
    induced = np.hypot(1 + _REACTANCE * q, _REACTANCE * p)
    # Iron saturates: the last volts need more than their share of current.
    field = _NO_LOAD_FIELD * (induced + 0.08 * induced**3) * operation.connected
    return Electrics(
        setpoint, operation.connected, operation.connected * _RATED_VOLTAGE * relative, reactive, current, field
    )


_FAN_STARTS = (42.0, 56.0)  # °C of oil: first and second group
_FAN_COOLS = 5.0  # K per group

# What a temperature tends to (°C), and its time constants in hours: turning, and standing still.
Tendency = tuple[FloatArray, float, float]


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


@dataclass(frozen=True, eq=False)
class _Losses:
    """Relative to full load: copper of the stator, iron, field, shaft, and weight on the thrust bearing."""

    copper: FloatArray
    iron: FloatArray
    field: FloatArray
    shaft: FloatArray
    thrust: FloatArray


def warm_up(
    operation: Operation,
    water: WaterPath,
    electrics: Electrics,
    around: Surroundings,
    *,
    wear: float,
    rough: FloatArray,
) -> Heat:
    """All temperatures of one unit. `wear` scales its losses, `rough` is the extra friction of a shaking shaft."""
    losses = _Losses(
        copper=wear * (electrics.current / RATED_CURRENT) ** 2,
        iron=wear * electrics.excited,
        field=wear * (electrics.field_current / RATED_FIELD) ** 2,
        shaft=wear * operation.rotation**1.5,
        thrust=0.6 + 0.4 * np.abs(water.power) / RATED_POWER,
    )
    inlet = follow(around.river + 0.5, hours=1.0)
    fluids = _approach(_fluids(losses, around, inlet), operation.rotation)
    fans = (fluids["oil"] > _FAN_STARTS[0]).astype(np.float64) + (fluids["oil"] > _FAN_STARTS[1])
    solids = _approach(_solids(losses, fluids, fans, rough), operation.rotation)
    bottom = 0.45 * solids["top_oil"] + 0.55 * follow(around.air + 4, hours=2.0)
    winding_rise = follow(losses.copper, hours=0.15)
    del fluids["oil"]
    return Heat(
        water=inlet,
        bottom_oil=bottom,
        hv_winding=solids["top_oil"] + 14 * winding_rise,
        lv_winding=solids["top_oil"] + 17 * winding_rise,
        fans=fans,
        **fluids,
        **solids,
    )


def _fluids(losses: _Losses, around: Surroundings, inlet: FloatArray) -> dict[str, Tendency]:
    """Air and oil, between the cooling water and what they cool; they drift to the hall when the water is shut."""

    def cooled(rise: FloatArray) -> FloatArray:
        running = np.minimum(1.0, losses.shaft)
        return running * (inlet + rise) + (1 - running) * around.hall

    return {
        "cold_air": (cooled(7 + 4 * losses.iron + 10 * losses.copper), 0.4, 5.0),
        "thrust_oil": (cooled(11 + 9 * losses.shaft * losses.thrust), 0.7, 6.0),
        "generator_guide_oil": (cooled(10 + 8 * losses.shaft), 0.6, 5.0),
        "turbine_guide_oil": (cooled(9 + 9 * losses.shaft), 0.5, 4.0),
        "governor_oil": (around.hall + 14 + 6 * losses.shaft, 2.0, 4.0),
        # The transformer stays on the grid when its unit stands: its iron is always warm.
        "oil": (around.air + 13 + 32 * losses.copper, 2.5, 3.5),
    }


def _solids(losses: _Losses, fluids: dict[str, FloatArray], fans: FloatArray, rough: FloatArray) -> dict[str, Tendency]:
    """Iron, copper and white metal, warmer than what flows around them."""
    air, shaft = fluids["cold_air"], losses.shaft
    return {
        "hot_air": (air + 6 * losses.iron + 20 * losses.copper, 0.3, 5.0),
        "winding": (air + 10 * losses.iron + 38 * losses.copper, 0.6, 6.0),
        "core": (air + 14 * losses.iron + 20 * losses.copper, 1.2, 8.0),
        "rotor": (air + 55 * losses.field, 0.9, 7.0),
        "exciter": (fluids["governor_oil"] + 25 * losses.field, 0.5, 1.0),
        "thrust_pad": (fluids["thrust_oil"] + 22 * shaft * losses.thrust, 0.5, 5.0),
        "generator_guide": (fluids["generator_guide_oil"] + 13 * shaft, 0.5, 4.0),
        "turbine_guide": (fluids["turbine_guide_oil"] + (14 + 3 * rough) * shaft, 0.5, 4.0),
        "top_oil": (fluids["oil"] - _FAN_COOLS * fans, 0.6, 0.6),
    }


def _approach(tendencies: dict[str, Tendency], rotation: FloatArray) -> dict[str, FloatArray]:
    targets = np.column_stack([target for target, _, _ in tendencies.values()])
    turning = np.array([hours for _, hours, _ in tendencies.values()])
    still = np.array([hours for _, _, hours in tendencies.values()])
    followed = follow(targets, still + np.outer(rotation, turning - still))
    return dict(zip(tendencies, np.ascontiguousarray(followed.T), strict=True))


_ROUGHEST, _WIDTH = 0.43, 0.07  # of rated power


def roughness(operation: Operation, power: FloatArray) -> FloatArray:
    """The draft-tube vortex of a Francis turbine at part load: 1 at its worst, 0 far from it or without water."""
    watered = operation.connected * ~operation.condenser
    return watered * np.exp(-(((power / RATED_POWER - _ROUGHEST) / _WIDTH) ** 2))


def shake(operation: Operation, power: FloatArray, rough: FloatArray, liveliness: FloatArray) -> FloatArray:
    """Casing vibration in mm/s; bearings and frame are shares of it."""
    load = np.maximum(0.0, power) / RATED_POWER
    passing = 4 * operation.rotation * (1 - operation.rotation)  # through the critical speeds
    steady = operation.rotation**2 * (0.6 + 0.5 * load**2 + 1.4 * rough)
    return (steady + 0.8 * passing) * np.exp(0.07 * liveliness)


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
