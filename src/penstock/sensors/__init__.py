"""Score sensors by each other over time.

`residuals` say what each sensor should read given the others; `evidence` is the time layer, from residuals of any
source to evidence per sensor and a score per row; `novelty` finds states that are new; `series` puts them together.
"""

from penstock.sensors.evidence import (
    TimeLayer,
    learn_movement,
    learn_surprise,
    learn_time_layer,
    score_both_sides,
)
from penstock.sensors.readings import Clock, LastRow, Scale, Spacing, learn_clock, learn_scale
from penstock.sensors.residuals import learn_leave_one_out
from penstock.sensors.series import ResidualState, SensorModel, SeriesFit, SeriesModel, SeriesScores, learn_series

__all__ = [
    "Clock",
    "LastRow",
    "ResidualState",
    "Scale",
    "SensorModel",
    "SeriesFit",
    "SeriesModel",
    "SeriesScores",
    "Spacing",
    "TimeLayer",
    "learn_clock",
    "learn_leave_one_out",
    "learn_movement",
    "learn_scale",
    "learn_series",
    "learn_surprise",
    "learn_time_layer",
    "score_both_sides",
]
