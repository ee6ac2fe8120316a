"""What a sensor shows: the record that the areas of the plant fill in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock._types import FloatArray


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
