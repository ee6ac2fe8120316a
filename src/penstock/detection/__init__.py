"""The whole job as functions: a table in, findings out, composed of what the other rooms do.

`detect` reads a table, checks its columns, tells operating modes apart, fits a detector to each, and returns
`Findings`: scored rows, events, days, and explanations. `fit_model` and `score` are its two halves.
"""

from penstock.detection._detect import detect, fit_model, score
from penstock.detection._explaining import Explanation, explain
from penstock.detection._model_files import load_model
from penstock.detection.findings import Findings
from penstock.detection.model import Model, ModelError
from penstock.registry import METHODS, make_detector

__all__ = [
    "METHODS",
    "Explanation",
    "Findings",
    "Model",
    "ModelError",
    "detect",
    "explain",
    "fit_model",
    "load_model",
    "make_detector",
    "score",
]
