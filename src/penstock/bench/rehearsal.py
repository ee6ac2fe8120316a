"""What is imported or compiled when a detector is first used, done before it counts as the cost of a cell."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from contextlib import suppress

import numpy as np

from penstock.bench.methods import build, find_class, import_path
from penstock.bench.training_scores import training_scores

_KNOWN = ("penstock", "pyod", "sklearn")  # a detector of anybody else's is imported, and fitted in its cells only


def rehearse(detectors: Iterable[str]) -> None:
    """Import detectors and fit those of known libraries to a few rows; what fails here will say so in its cell."""
    rng = np.random.default_rng(0)
    rows, labels = rng.random((64, 5)), np.arange(64) < 4
    for detector in detectors:
        with suppress(Exception), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            find_class(detector)
            if import_path(detector).partition(".")[0] in _KNOWN:
                training_scores(build(detector, {}, seed=0), rows, labels)
