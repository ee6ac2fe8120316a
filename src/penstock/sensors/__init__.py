"""Judge sensors by each other over time.

`residuals` say what each sensor should read given the others; `evidence` is the time layer, from residuals of any
source to evidence per sensor and a score per row; `novelty` finds states that are new; `judge` puts them together.
"""

from penstock.sensors.judge import Judgement, SensorModel, SeriesState, learn_series
from penstock.sensors.readings import Scale, find_starts, learn_scale
from penstock.sensors.residuals import LeaveOneOut, learn_leave_one_out

__all__ = [
    "Judgement",
    "LeaveOneOut",
    "Scale",
    "SensorModel",
    "SeriesState",
    "find_starts",
    "learn_leave_one_out",
    "learn_scale",
    "learn_series",
]
