"""Temperatures: losses heat, water and air cool, and everything follows with its own time constant."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock._types import FloatArray
from penstock.simulate._dispatch import RATED_POWER, Operation
from penstock.simulate._electrics import RATED_CURRENT, RATED_FIELD, Electrics
from penstock.simulate._hydraulics import WaterPath
from penstock.simulate._lag import follow
from penstock.simulate._surroundings import Surroundings

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
