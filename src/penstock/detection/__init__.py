"""The whole job as functions: a table in, findings out, composed of what the other rooms do.

`detect` reads a table, checks its columns, separates operating modes, fits a detector to each, and returns
`Findings`: scored rows, events, days, and explanations. `fit_model` and `score` are its two halves, and `look` is its
beginning: what was understood of the data, before anything is scored.
"""

from penstock.detection._detect import detect, fit_model, look, score
from penstock.detection._explaining import Explanation, state_in_words
from penstock.detection._model_files import load
from penstock.detection._parts import Abilities, ModePart
from penstock.detection._periods import rows_of_period
from penstock.detection._plans import FitPlan, ScorePlan
from penstock.detection._preparing import FROM_DATA, Progress, ReadSettings
from penstock.detection._shifts import NO_LONGER_FITS, Shift
from penstock.detection.data import DataSummary, TagSummary, TimeSummary
from penstock.detection.failures import Failure, read_failures
from penstock.detection.findings import Assessment, Explained, Findings, RowDetails, ScoredInputs
from penstock.detection.model import Model, deviations, label_incident
from penstock.detection.modes import UNKNOWN, ModePlan, mode_name
from penstock.registry import METHODS, make_detector

__all__ = [
    "FROM_DATA", "METHODS", "NO_LONGER_FITS", "UNKNOWN", "Abilities", "Assessment", "DataSummary", "Explained",
    "Explanation", "Failure", "Findings", "FitPlan", "ModePart", "ModePlan", "Model", "Progress",
    "ReadSettings", "RowDetails", "ScorePlan", "ScoredInputs", "Shift", "TagSummary", "TimeSummary", "detect",
    "deviations", "fit_model", "label_incident", "load", "look", "make_detector", "mode_name",
    "read_failures", "rows_of_period", "score", "state_in_words",
]  # fmt: skip
