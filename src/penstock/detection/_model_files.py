"""Save models to files and load models and detectors, without pickle."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pandas as pd

from penstock.columns import Encoding, InputChoice, InputRole, LeftOut, parse_rule
from penstock.detection._parts import ALL, MOST_REFERENCES, Part, is_scaled_before, rebuilds
from penstock.detection._preparing import LEARNT, Reading
from penstock.detection.model import Model
from penstock.detection.modes import CHANGING, MOST_RULES, OTHER, UNKNOWN, ModePlan, refuse_names
from penstock.detectors import MONITOR, SeriesMonitor, restore, restore_monitor, state_of
from penstock.explain import MOST_LABELS, Label
from penstock.io import Alignment, AlignOptions, TimeOptions, TimeReader, as_zone
from penstock.prepare import unpack_scaling
from penstock.storage import Record, StorageError, WrongKindError, read_state, write_state

KIND = "model"
_NONE = type(None)
_PLAIN = (_NONE, bool, int, float, str)
_READING = {
    "time": (_NONE, str, list), "columns": (_NONE, list), "exclude": (list,), "label": (_NONE, str),
    "group": (_NONE, str),
    "timezone": (_NONE, str), "strict": (bool,), "day_first": (_NONE, bool), "separator": (_NONE, str),
    "decimal": (_NONE, str), "thousands": (_NONE, str), "encoding": (_NONE, str), "sheet": (_NONE, str),
    "max_bytes": (_NONE, int), "missing": (list,), "time_format": (_NONE, str), "names": (list,),
    "step": (_NONE, str), "hold": (_NONE, str),
}  # fmt: skip


def save_model(model: Model, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write a model to a file atomically; an existing file is replaced only if `overwrite`."""
    if os.path.lexists(path) and not overwrite:
        raise FileExistsError(
            f"{os.fspath(path)} is there already. Choose another name, or overwrite=True (--overwrite)."
        )
    state = _pack(model)
    _unpack_reading(Record(state["reading"], "reading"))  # what could not be loaded must not be saved
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
    raise WrongKindError(f"Cannot load {os.fspath(path)}: it holds a {kind!r:.80}, not a detector or a model")


def load_model(path: str | os.PathLike[str]) -> Model:
    """Load a model of `penstock fit`.

    Parameters
    ----------
    path : path
        A file that `Model.save` or `penstock fit` wrote. It is checked, and nothing in it is executed.

    Returns
    -------
    Model

    Raises
    ------
    penstock.storage.WrongKindError
        If the file holds a detector: `penstock.load` opens both.

    Examples
    --------
    >>> import tempfile
    >>> import penstock
    >>> table = penstock.datasets.load_plant().table
    >>> path = f"{tempfile.mkdtemp()}/plant.model"
    >>> penstock.fit_model(table, method="norm").save(path)
    >>> load_model(path).parts[0].detector
    NormScore()
    """
    model = load(path)
    if not isinstance(model, Model):
        kind = "monitor" if isinstance(model, SeriesMonitor) else "detector"
        raise WrongKindError(
            f"Cannot load {os.fspath(path)}: it holds a {kind}, {type(model).__name__}, not a model of penstock fit"
        )
    return model


def _pack(model: Model) -> dict[str, Any]:
    settle = model.modes.settle
    return {
        "reading": {
            **{name: _plain(getattr(model.reading, name)) for name in _READING},
            **{name: _state(getattr(model.reading, name)) for name in LEARNT},
        },
        "inputs": _pack_inputs(model.inputs),
        "modes": {
            "column": model.modes.column,
            "rules": [{"name": name, "rule": str(rule)} for name, rule in model.modes.rules],
            "skip": list(model.modes.skip),
            "settle_rows": settle if isinstance(settle, int) else None,
            "settle_seconds": settle.total_seconds() if isinstance(settle, pd.Timedelta) else None,
        },
        "parts": [
            {
                "mode": part.mode,
                "usual": float(part.usual),
                "scaled_before": None if part.scaled_before is None else part.scaled_before.pack(),
                "reference": part.reference,
                "detector": state_of(part.detector),
            }
            for part in model.parts
        ],
        "units": dict(model.units),
        "settings": {name: _plain(value) for name, value in model.settings.items()},
        "labels": [{**each.as_dict(), "pattern": dict(each.pattern)} for each in model.labels],
    }


