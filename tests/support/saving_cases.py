"""What several tests of detectors share: taken from those of saving."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

import penstock
from penstock import thresholds
from penstock.detectors import BaseDetector


def alike(a: Any, b: Any) -> bool:
    """Whether two attributes are the same to the last bit, whatever they are."""
    if type(a) is not type(b):
        return False
    if sparse.issparse(a):  # SciPy is free to choose the width of its indices
        same = all(np.array_equal(getattr(a, part), getattr(b, part)) for part in ("shape", "indptr", "indices"))
    elif isinstance(a, np.ndarray):
        same = a.dtype == b.dtype and a.shape == b.shape and a.flags.c_contiguous and b.flags.c_contiguous
    elif isinstance(a, pd.Index):
        same = a.dtype == b.dtype and a.equals(b) and a.names == b.names
    elif isinstance(a, BaseDetector):  # inside of another
        return all(alike(vars(a)[name], vars(b)[name]) for name in vars(a) | vars(b))
    elif dataclasses.is_dataclass(a):
        same = all(alike(getattr(a, field.name), getattr(b, field.name)) for field in dataclasses.fields(a))
    else:
        same = True
    return same and plainly(a) == plainly(b)


def plainly(value: Any) -> Any:
    """Something that can be compared with ==."""
    if isinstance(value, np.ndarray):
        return value.tolist() if value.dtype == object else value.tobytes()
    if sparse.issparse(value):
        return value.data.tobytes()
    if isinstance(value, np.random.RandomState):
        return str(value.get_state()), str(value.get_state()[1].tolist())
    if isinstance(value, thresholds.Threshold):
        return str(thresholds.pack_threshold(value))
    return True if isinstance(value, pd.Index) or dataclasses.is_dataclass(value) else value


def assert_same_detector(a: Any, b: Any) -> None:
    assert type(a) is type(b)
    kept = set(vars(a)) - {"evidence_"}  # of the training rows of a series, n x p: not in files
    assert kept == set(vars(b)) - {"evidence_"}
    for name in kept:
        assert alike(vars(a)[name], vars(b)[name]), name


def saved_and_loaded(detector: Any, folder: Path) -> Any:
    detector.save(folder / "saved.safetensors")
    return penstock.load(folder / "saved.safetensors")
