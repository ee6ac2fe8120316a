"""Unusual but right: what looks like a fault and is none, on the days of the paper's false alarms.

The plant is really driven this way (`_dispatch.py`, `_surroundings.py`); all readings follow by the same physics.
"""

from __future__ import annotations

import pandas as pd

from penstock.simulate._calendar import Span
from penstock.simulate._events import Event

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