def _unpack(record: Record) -> Model:
    record.require_fields("reading", "inputs", "modes", "parts", "units", "settings", "labels")
    inputs = _unpack_inputs(record.part("inputs"))
    packed = _list(record, "parts")
    if not 1 <= len(packed) <= MOST_RULES + 1:  # one for rows to which no rule applies
        raise StorageError(f"a model has 1 to {MOST_RULES + 1} parts, not {len(packed):,}")
    parts = tuple(_unpack_part(Record(part, f"parts[{n}]"), inputs) for n, part in enumerate(packed))
    modes = _unpack_modes(record.part("modes"))
    if len({part.mode for part in parts}) < len(parts):
        raise StorageError("a model has one part for each mode")
    names = [name for name, _ in modes.rules]
    possible = {*names, OTHER} - {*modes.skip} if names else {ALL}
    for part in parts:  # a row that is judged must be able to have its mode
        if part.mode in (*modes.skip, UNKNOWN, CHANGING) if modes.column is not None else part.mode not in possible:
            raise StorageError(f"a part is of a mode that no row has, {part.mode!r:.80}")
    units = record.value("units")
    if type(units) is not dict or set(units) != set(inputs.names) or not all(type(u) is str for u in units.values()):
        raise record.error("units", "a text for each input")
    settings = record.value("settings")
    if type(settings) is not dict or not all(isinstance(value, _PLAIN) for value in settings.values()):
        raise record.error("settings", "plain values by name")
    labels = tuple(Label.from_dict(each) for each in _list(record, "labels"))
    if len(labels) > MOST_LABELS or len({each.id for each in labels}) < len(labels):
        raise record.error("labels", f"at most {MOST_LABELS} labels with ids that differ")
    return Model(_unpack_reading(record.part("reading")), inputs, modes, parts, units, settings, labels=labels)


def _unpack_part(record: Record, inputs: InputChoice) -> Part:
    record.require_fields("mode", "usual", "scaled_before", "reference", "detector")
    detector = restore(record.value("detector"))
    # One for streams may have been saved in its warm-up, without scores.
    scored = getattr(detector, "is_warm", True) and np.isfinite(getattr(detector, "scores_", np.nan)).any()
    if getattr(detector, "n_features_in_", None) != len(inputs.names) or not scored:
        raise StorageError(f"the detector of mode {record.text('mode')!r:.80} is not fitted to the inputs")
    usual = record.number("usual", least=0.0)
    if usual == 0:
        raise record.error("usual", "positive")
    scaling = unpack_scaling(record.optional_part("scaled_before"), len(inputs.names))
    if (scaling is not None) != is_scaled_before(detector):
        raise record.error("scaled_before", "a range for a detector of streams, and None for others")
    if not rebuilds(detector):
        reference = record.array("reference", np.float64, (None, len(inputs.names)), missing=True)
        if not 0 < len(reference) <= MOST_REFERENCES:
            raise record.error("reference", f"1 to {MOST_REFERENCES:,} rows")
        return Part(record.text("mode"), detector, usual, scaling, reference)
    if record.value("reference") is not None:
        raise record.error("reference", "None for a detector that rebuilds rows")
    return Part(record.text("mode"), detector, usual, scaling)


def _pack_inputs(inputs: InputChoice) -> dict[str, Any]:
    return {
        "as_they_are": list(inputs.as_they_are),
        "encoded": [
            {"column": each.column, "method": each.method, "categories": list(each.categories),
             "counts": list(each.counts)}
            for each in inputs.encoded
        ],
        "left_out": [{"name": each.name, "reason": each.reason} for each in inputs.left_out],
        "roles": {name: {**vars(role), "levels": list(role.levels)} for name, role in inputs.roles.items()},
    }  # fmt: skip


def _unpack_inputs(record: Record) -> InputChoice:
    record.require_fields("as_they_are", "encoded", "left_out", "roles")
    encoded = [_unpack_encoding(Record(each, "encoded")) for each in _list(record, "encoded")]
    left_out = [Record(each, "left_out").require_fields("name", "reason") for each in _list(record, "left_out")]
    roles = _parts(record, "roles")
    choice = InputChoice(
        _texts(record, "as_they_are"),
        tuple(encoded),
        tuple(LeftOut(each.text("name"), each.text("reason")) for each in left_out),
        {name: _unpack_role(Record(role, f"roles[{name!r:.80}]")) for name, role in roles.items()},
    )
    if set(choice.roles) != set(choice.names):
        raise record.error("roles", "a role for each input")
    if len(set(choice.names)) < len(choice.names):
        raise record.error("as_they_are", "names that differ")
    return choice


