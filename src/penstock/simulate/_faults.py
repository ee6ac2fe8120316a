"""The faults, fixed before any detector saw the data. Days: Ahmed et al. (2021), tbl:9; 9 January: its section 5.3.

Kinds: "global" is outside the usual range of many variables; "local" and "one-sensor" are inside the range of each
variable, but wrong for what the plant is doing; "spread" is a little in many variables; "hard" is a little in few.
Sizes are in units of the variables, whose noise is 0.3 to 0.6 °C, 1.5 mm of oil, 0.5 % of guide vanes and 6 % of
vibration.
"""

from __future__ import annotations

import pandas as pd

from penstock.simulate._events import Effect, Event, numbered

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
