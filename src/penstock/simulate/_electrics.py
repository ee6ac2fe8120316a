"""Voltage, reactive power, currents and excitation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock._types import FloatArray
from penstock.simulate._dispatch import Operation
from penstock.simulate._randomness import red_noise, stream
from penstock.simulate._surroundings import Surroundings

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