def _unpack_role(record: Record) -> InputRole:
    record.require_fields("role", "scored", "named", "levels", "low", "high")
    levels = _list(record, "levels")
    if not all(type(level) is float and np.isfinite(level) for level in levels) or sorted(set(levels)) != levels:
        raise record.error("levels", "numbers in ascending order")
    low, high = (_bound(record, name) for name in ("low", "high"))
    return InputRole(record.text("role"), record.flag("scored"), record.flag("named"), tuple(levels), low, high)


def _bound(record: Record, name: str) -> float:
    value = record.value(name)
    if type(value) is not float:
        raise record.error(name, "a number")
    return value


def _parts(record: Record, name: str) -> dict[str, Any]:
    value = record.value(name)
    if type(value) is not dict:
        raise record.error(name, "records by name")
    return value


def _unpack_encoding(record: Record) -> Encoding:
    record.require_fields("column", "method", "categories", "counts")
    counts = _list(record, "counts")
    categories = _texts(record, "categories")
    if len(counts) != len(categories) or not counts or not all(type(n) is int and 0 < n < 2**53 for n in counts):
        raise record.error("counts", "a positive whole number for each category")
    if len(set(categories)) < len(categories):
        raise record.error("categories", "texts that differ")
    if record.text("method") not in Encoding.METHODS:
        raise record.error("method", " or ".join(Encoding.METHODS))
    return Encoding(record.text("column"), record.text("method"), categories, tuple(counts))


def _unpack_modes(record: Record) -> ModePlan:
    record.require_fields("column", "rules", "skip", "settle_rows", "settle_seconds")
    rules = [Record(each, "rules").require_fields("name", "rule") for each in _list(record, "rules")]
    settle: pd.Timedelta | int | None = None
    if record.value("column") is not None and rules:
        raise record.error("column", "None where there are rules")
    if record.value("settle_rows") is not None and record.value("settle_seconds") is not None:
        raise record.error("settle_seconds", "None where rows are counted")
    refuse_names([each.text("name") for each in rules])
    if record.value("settle_rows") is not None:
        settle = record.whole("settle_rows", least=0)
    elif record.value("settle_seconds") is not None:
        settle = pd.Timedelta(seconds=record.number("settle_seconds", least=0.0))
    return ModePlan(
        None if record.value("column") is None else record.text("column"),
        tuple((each.text("name"), parse_rule(each.text("rule"))) for each in rules),
        _texts(record, "skip"),
        settle,
    )


def _unpack_reading(record: Record) -> Reading:
    record.require_fields(*_READING, *LEARNT)
    given: dict[str, Any] = {}
    for name, kinds in _READING.items():
        value = record.value(name)
        if type(value) not in kinds:
            raise record.error(name, " or ".join(kind.__name__ for kind in kinds))
        given[name] = _texts(record, name) if type(value) is list else value
    as_zone(given["timezone"])
    TimeOptions(format=given["time_format"])
    AlignOptions.of(given["step"], given["hold"])
    clock, reader = record.optional_part("alignment"), record.value("time_reader")
    return Reading(
        **given,
        alignment=None if clock is None else Alignment.restore(clock),
        time_reader=None if reader is None else TimeReader.restore(reader),
        words=_texts(record, "words"),
    )


def _state(learnt: TimeReader | Alignment | tuple[str, ...] | None) -> Any:
    return list(learnt) if isinstance(learnt, tuple) else None if learnt is None else learnt.state()


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    return value if isinstance(value, _PLAIN) else str(value)


def _list(record: Record, name: str) -> list[Any]:
    value = record.value(name)
    if type(value) is not list:
        raise record.error(name, "a list")
    return value


def _texts(record: Record, name: str) -> tuple[str, ...]:
    values = _list(record, name)
    if not all(type(value) is str for value in values):
        raise record.error(name, "a list of texts")
    return tuple(values)
