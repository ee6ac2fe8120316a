"""Save detectors to files and restore them from what a file holds (`penstock.load` reads files).

A file names only classes listed in `penstock.registry`. Plain parameters (None, bool, int, float, str) stay what they
are in a file; the others become {"type": …, …}, and only the kinds listed below can be stored.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import fields
from typing import Any, get_args

import numpy as np

from penstock.factor.settings import Settings
from penstock.registry import DETECTORS, detector_class
from penstock.storage import Fields, Record, StorageError, read_fields
from penstock.thresholds import Threshold, pack_threshold, unpack_threshold

KIND = "detector"
_SETTINGS: dict[str, Any] = {cls.__name__: cls for cls in get_args(Settings)}
_RANDOM: Fields = {
    "type": str, "keys": "624 uint32", "position": "int >=0 <=624", "has_gauss": "int >=0 <=1", "gauss": float,
}  # fmt: skip
_PLAIN = (type(None), bool, int, float, str)


class Saveable(ABC):
    """A detector that `save` writes to a file and `penstock.load` reads again, equal to the last bit.

    A class that can be saved is listed in `penstock.registry`, is a scikit-learn estimator whose parameters can be
    stored, checks them in `check_parameters`, and implements `_pack`, `_unpack` and `_has_state`.

    >>> import tempfile, penstock
    >>> path = tempfile.mkdtemp() + "/norm.safetensors"
    >>> penstock.detectors.NormScore().fit([[0.0], [1.0], [4.0]]).save(path)
    >>> penstock.load(path).anomaly_score([[2.0]])
    array([0.5])
    """

    @abstractmethod
    def _pack(self, *, labels: bool) -> dict[str, Any]:
        """Return the fitted state as `penstock.storage.write_state` takes it, with the labels of rows if wanted.

        Not `vars(self)`: attributes may be renamed, files stay.
        """

    @abstractmethod
    def _unpack(self, state: dict[str, Any]) -> None:
        """Take over what `_pack` returned, without fitting again.

        The state may be hostile: all of it is checked (`penstock.storage.Record`), and what does not fit raises a
        ValueError.
        """

    @abstractmethod
    def _has_state(self) -> bool:
        """Return whether there is anything to pack apart from the parameters."""

    @abstractmethod
    def check_parameters(self) -> None:
        """Raise a ValueError if a parameter is out of bounds."""

    def _whole_state(self, *, labels: bool) -> dict[str, Any]:
        """Return what `restore` needs."""
        name = self._listed_name()
        fitted = self._pack(labels=labels) if self._has_state() else None
        self.check_parameters()  # what could not be loaded must not be saved
        return {"class": name, "parameters": pack_parameters(name, self._storable_parameters()), "fitted": fitted}

    def _listed_name(self) -> str:
        """Return the name of the class; a TypeError if it is not one that files may name."""
        cls = type(self)
        entry = DETECTORS.get(cls.__name__)
        if entry is None or entry.module != cls.__module__:
            raise TypeError(
                f"{cls.__module__}.{cls.__name__} cannot be saved: files hold penstock's own detectors only "
                f"({', '.join(DETECTORS)}), because loading one must not run code that a file names. Save its "
                f"parameters and fit it again."
            )
        return cls.__name__

    def _storable_parameters(self) -> dict[str, Any]:
        """Return the parameters as files hold them."""
        return dict(self.get_params(deep=False))  # type: ignore[attr-defined]


def state_of(detector: Saveable) -> dict[str, Any]:
    """Return a fitted detector as part of a larger state, without the labels of its rows; see `restore`."""
    return detector._whole_state(labels=False)


def restore(state: dict[str, Any]) -> Any:
    """Return the detector of a state that was read from a file; what does not fit raises a ValueError or the like."""
    record = Record(state, "detector").require_fields("class", "parameters", "fitted")
    detector = _make(record)
    detector.check_parameters()
    if record.optional_part("fitted") is not None:
        detector._unpack(record.value("fitted"))
    return detector


def _make(record: Record) -> Any:
    """Return a detector, not fitted, of the class and the parameters that a file names."""
    name = record.text("class")
    if name not in DETECTORS:
        raise StorageError(f"{name!r:.80} is not a detector of this version of penstock")
    try:
        cls = detector_class(name)
    except ImportError as error:
        raise StorageError(str(error)) from error
    return cls(**unpack_parameters(cls, record.value("parameters")))


def pack_parameters(owner: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters as files hold them; a TypeError names one that cannot be stored."""
    return {name: _pack(value, f"{owner}.{name}") for name, value in parameters.items()}


