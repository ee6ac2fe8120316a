"""Faults and look-alikes of the plant: when they happen, to which readings, and how they change them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from penstock._types import FloatArray
from penstock.simulate._signals import STEPS_PER_HOUR, Span, within

How = Literal["add", "scale", "hold", "flicker", "exchange"]


@dataclass(frozen=True)
class Effect:
    """What a fault does to the readings of some variables; `how` and `size` are explained in `changed`.

    `rise` is the time constant in hours with which it builds up; 0 is at once.
    """

    variables: tuple[str, ...]
    how: How
    size: float = 0.0
    rise: float = 0.0


@dataclass(frozen=True)
class Event:
    """From the first sample to the last, both included. A look-alike has no effects: the plant really ran that way."""

    kind: str
    start: pd.Timestamp
    end: pd.Timestamp
    variables: tuple[str, ...]
    description: str
    effects: tuple[Effect, ...] = ()

    @property
    def is_fault(self) -> bool:
        return bool(self.effects)


def numbered(name: str, count: int) -> tuple[str, ...]:
    """The names of sensors of one kind.

    >>> numbered("unit1_thrust_pad_temperature", 2)
    ('unit1_thrust_pad_temperature_1', 'unit1_thrust_pad_temperature_2')
    """
    return tuple(f"{name}_{number:0{len(str(count))}d}" for number in range(1, count + 1))


_LOOSE = (1.0, 0.3, -0.7, 1.0, 0.4, -1.0)  # how a loose contact jumps, over and over


def inject(values: FloatArray, names: Sequence[str], times: pd.DatetimeIndex, events: Sequence[Event]) -> FloatArray:
    """Readings as they are with the effects of these events: a changed copy of steps × variables."""
    result = values.copy()
    column = {name: number for number, name in enumerate(names)}
    for event in events:
        rows = np.flatnonzero(within(times, [(event.start, event.end)]))
        for effect in event.effects:
            columns = np.array([column[name] for name in effect.variables])
            affected = np.ix_(rows, columns)
            result[affected] = changed(result[affected], effect, before=values[rows[0] - 1, columns])
    return result


def changed(readings: FloatArray, effect: Effect, before: FloatArray) -> FloatArray:
    """The readings of one event, samples × variables, after one of its effects; `before` are those just before it.

    - add: `size` more, in the unit of the variable
    - scale: times 1 + `size`
    - hold: stuck at the reading before the event
    - flicker: jumps by up to ± `size`
    - exchange: each shows the next one's reading, the last the first one's

    >>> readings = np.array([[1.0, 5.0], [2.0, 6.0]])
    >>> changed(readings, Effect(("a", "b"), "exchange"), before=np.zeros(2)).tolist()
    [[5.0, 1.0], [6.0, 2.0]]
    """
    strength = build_up(len(readings), effect.rise)[:, None]
    if effect.how == "add":
        return readings + effect.size * strength
    if effect.how == "scale":
        return readings * (1 + effect.size * strength)
    if effect.how == "hold":
        return np.broadcast_to(before, readings.shape)
    if effect.how == "flicker":
        return readings + effect.size * np.resize(_LOOSE, len(readings))[:, None]
    return np.roll(readings, -1, axis=1)


def build_up(n: int, rise: float) -> FloatArray:
    """The strength of an effect in each of n samples: it approaches 1 with a time constant, and fades at the end.

    >>> build_up(3, rise=0.0).tolist()
    [1.0, 1.0, 1.0]
    >>> build_up(6, rise=1 / 3).round(2).tolist()
    [0.39, 0.63, 0.78, 0.86, 0.67, 0.33]
    """
    if rise == 0:
        return np.ones(n)
    steps = rise * STEPS_PER_HOUR
    left = np.arange(n, 0, -1)
    return np.minimum(-np.expm1(-np.arange(1, n + 1) / steps), left / (steps + 1))


_FLOWS = ("generator_cooling_water_flow", "bearing_cooling_water_flow")
_OUTLETS = (
    "generator_cooling_outlet_temperature", "thrust_cooler_outlet_temperature",
    "turbine_bearing_cooler_outlet_temperature",
)  # fmt: skip
_OILS = ("thrust_oil_temperature", "generator_guide_bearing_oil_temperature", "turbine_guide_bearing_oil_temperature")
_AIR = numbered("cold_air_temperature", 2) + numbered("hot_air_temperature", 2)
_WINDINGS = numbered("stator_winding_temperature", 12)
_CORE = numbered("stator_core_temperature", 4)
_PADS = numbered("thrust_pad_temperature", 6)
_GUIDE_PADS = numbered("generator_guide_bearing_temperature", 3) + numbered("turbine_guide_bearing_temperature", 3)


def _of(unit: int, *names: str) -> tuple[str, ...]:
    return tuple(f"unit{unit}_{name}" for name in names)


def _of_both(*names: str) -> tuple[str, ...]:
    return _of(1, *names) + _of(2, *names)


def _fault(kind: str, start: str, end: str, description: str, *effects: Effect) -> Event:
    variables = tuple(name for effect in effects for name in effect.variables)
    return Event(kind, pd.Timestamp(start), pd.Timestamp(end), variables, description, effects)


FAULTS = (
    _fault(
        "global", "2015-07-04 11:30", "2015-07-04 18:20",
        "The water valve of unit 1's air coolers sticks nearly closed at high load; the whole generator overheats.",
        Effect(_of(1, "generator_cooling_water_flow"), "scale", -0.7),
        Effect(_of(1, "generator_cooling_outlet_temperature"), "add", 9.0, rise=0.5),
        Effect(_of(1, *_AIR), "add", 21.0, rise=0.8),
        Effect(_of(1, *_WINDINGS), "add", 24.0, rise=1.0),
        Effect(_of(1, *_CORE), "add", 20.0, rise=1.3),
        Effect(_of(1, "rotor_temperature"), "add", 18.0, rise=1.2),
    ),
    _fault(
        "local", "2015-09-13 18:30", "2015-09-13 19:40",
        "A shear pin of unit 2 breaks: one guide vane stays behind, the others open further for the same power.",
        Effect(_of(2, "guide_vane_opening"), "add", 8.0),
        Effect(_of(2, "guide_vane_servo_stroke"), "add", 33.0),
        Effect(_of(2, "head_cover_vibration"), "add", 0.35),
        Effect(_of(2, "draft_tube_pressure_pulsation"), "add", 1.2),
    ),
    _fault(
        "one-sensor", "2015-09-14 07:30", "2015-09-14 08:50",
        "A fuse of unit 1's voltage transformer ages: phase 2 reads 5 % less than the other two.",
        Effect(_of(1, "stator_voltage_l2"), "scale", -0.05),
    ),
    _fault(
        "local", "2015-09-14 13:00", "2015-09-14 13:40",
        "Unit 2 creeps while it should stand still: guide vanes leak, the shaft turns slowly without lifting oil.",
        Effect(_of(2, "speed"), "add", 9.0),
        Effect(_of(2, "discharge"), "add", 1.8),
        Effect(_of(2, *_PADS), "add", 4.0, rise=0.2),
    ),
    _fault(
        "global", "2015-10-03 18:30", "2015-10-04 00:30",
        "A log damages the runner of unit 2: it shakes, wears its lower bearing and wastes water, until it is stopped.",
        Effect(_of(2, "head_cover_vibration"), "scale", 2.0),
        Effect(_of(2, "draft_tube_pressure_pulsation"), "scale", 2.5),
        Effect(_of(2, "turbine_guide_bearing_vibration_x", "turbine_guide_bearing_vibration_y"), "scale", 2.2),
        Effect(_of(2, "generator_guide_bearing_vibration_x", "generator_guide_bearing_vibration_y"), "scale", 1.4),
        Effect(_of(2, "stator_frame_vibration", "end_winding_vibration"), "scale", 0.6),
        Effect(_of(2, *numbered("turbine_guide_bearing_temperature", 3)), "add", 9.0, rise=0.8),
        Effect(_of(2, "turbine_guide_bearing_oil_temperature"), "add", 6.0, rise=1.0),
        Effect(_of(2, "discharge"), "add", 3.5),
        Effect(_of(2, "guide_vane_opening"), "add", 6.0),
        Effect(_of(2, "guide_vane_servo_stroke"), "add", 25.0),
        Effect(_of(2, "axial_shaft_displacement"), "add", 0.15),
        Effect(_of(2, "shaft_seal_leakage"), "add", 4.0, rise=0.5),
    ),
    _fault(
        "one-sensor", "2015-10-04 17:40", "2015-10-04 19:20",
        "After the repair a sensor of unit 2's lower bearing is stuck at the cold reading while the machine warms up.",
        Effect(_of(2, "turbine_guide_bearing_temperature_2"), "hold"),
    ),
    _fault(
        "spread", "2015-10-04 22:50", "2015-10-05 04:50",
        "Leaves clog the filter of the cooling main: a little less water everywhere, everything a little warmer.",
        Effect(("plant_cooling_main_pressure",), "add", -0.12, rise=0.5),
        Effect(("plant_cooling_filter_difference",), "add", 0.03, rise=0.5),
        Effect(("plant_cooling_main_flow",), "scale", -0.03, rise=0.5),
        Effect(_of_both(*_FLOWS), "scale", -0.03, rise=0.5),
        Effect(_of_both(*_OUTLETS), "add", 0.7, rise=0.8),
        Effect(_of_both(*_OILS), "add", 0.8, rise=1.0),
        Effect(_of_both(*_PADS, *_GUIDE_PADS), "add", 0.9, rise=1.0),
        Effect(_of_both(*_AIR), "add", 1.0, rise=0.8),
        Effect(_of_both(*_WINDINGS, *_CORE), "add", 1.4, rise=1.2),
    ),
    _fault(
        "one-sensor", "2015-10-13 16:20", "2015-10-13 18:20",
        "A loose contact: the temperature of unit 1's winding in slot 7 jumps.",
        Effect(_of(1, "stator_winding_temperature_07"), "flicker", 13.0),
    ),
    _fault(
        "local", "2015-10-14 08:30", "2015-10-14 10:30",
        "The repair exchanged two cables of unit 1: winding in slot 7 and hot air show each other's temperature.",
        Effect(_of(1, "stator_winding_temperature_07", "hot_air_temperature_1"), "exchange"),
    ),
    _fault(
        "spread", "2015-10-14 20:00", "2015-10-14 22:00",
        "The supply of unit 2's measuring cabinet sags: all temperatures of the generator read a little too high.",
        Effect(_of(2, *_WINDINGS, *_CORE, *_AIR, "rotor_temperature"), "add", 2.0),
    ),
    _fault(
        "local", "2016-01-02 21:10", "2016-01-02 22:00",
        "Turns of unit 1's field winding are shorted: more current at less voltage for the same load, and uneven pull.",
        Effect(_of(1, "field_current"), "scale", 0.12),
        Effect(_of(1, "field_voltage"), "scale", -0.05),
        Effect(_of(1, "generator_guide_bearing_vibration_x", "generator_guide_bearing_vibration_y"), "add", 0.2),
    ),
    _fault(
        "hard", "2016-01-09 13:00", "2016-01-09 17:00",
        "A seal of unit 2's lower bearing seeps: slightly less oil, slightly warmer, all of it within the noise.",
        Effect(_of(2, "turbine_guide_bearing_oil_level"), "add", -2.5, rise=1.0),
        Effect(_of(2, *numbered("turbine_guide_bearing_temperature", 3)), "add", 0.6, rise=1.0),
        Effect(_of(2, "turbine_guide_bearing_oil_temperature"), "add", 0.5, rise=1.0),
    ),
    _fault(
        "local", "2016-01-12 11:10", "2016-01-12 12:20",
        "The oil cooler of unit 1's thrust bearing stops at low load in winter: as warm as at full load in summer.",
        Effect(_of(1, "thrust_oil_temperature"), "add", 9.0, rise=0.3),
        Effect(_of(1, *_PADS), "add", 9.0, rise=0.4),
        Effect(_of(1, "thrust_cooler_outlet_temperature"), "add", -1.0, rise=0.2),
        Effect(_of(1, "bearing_cooling_water_flow"), "scale", -0.25),
    ),
)  # fmt: skip


CONDENSER: Span = (pd.Timestamp("2015-07-07 03:50"), pd.Timestamp("2015-07-07 06:00"))
FLOOD: Span = (pd.Timestamp("2015-07-08 12:00"), pd.Timestamp("2015-07-08 18:30"))
INDEX_TEST: Span = (pd.Timestamp("2015-09-17 04:00"), pd.Timestamp("2015-09-17 05:40"))

LOOK_ALIKES = (
    Event(
        "look-alike",
        *CONDENSER,
        (
            "unit1_active_power", "unit1_reactive_power", "unit1_power_factor", "unit1_discharge",
            "unit1_guide_vane_opening", "unit1_head_cover_pressure", "unit1_field_current",
        ),
        "Unit 1 as synchronous condenser: the runner turns in compressed air, the generator supports the grid voltage.",
    ),
    Event(
        "look-alike",
        *FLOOD,
        (
            "plant_reservoir_inflow", "plant_spillway_flow", "plant_tailwater_level", "plant_gross_head",
            "unit1_guide_vane_opening", "unit2_guide_vane_opening", "unit1_active_power", "unit2_active_power",
        ),
        "Flood: the spillway opens, the tailwater rises by metres, and both units open further for the same full load.",
    ),
    Event(
        "look-alike",
        *INDEX_TEST,
        (
            "unit2_power_setpoint", "unit2_active_power", "unit2_guide_vane_opening", "unit2_discharge",
            "unit2_draft_tube_pressure_pulsation", "unit2_head_cover_vibration",
        ),
        "Efficiency test of unit 2: ten-minute steps through all loads, with the rough zone that dispatch avoids.",
    ),
)  # fmt: skip
