"""Vibration: with the speed, with the load, and worst in the rough zone at part load and while starting or stopping."""

from __future__ import annotations

import numpy as np

from penstock._types import FloatArray
from penstock.simulate._dispatch import RATED_POWER, Operation

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