def _pack(value: Any, place: str) -> Any:
    if type(value) in _PLAIN:
        return value
    numbers = type(value) is tuple and all(type(each) is int for each in value)
    if numbers or isinstance(value, np.bool_ | np.integer | np.float32 | np.float64):
        return {"type": "numpy", "value": np.asarray(value, dtype=np.int64 if numbers else None)}
    if type(value) in _SETTINGS.values():
        content = {field.name: _pack(getattr(value, field.name), f"{place}.{field.name}") for field in fields(value)}
        return {"type": "settings", "name": type(value).__name__, "fields": content}
    if type(value) is np.random.RandomState and value.get_state(legacy=False)["bit_generator"] == "MT19937":
        return _pack_random_state(value)
    if isinstance(value, Threshold):
        try:
            return {"type": "threshold", "content": pack_threshold(value)}
        except ValueError as error:
            raise TypeError(f"{place} = {value!r:.200} cannot be stored. {error}") from error
    if isinstance(value, Saveable):
        name = value._listed_name()
        return {"type": "detector", "class": name, "parameters": pack_parameters(name, value._storable_parameters())}
    raise TypeError(
        f"{place} = {value!r:.200} cannot be stored. Files hold None, numbers, text, the solver settings of "
        f"penstock.factor, the thresholds of penstock.thresholds, detectors and np.random.RandomState as parameters."
    )


def _pack_random_state(value: np.random.RandomState) -> dict[str, Any]:
    state: Any = value.get_state(legacy=False)
    return {
        "type": "RandomState",
        "keys": state["state"]["key"],
        "position": int(state["state"]["pos"]),
        "has_gauss": int(state["has_gauss"]),
        "gauss": float(state["gauss"]),
    }


def unpack_parameters(cls: type, content: Any) -> dict[str, Any]:
    """Return parameters for a class; those that the file lacks keep their defaults, unknown ones are refused."""
    Record(content, "parameters")
    known = cls._get_param_names()  # type: ignore[attr-defined]
    unknown = sorted(set(content) - set(known))
    if unknown:
        raise StorageError(f"{cls.__name__} has no parameter {unknown[0]!r:.80}")
    return {name: _unpack(value, f"parameters[{name!r}]") for name, value in content.items()}


def _unpack(value: Any, place: str) -> Any:
    if type(value) in _PLAIN:
        return value
    record = Record(value, place)
    kind = record.text("type")
    if kind == "numpy":
        several = np.ndim(record.require_fields("type", "value").value("value")) == 1
        dtype = np.int64 if several else getattr(record.value("value"), "dtype", None)
        found = record.array("value", dtype, (None,) if several else ())
        return tuple(found.tolist()) if several else found[()]
    if kind == "settings":
        return _unpack_settings(record.require_fields("type", "name", "fields"), place)
    if kind == "RandomState":
        return _unpack_random_state(record)
    if kind == "threshold":
        return unpack_threshold(record.require_fields("type", "content").value("content"))
    if kind == "detector":
        return _make(record.require_fields("type", "class", "parameters"))
    raise record.error("type", "a known kind of parameter")


def _unpack_settings(record: Record, place: str) -> Any:
    name = record.text("name")
    if name not in _SETTINGS:
        raise record.error("name", f"one of {', '.join(_SETTINGS)}")
    content = record.part("fields")
    names = [field.name for field in fields(_SETTINGS[name])]
    content.require_fields(*names)
    return _SETTINGS[name](**{field: _unpack(content.value(field), f"{place}.{field}") for field in names})


def _unpack_random_state(record: Record) -> np.random.RandomState:
    result = np.random.RandomState()
    _, *state = read_fields(record, _RANDOM).values()
    result.set_state(("MT19937", *state))
    return result
