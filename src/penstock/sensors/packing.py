"""Turn models and states of series into parts of a saved state, and back; everything read is checked."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

import numpy as np

from penstock._types import FloatArray
from penstock.certainty import EpisodeRate
from penstock.sensors.evidence import (
    HORIZONS,
    LATER_CHANNELS,
    Activity,
    ActivityState,
    Calibration,
    LayerState,
    Surprise,
    TimeLayer,
)
from penstock.sensors.novelty import COURSE, RECENT, Novelty, NoveltyState
from penstock.sensors.readings import LARGEST_READING, Clock, LastRow, Scale
from penstock.sensors.residuals import RIDGE, LeaveOneOut
from penstock.sensors.series import Blend, Past, PastState, ResidualState, SensorModel, SeriesState
from penstock.storage import Record, StorageError, read_field

T = TypeVar("T")

_LEAST = 1e-300  # of what is divided by
_LARGEST = 1e40  # of what is not in the user's units: squares and their products do not overflow
_LATER = {"h": LATER_CHANNELS, "k": LATER_CHANNELS + 1}
_EARLIER = {"h": len(HORIZONS)}
# Fields of each record as in `penstock.storage.fields`; or a record, with its lengths where these are its own. Letters
# stand for lengths: p sensors, r residuals (p, or 1 in all), q of them scored, h horizons, k = h + 1, c columns of a
# state, a and d directions, m reference rows.
_FIELDS: dict[type, dict[str, Any]] = {
    Scale: {
        "center": "p", "width": "p >0", "scored": "p bool", "still": "p bool", "seldom": "p bool",
    },
    Clock: {"step": float, "gap": "float inf"},
    LeaveOneOut: {"mean": "p", "precision": "p p"},
    Activity: {"center": "p", "directions": "p a", "typical": "6 >0", "coefficients": "6 r", "floors": "r >0"},
    Calibration: {"channels": "h q", "edges": "h q", "tops": "h 2 >0", "powers": "h q", "leads": "q bool"},
    Surprise: {"median": "s", "spread": "s"},
    TimeLayer: {
        "scored": "r bool",
        "activity": Activity,
        "calibration": (Calibration, _LATER),
        "surprise": (Surprise, {"s": 2}),
    },
    Novelty: {
        "center": "c", "directions": "c d", "references": "m d", "places": "m int", "zone": int, "usual": float,
        "surprise": (Surprise, {"s": 1}), "constant": "c bool", "horizon": int, "column": int,
    },
    Past: {"least": float, "floors": "q", "calibration": (Calibration, _EARLIER), "surprise": (Surprise, {"s": 2})},
    SensorModel: {
        "scale": Scale, "clock": Clock, "residuals": LeaveOneOut, "layer": TimeLayer, "novelty": Novelty,
        "past": ("?", Past), "past_moments": "3 q", "blend": Blend,
        "watched": "p bool", "news": float,
    },
    Blend: {"weight": float, "added": float},
    EpisodeRate: {"block": int, "blocks": int, "start": float, "rate": float, "spread": float, "tail": float},
    ActivityState: {"last": "a", "means": "2 1", "since": int},
    LayerState: {"means": "k q", "activity": ActivityState, "levels": "2 q", "rows": int},
    NoveltyState: {"constant_means": "p", "level": "1 >0", "recent": f"{RECENT}", "mean": "1"},
    PastState: {"moments": "3 q", "means": "h q"},
    LastRow: {"time": ("?", float), "run": "label", "begun": bool},
    SeriesState: {
        "layer": (LayerState, _LATER), "novelty": NoveltyState, "past": (PastState, _EARLIER), "moves": "2 p",
        "last": LastRow,
    },
    ResidualState: {"layer": (LayerState, _LATER), "last": LastRow},
}  # fmt: skip
_LEAST_OF: dict[tuple[type, str], float] = {
    (Clock, "step"): 0.0, (Clock, "gap"): 0.0, (Activity, "typical"): 1e-13,
    (Novelty, "horizon"): 1, (Novelty, "column"): -1,
    (Surprise, "median"): -_LARGEST, (Surprise, "spread"): 1e-3, (Novelty, "usual"): 1e-13, (Past, "least"): 1.0,
    (EpisodeRate, "block"): 1, (EpisodeRate, "rate"): 1e-6, (EpisodeRate, "spread"): 1e-3, (EpisodeRate, "tail"): 0.1,
    (Calibration, "powers"): 1e-3, (Blend, "weight"): 0.0, (Blend, "added"): 0.0,
}  # fmt: skip
_IN_UNITS_OF_USERS = (Scale, Clock, LastRow, EpisodeRate)


def pack(record: Any) -> Any:
    """Return a record of this room as nested dicts of numbers and arrays.

    >>> pack(Surprise(np.array([1.0]), np.array([0.5])))
    {'median': array([1.]), 'spread': array([0.5])}
    """
    if not is_dataclass(record):
        return record.item() if isinstance(record, np.generic) else record
    return {each.name: pack(getattr(record, each.name)) for each in fields(record)}


def unpack(cls: type[T], record: Record, lengths: dict[str, int]) -> T:
    """Return the record of a class from what `pack` gave; a StorageError if something does not fit.

    cls : one of the records of this room.
    record : from a file.
    lengths : known lengths, at least "p" and "r"; others are noted when they are first met.
    """
    record.require_fields(*_FIELDS[cls])
    values: dict[str, Any] = {}
    for name, kind in _FIELDS[cls].items():
        bounds = _LEAST_OF.get((cls, name)), np.inf if cls in _IN_UNITS_OF_USERS else _LARGEST
        values[name] = _unpack_field(record, name, kind, lengths, *bounds)
        if name == "scored":
            lengths["q"] = int(values[name].sum())
            if not lengths["q"]:
                raise StorageError(f"{record.place}['scored'] should have a sensor that is scored")
        if name == "precision":
            _check_precision(record, values[name])
        if name in ("moments", "past_moments") and not (values[name][::2] >= 0).all():
            raise StorageError(f"{record.place}[{name!r}] should hold counts and sums of squares ≥ 0")
    if cls is Novelty:
        expected = lengths["p"] if values["column"] < 0 else COURSE
        if len(values["center"]) != expected or values["column"] >= lengths["p"]:
            raise StorageError(f"{record.place}['center'] should be that of {expected} columns")
    return cls(**values)


def _check_precision(record: Record, precision: FloatArray) -> None:
    """Raise unless this can be the inverse of a covariance of scaled readings plus a ridge: no division by 0 then."""
    p = len(precision)
    sound = bool((precision == precision.T).all() and precision.max(initial=0.0) <= 1.01 / RIDGE)
    try:
        np.linalg.cholesky(precision - 0.5 / (LARGEST_READING**2 * p + RIDGE) * np.eye(p))
    except np.linalg.LinAlgError:
        sound = False
    if not sound:
        raise StorageError(f"{record.place}['precision'] should be an inverse covariance")


def _unpack_field(
    record: Record, name: str, kind: Any, lengths: dict[str, int], least: float | None, largest: float
) -> Any:
    if isinstance(kind, tuple) and kind[0] == "?":
        return None if record.value(name) is None else _unpack_field(record, name, kind[1], lengths, least, largest)
    if isinstance(kind, tuple):
        return unpack(kind[0], record.part(name), lengths | kind[1])
    if kind == "label":
        value = record.value(name)
        if not isinstance(value, str | int | float | None):
            raise record.error(name, "a text or a number")
        return value
    if is_dataclass(kind):
        return unpack(kind, record.part(name), lengths)  # type: ignore[arg-type]
    if least is None and kind is not int:
        least = _LEAST if ">0" in str(kind) else -largest
    return read_field(record, name, kind, lengths, least, largest)
