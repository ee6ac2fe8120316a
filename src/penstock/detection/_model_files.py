"""Save models to files and load models and detectors, without pickle."""

from __future__ import annotations

import os
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pandas as pd

from penstock.columns import Encoding, InputChoice, InputRole, LeftOut, parse_rule
from penstock.detection._parts import ALL, MOST_REFERENCES, Abilities, ModePart
from penstock.detection._periods import shown
from penstock.detection._preparing import ReadSettings
from penstock.detection.model import Model
from penstock.detection.modes import CHANGING, MOST_RULES, OTHER, UNKNOWN, ModePlan, refuse_names
from penstock.detectors import MONITOR, restore, restore_monitor, state_of
from penstock.explain import MOST_LABELS, Label
from penstock.io import Alignment, AlignOptions, TimeOptions, TimeReader, as_zone
from penstock.options import SourceOptions, as_names
from penstock.prepare import SCALING, unpack_scaling
from penstock.storage import Fields, Record, StorageError, pack_fields, read_fields, read_state, write_state

KIND = "model"
_PLAIN = (type(None), bool, int, float, str)
_TEXTS = [str]
_READING: Fields = {  # of an option that is not named here a text or nothing; other rows are other queries
    **{each.name: ("?", str) for each in fields(SourceOptions) if each.name != "query"},
    "time": _TEXTS,
    "columns": ("?", _TEXTS),
    "exclude": _TEXTS,
    "names": _TEXTS,
    "missing": _TEXTS,
    "strict": bool,
    "day_first": ("?", bool),
    "max_bytes": ("?", "int >=1"),
    "time_reader": object,
    "alignment": object,
    "words": ("?", _TEXTS),
}
_ENCODING: Fields = {"column": str, "method": str, "categories": _TEXTS, "counts": ["int >=1"]}
_ROLE: Fields = {
    "role": str, "scored": bool, "named": bool, "levels": [float], "low": "nan inf", "high": "nan inf",
}  # fmt: skip
_INPUTS: Fields = {
    "as_they_are": _TEXTS,
    "encoded": [_ENCODING],
    "left_out": [{"name": str, "reason": str}],
    "roles": ("by name", _ROLE),
}
_MODES: Fields = {
    "column": ("?", str),
    "rules": [{"name": str, "rule": str}],
    "skip": _TEXTS,
    "settle_rows": ("?", "int >=0"),
    "settle_seconds": ("?", "float >=0"),
}
_PART: Fields = {
    "mode": str, "usual": "float >0", "scaled_before": object, "reference": ("?", "n p nan"), "detector": object,
}  # fmt: skip
_MODEL: Fields = {
    "reading": _READING,
    "inputs": _INPUTS,
    "modes": _MODES,
    "parts": [object],
    "units": ("by name", str),
    "settings": ("by name", object),
    "labels": [object],
}


