"""Readings of the area "transformer": the transformer of each unit, the busbar and the station service."""

from __future__ import annotations

import numpy as np

from penstock.simulate._machinery import Machinery, Unit
from penstock.simulate._readings import Reading, temperature

_PHASES = (1.0, 1.003, 0.996)
_RATIO = 13.8 / 226


def transformer_readings(plant: Machinery, unit: Unit) -> list[Reading]:
    """The transformer that lifts 13.8 kV to the grid."""
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
            for phase, share in enumerate(_PHASES, 1)
        ),
    ]


def grid_readings(plant: Machinery) -> list[Reading]:
    """Where the power goes, and the little that the plant keeps for itself."""
    running = np.sum([unit.operation.rotation for unit in plant.units], axis=0)
    service = 120 + 90 * running + 4 * np.maximum(0.0, 15 - plant.around.air)  # A: auxiliaries and heating
    return [
        Reading("busbar_voltage", "kV", plant.around.busbar, 0.15, 1),
        Reading("station_service_voltage", "V", 400 * plant.around.busbar / 226 - 0.01 * service, 0.8, 0),
        Reading("station_service_current", "A", service, 5.0, 0, low=0),
    ]
