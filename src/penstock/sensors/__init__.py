"""Judge sensors by each other over time.

`residuals` say what each sensor should read given the others; `evidence` is the time layer, from residuals of any
source to evidence per sensor and a score per row; `novelty` finds states that are new; `judge` puts them together.
"""

from penstock.sensors.evidence import TimeLayer, judge_both_sides, learn_surprise, learn_time_layer
from penstock.sensors.judge import Judgement, Learnt, ResidualState, SensorModel, SeriesModel, learn_series
from penstock.sensors.readings import Clock, LastRow, Scale, Spacing, learn_clock, learn_scale
from penstock.sensors.residuals import learn_leave_one_out

__all__ = [
    "Clock",
    "Judgement",
    "LastRow",
    "Learnt",
    "ResidualState",
    "Scale",
    "SensorModel",
    "SeriesModel",
    "Spacing",
    "TimeLayer",
    "judge_both_sides",
    "learn_clock",
    "learn_leave_one_out",
    "learn_scale",
    "learn_series",
    "learn_surprise",
    "learn_time_layer",
]
