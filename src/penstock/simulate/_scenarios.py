"""What can happen to the plant: faults with their effects on readings, and look-alikes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from penstock._types import FloatArray

STEP = pd.Timedelta(minutes=10)
STEP_HOURS = 1 / 6
STEPS_PER_HOUR = 6


@dataclass(frozen=True)
class Effect:
    """Change of the readings of some variables by a fault.

    `how` is one of

    - add: `size` more, in the unit of the variable
    - scale: times 1 + `size`
    - hold: stuck at the reading before the fault
    - flicker: jumps by up to ± `size`
    - exchange: each variable shows the reading of the next one, the last that of the first

    `rise` is the time constant in hours with which the effect builds up: 0 at once, infinity linearly until the end.
    It begins `delay` hours after the fault, and with `turning` it acts only while the unit turns.
    """

    variables: tuple[str, ...]
    how: Literal["add", "scale", "hold", "flicker", "exchange"]
    size: float = 0.0
    rise: float = 0.0
    delay: float = 0.0
    turning: bool = False

    def begin(self, start: pd.Timestamp) -> pd.Timestamp:
        """Return the first sample that this effect changes in a fault with this start."""
        return start + round(self.delay * STEPS_PER_HOUR) * STEP

    def strength(self, n: int) -> FloatArray:
        """Return the strength in each of n samples: up to 1; an effect with a time constant fades at its end.

        >>> Effect(("a",), "add", 1.0).strength(3).tolist()
        [1.0, 1.0, 1.0]
        >>> Effect(("a",), "add", 1.0, rise=1 / 3).strength(6).round(2).tolist()
        [0.39, 0.63, 0.78, 0.86, 0.67, 0.33]
        >>> Effect(("a",), "add", 1.0, rise=np.inf).strength(4).tolist()
        [0.25, 0.5, 0.75, 1.0]
        """
        if self.rise == 0:
            return np.ones(n)
        if self.rise == np.inf:
            return np.arange(1, n + 1) / n
        steps = self.rise * STEPS_PER_HOUR
        left = np.arange(n, 0, -1)
        return np.minimum(-np.expm1(-np.arange(1, n + 1) / steps), left / (steps + 1))


Context = Literal["any", "runs", "runs, then stands", "starts cold", "stands", "both run"]


@dataclass(frozen=True)
class Scenario:
    """A fault, or a look-alike (`variables` instead of effects), that can happen to either unit, or to the plant.

    Names of variables are those of the unit unless they say otherwise; {place} in them is one of `places`. The rest is
    used where seeds draw the events: the range of the duration (hours), what the unit does meanwhile, at which load
    (MW, None for that of the plan), and in which months it can happen (empty for any).
    """

    kind: str
    description: str
    effects: tuple[Effect, ...] = ()
    variables: tuple[str, ...] = ()
    places: int = 1
    hours: tuple[float, float] = (1.0, 4.0)
    context: Context = "runs"
    load: tuple[int, int] | None = None
    months: tuple[int, ...] = ()
    of_plant: bool = False


def numbered(name: str, count: int) -> tuple[str, ...]:
    """Return the names of sensors of one kind.

    >>> numbered("thrust_pad_temperature", 2)
    ('thrust_pad_temperature_1', 'thrust_pad_temperature_2')
    """
    return tuple(f"{name}_{number:0{len(str(count))}d}" for number in range(1, count + 1))


def _both(*names: str) -> tuple[str, ...]:
    return tuple(f"unit{unit}_{name}" for unit in (1, 2) for name in names)


_FLOWS = ("generator_cooling_water_flow", "bearing_cooling_water_flow")
_BEARING_OUTLETS = ("thrust_cooler_outlet_temperature", "turbine_bearing_cooler_outlet_temperature")
_OUTLETS = ("generator_cooling_outlet_temperature", *_BEARING_OUTLETS)
_OILS = ("thrust_oil_temperature", "generator_guide_bearing_oil_temperature", "turbine_guide_bearing_oil_temperature")
_LEVELS = ("thrust_oil_level", "generator_guide_bearing_oil_level", "turbine_guide_bearing_oil_level")
_COLD_AIR = numbered("cold_air_temperature", 2)
_HOT_AIR = numbered("hot_air_temperature", 2)
_WINDINGS = numbered("stator_winding_temperature", 12)
_CORE = numbered("stator_core_temperature", 4)
_PADS = numbered("thrust_pad_temperature", 6)
_UPPER_PADS = numbered("generator_guide_bearing_temperature", 3)
_LOWER_PADS = numbered("turbine_guide_bearing_temperature", 3)
_UPPER_VIBRATION = ("generator_guide_bearing_vibration_x", "generator_guide_bearing_vibration_y")
_LOWER_VIBRATION = ("turbine_guide_bearing_vibration_x", "turbine_guide_bearing_vibration_y")
_TRANSFORMER_WINDINGS = ("transformer_hv_winding_temperature", "transformer_lv_winding_temperature")


_WEEKS, _DAYS = (10 * 24.0, 21 * 24.0), (4 * 24.0, 10 * 24.0)

SCENARIOS = {
    # The faults of the fixed calendar.
    "air coolers without water": Scenario(
        "global",
        "The water valve of unit {unit}'s air coolers sticks nearly closed at high load; the whole generator "
        "overheats.",
        (
            Effect(("generator_cooling_water_flow",), "scale", -0.7),
            Effect(("generator_cooling_outlet_temperature",), "add", 9.0, rise=0.5),
            Effect((*_COLD_AIR, *_HOT_AIR), "add", 21.0, rise=0.8),
            Effect(_WINDINGS, "add", 24.0, rise=1.0),
            Effect(_CORE, "add", 20.0, rise=1.3),
            Effect(("rotor_temperature",), "add", 18.0, rise=1.2),
        ),
        hours=(4, 8), load=(46, 56),
    ),
    "shear pin": Scenario(
        "local",
        "A shear pin of unit {unit} breaks: one guide vane stays behind, the others open further for the same power.",
        (
            Effect(("guide_vane_opening",), "add", 8.0),
            Effect(("guide_vane_servo_stroke",), "add", 33.0),
            Effect(("head_cover_vibration",), "add", 0.35),
            Effect(("draft_tube_pressure_pulsation",), "add", 1.2),
        ),
        hours=(1, 3),
    ),
    "voltage transformer": Scenario(
        "one-sensor",
        "A fuse of unit {unit}'s voltage transformer ages: phase {place} reads {percent} % less than the other two.",
        (Effect(("stator_voltage_l{place}",), "scale", -0.05),), places=3,
    ),
    "creeping": Scenario(
        "local",
        "Unit {unit} creeps while it should stand still: guide vanes leak, the shaft turns slowly without lifting oil.",
        (
            Effect(("speed",), "add", 9.0),
            Effect(("discharge",), "add", 1.8),
            Effect(_PADS, "add", 4.0, rise=0.2),
        ),
        hours=(0.7, 2), context="stands",
    ),
    "damaged runner": Scenario(
        "global",
        "A log damages the runner of unit {unit}: it shakes, wears its lower bearing and wastes water, until it is "
        "stopped.",
        (
            Effect(("head_cover_vibration",), "scale", 2.0),
            Effect(("draft_tube_pressure_pulsation",), "scale", 2.5),
            Effect(_LOWER_VIBRATION, "scale", 2.2),
            Effect(_UPPER_VIBRATION, "scale", 1.4),
            Effect(("stator_frame_vibration", "end_winding_vibration"), "scale", 0.6),
            Effect(_LOWER_PADS, "add", 9.0, rise=0.8),
            Effect(("turbine_guide_bearing_oil_temperature",), "add", 6.0, rise=1.0),
            Effect(("discharge",), "add", 3.5),
            Effect(("guide_vane_opening",), "add", 6.0),
            Effect(("guide_vane_servo_stroke",), "add", 25.0),
            Effect(("axial_shaft_displacement",), "add", 0.15),
            Effect(("shaft_seal_leakage",), "add", 4.0, rise=0.5),
        ),
        hours=(3, 7), context="runs, then stands",
    ),
    "stuck when cold": Scenario(
        "one-sensor",
        "After the repair a sensor of unit {unit}'s lower bearing is stuck at the cold reading while the machine warms "
        "up.",
        (Effect(("turbine_guide_bearing_temperature_{place}",), "hold"),), places=3, context="starts cold",
    ),
    "clogged filter": Scenario(
        "spread",
        "Leaves clog the filter of the cooling main: a little less water everywhere, everything a little warmer.",
        (
            Effect(("plant_cooling_main_pressure",), "add", -0.12, rise=0.5),
            Effect(("plant_cooling_filter_difference",), "add", 0.03, rise=0.5),
            Effect(("plant_cooling_main_flow",), "scale", -0.03, rise=0.5),
            Effect(_both(*_FLOWS), "scale", -0.03, rise=0.5),
            Effect(_both(*_OUTLETS), "add", 0.7, rise=0.8),
            Effect(_both(*_OILS), "add", 0.8, rise=1.0),
            Effect(_both(*_PADS, *_UPPER_PADS, *_LOWER_PADS), "add", 0.9, rise=1.0),
            Effect(_both(*_COLD_AIR, *_HOT_AIR), "add", 1.0, rise=0.8),
            Effect(_both(*_WINDINGS, *_CORE), "add", 1.4, rise=1.2),
        ),
        hours=(4, 8), context="both run", months=(9, 10, 11), of_plant=True,
    ),
    "loose contact": Scenario(
        "one-sensor",
        "A loose contact: the temperature of unit {unit}'s winding in slot {place} jumps.",
        (Effect(("stator_winding_temperature_{place:02d}",), "flicker", 13.0),), places=12,
    ),
    "exchanged cables": Scenario(
        "local",
        "The repair exchanged two cables of unit {unit}: winding in slot {place} and hot air show each other's "
        "temperature.",
        (Effect(("stator_winding_temperature_{place:02d}", "hot_air_temperature_1"), "exchange"),), places=12,
    ),
    "cabinet supply": Scenario(
        "spread",
        "The supply of unit {unit}'s measuring cabinet sags: all temperatures of the generator read a little too high.",
        (Effect((*_WINDINGS, *_CORE, *_COLD_AIR, *_HOT_AIR, "rotor_temperature"), "add", 2.0),), context="any",
    ),
    "shorted field": Scenario(
        "local",
        "Turns of unit {unit}'s field winding are shorted: more current at less voltage for the same load, and uneven "
        "pull.",
        (
            Effect(("field_current",), "scale", 0.12),
            Effect(("field_voltage",), "scale", -0.05),
            Effect(_UPPER_VIBRATION, "add", 0.2),
        ),
        hours=(0.8, 3),
    ),
    "seeping bearing": Scenario(
        "hard",
        "A seal of unit {unit}'s lower bearing seeps: slightly less oil, slightly warmer, all of it within the noise.",
        (
            Effect(("turbine_guide_bearing_oil_level",), "add", -2.5, rise=1.0),
            Effect(_LOWER_PADS, "add", 0.6, rise=1.0),
            Effect(("turbine_guide_bearing_oil_temperature",), "add", 0.5, rise=1.0),
        ),
        hours=(3, 6),
    ),
    "thrust oil cooler": Scenario(
        "local",
        "The oil cooler of unit {unit}'s thrust bearing stops at low load in winter: as warm as at full load in "
        "summer.",
        (
            Effect(("thrust_oil_temperature",), "add", 9.0, rise=0.3),
            Effect(_PADS, "add", 9.0, rise=0.4),
            Effect(("thrust_cooler_outlet_temperature",), "add", -1.0, rise=0.2),
            Effect(("bearing_cooling_water_flow",), "scale", -0.25),
        ),
        hours=(1, 3), load=(14, 20), months=(11, 12, 1),
    ),
    # Only where seeds draw the events, as all that follow but three of the look-alikes.
    "frozen reading": Scenario(
        "one-sensor",
        "The reading of unit {unit}'s thrust pad {place} is frozen.",
        (Effect(("thrust_pad_temperature_{place}",), "hold"),), places=6, hours=(6, 14), context="any",
    ),
    "broken wire": Scenario(
        "one-sensor",
        "A wire breaks: unit {unit}'s core temperature at place {place} reads the lower end of its range.",
        (Effect(("stator_core_temperature_{place}",), "add", -400.0),), places=4, context="any",
    ),
    "lost signal": Scenario(
        "one-sensor",
        "The signal of unit {unit}'s spiral case pressure is lost and reads 0.",
        (Effect(("spiral_case_pressure",), "scale", -1.5),), context="any",
    ),
    "wrong calibration": Scenario(
        "one-sensor",
        "Unit {unit}'s flow meter is calibrated wrongly: it reads too much until this is put right.",
        (Effect(("discharge",), "scale", 0.07),), hours=(4, 10),
    ),
    # From cause to consequence: each effect begins later than the one before.
    "bearing coolers without water": Scenario(
        "propagating",
        "A valve closes: the bearing coolers of unit {unit} lose water; then outlets, oil and pads become warm.",
        (
            Effect(("bearing_cooling_water_flow",), "scale", -0.6),
            Effect(_BEARING_OUTLETS, "add", 4.0, rise=0.3, delay=0.34),
            Effect(_OILS, "add", 8.0, rise=0.8, delay=0.67),
            Effect((*_PADS, *_UPPER_PADS, *_LOWER_PADS), "add", 9.0, rise=0.8, delay=1.2),
            Effect(_LEVELS, "add", 5.0, rise=0.8, delay=1.5),
        ),
        hours=(5, 10),
    ),
    "closing air cooler valve": Scenario(
        "propagating",
        "The valve of unit {unit}'s air coolers closes half; heat moves on from air to windings, core and rotor.",
        (
            Effect(("generator_cooling_valve_position",), "scale", -0.45, rise=0.2),
            Effect(("generator_cooling_water_flow",), "scale", -0.45, rise=0.2, delay=0.17),
            Effect(("generator_cooling_outlet_temperature",), "add", 4.0, rise=0.4, delay=0.5),
            Effect(_COLD_AIR, "add", 7.0, rise=0.6, delay=0.67),
            Effect(_HOT_AIR, "add", 7.5, rise=0.6, delay=0.84),
            Effect(_WINDINGS, "add", 8.0, rise=0.8, delay=1.2),
            Effect(_CORE, "add", 7.0, rise=1.0, delay=1.67),
            Effect(("rotor_temperature",), "add", 7.0, rise=1.0, delay=2.0),
        ),
        hours=(6, 11),
    ),
    "transformer oil pump": Scenario(
        "propagating",
        "The oil pump of unit {unit}'s transformer fails: oil and windings become warm, in the end gas dissolves.",
        (
            Effect(("transformer_top_oil_temperature",), "add", 8.0, rise=1.0),
            Effect(_TRANSFORMER_WINDINGS, "add", 10.0, rise=1.0, delay=0.5),
            Effect(("transformer_oil_level",), "add", 3.5, rise=1.0, delay=1.0),
            Effect(("transformer_bottom_oil_temperature",), "add", -4.0, rise=1.0, delay=1.5),
            Effect(("transformer_dissolved_hydrogen",), "add", 9.0, rise=1.5, delay=3.0),
        ),
        hours=(7, 12),
    ),
    "shaft seal": Scenario(
        "propagating",
        "Unit {unit}'s shaft seal lacks water: it becomes warm, wears, leaks, and water enters the bearing oil.",
        (
            Effect(("shaft_seal_water_flow",), "scale", -0.4),
            Effect(("shaft_seal_temperature",), "add", 7.0, rise=0.3, delay=0.34),
            Effect(("shaft_seal_leakage",), "add", 4.0, rise=0.8, delay=1.5),
            Effect(("turbine_guide_bearing_oil_level",), "add", 9.0, rise=1.0, delay=3.0),
        ),
        hours=(5.5, 10),
    ),
    "governor pump": Scenario(
        "propagating",
        "The governor pump of unit {unit} wears: pressure falls, it works more, oil becomes warm, the servo weak.",
        (
            Effect(("governor_oil_pressure",), "add", -2.5, rise=0.3),
            Effect(("governor_pump_current",), "add", 5.0, rise=0.3, delay=0.34),
            Effect(("governor_oil_temperature",), "add", 5.0, rise=1.0, delay=1.0),
            Effect(("governor_oil_level",), "add", 8.0, rise=1.0, delay=1.5),
            Effect(("servo_opening_pressure",), "add", -2.5, rise=0.5, delay=2.0),
        ),
        hours=(5, 9),
    ),
    "unbalanced rotor": Scenario(
        "propagating",
        "The rotor of unit {unit} loses a balance weight: shaft and frame shake, then the upper bearing becomes warm.",
        (
            Effect(_UPPER_VIBRATION, "scale", 0.8),
            Effect(("stator_frame_vibration", "end_winding_vibration"), "scale", 0.4, delay=0.17),
            Effect(_UPPER_PADS, "add", 5.0, rise=0.8, delay=0.67),
            Effect(("generator_guide_bearing_oil_temperature",), "add", 3.5, rise=0.8, delay=1.5),
            Effect(("generator_guide_bearing_oil_level",), "add", 5.0, rise=0.8, delay=2.0),
        ),
        hours=(4.5, 9),
    ),
    "blocked trash rack": Scenario(
        "propagating",
        "Wood blocks the trash rack: head is lost, pressure falls, and the guide vanes of both units open further.",
        (
            Effect(("plant_trash_rack_difference",), "add", 0.7, rise=0.5),
            Effect(_both("net_head"), "add", -0.7, rise=0.5, delay=0.17),
            Effect(_both("penstock_pressure", "spiral_case_pressure"), "add", -0.1, rise=0.5, delay=0.34),
            Effect(_both("guide_vane_opening"), "add", 2.5, rise=0.5, delay=0.67),
            Effect(_both("guide_vane_servo_stroke"), "add", 10.0, rise=0.5, delay=0.84),
        ),
        hours=(4, 9), context="both run", of_plant=True,
    ),
    "fouled air coolers": Scenario(
        "slow",
        "The air coolers of unit {unit} foul over weeks, until they are cleaned.",
        (
            Effect((*_COLD_AIR, *_HOT_AIR), "add", 5.0, rise=np.inf, turning=True),
            Effect((*_WINDINGS, *_CORE), "add", 5.0, rise=np.inf, turning=True),
            Effect(("rotor_temperature",), "add", 4.5, rise=np.inf, turning=True),
            Effect(("generator_cooling_valve_position",), "add", 13.0, rise=np.inf, turning=True),
            Effect(("generator_cooling_water_flow",), "scale", 0.1, rise=np.inf, turning=True),
        ),
        hours=_WEEKS, context="any",
    ),
    "fouled thrust oil cooler": Scenario(
        "slow",
        "The oil cooler of unit {unit}'s thrust bearing fouls over weeks, until it is cleaned.",
        (
            Effect(("thrust_oil_temperature", *_PADS), "add", 4.5, rise=np.inf, turning=True),
            Effect(("thrust_cooler_outlet_temperature",), "add", -1.5, rise=np.inf, turning=True),
            Effect(("thrust_oil_level",), "add", 2.5, rise=np.inf, turning=True),
        ),
        hours=_WEEKS, context="any",
    ),
    "worn runner": Scenario(
        "slow",
        "Sand wears the runner of unit {unit} over weeks: more water and wider guide vanes for the same power.",
        (
            Effect(("discharge",), "scale", 0.05, rise=np.inf),
            Effect(("guide_vane_opening",), "scale", 0.06, rise=np.inf),
            Effect(("guide_vane_servo_stroke",), "scale", 0.06, rise=np.inf),
            Effect(("draft_tube_pressure_pulsation", "head_cover_vibration"), "scale", 0.4, rise=np.inf),
        ),
        hours=_WEEKS, context="any",
    ),
    "silted filter": Scenario(
        "slow",
        "Silt fills the filter of the cooling main over weeks, until it is washed.",
        (
            Effect(("plant_cooling_filter_difference",), "add", 0.12, rise=np.inf),
            Effect(("plant_cooling_main_pressure",), "add", -0.3, rise=np.inf),
            Effect(("plant_cooling_main_flow", *_both(*_FLOWS)), "scale", -0.05, rise=np.inf),
        ),
        hours=_WEEKS, context="any", of_plant=True,
    ),
    **{
        f"drift of {name}": Scenario(
            "slow",
            f"The sensor of unit {{unit}}'s {words} drifts for days, until it is calibrated.",
            (Effect((name,), "add", size, rise=np.inf),), places=places, hours=_DAYS, context="any",
        )
        for name, words, size, places in (
            ("stator_winding_temperature_{place:02d}", "winding temperature in slot {place}", 5.0, 12),
            ("thrust_pad_temperature_{place}", "thrust pad temperature {place}", -4.0, 6),
            ("thrust_oil_level", "thrust oil level", -14.0, 1),
            ("spiral_case_pressure", "spiral case pressure", 0.3, 1),
            ("net_head", "net head", -1.2, 1),
            ("transformer_oil_level", "transformer oil level", 4.0, 1),
        )
    },
    "condenser": Scenario(
        "look-alike",
        "Unit {unit} as synchronous condenser: the runner turns in compressed air, the generator supports the grid "
        "voltage.",
        variables=(
            "active_power", "reactive_power", "power_factor", "discharge", "guide_vane_opening", "head_cover_pressure",
            "field_current",
        ),
        hours=(1.5, 4),
    ),
    "flood": Scenario(
        "look-alike",
        "Flood: the spillway opens, the tailwater rises by metres, and both units open further for the same full load.",
        variables=(
            "plant_reservoir_inflow", "plant_spillway_flow", "plant_tailwater_level", "plant_gross_head",
            *_both("guide_vane_opening"), *_both("active_power"),
        ),
        hours=(5, 10), context="both run", load=(60, 60), of_plant=True,
    ),
    "efficiency test": Scenario(
        "look-alike",
        "Efficiency test of unit {unit}: ten-minute steps through all loads, with the rough zone that dispatch avoids.",
        variables=(
            "power_setpoint", "active_power", "guide_vane_opening", "discharge", "draft_tube_pressure_pulsation",
            "head_cover_vibration",
        ),
        hours=(10 / 6, 10 / 6),
    ),
    "heat wave": Scenario(
        "look-alike",
        "Heat wave: air, machine hall and transformers are far warmer than on the days before and after.",
        variables=(
            "plant_outside_air_temperature", "plant_machine_hall_temperature",
            *_both("transformer_top_oil_temperature", "transformer_bottom_oil_temperature"),
        ),
        hours=(20, 44), context="any", months=(7, 8), of_plant=True,
    ),
    "grid disturbance": Scenario(
        "look-alike",
        "Disturbance of the grid: frequency and voltage are low, and both units support them.",
        variables=(
            "plant_busbar_voltage",
            *_both("frequency", "active_power", "reactive_power", "stator_current_l1", "field_current"),
        ),
        hours=(0.7, 3), context="both run", of_plant=True,
    ),
    "outage": Scenario(
        "look-alike",
        "Planned outage of unit {unit}: it stands still longer than ever, and all of it is as cold as the hall.",
        variables=("power_setpoint", "speed", "active_power", "thrust_oil_temperature", "rotor_temperature"),
        hours=(30, 50), context="stands",
    ),
}  # fmt: skip
