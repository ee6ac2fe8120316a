"""Parameters of a detector as plain values that a file can hold, and back: only what is listed here.

Plain ones (None, bool, int, float, str) stay what they are; the others become {"type": …, …}.
"""

from __future__ import annotations

from dataclasses import fields
from numbers import Integral, Real
from typing import Any

import numpy as np

from penstock.factor import Auto, BlockSGD, Coordinate, Multiplicative, RowBlocks
from penstock.storage import Record, StorageError
from penstock.thresholds import Threshold, pack_threshold, unpack_threshold

_SETTINGS: dict[str, Any] = {
    "Auto": Auto,
    "BlockSGD": BlockSGD,
    "Coordinate": Coordinate,
    "Multiplicative": Multiplicative,
    "RowBlocks": RowBlocks,
}
_LATER = {"Auto": ("n_blocks",), "BlockSGD": ("blocks",)}  # fields that older files lack: these keep their default
_RENAMED = {"score": "score_kind"}  # parameters by the names they have in older files
_PLAIN = (type(None), bool, int, float, str)


def pack_parameters(owner: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters as files hold them; a TypeError names one that cannot be stored."""
    return {name: _pack(value, f"{owner}.{name}") for name, value in parameters.items()}


def _pack(value: Any, place: str) -> Any:
    if type(value) in _PLAIN:
        return value
    if isinstance(value, np.bool_ | np.integer | np.float32 | np.float64):
        return {"type": "numpy", "value": np.asarray(value)}
    if type(value) in _SETTINGS.values():
        content = {field.name: _pack(getattr(value, field.name), f"{place}.{field.name}") for field in fields(value)}
        return {"type": "settings", "name": type(value).__name__, "fields": content}
    if type(value) is np.random.RandomState and value.get_state(legacy=False)["bit_generator"] == "MT19937":
        return _pack_random_state(value)
    if isinstance(value, Threshold):
        return _pack_threshold(value, place)
    raise TypeError(
        f"{place} = {value!r:.200} cannot be stored. Files hold None, numbers, text, the solver settings of "
        f"penstock.factor, the thresholds of penstock.thresholds and np.random.RandomState as parameters."
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


def _pack_threshold(value: Threshold, place: str) -> dict[str, Any]:
    try:
        return {"type": "threshold", "content": pack_threshold(value)}
    except ValueError as error:
        raise TypeError(f"{place} = {value!r:.200} cannot be stored. {error}") from error


def unpack_parameters(cls: type, content: Any) -> dict[str, Any]:
    """Parameters for the class. One that the file lacks keeps its default; one that the class lacks is refused."""
    Record(content, "parameters")
    known = cls._get_param_names()  # type: ignore[attr-defined]
    content = {_RENAMED.get(name, name) if name not in known else name: value for name, value in content.items()}
    strange = sorted(set(content) - set(known))
    if strange:
        raise StorageError(f"{cls.__name__} has no parameter {strange[0]!r:.80}")
    return {name: _unpack(value, f"parameters[{name!r}]") for name, value in content.items()}


def _unpack(value: Any, place: str) -> Any:
    if type(value) in _PLAIN:
        return value
    record = Record(value, place)
    kind = record.text("type")
    if kind == "numpy":
        return record.only("type", "value").array("value", getattr(record.value("value"), "dtype", None), ())[()]
    if kind == "settings":
        return _unpack_settings(record.only("type", "name", "fields"), place)
    if kind == "RandomState":
        return _unpack_random_state(record.only("type", "keys", "position", "has_gauss", "gauss"))
    if kind == "threshold":
        return unpack_threshold(record.only("type", "content").value("content"))
    raise record.trouble("type", "a known kind of parameter")


def _unpack_settings(record: Record, place: str) -> Any:
    name = record.text("name")
    if name not in _SETTINGS:
        raise record.trouble("name", f"one of {', '.join(_SETTINGS)}")
    content = record.part("fields")
    defaults = {field.name: field.default for field in fields(_SETTINGS[name])}
    stored = [field for field in defaults if field in record.value("fields") or field not in _LATER.get(name, ())]
    content.only(*stored)
    values = {field: _unpack(content.value(field), f"{place}.{field}") for field in stored}
    for field, value in values.items():
        if not _is_like(value, defaults[field]):
            like = "None or a whole number" if defaults[field] is None else f"a value like {defaults[field]!r}"
            raise content.trouble(field, like)
    return _SETTINGS[name](**values)


def _is_like(value: Any, default: Any) -> bool:
    """Whether a setting's value is of the sort of its default: a word, a switch, a whole number or a number.

    A default of None stands for a whole number that need not be given.
    """
    if default is None:
        return value is None or (isinstance(value, Integral) and not isinstance(value, bool | np.bool_))
    if isinstance(default, str):
        return isinstance(value, str)
    if isinstance(default, bool) or isinstance(value, bool | np.bool_):
        return isinstance(default, bool) and isinstance(value, bool | np.bool_)
    return isinstance(value, Integral if isinstance(default, int) else Real)


def _unpack_random_state(record: Record) -> np.random.RandomState:
    result = np.random.RandomState()
    keys = record.array("keys", np.uint32, (624,))
    position, has_gauss = record.whole("position", least=0, most=624), record.whole("has_gauss", least=0, most=1)
    result.set_state(("MT19937", keys, position, has_gauss, record.number("gauss")))
    return result