def save_model(model: Model, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write a model to a file atomically; an existing file is replaced only if `overwrite`."""
    if os.path.lexists(path) and not overwrite:
        raise FileExistsError(
            f"{os.fspath(path)} is there already. Choose another name, or overwrite=True (--overwrite)."
        )
    state = _pack(model)
    _unpack_reading(read_fields(Record(state["reading"], "reading"), _READING))  # what could not be loaded
    write_state(path, KIND, state)


def load(path: str | os.PathLike[str]) -> Any:
    """Load what `save` of a detector or monitor, `penstock fit` or `penstock.scale` wrote: equal to the last bit.

    Nothing is fitted again, and nothing in the file is executed.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    detector, SeriesMonitor or Model
        The detector or monitor that was saved, or the `Model` of `fit_model`.

    Raises
    ------
    penstock.storage.StorageError
        If the file is damaged, was not made by penstock, or holds what does not fit.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from penstock import LoMST, fit_model, load
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> path = tempfile.mkdtemp() + "/lomst.safetensors"
    >>> detector = LoMST(5, contamination=0.1).fit(X)
    >>> detector.save(path)
    >>> load(path)
    LoMST(contamination=0.1, n_neighbors=5)
    >>> bool((load(path).predict(X) == detector.predict(X)).all())
    True
    """
    kind, state = read_state(path)
    try:
        if kind == "detector":
            return restore(state)
        if kind == KIND:
            return _unpack(Record(state, "model"))
        if kind == MONITOR:
            return restore_monitor(state)
    except (ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError) as error:
        raise StorageError(
            f"Cannot load {os.fspath(path)}: the file is sound, but what it holds is not a {kind} of this version of "
            f"penstock ({error!s:.500})."
        ) from error
    raise StorageError(f"Cannot load {os.fspath(path)}: it holds a {kind!r:.80}, not a detector or a model")


def _pack(model: Model) -> dict[str, Any]:
    reading = replace(model.reading, time=as_names(model.reading.time), timezone=shown(model.reading.timezone))
    clock, times = reading.alignment, reading.time_reader
    settle = model.modes.settle
    return {
        "reading": {
            **pack_fields(reading, _READING),
            "alignment": None if clock is None else clock.state(),
            "time_reader": None if times is None else times.state(),
        },
        "inputs": pack_fields(model.inputs, _INPUTS),
        "modes": {
            "column": model.modes.column,
            "rules": [{"name": name, "rule": str(rule)} for name, rule in model.modes.rules],
            "skip": list(model.modes.skip),
            "settle_rows": settle if isinstance(settle, int) else None,
            "settle_seconds": settle.total_seconds() if isinstance(settle, pd.Timedelta) else None,
        },
        "parts": [
            {
                **pack_fields(part, _PART),
                "usual": float(part.usual),
                "scaled_before": None if part.scaled_before is None else pack_fields(part.scaled_before, SCALING),
                "detector": state_of(part.detector),
            }
            for part in model.parts
        ],
        "units": dict(model.units),
        "settings": {name: shown(value) for name, value in model.settings.items()},
        "labels": [{**each.as_dict(), "pattern": dict(each.pattern)} for each in model.labels],
    }


def _unpack(record: Record) -> Model:
    found = read_fields(record, _MODEL)
    inputs = _unpack_inputs(found["inputs"])
    packed = found["parts"]
    if not 1 <= len(packed) <= MOST_RULES + 1:  # one for rows to which no rule applies
        raise StorageError(f"a model has 1 to {MOST_RULES + 1} parts, not {len(packed):,}")
    parts = tuple(_unpack_part(Record(part, f"parts[{n}]"), inputs) for n, part in enumerate(packed))
    modes = _unpack_modes(found["modes"])
    if len({part.mode for part in parts}) < len(parts):
        raise StorageError("a model has one part for each mode")
    names = [name for name, _ in modes.rules]
    possible = {*names, OTHER} - {*modes.skip} if names else {ALL}
    never = (*modes.skip, UNKNOWN, CHANGING)
    for part in parts:  # a row that is scored must be able to have its mode
        is_possible = part.mode in possible if modes.column is None else part.mode not in never
        if not is_possible:
            raise StorageError(f"a part is of a mode that no row has, {part.mode!r:.80}")
    if set(found["units"]) != set(inputs.names):
        raise record.error("units", "a text for each input")
    if not all(isinstance(value, _PLAIN) for value in found["settings"].values()):
        raise record.error("settings", "plain values by name")
    labels = tuple(map(Label.from_dict, found["labels"]))
    if len(labels) > MOST_LABELS or len({each.id for each in labels}) < len(labels):
        raise record.error("labels", f"at most {MOST_LABELS} labels with ids that differ")
    reading = _unpack_reading(found["reading"])
    return Model(reading, inputs, modes, parts, found["units"], found["settings"], labels=labels)


def _unpack_part(record: Record, inputs: InputChoice) -> ModePart:
    p = len(inputs.names)
    found = read_fields(record, _PART, {"p": p})
    detector = restore(found["detector"])
    # One for streams may have been saved in its warm-up, without scores.
    scored = getattr(detector, "is_warm", True) and np.isfinite(getattr(detector, "scores_", np.nan)).any()
    if getattr(detector, "n_features_in_", None) != p or not scored:
        raise StorageError(f"the detector of mode {found['mode']!r:.80} is not fitted to the inputs")
    can = Abilities.of(detector)
    scaling = unpack_scaling(record.optional_part("scaled_before"), p)
    if (scaling is not None) != can.scaled_before:
        raise record.error("scaled_before", "a range for a detector of streams, and None for others")
    reference = found["reference"]
    if can.rebuilds and reference is not None:
        raise record.error("reference", "None for a detector that rebuilds rows")
    if not can.rebuilds and (reference is None or not 0 < len(reference) <= MOST_REFERENCES):
        raise record.error("reference", f"1 to {MOST_REFERENCES:,} rows")
    return ModePart(found["mode"], detector, found["usual"], scaling, reference)


def _unpack_inputs(found: dict[str, Any]) -> InputChoice:
    choice = InputChoice(
        found["as_they_are"],
        tuple(Encoding(**each) for each in found["encoded"]),
        tuple(LeftOut(**each) for each in found["left_out"]),
        {name: InputRole(**role) for name, role in found["roles"].items()},
    )
    for each in choice.encoded:
        n_kinds = len(set(each.categories))
        if (
            not n_kinds == len(each.categories) == len(each.counts)
            or not n_kinds
            or each.method not in Encoding.METHODS
        ):
            raise StorageError(
                f"the encoding of column {each.column!r:.80} needs a known method and counted categories"
            )
    for name, role in choice.roles.items():
        if list(role.levels) != sorted(set(role.levels)):
            raise StorageError(f"the levels of {name!r:.80} should be ascending")
    if len(set(choice.names)) < len(choice.names) or set(choice.roles) != set(choice.names):
        raise StorageError("inputs have names that differ, and a role each")
    return choice


def _unpack_modes(found: dict[str, Any]) -> ModePlan:
    rows, seconds, rules = found["settle_rows"], found["settle_seconds"], found["rules"]
    if (found["column"] is not None and rules) or (rows is not None and seconds is not None):
        raise StorageError("modes are by a column or by rules, and settle for rows or for seconds")
    refuse_names([each["name"] for each in rules])
    settle = rows if seconds is None else pd.Timedelta(seconds=seconds)
    parsed = tuple((each["name"], parse_rule(each["rule"])) for each in rules)
    return ModePlan(found["column"], parsed, found["skip"], settle)


def _unpack_reading(found: dict[str, Any]) -> ReadSettings:
    """Return how a source is read; what reading a table would refuse is refused here."""
    as_zone(found["timezone"])
    TimeOptions(format=found["time_format"])
    AlignOptions.of(found["step"], found["hold"])
    clock, times = found["alignment"], found["time_reader"]
    time = found["time"] or (None,)
    return ReadSettings(
        **found
        | {
            "time": time if len(time) > 1 else time[0],
            "alignment": None if clock is None else Alignment.restore(clock),
            "time_reader": None if times is None else TimeReader.restore(times),
        }
    )
